"""A program that annotates with the types of `anabranch.typing`."""

from typing import Any, assert_type

import anabranch as ab
from anabranch.typing import Allocator, DeviceLike, HazardMode, HostView, ModuleKernel, Node, Operation, StreamFuture


def submit(stream: ab.Stream) -> StreamFuture[int]:
    return stream.submit(len, "abc")


def name(nodes: list[Node]) -> list[str]:
    return [node.name for node in nodes]


def of_graph(graph: ab.Graph) -> list[str]:
    return name(graph.nodes)


def kernel(module: ab.Module) -> ModuleKernel:
    return module.get_kernel("saxpy")


def make(device: DeviceLike, mode: HazardMode, allocator: Allocator) -> ab.Array:
    ab.set_allocator(allocator, device)
    with ab.hazards(mode), ab.trace() as trace:
        made = ab.zeros(3, device=device)
    operations: list[Operation] = list(trace.operations)
    view: HostView = made.host()
    assert operations
    with view as elements:
        elements[0]
    return made


def interface(x: ab.Array) -> None:
    assert_type(x.__cuda_array_interface__, dict[str, Any])
