from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch._device.device import DeviceLike
from anabranch._memory.array import Array
from anabranch._stream.stream import Stream

_Shape: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | list[int]
_Prototype: TypeAlias = Array | npt.NDArray[Any]
_Scalar: TypeAlias = bool | complex | np.number[Any] | np.bool_

def empty(
    shape: _Shape,
    dtype: npt.DTypeLike = "float32",
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array: ...
def zeros(
    shape: _Shape,
    dtype: npt.DTypeLike = "float32",
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array: ...
def ones(
    shape: _Shape,
    dtype: npt.DTypeLike = "float32",
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array: ...
def full(
    shape: _Shape,
    value: _Scalar,
    dtype: npt.DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array: ...
def empty_like(
    prototype: _Prototype,
    dtype: npt.DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array: ...
def zeros_like(
    prototype: _Prototype,
    dtype: npt.DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array: ...
def full_like(
    prototype: _Prototype,
    value: _Scalar,
    dtype: npt.DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array: ...
def array(
    data: npt.ArrayLike | Array,
    dtype: npt.DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array: ...
