from types import TracebackType
from typing import Any

import numpy.typing as npt

from anabranch._memory.array import Array

def over(array: Array, interface: dict[str, Any]) -> npt.NDArray[Any]: ...

class HostView:
    def __init__(self, array: Array, write: bool) -> None: ...
    def __enter__(self) -> npt.NDArray[Any]: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
