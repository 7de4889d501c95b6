"""The GPU kernel around a kernel function: which index each thread takes, and how its arguments arrive.

The wrapper is Python source that is compiled with the function. Its parameters are the sizes of the
index space, then, per argument, what `numba_cuda_mlir` makes of an array (a memref: two pointers, an
offset, sizes, strides in elements) or one or two 8-byte scalars. A thread runs one index, and the grid
covers the index space (``CudaKernel::prepare``, which chooses it):

* The last axis is the grid's x, the one before its y, the first of three its z; of four, z counts the
  indices of the first two. So no thread divides, but for the last case, and neighbours in a row are
  neighbours in a warp.
* A *wide* kernel is for index spaces that do not fit such a grid, or arrays of 2^31 elements or more
  along or between their axes: its grid is one-dimensional, and a thread divides its number by the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

from anabranch.kernels._parameter import Parameter
from anabranch.kernels._signature import Code, Signature


class Layout(NamedTuple):
    """How the words that a launch packs become parameters of the wrapper.

    Attributes
    ----------
    slots : list of int
        For every parameter after the index space's: the 8-byte slot where its value lies.
    known : dict of int to int
        Values, by position among all parameters, that are the same in every launch.
    sizes, strides : list of int
        Positions among all parameters of those that count elements.
    """

    slots: list[int]
    known: dict[int, int]
    sizes: list[int]
    strides: list[int]


def source_of(parameters: Sequence[Parameter], signature: Signature, wide: bool, call: str = "function({})") -> str:
    """Return the wrapper as Python source; it names dtypes as ``float32`` and so on, and calls as `call` says."""
    launch_ndim, codes = signature
    names = [f"n{axis}" for axis in range(launch_ndim)]
    lines, arguments = [], []
    for position, (parameter, code) in enumerate(zip(parameters, codes, strict=True)):
        name = f"a{position}"
        arguments.append(name)
        if code[0] == "array":
            names.append(name)
            continue
        names += [f"{name}_real", f"{name}_imag"] if code[1].startswith("complex") else [f"{name}_word"]
        lines.append(f"    {name} = {_scalar(name, parameter, code)}")
    index = _wide_index(launch_ndim) if wide else _index(launch_ndim)
    lines += [*index.lines, f"    if {index.inside}:", "        " + call.format(", ".join([index.value, *arguments]))]
    return "\n".join([f"def entry({', '.join(names)}):", *lines, ""])


def _scalar(name: str, parameter: Parameter, code: Code) -> str:
    # As on the CPU: the word becomes what was passed, and that is cast to what is declared.
    if code[1].startswith("complex"):
        narrow = f"complex({name}_real, {name}_imag)"
        return f"{parameter.scalar or code[1]}({narrow})"
    given = f"{name}_word != 0" if code[1] == "bool" else f"{_register(code[1])}({name}_word)"
    if parameter.scalar is None or parameter.scalar == code[1]:
        return given
    if parameter.scalar == "bool":
        return f"({given}) != 0"
    return f"{_register(parameter.scalar)}({given})"


def _register(dtype: str) -> str:
    return "float32" if dtype == "float16" else dtype


class _Index(NamedTuple):
    """Lines that find a thread's index, the condition that it has one, and the index itself."""

    lines: list[str]
    inside: str
    value: str


def _index(launch_ndim: int) -> _Index:
    # Unsigned: the compiler then sees that no index is negative, and that 32 bits hold it.
    lines = [
        f"    {axis} = uint32(cuda.blockIdx.{axis} * cuda.blockDim.{axis} + cuda.threadIdx.{axis})"
        for axis in "xyz"[: min(launch_ndim, 3)]
    ]
    if launch_ndim == 4:
        lines += ["    w = uint32(z // uint32(n1))", "    z = uint32(z % uint32(n1))"]
    axes = "xyzw"[:launch_ndim]
    # Of four axes z is a remainder, which is in bounds.
    sizes = {axis: launch_ndim - 1 - place for place, axis in enumerate(axes) if launch_ndim < 4 or axis != "z"}
    tests = [f"{axis} < uint32(n{size})" for axis, size in sizes.items()]
    index = ", ".join(f"int64({axis})" for axis in reversed(axes))
    return _Index(lines, " and ".join(tests), index if launch_ndim == 1 else f"({index})")


def _wide_index(launch_ndim: int) -> _Index:
    total = " * ".join(f"n{axis}" for axis in range(launch_ndim))
    lines = ["    position = int64(cuda.blockIdx.x) * int64(cuda.blockDim.x) + int64(cuda.threadIdx.x)"]
    if launch_ndim == 1:
        return _Index(lines, "position < n0", "position")
    # Unsigned division needs no care for signs.
    lines.append("    rest = uint64(position)")
    for axis in reversed(range(1, launch_ndim)):
        lines += [f"    i{axis} = int64(rest % uint64(n{axis}))", f"    rest = rest // uint64(n{axis})"]
    index = "(int64(rest), " + ", ".join(f"i{axis}" for axis in range(1, launch_ndim)) + ")"
    return _Index(lines, f"position < {total}", index)


def make_entry(source: str, function: Any, scope: dict[str, Any]) -> FunctionType:
    """Return the wrapper as a function that calls `function`, the kernel as the compiler knows it."""
    names = {**scope, "function": function}
    exec(compile(source, "<anabranch>", "exec"), names)
    entry: FunctionType = names["entry"]
    return entry


def layout_of(signature: Signature) -> Layout:
    """Return how the parameters of the wrapper are filled from what a launch packs."""
    launch_ndim, codes = signature
    slots: list[int] = []
    known: dict[int, int] = {}
    sizes = list(range(launch_ndim))
    strides: list[int] = []
    slot = 0
    for code in codes:
        if code[0] == "scalar":
            words = 2 if code[1].startswith("complex") else 1
            slots += range(slot, slot + words)
            slot += words
            continue
        ndim, contiguous = code[2], code[3]
        known[launch_ndim + len(slots) + 2] = 0  # the offset: a pointer is to the first element
        slots += [slot, slot, slot, *range(slot + 1, slot + 1 + 2 * ndim)]
        end = launch_ndim + len(slots)
        sizes += range(end - 2 * ndim, end - ndim)
        strides += range(end - ndim, end)
        if contiguous and ndim:
            known[launch_ndim + len(slots) - 1] = 1
        slot += 1 + 2 * ndim
    return Layout(slots, known, sizes, strides)
