"""Order between accesses to the same memory: added where it is missing, or reported."""

cimport cython
from cython.operator cimport dereference as deref
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    Access, CCapture, CStream, HazardMode, HostAccess, HostTask, MemoryKind, Ref, Site, Storage, Touch, Use,
    check_fork, checks_begun, synchronize_uses, tracing,
)
from anabranch._core.core cimport added_waits as c_added_waits
from anabranch._core.explore cimport begin_view, end_view, exploring, pass_views
from anabranch._core.tracing cimport show
from anabranch._task.context cimport TaskState, current_state, use_mode
from anabranch._task.defaults cimport first_mode, set_first_mode
from anabranch._task.site cimport current_site

from anabranch._core.errors import ClosedError, text_of
from anabranch._task.defaults import modes

cdef extern from "anabranch/hazard/host_order.hpp" namespace "anabranch" nogil:
    vector[Use] uses_before(const HostTask&, const Touch&) except +
    bint is_own_wait(const HostTask&, const Use&)
    vector[Use] host_conflicts(const HostTask&, const Touch&) except +
    vector[Use] open_conflicts(const HostTask&, const Touch&) except +
    vector[Use] return_conflicts(const HostTask&, const Touch&) except +
    void note_host(HostTask&, const Touch&, Site) except +

cdef extern from "anabranch/explore/host_access.hpp" namespace "anabranch::explore" nogil:
    void host_accesses(const Touch&) except +

cdef extern from *:
    """
    static anabranch::Ref<anabranch::HostAccess> begin_access(
        const anabranch::Ref<anabranch::HostTask>& task, const anabranch::Touch& touch, anabranch::Site site,
        bool kept) {
      return anabranch::make_ref<anabranch::HostAccess>(task, touch, site, kept);
    }
    """
    Ref[HostAccess] begin_access(const Ref[HostTask]&, const Touch&, Site, bint kept) except +


@cython.final
cdef class Found:
    pass


cdef Found _found(const Use& first, const Ref[CStream]& stream, const Touch& touch, Site site):
    cdef Found found = Found.__new__(Found)
    found.first = first
    found.stream = stream
    found.site = site
    found.access = touch.access
    found.allocated = touch.storage.site
    found.open = first.open
    found.size = touch.storage.bytes()
    # The bytes that both may access.
    found.low = max(touch.low, first.where.bytes().low)
    found.high = min(touch.high, first.where.bytes().high)
    return found


cdef int report(Refusal* refusal, Submission* submission, TaskState state) except -1:
    cdef unique_ptr[Refusal] _owner
    _owner.reset(refusal)
    cdef Ref[CStream] stream = refusal.stream
    cdef Site site
    cdef size_t i
    found = []
    try:
        site = current_site()
        for i in range(refusal.races.size()):
            found.append(
                _found(refusal.races[i].first, stream, refusal.touches[refusal.races[i].second], site))
        _report(state, found)
        # The report ran Python code, during which other threads may have closed an array.
        if not submission.proceed(deref(state.task.core.get()), deref(refusal)):
            raise ClosedError("an array was closed while a race of it was reported")
    except BaseException as error:
        if stream.get().capture() != NULL:
            stream.get().capture().abandon(text_of(error).encode(errors="backslashreplace"))
        raise
    return 0


cdef int _report(TaskState state, list found) except -1:
    from anabranch._races import report

    report.report(found, state.races)
    return 0


cdef int refuse_captured(TaskState state, Storage* storage) except -1:
    cdef CCapture* capture = state.capture.get()
    if capture == NULL or not capture.active() or not capture.writes(deref(storage)):
        return 0
    if capture.exclusive():
        capture.refuse(b"the host cannot read memory in a function that is being captured for later calls")
    capture.refuse(b"the host cannot access memory that captured work writes; launch the graph first")
    return 0


cdef int refuse_alias(Storage* storage) except -1:
    cdef CCapture* capture = current_state().capture.get()
    if storage.original().get() != NULL and capture != NULL:
        capture.refuse(b"the address of an argument is valid only during the first call")
    return 0


cdef vector[Use] uses_before_host(TaskState state, const Touch& touch) except *:
    cdef vector[Use] uses = uses_before(deref(state.task.core.get()), touch)
    cdef size_t i
    for i in range(uses.size()):
        if is_own_wait(deref(state.task.core.get()), uses[i]):
            raise_own_wait()
    return uses


