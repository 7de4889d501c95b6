from collections.abc import Iterable
from types import CellType
from typing import Any

class Constants:
    kernel: str
    def __init__(
        self, kernel: str, reads: Iterable[tuple[str, CellType | tuple[dict[str, Any], str], Any]]
    ) -> None: ...
