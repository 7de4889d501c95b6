from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    Access, CCapture, CStream, HazardMode, HostAccess, HostTask, Moment, OperationKind, Past, Point, Race, Record, Ref,
    Site, Storage, Touch, Use, raise_own_wait, translate)
from anabranch._core.explore cimport TouchSpan, observing
from anabranch._task.context cimport TaskState, current_task
from anabranch._task.site cimport current_site


cdef extern from "anabranch/hazard/host_order.hpp" namespace "anabranch" nogil:
    vector[Use] uses_of(const Touch&) except +
    bint is_own_wait(const HostTask&, const Past&)
    void follow_use(HostTask&, const Use&) except +
    void follow_use(CStream&, const Use&) except +
    Past past_of(CStream&) except +
    Past past_within(CStream&) except +
    cdef cppclass Observation:
        Observation()
        uint64_t version
        Past past
    Observation observation_of(CStream&, const HostTask&) except +
    uint64_t begin_operation(CStream&, const HostTask&) except +
    void note_operation(CStream&, uint64_t snapshot) except +
    void wait_for_stream(CStream&, CStream& target, const HostTask&) except +translate
    cdef cppclass DeferredMoment:
        void set(Moment)
        bint is_set()
        const Moment& get()
    void follow_call(HostTask&, const Past& before, const Moment&) except +

cdef extern from "anabranch/hazard/submission.hpp" namespace "anabranch" nogil:
    cdef cppclass KeptMemory:
        KeptMemory()
        KeptMemory(const Touch*, size_t) except +
    cdef cppclass Refusal:
        vector[Race] races
        vector[Touch] touches
        Ref[CStream] stream
    cdef cppclass Submission:
        Submission()
        Submission(CStream&, HazardMode, TouchSpan)
        unique_ptr[Refusal] begin(const HostTask&, CCapture*) except +translate
        void begin_in_order() except +
        bint proceed(const HostTask&, const Refusal&) except +translate
        void commit(Point, Site) except +translate
        Past past() except +
        Moment advance() except +
        void commit_call(Point, Site, const Moment&) except +


# The access that a kernel's parameter declares: 0 in-out, 1 in, 2 out.
cdef inline Access access_of(int code) noexcept:
    return Access.read if code == 1 else Access.write if code == 2 else Access.read_write


# Orders the operation that a task is about to enqueue. Until it is committed, no Python code that could close the
# arrays may run. Raises RaceError, CaptureError, and the errors of the device's waits; the operation must then not be
# enqueued.
cdef inline int begin(
        Submission* submission, TaskState state, CStream* stream, const Touch* touches, size_t count) except -1:
    submission[0] = Submission(stream[0], <HazardMode>state.mode, TouchSpan(touches, count))
    cdef Refusal* refusal = submission.begin(state.task.core.get()[0], state.capture.get()).release()
    return 0 if refusal == NULL else report(refusal, submission, state)

# The same for an operation that touches no memory: in every mode it follows everything that the task has waited for.
cdef inline int begin_untouched(Submission* submission, TaskState state, CStream* stream) except -1:
    submission[0] = Submission(stream[0], HazardMode.automatic, TouchSpan())
    submission.begin(state.task.core.get()[0], state.capture.get())
    return 0

# Raises RaceError, unless races are collected; the operation then goes ahead. Takes ownership of the refusal.
cdef int report(Refusal* refusal, Submission* submission, TaskState state) except -1


# Records the operation after it was enqueued.
cdef inline int commit(Submission* submission, TaskState state, Point point) except -1:
    cdef Site site
    if state.mode == <int>HazardMode.check:
        site = current_site()
    submission.commit(point, site)
    return 0

# `commit_traced` while operations are observed.
cdef int commit_observed(
    Submission* submission, TaskState state, CStream* stream, Point point, OperationKind kind, size_t size) except -1

# Commits an operation and traces it, without a name; `size`: the bytes that it touches, if known.
cdef inline int commit_traced(
        Submission* submission, TaskState state, CStream* stream, Point point, OperationKind kind,
        size_t size) except -1:
    if observing():
        return commit_observed(submission, state, stream, point, kind, size)
    return commit(submission, state, point)


# Raises CaptureError for memory that captured work of the task writes.
cdef int refuse_captured(TaskState state, Storage* storage) except -1
# Raises CaptureError for memory that a later call replaces by other memory.
cdef int refuse_alias(Storage* storage) except -1
# Raises in a host function if the past includes the function, so that a wait for it would never end.
cdef inline int refuse_own_wait_for(const Past& past) except -1:
    return raise_own_wait() if is_own_wait(deref(current_task()), past) else 0

# What must be completed before the host makes the access. In a host function, what others enqueue after it is left out,
# and for what the function itself has enqueued after it, this raises.
cdef vector[Use] uses_before_host(TaskState state, const Touch& touch) except *
# Orders an access that the host is about to make: blocks until the accesses before it have completed, which the task
# then knows. Raises RaceError, with `checked`, and CaptureError for memory that captured work writes.
cdef int order_host(TaskState state, Touch touch, bint checked) except -1
# Call before another library's memory returns to its owner. Raises RaceError if an access may be unfinished.
cdef int order_return(Storage* storage) except -1
# Call after an access of the host that `order_host` has ordered.
cdef int note_host_access(TaskState state, Touch touch) except -1
# Raises RaceError for work that touches memory which the host is accessing.
cdef int refuse_open(TaskState state, Touch touch) except -1
# Begins an access of the host; the object ends it. None: the access is not tracked.
cdef OpenAccess open_access(TaskState state, Touch touch)


cdef class OpenAccess:
    cdef Ref[HostAccess] core   # null: an exploration's alone
    cdef uint64_t view          # of an exploration; 0: none


cdef class Found:
    """A race that was found, before it is put into words."""
    cdef Use first
    cdef Site site              # of the second access
    cdef Access access
    cdef Ref[CStream] stream    # null: the host
    cdef Site allocated
    cdef bint open              # the first access is one of the host's that has not ended
    cdef bint returned          # the second is the return of the memory to its owner
    cdef size_t size
    cdef size_t low
    cdef size_t high


# The current task has observed that the stream's work is completed.
cdef inline int observe(const Observation& observation) except -1:
    if observation.version != 0:
        current_task().observe(observation.past, observation.version)
    return 0

cdef inline int observe_record(const Record& record) except -1:
    current_task().observe(record.past, record.version)
    return 0

cdef inline int observe_stream(CStream* stream) except -1:
    return observe(observation_of(stream[0], current_task()[0]))


cdef class PastOf:
    """A past, as an object that Python code can pass on."""
    cdef Past past


cdef class Touches:
    """The touches of an operation, with their arrays, as an object that Python code can pass on."""
    cdef vector[Touch] all
    cdef list arrays
