"""Streams for Python that are safe by default, at the speed of the bare driver, on a GPU or with none."""

from anabranch._array import Array
from anabranch._copy import copy, fill
from anabranch._create import array, empty, full, ones, zeros
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
from anabranch._protocol import asarray, from_dlpack
from anabranch._stream import (
    ScopedStream,
    Stream,
    current_stream,
    default_stream,
    legacy_stream,
    per_thread_stream,
)
