"""A recorded graph: its nodes, their order and their accesses."""

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport uint32_t
from libcpp.vector cimport vector

from anabranch._core.core cimport CBackend, LaunchShape, Ref
from anabranch._core.graph cimport (
    CGraph, GraphAccesses, GraphInstance, Works, devices_of, grid_of, merged, origin_of, shape_of, with_functions)
from anabranch._core.kernel cimport LaunchGrid
from anabranch._device.device cimport device_of
from anabranch._launch.configuration cimport LaunchConfig
from anabranch._stream.host_node cimport ReplayedFunction

cdef tuple _kinds = ("kernel", "copy", "fill", "alloc", "free", "external", "host", "if", "while", "graph")
cdef dict _shapes = {
    "kernel": "box", "copy": "cds", "fill": "cds", "alloc": "house", "free": "invhouse", "external": "component",
    "host": "component", "if": "diamond", "while": "diamond", "graph": "box3d"}


@cython.final
cdef class Node:
    """An operation of a graph. Immutable, so safe to use from any thread.

    Attributes
    ----------
    kind : str
        ``"kernel"``, ``"copy"``, ``"fill"``, ``"alloc"``, ``"free"``, ``"external"`` (work of another library, such as
        a collective over NCCL), ``"host"``, ``"if"``, ``"while"`` or ``"graph"``.
    name : str
        Of the kernel or function; the kind for others.
    index : int
        Its place in `Graph.nodes`.
    device : Device
        Where it runs.
    """

    def __init__(self):
        raise TypeError("a Node is made by a capture")

    @cython.nonecheck(True)
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
        elif isinstance(origin, list):
            functions += origin
        else:
            functions += origin.host_functions()
    return functions


cdef tuple dimensions_of(const Works& works, uint32_t node):
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

    cdef str dot(self):
        names = [
            f'  n{node.index} [label="{_quoted(node.name)}", shape={_shapes[node.kind]}];' for node in self.nodes()]
        arrows = [f"  n{first.index} -> n{second.index};" for first, second in self.edges()]
        return "\n".join(["digraph anabranch {", *names, *arrows, "}", ""])


def _quoted(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


cdef Recorded recorded_as(const Ref[GraphInstance]& core, const Ref[CGraph]& graph, const GraphAccesses& accesses):
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
