"""Arrays on the way between the workers of Dask, and what is registered: by `dask_anabranch`, and by import."""

from __future__ import annotations

from contextlib import suppress
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, TypeAlias

from anabranch._device.device import current_device
from anabranch._memory import host_view
from anabranch._memory.array import Array
from anabranch._memory.factories import array as array_of
from anabranch._memory.imports import asarray
from anabranch._stream.stream import Stream
from anabranch.interop import _dask_stream
from anabranch.kernels._kernel import Kernel, kernel

if TYPE_CHECKING:
    _Header: TypeAlias = dict[str, Any]
    _Frames: TypeAlias = list[PickleBuffer]


def register_serializers() -> None:
    """Tell ``distributed`` how arrays and streams are sent, and how large arrays are. Again it changes nothing."""
    from cloudpickle import CloudPickler
    from dask.sizeof import sizeof
    from distributed.protocol.serialize import dask_deserialize, dask_serialize

    dask_serialize.register(Array, serialize)
    dask_deserialize.register(Array, deserialize)
    dask_serialize.register(Stream, _dask_stream.serialize)
    dask_deserialize.register(Stream, _dask_stream.deserialize)
    sizeof.register(Array, lambda array: array.nbytes)
    # What is sent together with a function of the main module goes through this one, which asks no serializers.
    CloudPickler.dispatch_table[Array] = _reduced
    CloudPickler.dispatch_table[Stream] = _dask_stream.reduced
    CloudPickler.dispatch_table[Kernel] = _kernel_reduced


def serialize(array: Array) -> tuple[_Header, _Frames]:
    """Return what describes an array, and its elements, once what writes to them is complete.

    No copy is made of CPU memory in row-major order: it must not be written to before it is sent, as with NumPy's.
    """
    import numpy as np

    array = array[...]  # which nobody closes before it is sent
    if array.device.kind == "cpu":
        values = array._view(False)
        if not values.flags.c_contiguous:
            values = values.copy()
        elif not array.read_only:
            # For the receiver, which may write to what it gets; the sender waits for no readers.
            values = host_view.over(array, array._interface(True))
    else:
        values = np.array(array)
    header = {"shape": array.shape, "dtype": array.dtype.str}
    # Not of a memoryview: CPython 3.11 crashes when it collects the two as a part of a cycle.
    return header, [PickleBuffer(values.reshape(-1).view("u1"))]  # type: ignore[arg-type]  # a buffer, typed from 3.12 on


def deserialize(header: _Header, frames: _Frames) -> Array:
    """Return a new array of the current device, in row-major order, of what `serialize` returned elsewhere."""
    import numpy as np

    (frame,) = frames
    values = np.ndarray(tuple(header["shape"]), header["dtype"], memoryview(frame))
    device = current_device()
    if device.alias == "cpu:0" and values.flags.aligned and values.flags.writeable:
        return asarray(values)
    return array_of(values, device=device)


def _kernel_reduced(made: Kernel) -> str | tuple[Any, ...]:
    # As a function, which goes by value where the receiver cannot import it.
    if made.__module__ != "__main__":
        with suppress(TypeError):
            return made.__reduce__()
    return kernel, (made._function,)


def _reduced(array: Array) -> tuple[Any, ...]:
    return deserialize, serialize(array)
