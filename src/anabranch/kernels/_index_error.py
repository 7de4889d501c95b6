"""The index taken for what it is not: an int where it is a tuple, or the other way round."""

from __future__ import annotations

import linecache
import re
from types import FunctionType
from typing import Final

_LETTERS: Final = "ijkl"
_NO_TUPLE: Final = re.compile(r"unpack int64|(?:getitem|len|iter)\(int64\b|Cannot unpack|int64 is not iterable")

_WRONG_LENGTH: Final = "wrong tuple length"


def index_reason(function: FunctionType, launch_ndim: int, reason: str, place: tuple[str, int]) -> str | None:
    """Return why a kernel fails to compile if it takes its index for a tuple or an int wrongly; None if it does not.

    Parameters
    ----------
    function : function
        The kernel's function.
    launch_ndim : int
        Dimensions of the launch.
    reason : str
        The compiler's words.
    place : (str, int)
        The line that they are about.
    """
    index = function.__code__.co_varnames[0]
    source = linecache.getline(*place)
    if source and not re.search(rf"\b{re.escape(index)}\b", source):
        return None
    if launch_ndim == 1:
        if not _NO_TUPLE.search(reason):
            return None
        return (
            f"the launch is over 1 dimension, so the index {index!r} is an int; for a tuple, launch over one: "
            f"ab.launch({function.__name__}, (rows, columns), ...)"
        )
    if f"UniTuple(int64 x {launch_ndim})" not in reason and _WRONG_LENGTH not in reason:
        return None
    parts = ", ".join(_LETTERS[:launch_ndim])
    name = index if index not in _LETTERS else _LETTERS[:launch_ndim]
    return (
        f"the launch is over {launch_ndim} dimensions, so the index {index!r} is one tuple of {launch_ndim} ints: "
        f"{parts} = {name}; as it is, it indexes arrays of {launch_ndim} dimensions"
    )
