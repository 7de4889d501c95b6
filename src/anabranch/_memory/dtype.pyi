from typing import Any

import numpy as np
import numpy.typing as npt

names: tuple[str, ...]

def as_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]: ...
