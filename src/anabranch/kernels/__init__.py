"""Kernels written in Python: what they declare, and how they become native code.

Neither NumPy nor Numba is imported here or at decoration; Numba loads when a kernel is
first compiled, and not at all when the disk cache has it.
"""

from anabranch.kernels._annotation import In, InOut, Out
from anabranch.kernels._atomic import atomic_add, atomic_max, atomic_min
from anabranch.kernels._kernel import Kernel, kernel
from anabranch.kernels._parameter import Parameter

__all__ = [
    "In",
    "InOut",
    "Kernel",
    "Out",
    "Parameter",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "kernel",
]
