"""Common mistakes in the compiler's words, and in ours."""

from __future__ import annotations

import re
from typing import Final

_SET: Final = re.compile(r"setitem\((?:readonly )?array\((?P<dtype>\w+), .*\)$")
_FLOAT_INDEX: Final = re.compile(r"[Uu]nsupported array index type (?P<kind>float\d+)")
_DIMENSIONS: Final = re.compile(r"cannot index [\w ]*array\(\w+, (?P<ndim>\d)d, \w+\) with (?P<count>\d) indices")
_UNPACKED: Final = re.compile(r"wrong tuple length.*expected (?P<names>\d+), got (?P<parts>\d+)")
_ATTRIBUTE: Final = re.compile(r"Unknown attribute '(?P<name>\w+)' of type Module\(<module '(?P<module>[\w.]+)'")
_COMPLEX: Final = re.compile(r"complex\d+$")
# What to write for a function that one of the compilers lacks.
_LOOP: Final = "write the loop"
_INSTEAD: Final = {
    "all": _LOOP,
    "any": _LOOP,
    "reversed": "write a range with a negative step",
    "math.cbrt": "call np.cbrt",
    "math.dist": "call math.sqrt of the sum of squares",
    "math.factorial": "call math.gamma(n + 1)",
    "math.fma": "write x * y + z",
    "math.fmod": "call np.fmod",
    "math.fsum": _LOOP,
    "math.isclose": "compare abs(x - y) with a tolerance",
    "math.isqrt": "call int(math.sqrt(n)), exact below 2**52",
    "math.lcm": "call np.lcm, on the CPU",
    "math.modf": "write x - math.trunc(x) and math.trunc(x)",
    "math.prod": _LOOP,
    "math.remainder": "write x - y * np.rint(x / y)",
    "math.sumprod": _LOOP,
    "math.ulp": "call np.spacing, on the CPU",
}


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
    if found := _ATTRIBUTE.search(cause):
        return unsupported(f"{found['module']}.{found['name']}")
    return None


def unsupported(name: str) -> str:
    """Return the reason for a function of a library, or of Python, that kernels do not have."""
    instead = f"; {_INSTEAD[name]}" if name in _INSTEAD else ""
    return f"{name} is not supported in kernels{instead}"


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
