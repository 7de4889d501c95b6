"""Streams for Python that are safe by default, at the speed of the bare driver, on a GPU or with none."""

from anabranch import _uncounted, interop, testing
from anabranch._allocator import set_allocator
from anabranch._array import Array
from anabranch._capture import capture
from anabranch._condition import run_if, run_while
from anabranch._copy import copy, fill
from anabranch._create import array, empty, full, ones, zeros
from anabranch._current import ScopedStream, current_stream, default_stream, legacy_stream, per_thread_stream
from anabranch._device import Device, ScopedDevice, current_device, devices, synchronize
from anabranch._errors import (
    CaptureError,
    ClosedError,
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
from anabranch._event import Event
from anabranch._fork import fork
from anabranch._graph import Graph
from anabranch._graphed import graphed
from anabranch._hazard import collect_races, hazards
from anabranch._launch import launch
from anabranch._launch_config import LaunchConfig
from anabranch._module import Module
from anabranch._protocol import asarray, from_dlpack
from anabranch._stream import Stream
from anabranch._to_host import to_host
from anabranch._trace.trace import trace
from anabranch.interop._bridge import bridge
from anabranch.kernels import In, InOut, Kernel, Out, atomic_add, atomic_max, atomic_min, kernel

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
    "array",
    "asarray",
    "copy",
    "empty",
    "fill",
    "from_dlpack",
    "full",
    "ones",
    "to_host",
    "zeros",
    # Kernels
    "In",
    "InOut",
    "Kernel",
    "LaunchConfig",
    "Module",
    "Out",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "kernel",
    "launch",
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
    "CompileError",
    "DeviceError",
    "DriverError",
    "Error",
    "EventError",
    "ForkError",
    "KernelError",
    "OutOfMemoryError",
    "RaceError",
    # Other libraries
    "bridge",
    "interop",
    "set_allocator",
    # Helpers for tests
    "testing",
]

_uncounted.keep(globals()[name] for name in __all__)
