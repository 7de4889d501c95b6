"""The kernels whose time on the device is measured: what each computes on, and how often it runs in a batch.

Values are small multiples of powers of two, so that every sum and product is exact: whether a compiler fuses them does
not show in the results, which are compared bit for bit. Only `mandelbrot` cannot have that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

PREFIX = "kernels."

SIZES = {"1K": 2**10, "64K": 2**16, "1M": 2**20, "16M": 2**24, "64M": 2**26}
SIZES_OF = {"cuda": ("1K", "64K", "1M", "64M"), "cpu": ("1K", "64K", "1M", "16M")}

# As near to square as powers of two can be, the last axis the longest and a multiple of 32.
PLANES = {"1K": (32, 32), "64K": (256, 256), "1M": (1024, 1024), "16M": (4096, 4096), "64M": (8192, 8192)}
BOXES = {
    "1K": (4, 8, 32),
    "64K": (32, 32, 64),
    "1M": (64, 128, 128),
    "16M": (256, 256, 256),
    "64M": (256, 512, 512),
}

BINS = 1024  # of the histogram
BLOCK = 256  # indices whose values are added up
# The blocks of the kernels that share memory, as the index space counts them.
IN_BLOCKS: dict[str, tuple[int, ...]] = {"tiles": (8, 32), "block_sums": (BLOCK,)}
LIMIT = 64  # most iterations of a point of the Mandelbrot set
EDGE = 32  # how far the rows of a larger array are from its edges

# The points of a batch: so many that starting and timing it do not count.
BATCH = {"cuda": 2**28, "cpu": 2**24}
MOST_CALLS = 200

View = Callable[[Any], Any]


def whole(array: Any) -> Any:
    return array


@dataclass(frozen=True)
class Problem:
    """A kernel and the size of what it runs over.

    Attributes
    ----------
    name, size : str
        The kernel, and its elements, such as "1M".
    dim : tuple of int
        The index space.
    scalars : tuple
        What the kernel takes before its arrays.
    make : callable
        Returns the arrays, as NumPy's, the one it writes last.
    views : tuple of callable
        What of each array the kernel is given.
    weight : int
        About how many times the work of an addition a point takes.
    differing : float
        Which part of the results may differ between two compilers.
    """

    name: str
    size: str
    dim: tuple[int, ...]
    scalars: tuple[Any, ...]
    make: Callable[[], Sequence[Any]]
    views: tuple[View, ...]
    weight: int = 1
    differing: float = 0.0

    def calls(self, device: str) -> int:
        """Return how often the kernel runs in a batch."""
        return max(1, min(MOST_CALLS, BATCH[device] // (math.prod(self.dim) * self.weight)))

    def check(self, found: Any) -> None:
        """Compare what an implementation computed with what the first one did.

        Raises
        ------
        ArithmeticError
            They differ.
        """
        import numpy

        expected = _expected.setdefault((self.name, self.size), found)
        wrong = 0 if found is expected else int(numpy.count_nonzero(found != expected))
        if wrong > self.differing * found.size:
            raise ArithmeticError(f"{self.name} of {self.size}: {wrong} of {found.size} results differ")


_expected: dict[tuple[str, str], Any] = {}


@functools.lru_cache(maxsize=1)
def arrays_of(problem: Problem) -> tuple[Any, ...]:
    """Return the arrays of a problem before anything ran. Only those of the last problem are kept, as its results."""
    _expected.clear()
    arrays = tuple(problem.make())
    for array in arrays:
        array.setflags(write=False)
    return arrays


def values(shape: tuple[int, ...], dtype: str = "float32", high: int = 16) -> Any:
    """Return small whole numbers in no order."""
    import numpy

    block = numpy.random.default_rng(0).integers(0, high, 65521)
    if dtype.startswith("complex"):
        block = block + 1j * block[::-1]
    return numpy.resize(block.astype(dtype), shape)


def zeros(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    import numpy

    return numpy.zeros(shape, dtype)


def places(count: int, dtype: str) -> Any:
    """Return every index once, in no order; `count` is a power of two."""
    import numpy

    numbers = numpy.arange(count, dtype="uint32")
    for factor, shift in ((0x9E3779B1, 7), (0x85EBCA6B, 9)):  # each step maps the indices one to one
        numbers *= numpy.uint32(factor)
        numbers &= numpy.uint32(count - 1)
        numbers ^= numbers >> numpy.uint32(shift)
    return numbers.astype(dtype)


def parts(scalar: Any) -> tuple[float, ...]:
    """Return a scalar as floats: two, if it is complex."""
    return (float(scalar.real), float(scalar.imag)) if complex(scalar).imag else (float(scalar),)


def saxpy(size: str, dtype: str, alpha: complex, *, mixed: bool = False) -> Problem:
    import numpy

    count = SIZES[size]
    return Problem(
        "saxpy_mixed" if mixed else f"saxpy_{dtype}",
        size,
        (count,),
        (alpha if mixed else numpy.dtype(dtype).type(alpha),),
        lambda: (values((count,), dtype), values((count,), dtype, 8)),
        (whole, whole),
    )


def stencil(size: str, name: str, shape: tuple[int, ...]) -> Problem:
    return Problem(name, size, shape, (), lambda: (values(shape), zeros(shape)), (whole, whole))


def transposed(size: str) -> Problem:
    rows, columns = PLANES[size]
    return Problem(
        "transposed",
        size,
        (rows, columns),
        (),
        lambda: (values((columns, rows)), zeros((rows, columns))),
        (whole, whole),
    )


def gather(size: str, dtype: str) -> Problem:
    count = SIZES[size]
    return Problem(
        f"gather_{dtype}",
        size,
        (count,),
        (),
        lambda: (values((count,)), places(count, dtype), zeros((count,))),
        (whole, whole, whole),
        weight=2,
    )


def strided(size: str, name: str, shape: tuple[int, ...], whole_shape: tuple[int, ...], view: View) -> Problem:
    return Problem(name, size, shape, (), lambda: (values(whole_shape), zeros(shape)), (view, whole))


def histogram(size: str) -> Problem:
    count = SIZES[size]
    return Problem(
        "histogram",
        size,
        (count,),
        (),
        lambda: (values((count,), "int32", BINS), zeros((BINS,), "int32")),
        (whole, whole),
        weight=8,
    )


def tiles(size: str) -> Problem:
    rows, columns = PLANES[size]
    # A thread copies four elements.
    return Problem(
        "tiles",
        size,
        (rows // 4, columns),
        (),
        lambda: (values((columns, rows)), zeros((rows, columns))),
        (whole, whole),
        weight=4,
    )


def block_sums(size: str) -> Problem:
    count = SIZES[size]
    return Problem(
        "block_sums",
        size,
        (count,),
        (),
        lambda: (values((count,)), zeros((count // BLOCK,))),
        (whole, whole),
        weight=2,
    )


def mandelbrot(size: str) -> Problem:
    shape = PLANES[size]
    return Problem("mandelbrot", size, shape, (), lambda: (zeros(shape, "int32"),), (whole,), weight=64, differing=1e-3)


def rows(size: str) -> Problem:
    shape = PLANES[size]
    larger = (shape[0] + 2 * EDGE, shape[1] + 2 * EDGE)
    return strided(size, "rows", shape, larger, lambda array: array[EDGE:-EDGE, EDGE:-EDGE])


MAKERS: dict[str, Callable[[str], Problem]] = {
    "saxpy_float32": lambda size: saxpy(size, "float32", 0.5),
    "saxpy_float64": lambda size: saxpy(size, "float64", 0.5),
    "saxpy_complex64": lambda size: saxpy(size, "complex64", 0.5 + 0.25j),
    "saxpy_mixed": lambda size: saxpy(size, "float32", 0.5, mixed=True),
    "five_point": lambda size: stencil(size, "five_point", PLANES[size]),
    "nine_point": lambda size: stencil(size, "nine_point", PLANES[size]),
    "seven_point": lambda size: stencil(size, "seven_point", BOXES[size]),
    "transposed": transposed,
    "gather_int32": lambda size: gather(size, "int32"),
    "gather_int64": lambda size: gather(size, "int64"),
    "step2": lambda size: strided(size, "step2", (SIZES[size],), (2 * SIZES[size],), lambda array: array[::2]),
    "backwards": lambda size: strided(size, "backwards", (SIZES[size],), (SIZES[size],), lambda array: array[::-1]),
    "rows": rows,
    "histogram": histogram,
    "mandelbrot": mandelbrot,
    "tiles": tiles,
    "block_sums": block_sums,
}
PLAIN = [name for name in MAKERS if name not in IN_BLOCKS]

# What each kernel does, for people.
TITLES = {
    "saxpy_float32": "y = a x + y",
    "saxpy_float64": "y = a x + y in float64",
    "saxpy_complex64": "y = a x + y in complex64",
    "saxpy_mixed": "y = a x + y in float32 with an `a` of float64, as a float of Python's is",
    "five_point": "A stencil of 5 points in a plane",
    "nine_point": "A stencil of 9 points in a plane",
    "seven_point": "A stencil of 7 points in a box",
    "transposed": "Copy a plane, rows to columns",
    "gather_int32": "Copy elements from places that an array of int32 names",
    "gather_int64": "Copy elements from places that an array of int64 names",
    "step2": "Copy every second element",
    "backwards": "Copy from the last element to the first",
    "rows": "Copy the inner part of a plane",
    "histogram": f"Count {BINS} values with atomics",
    "tiles": "Copy a plane, rows to columns, through tiles in shared memory",
    "block_sums": f"Add up {BLOCK} elements at a time in shared memory",
    "mandelbrot": f"The Mandelbrot set in float64, up to {LIMIT} iterations",
}


@functools.cache
def problem_of(name: str, size: str) -> Problem:
    return MAKERS[name](size)
