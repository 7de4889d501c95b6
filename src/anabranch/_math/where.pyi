from typing import Any

import numpy as np

from anabranch._memory.array import Array
from anabranch._stream.stream import Stream

def where(
    condition: Array,
    a: Array | complex | np.number[Any] | np.bool_,
    b: Array | complex | np.number[Any] | np.bool_,
    /,
    *,
    stream: Stream | None = None,
) -> Array: ...
