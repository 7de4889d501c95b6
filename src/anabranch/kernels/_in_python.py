"""Functions of Python's and NumPy's that the compilers of kernels lack, in Python that they have.

Each is compiled as a helper of the kernel that calls it, on the backends in whose table it stands.
Results are those of the functions that they stand for, but integers wrap at 64 bits, and where Python raises because an
argument has no result, that is NaN, or 0 of an integer.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, cast

import numpy as np


def _any(values: Any) -> bool:
    for value in values:  # noqa: SIM110  neither compiler has generator expressions
        if value:
            return True
    return False


def _all(values: Any) -> bool:
    for value in values:  # noqa: SIM110
        if not value:
            return False
    return True


def _reversed(values: Any) -> Any:
    return values[::-1]


def _reversed_range(values: Any) -> Any:
    step = values.step
    return range(values.start + (len(values) - 1) * step, values.start - step, -step)


def _fmod(x: Any, y: Any) -> Any:
    return np.fmod(np.copysign(x, x), np.copysign(y, y))  # which makes floats of integers


def _modf(x: Any) -> Any:
    number = np.copysign(x, x)
    whole = np.trunc(number)
    rest = 0.0 if np.isinf(number) else number - whole
    return np.copysign(rest, number), whole


def _remainder(x: Any, y: Any) -> Any:
    size, step = np.fabs(x), np.fabs(y)
    if np.isinf(step) and not np.isinf(size):
        return size * np.copysign(1.0, x)
    rest = np.fmod(size, step)
    left = step - rest
    if rest > left:
        rest = -left
    elif rest == left:  # halfway: to the even multiple
        rest = rest - 2.0 * np.fmod(0.5 * (size - rest), step)
    return rest * np.copysign(1.0, x)


def _cbrt(x: Any) -> Any:
    return np.cbrt(x)


def _hypot_of_three(x: Any, y: Any, z: Any) -> Any:
    return np.hypot(np.hypot(x, y), z)


def _dist(p: Any, q: Any) -> Any:
    total = 0.0
    for a, b in zip(p, q):  # noqa: B905  the compilers' zip has no such parameter
        total += (a - b) * (a - b)
    return math.sqrt(total)


def _log_to_base(x: Any, base: Any) -> Any:
    return math.log(x) / math.log(base)


def _isclose(a: Any, b: Any, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> bool:
    if a == b:
        return True
    if np.isinf(a) or np.isinf(b):
        return False
    distance = abs(a - b)
    return bool(distance <= abs(rel_tol * a) or distance <= abs(rel_tol * b) or distance <= abs_tol)


def _isqrt(n: Any) -> Any:
    if n <= 0:
        return 0
    root = int(math.sqrt(n))  # of the nearest float64
    while root > n // root:
        root -= 1
    while root + 1 <= n // (root + 1):
        root += 1
    return root


def _gcd(a: Any, b: Any) -> Any:
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


def _lcm(a: Any, b: Any) -> Any:
    x, y = abs(a), abs(b)
    while y != 0:
        x, y = y, x % y
    return 0 if x == 0 else abs(a // x * b)


def _comb(n: Any, k: Any) -> Any:
    if k < 0 or k > n:
        return 0
    ways = 1
    for i in range(min(k, n - k)):
        ways = ways * (n - i) // (i + 1)
    return ways


def _perm(n: Any, k: Any) -> Any:
    if k < 0 or k > n:
        return 0
    ways = 1
    for i in range(k):
        ways *= n - i
    return ways


def _factorial(n: Any) -> Any:
    product = 1 if n >= 0 else 0
    for i in range(2, n + 1):
        product *= i
    return product


def _prod(values: Any) -> Any:
    product = 1
    for value in values:
        product = product * value
    return product


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    raised = a if a_min is None else np.maximum(a, a_min)
    return raised if a_max is None else np.minimum(raised, a_max)


def _where(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def _heaviside(x: Any, at_zero: Any) -> Any:
    if x == 0:
        return at_zero * 1.0
    return 0.0 if x < 0 else 1.0 if x > 0 else x * 1.0


def _var(a: Any) -> Any:
    return a.var()


def _std(a: Any) -> Any:
    return a.std()


def _searchsorted(a: Any, v: Any, side: Any = "left") -> Any:
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        # NaN comes last.
        if a[middle] < v or (v != v and a[middle] == a[middle]) or (side == "right" and not v < a[middle]):
            low = middle + 1
        else:
            high = middle
    return low


def _interp(x: Any, xp: Any, fp: Any) -> Any:
    low, high = 0, len(xp) - 1
    if x != x:
        return x * 1.0
    if x <= xp[0]:
        return fp[0] * 1.0
    if x >= xp[high]:
        return fp[high] * 1.0
    while high - low > 1:
        middle = (low + high) // 2
        if x < xp[middle]:
            high = middle
        else:
            low = middle
    slope = (fp[high] - fp[low]) / (xp[high] - xp[low])
    return slope * (x - xp[low]) + fp[low]


_OF_BOTH: Final[dict[Any, Callable[..., Any]]] = {
    builtins.any: _any,
    builtins.all: _all,
    builtins.reversed: _reversed,
    math.cbrt: _cbrt,
    math.dist: _dist,
    math.isclose: _isclose,
    math.isqrt: _isqrt,
    math.lcm: _lcm,
    math.comb: _comb,
    math.perm: _perm,
    math.factorial: _factorial,
    math.prod: _prod,
    np.clip: _clip,
    np.where: _where,
    np.heaviside: _heaviside,
    np.interp: _interp,
}
_LACKING: Final[dict[str, dict[Any, Callable[..., Any]]]] = {
    "cpu": {**_OF_BOTH, math.fmod: _fmod, math.modf: _modf, math.remainder: _remainder},
    "cuda": {**_OF_BOTH, math.gcd: _gcd, np.searchsorted: _searchsorted, np.var: _var, np.std: _std},
}
_OF_RANGES: Final = {_reversed: _reversed_range}
# Functions that the compilers have for fewer arguments.
_OF_MORE: Final[dict[tuple[Any, int], Callable[..., Any]]] = {
    (math.hypot, 3): _hypot_of_three,
    (math.log, 2): _log_to_base,
}


def lacking(backend: str, function: Any) -> FunctionType | None:
    """Return what stands for a function that the compiler of a backend, "cpu" or "cuda", lacks; None for all else."""
    return _found(_LACKING[backend], function)


def of_range(function: FunctionType) -> FunctionType:
    """Return what stands for a function of `lacking` where its argument is a range."""
    return _found(_OF_RANGES, function) or function


def of_more(function: Any, count: int) -> FunctionType | None:
    """Return what stands for a function of so many arguments, which the compilers have for fewer; None for all else."""
    return _found(_OF_MORE, (function, count))


def _found(table: Any, key: Any) -> FunctionType | None:
    try:
        return cast("FunctionType | None", table.get(key))
    except TypeError:  # a value without a hash
        return None


def has_of_more(function: Any) -> bool:
    """Whether there is something that stands for the function with some number of arguments."""
    return any(function is known for known, _ in _OF_MORE)
