"""Atomic updates for kernels.

These functions exist inside kernels only; each backend implements them for Numba. An update is one indivisible
read and write of one element with respect to every thread of the device. It orders nothing else: other elements written
earlier may become visible later.
"""

from __future__ import annotations

from typing import Any, NoReturn


def outside(name: str) -> NoReturn:
    """Raise the error of a function that only kernels can call."""
    raise RuntimeError(f"ab.{name} works inside a function decorated with @ab.kernel only")


def atomic_add(array: Any, index: Any, value: Any) -> Any:
    """Add `value` to ``array[index]`` indivisibly and return the element's old value.

    Parameters
    ----------
    array : array
        A kernel parameter that is not declared `In`, of an integer or float dtype.
    index : int or tuple of int
        As many integers as the array has dimensions; negative ones count from the end.
    value : scalar
        Cast to the array's dtype. Integers wrap around.

    Raises
    ------
    RuntimeError
        Called outside a kernel.
    """
    outside("atomic_add")


def atomic_min(array: Any, index: Any, value: Any) -> Any:
    """Lower ``array[index]`` to `value` if that is less; return the element's old value.

    As `atomic_add`, but not of float16. For floats this is IEEE 754 minNum: a `value` that is NaN changes nothing,
    and an element that is NaN is replaced. Of the two zeros either may remain.
    """
    outside("atomic_min")


def atomic_max(array: Any, index: Any, value: Any) -> Any:
    """Raise ``array[index]`` to `value` if that is greater; return the element's old value.

    As `atomic_add`, but not of float16. For floats this is IEEE 754 maxNum: a `value` that is NaN changes nothing,
    and an element that is NaN is replaced. Of the two zeros either may remain.
    """
    outside("atomic_max")


def atomic_exchange(array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]`` to `value` indivisibly and return the element's old value. As `atomic_add`."""
    outside("atomic_exchange")


def atomic_cas(array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Set ``array[index]`` to `value` if it is `expected`, indivisibly; return the element's old value.

    As `atomic_add`. It has set the element if what it returns is `expected`. Floats are compared by their bits: a NaN
    is itself, and 0.0 is not -0.0.
    """
    outside("atomic_cas")
