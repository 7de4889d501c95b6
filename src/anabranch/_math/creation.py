"""Arrays of evenly spaced numbers, computed on the device."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from anabranch._launch.launch import launch
from anabranch._memory.dtype import as_dtype
from anabranch._memory.factories import empty

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from anabranch._device.device import DeviceLike
    from anabranch._memory.array import Array
    from anabranch._stream.stream import Stream
    from anabranch.kernels import Kernel

    _Number: TypeAlias = complex | np.number[Any]


@cache
def _sequence(dtype: str) -> Kernel:
    from anabranch._math import kernels

    return kernels.sequence(dtype)


@cache
def _spaced(dtype: str, complete: bool) -> Kernel:
    from anabranch._math import kernels

    return kernels.spaced(dtype, complete)


def arange(
    start: _Number,
    stop: _Number | None = None,
    step: _Number = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array:
    """Return a new array of the numbers from `start` to below `stop`, in steps. Asynchronous on the stream.

    ``arange(stop)`` counts from 0. The other parameters, and the errors, are those of `empty`.

    Parameters
    ----------
    start, stop, step : scalar
        Real numbers; their number is that of NumPy's `arange`.
    dtype : dtype-like, optional
        None: as in NumPy, int64 for integers that it holds, and float64 for any other numbers.

    Raises
    ------
    ValueError
        For a step of 0, or numbers that are not finite.
    OverflowError
        For integers beyond 64 bits.
    """
    import numpy

    if stop is None:
        start, stop = 0, start
    first = _real("start", start)
    last = _real("stop", stop)
    interval = _real("step", step)
    if interval == 0:
        raise ValueError("arange: a step of 0 never reaches the end")
    if dtype is None:
        # As NumPy does, which begins with int64: float64 for numbers that are no int64.
        dtype = numpy.result_type(numpy.int64, *(numpy.asarray(value).dtype for value in (start, stop, step)))
    resolved = as_dtype(dtype)
    if resolved.kind == "b":
        raise TypeError("arange: booleans do not count")
    count = max(0, math.ceil((last - first) / interval))
    made = empty(count, resolved, device=device, stream=stream, pinned=pinned)
    if count:
        convert: Any = resolved.type
        with numpy.errstate(all="ignore"):
            beginning = convert(first)
            difference = convert(first + interval) - beginning if count > 1 else beginning
        launch(_sequence(resolved.name), count, beginning.item(), difference.item(), made, stream=stream)
    return made


def _real(name: str, value: Any) -> Any:
    """Return a number of `arange`, a Python int if it is integer: NumPy's wrap around in differences."""
    import numpy

    _check_64_bits("arange", name, value)
    kind = numpy.asarray(value).dtype.kind
    if numpy.ndim(value) or kind not in "biuf":
        raise TypeError(f"arange: {name} is a real number, not {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"arange: {name} is {value!r}; an array ends")
    return value if kind == "f" else int(value)


def _check_64_bits(function: str, name: str, value: Any) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise OverflowError(f"{function}: {name} is {value}, which no dtype holds")


def linspace(
    start: _Number,
    stop: _Number,
    num: int = 50,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    pinned: bool = False,
) -> Array:
    """Return a new array of `num` evenly spaced numbers from `start` to `stop`. Asynchronous on the stream.

    The other parameters, and the errors, are those of `empty`.

    Parameters
    ----------
    start, stop : scalar
    num : int
    endpoint : bool
        Whether `stop` is the last number; else it is the one that would follow.
    dtype : dtype-like, optional
        None: float64, or complex128 for complex numbers. Integers are rounded down.

    Raises
    ------
    ValueError
        If `num` is negative.
    TypeError
        If `num` is not an int, for what is no number, or complex numbers for a real dtype.
    OverflowError
        For integers beyond 64 bits.
    """
    import numpy

    for name, value in (("start", start), ("stop", stop)):
        _check_64_bits("linspace", name, value)
        if numpy.ndim(value) or numpy.asarray(value).dtype.kind not in "biufc":
            raise TypeError(f"linspace: {name} is a number, not {value!r}")
    if not hasattr(type(num), "__index__") or isinstance(num, bool):
        raise TypeError(f"linspace: num is an int, not {num!r}")
    if num < 0:
        raise ValueError(f"linspace: num is {num}; an array has 0 numbers or more")
    wide = complex if numpy.iscomplexobj(start) or numpy.iscomplexobj(stop) else float
    resolved = as_dtype(wide if dtype is None else dtype)
    beginning: Any = start
    end: Any = stop
    made = empty(num, resolved, device=device, stream=stream, pinned=pinned)
    if num:
        first, last = wide(beginning), wide(end)
        gaps = num - 1 if endpoint else num
        # One number is `start`, whichever numbers end the range.
        step = (last - first) / gaps if gaps else 0
        launch(_spaced(resolved.name, endpoint and num > 1), num, first, step, last, made, stream=stream)
    return made
