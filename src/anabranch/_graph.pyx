"""Graphs: operations recorded once, to be replayed at the price of one launch."""

import threading

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport uint32_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._context cimport TaskState, current_state
from anabranch._core cimport (
    CBackend, CCapture, CStream, HazardMode, LaunchShape, OperationKind, Point, Ref, as_context, check_fork, tracing)
from anabranch._core_graph cimport (
    CGraph, GraphAccesses, GraphInstance, NodeKind, Works, add_nested, begin_capture, devices_of, end_capture, grid_of,
    instantiate, merged, origin_of, set_work, shape_of, take_accesses, tell_origin, unordered, with_functions,
    with_accesses)
from anabranch._current cimport as_stream, current_stream_of
from anabranch._device cimport device_of
from anabranch._hazard cimport note, order
from anabranch._launch_config cimport LaunchConfig, LaunchGrid
from anabranch._replayed cimport ReplayContext, ReplayedFunction, context_of_replay, note_replay
from anabranch._stream cimport Stream
from anabranch._traced cimport show

from anabranch._errors import CaptureError, ClosedError, DeviceError
from anabranch._launch import launch as launch_kernel

cdef tuple _kinds = ("kernel", "copy", "fill", "alloc", "free", "host", "if", "while", "graph")


@cython.final
cdef class Node:
    """An operation of a graph. Immutable, so safe to use from any thread.

    Attributes
    ----------
    kind : str
        ``"kernel"``, ``"copy"``, ``"fill"``, ``"alloc"``, ``"free"``, ``"host"``, ``"if"``, ``"while"`` or ``"graph"``.
    name : str
        Of the kernel or function; the kind for others.
    index : int
        Its place in `Graph.nodes`.
    device : Device
        Where it runs.
    """

    def __init__(self):
        raise TypeError("a Node is made by a capture")

    def __repr__(self):
        name = "" if self.name == self.kind else f" {self.name!r}"
        return f"<Node {self.index}: {self.kind}{name} on {self.device.alias}>"


cdef list functions_of(const CGraph& graph):
    cdef uint32_t node
    functions = []
    for node in with_functions(graph):
        origin = origin_of(graph.nodes[node])
        if isinstance(origin, ReplayedFunction):
            functions.append(origin)
        elif isinstance(origin, Graph):
            functions += (<Graph>origin).now().functions
        else:
            functions += origin.host_functions()
    return functions


cdef tuple _dimensions_of(const Works& works, uint32_t node):
    # As `launch` takes them.
    cdef const LaunchShape* shape = shape_of(works, node)
    cdef const LaunchGrid* grid = grid_of(works, node)
    if shape != NULL:
        return tuple([shape.dims[i] for i in range(shape.ndim)]), shape.block or None
    return LaunchConfig(
        (grid.grid[0], grid.grid[1], grid.grid[2]), (grid.block[0], grid.block[1], grid.block[2]), grid.shared_memory,
        (grid.cluster[0], grid.cluster[1], grid.cluster[2]) if grid.cluster[0] else None, grid.cooperative), None


cdef list _nodes_of(const CGraph& graph):
    cdef Node node
    cdef size_t i
    nodes = []
    for i in range(graph.nodes.size()):
        node = Node.__new__(Node)
        node.kind = _kinds[<int>graph.nodes[i].kind]
        node.name = graph.nodes[i].name.decode() or node.kind
        node.index = i
        node.device = device_of(graph.nodes[i].device)
        node.origin = origin_of(graph.nodes[i])
        nodes.append(node)
    return nodes


cdef list _edges_of(const CGraph& graph, list nodes):
    cdef uint32_t before
    cdef size_t i
    edges = []
    for i in range(graph.nodes.size()):
        for before in graph.nodes[i].after:
            edges.append((nodes[before], nodes[i]))
    return edges


@cython.final
cdef class Recorded:
    cdef list nodes(self):
        cdef list made = _nodes_of(deref(self.graph.get())) if self._nodes is None else None
        # Of two threads that ask first, both get what one of them has made.
        with cython.critical_section(self):
            if self._nodes is None:
                self._nodes = made
            return self._nodes

    cdef list edges(self):
        cdef list made = _edges_of(deref(self.graph.get()), self.nodes()) if self._edges is None else None
        with cython.critical_section(self):
            if self._edges is None:
                self._edges = made
            return self._edges


