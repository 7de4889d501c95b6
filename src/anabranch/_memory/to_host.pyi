from collections.abc import Awaitable
from typing import Any

from numpy.typing import NDArray

from anabranch._memory.array import Array

def to_host(array: Array) -> Awaitable[NDArray[Any]]: ...
