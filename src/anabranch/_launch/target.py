"""What launches have kernels compiled for."""

from typing import NamedTuple


class Target(NamedTuple):
    """What a kernel is compiled for on CUDA, besides the kinds of its arguments.

    Attributes
    ----------
    capability : tuple of int
        Compute capability, such as ``(9, 0)``.
    checked : bool
        Whether every index is checked.
    wide : bool
        For index spaces and arrays of any size, see `kernels._cuda.entry`.
    """

    capability: tuple[int, int]
    checked: bool = False
    wide: bool = False

    @property
    def coarse(self) -> bool:
        """Whether its threads may run several indices each, see `kernels._cuda.entry`.

        Not if indices are checked: an error is told by the thread's place in the grid.
        """
        return not self.wide and not self.checked
