from collections.abc import Callable
from typing import Any

from anabranch._memory.array import Array

def run_if(flag: Array, then: Callable[[], Any], otherwise: Callable[[], Any] | None = None) -> None: ...
def run_while(flag: Array, body: Callable[[], Any]) -> None: ...
