from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from anabranch._memory.array import Array
from anabranch._stream.stream import Stream

_Scalar: TypeAlias = bool | complex | np.number[Any] | np.bool_

def fill(dst: Array, value: _Scalar, *, stream: Stream | None = None) -> None: ...
def copy(
    dst: Array,
    src: Array,
    *,
    stream: Stream | None = None,
    dst_offset: SupportsIndex = 0,
    src_offset: SupportsIndex = 0,
    count: SupportsIndex | None = None,
) -> None: ...
