"""Graphs: operations recorded once, to be replayed at the price of one launch."""

import threading

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport uint32_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    CCapture, CStream, HazardMode, OperationKind, Point, Ref, as_context, check_fork, forked)
from anabranch._core.explore cimport expect_nodes, exploring
from anabranch._core.graph cimport (
    CGraph, GraphAccesses, GraphInstance, NodeKind, Works, add_nested, begin_capture, end_capture, instantiate,
    set_work, take_accesses, tell_origin, unordered)
from anabranch._graphs.nodes cimport Node, Recorded, dimensions_of, recorded_as
from anabranch._hazards.ordering cimport Submission, begin, commit, commit_traced
from anabranch._stream.current cimport as_stream, current_stream_of
from anabranch._stream.host_node cimport (
    ReplayContext, ReplayedFunction, context_of_replay, note_replay, reserve_all, withdraw_all)
from anabranch._stream.host_threads cimport notification_at
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state

from anabranch._core.errors import CaptureError, ClosedError, DeviceError, Error, ForkError
from anabranch._launch.launch import launch as launch_kernel


@cython.final
cdef class Graph:
    """Operations and their order, recorded by `capture`, to be launched as one operation.

    A launch, a *replay*, runs all of it in the order of a stream. It reads and writes the same arrays as the captured
    operations did, which the graph keeps alive, and hazards know it as one operation that does. Replays of one graph
    never overlap, whichever streams and threads launch them; those of an `instance` of it may. Safe to use from any
    thread: each method is atomic, so a launch that meets `set_args`, `update` or `close` comes before or after it.
    """

    def __cinit__(self):
        self.changing = threading.RLock()
        self.state = "was never made"

    def __init__(self):
        raise TypeError("a Graph is made by anabranch.capture")

    @property
    def device(self):
        """The device of the captured stream."""
        return self._device

    cdef int refuse(self) except -1:
        check_fork()
        if self.state == "closed":
            raise ClosedError(f"{self!r} is closed")
        if self.state is not None:
            raise CaptureError(f"the graph {self.state}")
        raise Error(f"{self!r} was changed during this call, which had no effect")

    cdef Recorded now_with(self, Ref[Works]* works):
        cdef Recorded recorded
        with cython.critical_section(self):
            recorded = self.recorded
            if recorded is not None:
                works[0] = recorded.core.get().works()
        if recorded is None or forked():
            self.refuse()
        return recorded

    cdef int fill(self, const Ref[CGraph]& graph, const Ref[Works]& works, const GraphAccesses& accesses) except -1:
        cdef Recorded recorded = recorded_as(instantiate(graph, works), graph, accesses)
        with cython.critical_section(self):
            if self.state != "closed":
                self.recorded, recorded = recorded, self.recorded
                self.state = None
        return 0

    cdef int fail(self, str state) except -1:
        with cython.critical_section(self):
            if self.state != "closed":
                self.state = state
        return 0

    cdef int enqueue(self, TaskState state, CStream* queue) except -1:
        cdef Recorded now
        cdef GraphInstance* core
        cdef ReplayContext context = None
        cdef Submission submission
        cdef Point point
        # So that a replay runs with the arguments that it was put in order for.
        with cython.critical_section(self):
            now = self.recorded
            if now is None:
                self.refuse()
            core = now.core.get()
            # Its replays are in order whatever they access, of which "check" has to know.
            if state.mode == <int>HazardMode.check:
                core.follow(deref(queue))
            begin(&submission, state, queue, now.touches.data(), now.touches.size())
            if exploring():
                expect_nodes(deref(queue), deref(now.graph.get()), now.accesses.touches)
            if now.functions:
                context = context_of_replay(queue, state.mode)
                reserve_all(now.functions)
            try:
                point = core.launch(deref(queue), as_context(context))
            except BaseException:
                withdraw_all(now.functions)
                raise
            note_replay(context, state.mode)
            if exploring() and now.functions:
                _explore_futures(now, queue, point)
            commit_traced(&submission, state, queue, point, OperationKind.graph, 0)
            if state.mode != <int>HazardMode.off:
                core.note(deref(queue))
        return 0

    def launch(self, stream=None):
        """Run the graph once, as one operation of a stream. Returns at once.

        In a capture it becomes a node of the graph that is captured, with the arguments that it has now.

        Parameters
        ----------
        stream : Stream, optional
            Of a device that the graph uses. None: the current stream of the graph's device.

        Raises
        ------
        DeviceError
            If the stream is of another device.
        CaptureError
            If the capture has not ended, or ended without a graph.
        RaceError
            Under ``hazards("check")``, if what the graph accesses is not in order with another access.
        """
        self.check()
        cdef TaskState state = current_state()
        cdef Stream target
        if stream is None:
            target = current_stream_of(state, self._device.ordinal)
        else:
            target = as_stream(stream, None)
        cdef CStream* queue = target.get()
        if target.device is not self._device and target.device not in self.now().devices:
            names = ", ".join(sorted(device.alias for device in self.now().devices))
            raise DeviceError(f"a graph of {names} cannot be launched on {target!r}")
        if queue.capture() != NULL:
            return add_graph(state, queue, self)
        self.enqueue(state, queue)

    @property
    def nodes(self):
        """The operations, a list of `Node`, each after those that it depends on."""
        return list(self.now().nodes())

    @property
    def edges(self):
        """The order as pairs of nodes, of which the second runs after the first. Implied pairs are left out."""
        return list(self.now().edges())

    @property
    def replays(self):
        """The number of launches."""
        return self.now().core.get().replays()

    @property
    def instantiations(self):
        """The number of instantiations: one, plus one for each update that was impossible in place."""
        return self.now().core.get().instantiations()

    @property
    def closed(self):
        """Whether `close` was called."""
        return self.state == "closed"

    def to_dot(self):
        """Return the graph in the language of Graphviz."""
        return self.now().dot()

    def instance(self):
        """Return another graph of the same operations, whose replays may overlap with the replays of this graph.

        Under ``hazards("auto")`` replays that use the same memory do not overlap.
        """
        cdef Recorded now
        cdef Ref[Works] works
        cdef Graph other = Graph.__new__(Graph)
        other._device = self._device
        with self.changing:
            now = self.now_with(&works)
            other.fill(now.graph, works, now.accesses)
        return other

    def set_args(self, node, *args):
        """Replace the arguments of a kernel launch, from the next replay on. Replays already launched keep theirs.

        Parameters
        ----------
        node : Node
            Of this graph, and the kind ``"kernel"``.
        *args
            As of the launch, without ``dim``. The order within the graph stays as it is.

        Raises
        ------
        TypeError, DeviceError, ValueError
            As `launch`, for arguments that the kernel does not take; ValueError for a node that is not a launch of
            this graph, and for arrays that another node accesses with no order between the two. Nothing has changed
            then.
        """
        with self.changing:
            self._set_args(node, args)

    def _set_args(self, node, args):
        cdef Ref[Works] works
        cdef Recorded now = self.now_with(&works)
        cdef list nodes = now.nodes()
        cdef Ref[CGraph] one
        cdef GraphAccesses accesses
        cdef vector[uint32_t] racing
        if not isinstance(node, Node) or (<Node>node).index >= len(nodes) or nodes[node.index] is not node:
            raise ValueError(f"{node!r} is no node of {self!r}")
        if node.kind != "kernel":
            raise ValueError(f"{node!r} is no launch of a kernel")
        dim, block = dimensions_of(deref(works.get()), node.index)
        # The launch itself checks and packs, into a capture of one node.
        cdef Stream stream = Stream(node.device)
        cdef Ref[CCapture] scratch = begin_capture(deref(stream.get()))
        try:
            launch_kernel((<Node>node).origin, dim, *args, stream=stream, block=block)
            one = end_capture(deref(scratch.get()), works)
        except BaseException:
            scratch.get().abandon(b"the arguments are wrong")
            raise
        accesses = now.accesses.with_node(node.index, take_accesses(deref(one.get())))
        if current_state().mode != <int>HazardMode.off:
            racing = unordered(deref(now.graph.get()), accesses.touches, node.index)
            if not racing.empty():
                raise ValueError(
                    f"with these arguments {node!r} and {nodes[racing[0]]!r} access the same memory, and the "
                    "graph has no order between them; capture it anew")
        cdef Recorded changed = recorded_as(now.core, now.graph, accesses)
        changed._nodes = nodes
        with cython.critical_section(self):
            # The arguments' own code, or a finalizer, may have done so.
            if self.recorded is not now:
                self.refuse()
            set_work(deref(now.core.get()), (<Node>node).index, works)
            self.recorded, changed = changed, self.recorded

    def update(self, other):
        """Replace the content by that of another graph, from the next replay on. Launched replays are not affected.

        Costs little if only arguments differ; otherwise the graph is instantiated again, which `instantiations` counts.

        Parameters
        ----------
        other : Graph
            A graph of the same device. It does not change.

        Raises
        ------
        DeviceError
            If it is of another device.
        """
        if not isinstance(other, Graph):
            raise TypeError(f"other is a Graph, not {type(other).__name__}")
        cdef Graph graph = other
        cdef Recorded source
        cdef Recorded now
        cdef Recorded changed
        cdef Ref[Works] works
        graph.check()
        self.check()
        if graph._device is not self._device:
            raise DeviceError(f"{self!r} cannot become {other!r}, a graph of another device")
        with graph.changing:
            source = graph.now_with(&works)
        with self.changing:
            now = self.now()
            changed = recorded_as(now.core, source.graph, source.accesses)
            with cython.critical_section(self):
                # A finalizer may have done so.
                if self.recorded is not now:
                    self.refuse()
                now.core.get().update(source.graph, works)
                self.recorded, changed = changed, self.recorded

    def close(self):
        """Release the graph. Replays already launched complete. Closing again does nothing.

        A graph may be closed in its own capture, which continues; the result cannot be launched.
        """
        cdef Recorded recorded = None  # what goes with the old one goes after the exchange
        if self.state != "closed":
            # Who changes it meanwhile sees that at the end; to wait for them would block two that close each other's.
            with cython.critical_section(self):
                self.state = "closed"
                self.recorded, recorded = recorded, self.recorded

    def __reduce__(self):
        raise TypeError(f"{self!r} lives in this process; pass a function that captures it")

    def _repr_html_(self):
        from anabranch._graphs import picture

        return picture.html(self)

    def __repr__(self):
        if self.state is not None:
            return f"<Graph on {self._device.alias if self._device is not None else 'no device'}, {self.state}>"
        cdef Recorded now
        try:
            now = self.now()
        except ForkError:
            return "<Graph of the parent of a fork>"
        nodes = now.graph.get().nodes.size()
        replays = now.core.get().replays()
        return (f"<Graph of {nodes} node{'' if nodes == 1 else 's'} on {self._device.alias}, {replays} "
                f"replay{'' if replays == 1 else 's'}>")


cdef int _explore_futures(Recorded now, CStream* queue, Point point) except -1:
    # An exploration knows when the replay is over, which is not before its functions are.
    cdef bint alone = now.graph.get().nodes.size() == 1 and now.graph.get().nodes[0].kind == NodeKind.host
    for each in now.functions:
        if isinstance(each, ReplayedFunction):
            for future in (<ReplayedFunction>each).futures:
                future.explore(notification_at(Ref[CStream].share(queue), point), alone)
    return 0


cdef object add_graph(TaskState state, CStream* queue, Graph graph):
    cdef Ref[Works] works
    cdef Recorded now = graph.now_with(&works)
    cdef Ref[CGraph] nothing
    cdef Ref[Works] none
    cdef string empty
    cdef Submission submission
    begin(&submission, state, queue, now.touches.data(), now.touches.size())
    cdef Point point = add_nested(
        deref(queue), NodeKind.graph, empty, NULL, now.graph, works, nothing, none)
    # The graph may be changed, or closed, before this capture ends.
    tell_origin(deref(queue), point, now.functions)
    commit(&submission, state, point)
