"""The C++ core as the Cython modules see it. Contracts are in the headers."""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector

cdef extern from "anabranch/_core/translate.hpp" namespace "anabranch::python" nogil:
    void translate()

cdef extern from "anabranch/ref.hpp" namespace "anabranch" nogil:
    cdef cppclass Ref[T]:
        Ref()
        Ref(const Ref[T]&)
        T* get() const
        T& operator*() const
        cbool operator bool() const
        void reset()
        @staticmethod
        Ref[T] share(T*)
        @staticmethod
        Ref[T] take(T*)
    cdef cppclass RefCounted:
        pass

cdef extern from "anabranch/error.hpp" namespace "anabranch" nogil:
    cdef cppclass Failure:
        void note_told()

cdef extern from "<cstddef>" namespace "std" nogil:
    cdef cppclass byte_t "std::byte":
        pass

cdef extern from "anabranch/memory/layout.hpp" namespace "anabranch" nogil:
    enum: max_dimensions
    cdef cppclass Layout:
        int ndim
        int64_t itemsize
        int64_t* shape
        int64_t* strides
        int64_t size() const
        cbool contiguous() const
        void extent(int64_t& low, int64_t& high) const
    Layout row_major(int ndim, const int64_t* shape, int64_t itemsize) except +translate
    enum class CElementType "anabranch::ElementType": raw
    cdef cppclass Elements:
        byte_t* pointer
        Layout layout
        int64_t offset
        CBackend* home
        CElementType type
    void copy_elements(const Elements& dst, const Elements& src, int64_t count)

ctypedef uint64_t Point

cdef extern from "anabranch/hazard/lane.hpp" namespace "anabranch" nogil:
    cdef cppclass LaneNumber:
        pass
    cdef cppclass Past:
        Past()
    cdef cppclass Moment:
        Ref[LaneNumber] lane
    cdef cppclass Lane:
        Moment advance(uint64_t snapshot)
        uint64_t snapshot()
        Past past() const
        void follow(const Past&)

cdef extern from "anabranch/stream/stream.hpp" namespace "anabranch" nogil:
    cpdef enum class StreamRole "anabranch::StreamRole":
        created
        legacy
        per_thread
    cdef cppclass StreamOptions:
        StreamOptions()
        int priority
        cbool non_blocking
        StreamRole role
        string name
    cdef cppclass Activity:
        uint64_t operations
        int64_t busy_nanoseconds
    cdef cppclass CStream "anabranch::Stream":
        CBackend& backend() const
        int priority() const
        cbool non_blocking() const
        StreamRole role() const
        const string& name() const
        Point issued() const
        uintptr_t handle() const
        Activity activity() const
        Lane& lane()
        CCapture* capture() const
        void add_handle()
        void remove_handle()
        cbool settle(Point, nanoseconds) except +translate
    cdef cppclass Waiter:
        pass

cdef extern from "anabranch/stream/event.hpp" namespace "anabranch" nogil:
    cdef cppclass Marker:
        pass
    cdef cppclass Record:
        Ref[CStream] stream
        Point point
        Ref[Marker] marker
        Past past
        uint64_t version
    cdef cppclass EventOptions:
        EventOptions()
        cbool timing
        cbool blocking
        cbool interprocess
    cdef cppclass CEvent "anabranch::Event":
        CBackend& backend() const
        const EventOptions& options() const
        Record last() const
        void record(CStream&, const Lane*) except +translate
        void wait(CStream&, const Lane*) except +translate
        cbool query(HostTask*) except +translate
        optional[double] elapsed(const CEvent&, HostTask*) except +translate
        uintptr_t handle() except +translate
    double elapsed_milliseconds(const Record&, const Record&) except +translate

cdef extern from "anabranch/stream/host.hpp" namespace "anabranch" nogil:
    cdef cppclass HostOperation:
        void complete()
        void complete(Ref[Failure])
        cbool completed() const
    cdef cppclass Inbox:
        cbool wait_until_short()
        long spare() const
    Inbox& host_inbox()
    const void*& host_function_stream()

cdef extern from "anabranch/hazard/history.hpp" namespace "anabranch" nogil:
    cpdef enum class Access "anabranch::Access":
        read
        write
        read_write
    cdef cppclass ByteRange:
        size_t low
        size_t high
    cdef cppclass Footprint:
        const ByteRange& bytes() const
    cdef cppclass Site:
        Site()
        uintptr_t code
        int instruction
    cdef cppclass Touch:
        Storage* storage
        size_t low
        size_t high
        const Layout* layout
        int64_t first
        Access access
        cbool overwrites
        Footprint footprint() const
    cdef cppclass Use:
        Ref[CStream] stream
        Point point
        Access access
        cbool open
        Moment when
        Footprint where
        Site site