cdef int order_host(TaskState state, Touch touch, bint checked) except -1:
    cdef vector[Use] uses
    cdef Ref[CStream] host
    cdef size_t i
    if exploring():
        host_accesses(touch)
    refuse_captured(state, touch.storage)
    if checked and state.mode == <int>HazardMode.check:
        uses = host_conflicts(deref(state.task.core.get()), touch)
        if not uses.empty():
            _report(state, [_found(uses[i], host, touch, current_site()) for i in range(uses.size())])
    uses = uses_before_host(state, touch)
    synchronize_uses(uses)
    for i in range(uses.size()):
        follow_use(deref(state.task.core.get()), uses[i])
    return 0


cdef int order_return(Storage* storage) except -1:
    cdef TaskState state
    cdef vector[Use] uses
    cdef Ref[CStream] host
    cdef Touch touch
    cdef Found each
    cdef size_t i
    # Views keep the memory, and so do other handles; what is ours is freed in order.
    if not checks_begun() or storage == NULL or storage.kind() != MemoryKind.foreign or not storage.unique():
        return 0
    state = current_state()
    if state.mode != <int>HazardMode.check:
        return 0
    touch.storage = storage
    touch.low = 0
    touch.high = storage.bytes()
    touch.layout = NULL
    touch.first = 0
    touch.access = Access.write
    touch.overwrites = False
    uses = return_conflicts(deref(state.task.core.get()), touch)
    found = [_found(uses[i], host, touch, current_site()) for i in range(uses.size())]
    for each in found:
        each.returned = True
    if found:
        _report(state, found)
    return 0


cdef int note_host_access(TaskState state, Touch touch) except -1:
    # Only to be reported: no stream can wait for the host.
    if state.mode == <int>HazardMode.check:
        note_host(deref(state.task.core.get()), touch, current_site())
    return 0


cdef int refuse_open(TaskState state, Touch touch) except -1:
    cdef vector[Use] uses
    cdef Ref[CStream] host
    if state.mode != <int>HazardMode.off:
        uses = open_conflicts(deref(state.task.core.get()), touch)
        if not uses.empty():
            _report(state, [_found(uses[i], host, touch, current_site()) for i in range(uses.size())])
    return 0


cdef int commit_observed(
        Submission* submission, TaskState state, CStream* stream, Point point, OperationKind kind,
        size_t size) except -1:
    if tracing():
        show(stream, point, kind, None, size)
    commit(submission, state, point)
    if exploring():
        with nogil:
            pass_views(deref(stream))
    return 0


cdef OpenAccess open_access(TaskState state, Touch touch):
    cdef OpenAccess access
    if state.mode == <int>HazardMode.off and not exploring():
        return None
    access = OpenAccess.__new__(OpenAccess)
    if exploring():
        access.view = begin_view(touch)
    if state.mode == <int>HazardMode.off:
        return access
    access.core = begin_access(
        state.task.core, touch, current_site(), state.mode == <int>HazardMode.check)
    if state.mode != <int>HazardMode.check:
        # What another thread has enqueued since the host waited.
        order_host(state, touch, False)
    return access


@cython.final
cdef class OpenAccess:
    """A host access that lasts until it is ended."""

    def end(self):
        """End it. What its task does later comes after."""
        if self.view:
            end_view(self.view)
        if self.core.get() != NULL:
            self.core.get().end()


@cython.final
cdef class PastOf:
    def observe(self):
        """The current task comes after it."""
        current_state().task.core.get().lane.follow(self.past)


@cython.final
cdef class Touches:
    pass


def added_waits():
    """Return how many waits were added in this process so far."""
    return c_added_waits()


def check_bounds():
    """Have Python kernels that this task launches from now on check every index."""
    cdef TaskState state = current_state()
    use_mode(state.mode, True, state.races)


class default_mode:  # noqa: N801
    """Set the mode that threads begin with, and this task's, for a block."""

    __slots__ = ("_before", "_mode")

    def __init__(self, mode):
        self._mode = modes[mode]

    def __enter__(self):
        cdef TaskState state = current_state()
        self._before = first_mode(), state.mode, state.bounds, state.races
        set_first_mode(self._mode)
        use_mode(self._mode, state.bounds, None)

    def __exit__(self, kind, value, traceback):
        first, mode, bounds, races = self._before
        set_first_mode(first)
        use_mode(mode, bounds, races)


