"""Blocks of indices that share memory and wait for each other, for kernels.

These functions exist inside kernels only; each backend implements them.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from anabranch.kernels._atomic import outside


def block(*sizes: int) -> Any:
    """Run the kernel in blocks of this shape, and return the place of this index in its block.

    The indices of a block share the arrays made by `shared`, and wait for each other at `barrier`. On a GPU they are
    the threads of a block; on a CPU one worker runs them all.

    Parameters
    ----------
    *sizes : int
        Indices per block along each axis of the launch, which has 1 to 3: constants, at most 1024 indices in all, and
        of three axes at most 64 along the first. A launch consists of whole blocks: `dim` is a multiple of each size.

    Returns
    -------
    int, or tuple of int for several axes
        The index modulo the sizes.

    Raises
    ------
    RuntimeError
        Called outside a kernel.

    Examples
    --------
    >>> import anabranch as ab
    >>> @ab.kernel
    ... def reverse(i, x: ab.In, y: ab.Out):
    ...     place = ab.block(256)
    ...     part = ab.shared(256, "float32")
    ...     part[place] = x[i]
    ...     ab.barrier()
    ...     y[i] = part[255 - place]
    """
    outside("block")


def shared(shape: int | tuple[int, ...], dtype: Any) -> Any:
    """Return an array that the indices of a block share.

    Its elements have any value at first, and last until the block ends. Each call in the source is one array, however
    often it runs.

    Parameters
    ----------
    shape : int or tuple of int
        Constants.
    dtype : dtype
        Such as ``"float32"`` or ``np.float32``; neither complex nor float16. All arrays of a kernel have at most 49,088
        bytes.

    Raises
    ------
    RuntimeError
        Called outside a kernel.
    """
    outside("shared")


def barrier() -> None:
    """Wait until all indices of the block have come to this barrier.

    What they wrote before it, to shared arrays and others, the indices of the block read after it. All of them have to
    come to the same barriers in the same order: on a CPU the kernel fails otherwise, with `KernelError`, on a GPU
    anything may happen.

    Raises
    ------
    RuntimeError
        Called outside a kernel.
    """
    outside("barrier")


def is_of_blocks(value: Any) -> bool:
    """Return whether an object is `block`, `shared` or `barrier`."""
    return any(value is function for function in (block, shared, barrier))


def runs_in_blocks(function: FunctionType) -> bool:
    """Return whether a kernel function itself reads `block`."""
    code, scope = function.__code__, function.__globals__
    if not code.co_freevars and not any(name == "block" or scope.get(name) is block for name in code.co_names):
        return False  # without reading its bytecode
    from anabranch.kernels._reference import references

    return any(reference.value is block for reference in references(function))
