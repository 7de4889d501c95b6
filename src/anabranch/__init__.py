"""Streams for Python that are safe by default, at the speed of the bare driver, on a GPU or with none."""

import sys as _sys
import typing as _typing

from anabranch._core.absent import add_absent as _add_absent
from anabranch._core.errors import (
    CaptureError,
    ClosedError,
    CollectiveError,
    CompileError,
    DeviceError,
    DriverError,
    Error,
    EventError,
    ForkError,
    KernelError,
    OutOfMemoryError,
    RaceError,
)
from anabranch._core.immortal import keep as _keep
from anabranch._device.device import Device, ScopedDevice, current_device, devices, synchronize
from anabranch._graphs.capture import capture
from anabranch._graphs.conditions import run_if, run_while
from anabranch._graphs.graph import Graph
from anabranch._graphs.graphed.graphed import graphed
from anabranch._hazards.ordering import collect_races, hazards
from anabranch._launch.configuration import LaunchConfig
from anabranch._launch.launch import launch
from anabranch._math.creation import arange, linspace
from anabranch._math.where import where
from anabranch._memory.absent import INSTEAD as _OF_ARRAYS
from anabranch._memory.allocator import set_allocator
from anabranch._memory.array import Array
from anabranch._memory.copy import copy, fill
from anabranch._memory.factories import array, empty, empty_like, full, full_like, ones, zeros, zeros_like
from anabranch._memory.imports import asarray, from_dlpack
from anabranch._memory.to_host import to_host
from anabranch._stream.absent import OF_EVENTS as _OF_EVENTS
from anabranch._stream.absent import OF_STREAMS as _OF_STREAMS
from anabranch._stream.current import ScopedStream, current_stream, default_stream, legacy_stream, per_thread_stream
from anabranch._stream.event import Event
from anabranch._stream.fork import fork
from anabranch._stream.stream import Stream
from anabranch.kernels import (
    In,
    InOut,
    Kernel,
    Out,
    atomic_add,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    barrier,
    block,
    kernel,
    random,
    shared,
)

__all__ = [
    # Devices
    "Device",
    "ScopedDevice",
    "current_device",
    "devices",
    "synchronize",
    # Streams and events
    "Event",
    "ScopedStream",
    "Stream",
    "current_stream",
    "default_stream",
    "fork",
    "legacy_stream",
    "per_thread_stream",
    # Arrays
    "Array",
    "arange",
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "fill",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "ones",
    "to_host",
    "where",
    "zeros",
    "zeros_like",
    # Kernels
    "In",
    "InOut",
    "Kernel",
    "LaunchConfig",
    "Module",
    "Out",
    "atomic_add",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "barrier",
    "block",
    "kernel",
    "launch",
    "random",
    "shared",
    # Graphs
    "Graph",
    "capture",
    "graphed",
    "run_if",
    "run_while",
    # Hazards
    "collect_races",
    "hazards",
    # Traces
    "trace",
    # Errors
    "CaptureError",
    "ClosedError",
    "CollectiveError",
    "CompileError",
    "DeviceError",
    "DriverError",
    "Error",
    "EventError",
    "ForkError",
    "KernelError",
    "OutOfMemoryError",
    "RaceError",
    # Other processes
    "distributed",
    # Other libraries
    "bridge",
    "interop",
    "set_allocator",
    # Helpers for tests
    "testing",
    # This package
    "__version__",
]

_add_absent(Array, _OF_ARRAYS)
_add_absent(Stream, _OF_STREAMS)
_add_absent(Event, _OF_EVENTS)

# What is imported when it is first asked for: together it takes as long as all the rest.
_SUBPACKAGES = ("distributed", "interop", "testing")
_MODULES = {
    "Module": "anabranch.kernels._cpp.module",
    "bridge": "anabranch.interop._bridge",
    "trace": "anabranch._trace.trace",
}
_keep(globals()[name] for name in __all__ if name in globals())

if "distributed.protocol.serialize" in _sys.modules:  # Dask's; a program may have a module of that name
    from anabranch.interop import _dask

    _dask.register_serializers()

if _typing.TYPE_CHECKING:
    from anabranch import distributed, interop, testing
    from anabranch._trace.trace import trace
    from anabranch.interop._bridge import bridge
    from anabranch.kernels._cpp.module import Module

    __version__: str
else:

    def __getattr__(name):
        if name == "__version__":
            # From the metadata of the installed package, which takes longer than other imports.
            from importlib.metadata import version

            return version(__name__)
        if name in _SUBPACKAGES or name in _MODULES:
            from importlib import import_module

            if name in _SUBPACKAGES:
                return import_module(f"anabranch.{name}")
            found = globals()[name] = getattr(import_module(_MODULES[name]), name)
            _keep([found])
            return found
        hint = ""
        if not name.startswith("_"):
            from anabranch._core.elsewhere import instead_of

            hint = instead_of(name) or (f"arrays have it: x.{name}" if hasattr(Array, name) else "")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint and '; ' + hint}")

    def __dir__():
        return sorted({*globals(), *__all__})
