"""Common mistakes in the compiler's words, and in ours."""

from __future__ import annotations

import re
from typing import Final

_SET: Final = re.compile(r"setitem\((?:readonly )?array\((?P<dtype>\w+), .*\)$")
_FLOAT_INDEX: Final = re.compile(r"[Uu]nsupported array index type (?P<kind>float\d+|bool)")
_DIMENSIONS: Final = re.compile(r"cannot index [\w ]*array\(\w+, (?P<ndim>\d)d, \w+\) with (?P<count>\d) indices")
_UNPACKED: Final = re.compile(r"wrong tuple length.*expected (?P<names>\d+), got (?P<parts>\d+)")
_ATTRIBUTE: Final = re.compile(r"Unknown attribute '(?P<name>\w+)' of type Module\(<module '(?P<module>[\w.]+)'")
_TUPLE: Final = re.compile(
    r"(?:getitem\((?=.*, (?:u?int\d+|Literal\[int\]\(-?\d+\))\)$)|getiter with parameters \()Tuple\((?P<parts>.*?)\)"
    r"(?:, [^()]*(?:\(-?\d+\))?)?\)$"
)
_NUMBER: Final = re.compile(r"(?:u?int|float|complex)\d+$|bool$")
_LITERAL: Final = re.compile(r"Literal\[(?P<kind>int|bool)\]\([^()]*\)")
_KEYWORD_ONLY: Final = re.compile(r"^Cannot bind .* to signature '\([^']*\*,")
# A float64 where a uint64 and a signed integer may have met.
_MIXED: Final = re.compile(
    r"array index type float64|the index is an int.*\bfloat64|"
    r"Numba has no (?:xor|and_|or_|invert|range|[lr]shift|i(?:xor|and|or|[lr]shift))\(.*\bfloat64"
)
_HYPOT: Final = "math.hypot takes two or three numbers in kernels: for more write math.sqrt of the sum of squares"
_MANY: Final = re.compile(r"^Numba has no hypot\(.+, .+, .+, .+\)$")
_DRAWN: Final = re.compile(r"Numba has no or_\((?:float|complex|none)")
_TOO_MANY: Final = "too many positional arguments"
_COMPLEX: Final = re.compile(r"complex\d+$")
# What to write for a function that one of the compilers lacks.
_INSTEAD: Final = {
    "math.fma": "write x * y + z",
    "math.fsum": "write the loop",
    "math.sumprod": "write the loop",
    "math.ulp": "call np.spacing, on the CPU",
}


def reworded(cause: str, source: str = "") -> str | None:
    """Return what the compiler says of a line in plain words; None for what is not among the mistakes known here."""
    if found := _SET.search(cause):
        return not_stored(found["dtype"], _last_argument(cause))
    if found := _FLOAT_INDEX.search(cause):
        advice = "convert with int(...)" if found["kind"] == "bool" else "divide with //, or convert with int(...)"
        return f"arrays are indexed by integers, not by {found['kind']}: {advice}"
    if found := _DIMENSIONS.search(cause):
        return f"an array of {_counted(found['ndim'], 'dimension')} takes no {found['count']} indices"
    if found := _UNPACKED.search(cause):
        return f"a tuple of {found['parts']} does not unpack into {_counted(found['names'], 'name')}"
    if found := _ATTRIBUTE.search(cause):
        return unsupported(f"{found['module']}.{found['name']}")
    if found := _TUPLE.search(cause):
        return _of_one_type(_LITERAL.sub(lambda part: {"int": "int64"}.get(part["kind"], "bool"), found["parts"]))
    if _MANY.search(cause) or (_TOO_MANY in cause and "math.hypot(" in source):
        return _HYPOT
    if _DRAWN.search(cause) and "random(" in source:
        return "the seed and the counter of ab.random are integers"
    if _KEYWORD_ONLY.search(cause):
        return "on a CPU, a function that a kernel calls has no keyword-only parameters: leave out the * before them"
    if cause == "Keyword arguments are not supported, yet":
        return "this function takes its arguments by position in kernels, as in round(x, 1)"
    return None


def mixed(cause: str) -> str:
    """Return what to add to a reason if a uint64 with a signed integer may be its cause; else nothing."""
    if not _MIXED.search(cause):
        return ""
    return "; a uint64 with a signed integer can make a float64: convert one, as in np.int64(u)"


def _of_one_type(parts: str) -> str:
    """Return the reason for a tuple with parts of several types, which only constants index."""
    kinds = parts.split(", ")
    if all(map(_NUMBER.match, kinds)):
        advice = "convert them, as in (np.float64(x[i]), 0.0, 1.0)"
    else:
        advice = "write its indices as numbers, as in parts[0]"
    return (
        "a tuple is indexed by a variable, or looped over, only if its parts have one type; these have "
        f"{', '.join(kinds[:-1])} and {kinds[-1]}: {advice}"
    )


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
