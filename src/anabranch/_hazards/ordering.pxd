from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    Access, CStream, HazardMode, HostAccess, HostTask, Moment, Past, Point, Record, Ref, Site, Storage, Touch, Use,
    open_operation, tracing, translate)
from anabranch._task.context cimport TaskState, current_task
from anabranch._task.site cimport current_site


cdef extern from "anabranch/_hazards/ordering.hpp" namespace "anabranch::python" nogil:
    bint is_ordered(CStream&, const HostTask&, const Touch*, size_t) except +
    bint passes(CStream&, const HostTask&, const Touch*, size_t) except +
    uint64_t look_before(CStream&) except +
    void note_touches(CStream&, Point, const Touch*, size_t, int mode, Site, uint64_t learned) except +
    vector[Use] uses_of(const Touch&) except +
    vector[Use] uses_before(const HostTask&, const Touch&) except +
    void note_touches_at(CStream&, Point, const Touch*, size_t, int mode, Site, const Moment&) except +
    void follow_call(HostTask&, const Past& before, const Moment&) except +
    # What is put in without touches: before, and after with what that returned.
    uint64_t hand_on(CStream&, const HostTask&) except +
    Past past_of(CStream&) except +
    void note_captured(CStream&, Point, const Touch*, size_t, int mode, Site, uint64_t learned) except +translate
    Past past_within(CStream&) except +
    void note_operation(CStream&, uint64_t learned) except +
    cdef cppclass ComingMoment:
        void set(Moment)
        const Moment& get()
    cdef cppclass Sight:
        Sight()
        uint64_t version
        Past past
    # What is in a stream by now, if that is news to the task.
    Sight look(CStream&, const HostTask&) except +
    void wait_for_stream(CStream&, CStream& target, const HostTask&) except +translate
    void follow_use(HostTask&, const Use&) except +
    void follow_use(CStream&, const Use&) except +


# What a kernel's parameter is declared: 0 in-out, 1 in, 2 out.
cdef inline Access access_of(int code) noexcept:
    return Access.read if code == 1 else Access.write if code == 2 else Access.read_write


# What an operation touches is in order before the operation is enqueued, which is then traced. Returns what the lane of
# the stream has learned by then, for `note`; never 0. Raises RaceError.
cdef inline uint64_t order(TaskState state, CStream* stream, const Touch* touches, size_t count) except 0:
    if stream.capture() != NULL:
        order_captured(state, stream, touches, count)
        return look_before(stream[0])
    if state.capture.get() != NULL:
        refuse_outside(state)
    if state.mode == <int>HazardMode.automatic:
        if not is_ordered(stream[0], state.task.core.get()[0], touches, count):
            add_missing(state, stream, touches, count)
    elif state.mode == <int>HazardMode.check:
        if not passes(stream[0], state.task.core.get()[0], touches, count):
            check(state, stream, touches, count)
    if tracing():
        open_operation(stream[0])
    return look_before(stream[0])

# Raises CaptureError in a capture that nothing else may go beside.
cdef int refuse_outside(TaskState state) except -1
# The same for what is put into a stream that is captured.
cdef int order_captured(TaskState state, CStream* stream, const Touch* touches, size_t count) except -1
cdef int check(TaskState state, CStream* stream, const Touch* touches, size_t count) except -1
cdef int add_missing(TaskState state, CStream* stream, const Touch* touches, size_t count) except -1


# And remembered after that.
cdef inline int note(
        TaskState state, CStream* stream, Point point, const Touch* touches, size_t count,
        uint64_t learned) except -1:
    cdef Site site
    if state.mode == <int>HazardMode.check:
        site = current_site()
    if stream.capture() != NULL:
        note_captured(stream[0], point, touches, count, state.mode, site, learned)
    else:
        note_touches(stream[0], point, touches, count, state.mode, site, learned)
    return 0

# Of an operation that already has its moment; none where it is not kept track of.
cdef inline int note_at(
        TaskState state, CStream* stream, Point point, const Touch* touches, size_t count,
        const Moment& when) except -1:
    cdef Site site
    if state.mode == <int>HazardMode.check:
        site = current_site()
    note_touches_at(stream[0], point, touches, count, state.mode, site, when)
    return 0

# Raises CaptureError if it is what captured work of the task writes.
cdef int refuse_captured(TaskState state, Storage* storage) except -1
# Raises CaptureError for memory that later calls will have others of.
cdef int refuse_alias(Storage* storage) except -1
# The host is about to make an access, and blocks until it may; what that has to come after it then knows. Raises
# RaceError, with `checked`, and CaptureError for what captured work writes.
cdef int order_host(TaskState state, Touch touch, bint checked) except -1
# Another library's memory is about to go back to its owner. Raises RaceError for what is not known to be over with it.
cdef int order_return(Storage* storage) except -1
# And has done so.
cdef int note_host_access(TaskState state, Touch touch) except -1
# Or does so from now until the access is ended; None where it is not kept track of.
cdef OpenAccess open_access(TaskState state, Touch touch)


cdef class OpenAccess:
    cdef Ref[HostAccess] core


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


# The current task has found that to be over.
cdef inline int observe(const Sight& sight) except -1:
    if sight.version != 0:
        current_task().observe(sight.past, sight.version)
    return 0

cdef inline int observe_record(const Record& record) except -1:
    current_task().observe(record.past, record.version)
    return 0

cdef inline int observe_stream(CStream* stream) except -1:
    return observe(look(stream[0], current_task()[0]))


cdef class PastOf:
    """What came before something, for Python code to hand on."""
    cdef Past past


cdef class Touches:
    """What an operation touches, with the arrays, for Python code to hand on."""
    cdef vector[Touch] all
    cdef list arrays