cdef Recorded _recorded(const Ref[GraphInstance]& core, const Ref[CGraph]& graph, const GraphAccesses& accesses):
    cdef Recorded recorded = Recorded.__new__(Recorded)
    cdef vector[CBackend*] devices = devices_of(deref(graph.get()))
    cdef size_t i
    recorded.core = core
    recorded.graph = graph
    recorded.accesses = accesses
    recorded.touches = merged(accesses.touches)
    recorded.devices = [device_of(devices[i]) for i in range(devices.size())]
    recorded.functions = functions_of(deref(graph.get()))
    return recorded


@cython.final
cdef class Graph:
    """Operations and their order, recorded by `capture`, to be launched as one operation.

    A launch, a *replay*, runs all of it in the order of a stream. It reads and writes the same arrays as the captured
    operations did, which the graph keeps alive, and hazards know it as one operation that does. Replays of one graph
    never overlap, whichever streams and threads launch them; those of an `instance` of it may. Safe to use from any
    thread: each method is atomic, so a launch that meets `set_args`, `update` or `close` comes before or after it.

    Attributes
    ----------
    device : Device
        That of the stream that was captured.
    """

    def __init__(self):
        raise TypeError("a Graph is made by anabranch.capture")

    cdef int refuse(self) except -1:
        check_fork()
        if self.state == "closed":
            raise ClosedError(f"{self!r} is closed")
        raise CaptureError(f"the graph {self.state}")

    cdef int fill(self, const Ref[CGraph]& graph, const Ref[Works]& works, const GraphAccesses& accesses) except -1:
        cdef Ref[GraphInstance] core = instantiate(graph, works)
        self.changing = threading.RLock()
        self.recorded = _recorded(core, graph, accesses)
        self.state = None
        return 0

    cdef int enqueue(self, TaskState state, CStream* queue) except -1:
        cdef Recorded now
        cdef GraphInstance* core
        cdef ReplayContext context = None
        cdef uint64_t learned
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
            learned = order(state, queue, now.touches.data(), now.touches.size())
            if now.functions:
                context = context_of_replay(queue, state.mode)
            point = core.launch(deref(queue), as_context(context))
            note_replay(context, state.mode)
            if tracing():
                show(queue, point, OperationKind.graph, None, 0)
            note(state, queue, point, now.touches.data(), now.touches.size(), learned)
            if state.mode == <int>HazardMode.check:
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
            target = current_stream_of(state, self.device.ordinal)
        else:
            target = as_stream(stream, None)
        cdef CStream* queue = target.get()
        if target.device is not self.device and target.device not in self.now().devices:
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
        """The order, a list of pairs of nodes: the second comes right after the first. None that others imply."""
        return list(self.now().edges())

    @property
    def replays(self):
        """How many times it was launched."""
        return self.now().core.get().replays()

    @property
    def instantiations(self):
        """How many times it was made ready to run: once, and again for each update that could not be made in place."""
        return self.now().core.get().instantiations()

    @property
    def closed(self):
        """Whether `close` was called."""
        return self.state == "closed"

    def to_dot(self):
        """Return the graph in the language of Graphviz."""
        names = [
            f'  n{node.index} [label="{_quoted(node.name)}", shape={_shapes[node.kind]}];' for node in self.nodes]
        arrows = [f"  n{first.index} -> n{second.index};" for first, second in self.edges]
        return "\n".join(["digraph anabranch {", *names, *arrows, "}", ""])

    def instance(self):
        """Return another graph of the same operations, whose replays may overlap with those of this one.

        Under ``hazards("auto")`` they do not where both use the same memory.
        """
        cdef Recorded now = self.now()
        cdef Graph other = Graph.__new__(Graph)
        other.device = self.device
        with self.changing:
            now = self.now()
            other.fill(now.graph, now.core.get().works(), now.accesses)
        return other

    def set_args(self, node, *args):
        """Give a launch other arguments, from the next replay on. Replays that were launched keep theirs.

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
            self._set_args(self.now(), node, args)

    def _set_args(self, Recorded now, node, args):
        cdef list nodes = now.nodes()
        cdef Ref[CGraph] one
        cdef Ref[Works] works
        cdef GraphAccesses accesses
        cdef vector[uint32_t] racing
        if not isinstance(node, Node) or (<Node>node).index >= len(nodes) or nodes[node.index] is not node:
            raise ValueError(f"{node!r} is no node of {self!r}")
        if node.kind != "kernel":
            raise ValueError(f"{node!r} is no launch of a kernel")
        works = now.core.get().works()
        dim, block = _dimensions_of(deref(works.get()), node.index)
        # The launch itself checks and packs, into a capture of one node.
        cdef Stream stream = Stream(node.device)
        cdef Ref[CCapture] scratch = begin_capture(deref(stream.get()))
        try:
            launch_kernel((<Node>node).origin, dim, *args, stream=stream, block=block)
            one = end_capture(deref(scratch.get()), works)
        except BaseException:
            scratch.get().abandon(b"the arguments are wrong")
            raise
        accesses = with_accesses(now.accesses, node.index, take_accesses(deref(one.get())))
        if current_state().mode != <int>HazardMode.off:
            racing = unordered(deref(now.graph.get()), accesses.touches, node.index)
            if not racing.empty():
                raise ValueError(
                    f"with these arguments {node!r} and {nodes[racing[0]]!r} access the same memory, and the "
                    "graph has no order between them; capture it anew")
        cdef Recorded changed = _recorded(now.core, now.graph, accesses)
        changed._nodes = nodes
        with cython.critical_section(self):
            set_work(deref(now.core.get()), (<Node>node).index, works)
            self.recorded, changed = changed, self.recorded

    def update(self, other):
        """Become another graph, from the next replay on. Replays that were launched stay what they are.

        Costs little where only arguments differ; else the graph is instantiated anew, which `instantiations` counts.

        Parameters
        ----------
        other : Graph
            Of the same device; left as it is.

        Raises
        ------
        DeviceError
            If it is of another device.
        """
        if not isinstance(other, Graph):
            raise TypeError(f"other is a Graph, not {type(other).__name__}")
        cdef Graph graph = other
        cdef Recorded source = graph.now()
        cdef Recorded now = self.now()
        cdef Recorded changed
        cdef Ref[Works] works
        if graph.device is not self.device:
            raise DeviceError(f"{self!r} cannot become {other!r}, a graph of another device")
        with graph.changing:
            source = graph.now()
            works = source.core.get().works()
        with self.changing:
            now = self.now()
            changed = _recorded(now.core, source.graph, source.accesses)
            with cython.critical_section(self):
                now.core.get().update(source.graph, works)
                self.recorded, changed = changed, self.recorded

    def close(self):
        """Let go of the graph: replays that were launched complete. Closing again does nothing."""
        cdef Recorded recorded = None  # what goes with the old one goes after the exchange
        if self.state is None:
            with self.changing:
                self.state = "closed"
                with cython.critical_section(self):
                    self.recorded, recorded = recorded, self.recorded

    def __repr__(self):
        if self.state is not None:
            return f"<Graph on {self.device.alias}, {self.state}>"
        cdef Recorded now = self.now()
        nodes = now.graph.get().nodes.size()
        replays = now.core.get().replays()
        return (f"<Graph of {nodes} node{'' if nodes == 1 else 's'} on {self.device.alias}, {replays} "
                f"replay{'' if replays == 1 else 's'}>")


cdef dict _shapes = {
    "kernel": "box", "copy": "cds", "fill": "cds", "alloc": "house", "free": "invhouse", "host": "component",
    "if": "diamond", "while": "diamond", "graph": "box3d"}


def _quoted(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


cdef object add_graph(TaskState state, CStream* queue, Graph graph):
    cdef Recorded now = graph.now()
    cdef GraphInstance* core = now.core.get()
    cdef Ref[CGraph] nothing
    cdef Ref[Works] none
    cdef string empty
    cdef uint64_t learned = order(state, queue, now.touches.data(), now.touches.size())
    cdef Point point = add_nested(
        deref(queue), NodeKind.graph, empty, NULL, core.graph(), core.works(), nothing, none)
    tell_origin(deref(queue), graph)
    note(state, queue, point, now.touches.data(), now.touches.size(), learned)