class hazards:  # noqa: N801
    """Choose the treatment of missing order between accesses to the same memory.

    Takes effect for this task at once, until its next choice; as a context manager, until the end of the block.
    A new asyncio task starts with its creator's mode, a thread with that of the environment variable
    ``ANABRANCH_HAZARDS``, which is ``"auto"`` by default. A choice never affects another thread. Use one object in one
    task only.

    Parameters
    ----------
    mode : str
        ``"auto"``: an operation waits for the conflicting accesses to its memory, by one event wait for each stream
        that it is not known to come after. ``"check"``: no waits are added; missing order raises `RaceError` before
        the operation is enqueued. ``"off"``: neither; accesses are not tracked, only order is.
    bounds : bool, optional
        Whether Python kernels check every index, as they always do under ``"check"``. An index out of bounds raises a
        `KernelError` that names the kernel, the line, the array, the index and the line of the launch; no memory
        outside the array is accessed, and the stream's later work does not run. ``None``: no change; threads start with
        the environment variable ``ANABRANCH_BOUNDS``, ``0`` or ``1``. Kernels of a `Module` cannot be checked.

    Attributes
    ----------
    mode : str
        The mode that was chosen here, regardless of later choices.
    bounds : bool or None
        Likewise.

    Raises
    ------
    ValueError
        For another mode.

    Examples
    --------
    >>> import anabranch as ab
    >>> a, s = ab.zeros(3), ab.Stream()
    >>> with ab.hazards("check"):
    ...     s.wait_stream(ab.current_stream())
    ...     ab.fill(a, 1, stream=s)
    """

    __slots__ = ("_before", "_entered", "bounds", "mode")

    def __init__(self, mode, bounds=None):
        if not isinstance(mode, str) or mode not in modes:
            raise ValueError(f"mode is one of {', '.join(map(repr, modes))}, not {mode!r}")
        if bounds is not None and type(bounds) is not bool:
            raise TypeError(f"bounds is True, False or None, not {bounds!r}")
        check_fork()
        cdef TaskState state = current_state()
        self.mode = mode
        self.bounds = bounds
        self._before = [(state.mode, state.bounds, state.races)]
        self._entered = 0
        self._use(state)

    def _use(self, TaskState state):
        use_mode(modes[self.mode], state.bounds if self.bounds is None else self.bounds, None)

    def __enter__(self):
        cdef TaskState state = current_state()
        # The first block ends what the constructor began, unless another mode was chosen in between. An object may be
        # entered again, also within its own block.
        if self._entered == 0 and state.mode != modes[self.mode]:
            self._before.clear()
        if self._entered == len(self._before):
            self._before.append((state.mode, state.bounds, state.races))
        self._entered += 1
        self._use(state)
        return self

    def __exit__(self, kind, value, traceback):
        self._entered -= 1
        mode, bounds, races = self._before.pop()
        use_mode(mode, bounds, races)

    def __repr__(self):
        return f"hazards({self.mode!r})" if self.bounds is None else f"hazards({self.mode!r}, bounds={self.bounds})"


class collect_races:  # noqa: N801
    """Switch the mode ``"check"`` on for a block and this task, and collect what it finds; the racing work still runs.

    Yields
    ------
    list of RaceError
        One entry per pair of source lines, in the order in which they were found.

    Examples
    --------
    >>> import anabranch as ab
    >>> a, s = ab.zeros(3), ab.Stream()
    >>> ab.synchronize()
    >>> with ab.collect_races() as races:
    ...     ab.fill(a, 1, stream=s)
    ...     ab.fill(a, 2)
    >>> [race.kind for race in races]
    ['WAW']
    """

    __slots__ = ("_before",)

    def __enter__(self):
        cdef TaskState state = current_state()
        self._before = state.mode, state.bounds, state.races
        races = []
        use_mode(<int>HazardMode.check, state.bounds, races)
        return races

    def __exit__(self, kind, value, traceback):
        mode, bounds, races = self._before
        use_mode(mode, bounds, races)

    def __repr__(self):
        return "collect_races()"
