from types import TracebackType
from typing import Any

import numpy as np

from anabranch._memory.array import Array

def over(array: Array, interface: dict[str, Any]) -> np.ndarray[Any, Any]: ...

class HostView:
    def __init__(self, array: Array, write: bool) -> None: ...
    def __enter__(self) -> np.ndarray[Any, Any]: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
