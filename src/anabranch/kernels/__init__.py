"""Kernels written in Python: their declarations, and compilation to native code.

Neither importing this package nor decorating a kernel imports NumPy or Numba. Numba loads when a kernel is first
compiled, and not at all if the disk cache has the code.
"""

from anabranch.kernels._annotation import In, InOut, Out
from anabranch.kernels._atomic import atomic_add, atomic_cas, atomic_exchange, atomic_max, atomic_min
from anabranch.kernels._block import barrier, block, shared
from anabranch.kernels._kernel import Kernel, kernel
from anabranch.kernels._parameter import Parameter
from anabranch.kernels._random import random

__all__ = [
    "In",
    "InOut",
    "Kernel",
    "Out",
    "Parameter",
    "atomic_add",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "barrier",
    "block",
    "kernel",
    "random",
    "shared",
]