cdef extern from "anabranch/memory/memory.hpp" namespace "anabranch" nogil:
    cpdef enum class MemoryKind "anabranch::MemoryKind":
        device
        pinned
        foreign
    cdef cppclass AccessLog:
        void note(CStream&, Point, Access, const ByteRange&) except +translate
        void note(CStream&, Point, Access, const ByteRange&, const Moment*, Site, cbool exact) except +translate
        void note(CStream&, Point, Access, const Footprint&, const Moment*, Site, cbool exact, cbool) except +translate
        void forget(const CStream&)
    cdef cppclass Storage:
        @staticmethod
        Ref[Storage] allocate(CBackend&, CStream*, size_t, MemoryKind) except +translate
        @staticmethod
        Ref[Storage] adopt(
            CBackend&, void*, size_t, cbool read_only, void* owner, void (*)(void*) noexcept) except +translate
        @staticmethod
        Ref[Storage] entrust(CStream&, void*, size_t, void* owner, void (*)(void*) noexcept) except +translate
        CBackend& backend() const
        byte_t* pointer() const
        size_t bytes() const
        MemoryKind kind() const
        void share() except +translate
        Site site
        cbool listed
        cbool unique() const
        @staticmethod
        Ref[Storage] alias(Ref[Storage])
        const Ref[Storage]& original() const
        AccessLog& accesses()

cdef extern from "anabranch/trace/trace.hpp" namespace "anabranch" nogil:
    cpdef enum class OperationKind "anabranch::OperationKind":
        kernel
        copy
        fill
        alloc
        free
        host
        graph
        record
        wait
        compile
        collective
    cdef cppclass Span:
        void read_times()
        uint64_t number
        int64_t begin
        int64_t end
    cdef cppclass TracedOperation:
        TracedOperation()
        OperationKind kind
        cbool added
        CBackend* backend
        Ref[CStream] stream
        Point point
        Point closed
        Ref[CStream] source
        Point source_point
        size_t bytes
        Ref[Span] span
        Site site
        string name
    cdef cppclass Trace:
        Trace()
        void start() except +translate
        void stop()
        int64_t began() const
        vector[TracedOperation] operations() except +translate
    cdef cppclass CallingSite "std::atomic<anabranch::Site (*)()>":
        void store(Site (*)() noexcept nogil)
    vector[TracedOperation] traced_after(const CStream&, Point) except +translate
    CallingSite calling_site
    cdef cppclass Correlate "std::atomic<void (*)(std::uint64_t)>":
        void store(void (*)(uint64_t) noexcept nogil)
    Correlate c_correlate "anabranch::correlate"
    int64_t now_nanoseconds()
    cbool tracing()
    void open_operation(CStream&) except +translate
    void close_operation(CStream&, TracedOperation) except +translate
    void trace_instant(CBackend&, TracedOperation) except +translate

cdef extern from "anabranch/hazard/hazard.hpp" namespace "anabranch" nogil:
    cpdef enum class HazardMode "anabranch::HazardMode":
        automatic
        check
        off
    cdef cppclass Race:
        Use first
        size_t second
    cdef cppclass HostTask:
        Lane lane
        Moment call
        void observe(const Past&, uint64_t version) except +
    cdef cppclass HostAccess:
        void end() except +translate
    void begin_function(const CStream&)
    void end_function()
    uint64_t added_waits()
    cbool checks_begun()
    void begin_checks()

cdef extern from "<chrono>" namespace "std::chrono" nogil:
    cdef cppclass nanoseconds:
        nanoseconds()
        nanoseconds(int64_t)

cdef extern from "<span>" namespace "std" nogil:
    cdef cppclass Slots "std::span<const std::uint64_t>":
        Slots(const uint64_t*, size_t)

