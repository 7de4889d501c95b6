"""Common mistakes in the compiler's words, and in ours."""

from __future__ import annotations

import re
from typing import Final

_SET: Final = re.compile(r"setitem\((?:readonly )?array\((?P<dtype>\w+), .*\)$")
_FLOAT_INDEX: Final = re.compile(r"[Uu]nsupported array index type (?P<kind>float\d+)")
_DIMENSIONS: Final = re.compile(r"cannot index [\w ]*array\(\w+, (?P<ndim>\d)d, \w+\) with (?P<count>\d) indices")
_UNPACKED: Final = re.compile(r"wrong tuple length.*expected (?P<names>\d+), got (?P<parts>\d+)")
_COMPLEX: Final = re.compile(r"complex\d+$")


def reworded(cause: str) -> str | None:
    """Return what the compiler says in plain words; None for what is not among the mistakes known here."""
    if found := _SET.search(cause):
        return not_stored(found["dtype"], _last_argument(cause))
    if found := _FLOAT_INDEX.search(cause):
        return f"arrays are indexed by integers, not by {found['kind']}: divide with //, or convert with int(...)"
    if found := _DIMENSIONS.search(cause):
        return f"an array of {_counted(found['ndim'], 'dimension')} takes no {found['count']} indices"
    if found := _UNPACKED.search(cause):
        return f"a tuple of {found['parts']} does not unpack into {_counted(found['names'], 'name')}"
    return None


def not_stored(dtype: str, kind: str) -> str:
    """Return the reason for a value, of a type in Numba's notation, that is no element of an array of a dtype."""
    if _COMPLEX.match(kind):
        value = f"{kind}: store its real part, or pass an array of {kind}"
    elif "array(" in kind:
        value = "a whole array: index it"
    elif kind.startswith(("Tuple", "UniTuple")):
        value = "a tuple"
    elif kind.startswith(("Literal[str]", "unicode")):
        value = "a string"
    else:
        value = {"none": "None"}.get(kind, kind)
    return f"an element of {dtype} cannot be set to {value}"


def _last_argument(call: str) -> str:
    """Return the last argument of a call's text, whose arguments may have parentheses."""
    depth = 0
    for place in range(len(call) - 1, -1, -1):
        depth += (call[place] in ")]") - (call[place] in "([")
        if depth == 1 and call[place] == ",":
            return call[place + 1 : -1].strip()
    return call


def _counted(number: str, noun: str) -> str:
    return f"{number} {noun}" if number == "1" else f"{number} {noun}s"
