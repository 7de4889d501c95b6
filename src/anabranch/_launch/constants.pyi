from collections.abc import Iterable
from types import CellType
from typing import Any

class Constants:
    def __init__(
        self,
        made: str,
        keeps: str,
        advice: str,
        reads: Iterable[tuple[str, CellType | tuple[dict[str, Any], str], Any]],
        in_place: bool = True,
    ) -> None: ...