cdef extern from "anabranch/backend.hpp" namespace "anabranch" nogil:
    cdef cppclass Capabilities:
        string kind
        int index
        string name
        size_t total_memory
        int lowest_priority
        int highest_priority
        int workers
        cbool host_memory
    cdef cppclass CKernel "anabranch::Kernel":
        CKernel(void* code, string name)
        cbool may_fail() const
    cdef cppclass Activation:
        pass
    cdef cppclass LaunchShape:
        LaunchShape()
        int ndim
        int64_t* dims
        int block
        int64_t size() const
    cdef cppclass CBackend "anabranch::Backend":
        const Capabilities& capabilities() const
        Ref[CStream] create_stream(StreamOptions) except +translate
        Ref[CStream] default_stream(StreamRole) except +translate
        Ref[CStream] find_stream(uintptr_t) except +translate
        vector[Ref[CStream]] streams() except +translate
        vector[Record] frontier(CStream&) except +translate
        Point newest(CStream&) except +translate
        Point record(CStream&) except +translate
        Point wait(CStream&, CStream&, Point) except +translate
        cbool query(CStream&, Point) except +translate
        cbool query(CStream&, Point, Marker*) except +translate
        cbool synchronize(CStream&, Point, nanoseconds, Marker*) except +translate
        cbool flush(CStream&, Point, nanoseconds) except +translate
        cbool notify(CStream&, Point, Waiter&, Marker*) except +translate
        void release_external(CStream&)
        size_t free_memory() except +translate
        void trim()
        Point copy(CStream&, const Elements&, const Elements&, int64_t) except +translate
        Point fill(CStream&, const Elements&, const void*, int64_t) except +translate
        Point launch(CStream&, CKernel&, const LaunchShape&, Slots) except +translate
        Point suspend(CStream&, Ref[HostOperation]) except +translate
        CBackend& device()
        unique_ptr[Activation] activate() except +translate

cdef extern from "anabranch/graph/graph.hpp" namespace "anabranch" nogil:
    cdef cppclass HostWork:
        pass

cdef extern from "anabranch/graph/capture.hpp" namespace "anabranch" nogil:
    cdef cppclass CCapture "anabranch::Capture":
        @staticmethod
        Ref[CCapture] begin(CStream&, Ref[CCapture]) except +translate
        void abandon(const string&)
        void make_exclusive()
        cbool exclusive() const
        cbool involves(const CBackend&) const
        cbool active() const
        string reason() const
        void refuse(const string&) except +translate
        cbool writes(Storage&) const
    cbool capturing()
    CStream& recorder_of "anabranch::Capture::recorder_of"(CStream&)

cdef extern from "anabranch/runtime.hpp" namespace "anabranch" nogil:
    cdef cppclass RuntimeOptions:
        string first_device
        cbool per_thread_default
        string default_reason
    void set_free_threaded(cbool)
    const RuntimeOptions& runtime_options() except +translate
    int first_device() except +translate
    CBackend& find_device(const string&) except +translate
    CBackend& owner_of(const void*) except +translate
    cbool forked()
    void check_fork() except +translate
    void stop_devices()

cdef extern from "anabranch/_core/host_job.hpp" namespace "anabranch::python" nogil:
    cpdef enum class JobKind "anabranch::python::JobKind":
        call
        notice
        discard
        give_back
        replay
    cdef cppclass PythonJob:
        JobKind kind
        void* object
        Ref[Failure] error
    cdef cppclass HostCall(HostOperation, PythonJob):
        void release()
    cdef cppclass Notice(Waiter, PythonJob):
        Notice(object)
    cdef cppclass ReplayedCall(HostOperation, PythonJob):
        void release()
    Ref[HostWork] make_graph_call(object)
    Ref[RefCounted] as_context(object)
    object context_of(const ReplayedCall&)
    void discard_reference "anabranch::python::discard"(void*) noexcept
    Ref[Failure] make_failure(const string&, object) except +translate
    Ref[HostOperation] as_pending(HostCall*)
    int raise_unnoted "anabranch::python::set_failure_error"(const Failure&) except -1
    void throw_unraised(CBackend&) except +translate


# Raises if the thread is in a host function of the stream, and the point is that function's or a later one.
cdef int refuse_own_wait(CStream* stream, Point point) except -1
cdef int raise_own_wait() except -1
# Blocks this thread until the point is reached, with `whole_device` as `Stream::settle`. Handles signals meanwhile.
cdef int synchronize_point(CStream* stream, Point point, Marker* marker=*, bint whole_device=*) except -1
# Blocks likewise until work that others enqueue on `stream` can be ordered after the point of `target`. Does not wait
# for what a host function's own stream does later.
cdef int flush_point(CStream* stream, CStream* target, Point point) except -1
# Blocks until each use is completed.
cdef int synchronize_uses(const vector[Use]& uses) except -1
# Returns once every other thread has left the call into this package that it had begun, if any. Calls that let other
# threads run do not count. With the interpreter lock this holds at any time.
cdef int pass_threads() except -1
cdef bint per_thread_is_default() except -1
