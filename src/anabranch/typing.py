"""Types for annotations: of what functions take and return, which programs do not make themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch._graphs.graphed.graphed import Graphed
from anabranch._graphs.nodes import Node
from anabranch._memory.host_view import HostView
from anabranch._stream.future import StreamFuture
from anabranch._trace.operation import Operation
from anabranch.kernels._cpp.module import ModuleKernel

if TYPE_CHECKING:
    from anabranch._device.device import DeviceLike
    from anabranch._hazards.ordering import HazardMode
    from anabranch._memory.allocator import Allocator
else:
    from typing import Any, Literal

    from anabranch._device.device import Device

    # Of these, stubs alone have definitions.
    DeviceLike = Device | str | None
    HazardMode = Literal["auto", "check", "off"]
    Allocator = Any

__all__ = [
    "Allocator",
    "DeviceLike",
    "Graphed",
    "HazardMode",
    "HostView",
    "ModuleKernel",
    "Node",
    "Operation",
    "StreamFuture",
]
