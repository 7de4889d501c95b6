"""The index taken for what it is not: an int where it is a tuple, or the other way round."""

from __future__ import annotations

import linecache
import re
from types import FunctionType
from typing import Final

_LETTERS: Final = "ijkl"
_NO_TUPLE: Final = re.compile(r"unpack int64|(?:getitem|len|iter)\(int64\b|Cannot unpack|int64 is not iterable")

# What the compiler says of a tuple where a number belongs, besides naming its type.
_NO_NUMBER: Final = re.compile(r"wrong tuple length|(?:float|complex)\(\) only support|tuple index out of range")
_MANY_ARGUMENTS: Final = "too many positional arguments"  # min and max take a tuple alone


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
    if source and _is_within(function, place) and not re.search(rf"\b{re.escape(index)}\b", source):
        return None
    if launch_ndim == 1:
        if not _NO_TUPLE.search(reason):
            return None
        return (
            f"the launch is over 1 dimension, so the index {index!r} is an int; for a tuple, launch over one: "
            f"ab.launch({function.__name__}, (rows, columns), ...)"
        )
    if not _takes_tuple_for_number(launch_ndim, reason, source):
        return None
    parts = ", ".join(_LETTERS[:launch_ndim])
    name = index if index not in _LETTERS else _LETTERS[:launch_ndim]
    return (
        f"the launch is over {launch_ndim} dimensions, so the index {index!r} is one tuple of {launch_ndim} ints: "
        f"{parts} = {name}; as it is, it indexes arrays of {launch_ndim} dimensions"
    )


def _is_within(function: FunctionType, place: tuple[str, int]) -> bool:
    """Return whether a line is of the function itself, not of a helper, where the index may have another name."""
    lines = [line for _, _, line in function.__code__.co_lines() if line is not None]
    return place[0] == function.__code__.co_filename and min(lines) <= place[1] <= max(lines)


def _takes_tuple_for_number(launch_ndim: int, reason: str, source: str) -> bool:
    if re.search(rf"UniTuple\(int64(?: x|,) {launch_ndim}\)", reason) or _NO_NUMBER.search(reason):
        return True
    return _MANY_ARGUMENTS in reason and re.search(r"\b(?:min|max)\(", source) is not None
