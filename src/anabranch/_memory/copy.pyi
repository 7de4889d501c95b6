from typing import Any, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from anabranch._memory.array import Array
from anabranch._stream.stream import Stream

_Scalar: TypeAlias = bool | complex | np.number[Any] | np.bool_

def fill(dst: Array, value: _Scalar, *, stream: Stream | None = None) -> None: ...
@overload
def copy(
    dst: Array,
    src: Array | npt.NDArray[Any],
    *,
    stream: Stream | None = None,
    dst_offset: SupportsIndex = 0,
    src_offset: SupportsIndex = 0,
    count: SupportsIndex | None = None,
) -> None: ...
@overload
def copy(
    dst: npt.NDArray[Any],
    src: Array,
    *,
    stream: Stream | None = None,
    dst_offset: SupportsIndex = 0,
    src_offset: SupportsIndex = 0,
    count: SupportsIndex | None = None,
) -> None: ...
