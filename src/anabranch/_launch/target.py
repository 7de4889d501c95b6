"""Targets for which kernels are compiled."""

from typing import NamedTuple


class Target(NamedTuple):
    """The target of a kernel on CUDA, besides the kinds of its arguments.

    Attributes
    ----------
    capability : tuple of int
        Compute capability, such as ``(9, 0)``.
    checked : bool
        Whether every index is checked.
    wide : bool
        For index spaces and arrays of any size, see `kernels._cuda.entry`.
    flat : bool
        For index spaces that fit no grid of their own dimensions; of a wide kernel it is True.
    coarse : bool
        For large launches, whose threads run several indices each, see `kernels._cuda.entry`. Neither flat, nor
        checked: the place of a thread in the grid identifies a failed index.
    """

    capability: tuple[int, int]
    checked: bool = False
    wide: bool = False
    flat: bool = False
    coarse: bool = False
