"""The GPU kernel around a kernel function: assignment of indices to threads, and unpacking of arguments.

The wrapper is Python source, compiled together with the function. Its parameters are the sizes of the index space; for
a *coarse* kernel, the number of indices per thread; then, per argument, the form that `numba_cuda_mlir` gives an array
(a memref: two pointers, an offset, sizes, strides in elements), or one or two 8-byte scalars. The grid covers the index
space (``CudaKernel::prepare`` chooses it):

* The last axis is the grid's x, the one before its y, the first of three its z. With four axes z counts the
  indices of the first two. Threads therefore divide only in that last case, and neighbours in a row are neighbours in
  a warp.
* A thread of a coarse kernel runs several indices, one block apart, along y, or along x if there is no y. A GPU
  starts about one warp per two cycles and multiprocessor, which limits kernels that do little per index.
* A *flat* kernel is for index spaces that do not fit such a grid, which has up to 65535 blocks along y and z, as in
  ``dim=(10_000_000, 3)``. Its grid is one-dimensional, and a thread divides its number by the sizes.
* A *wide* kernel is flat and computes in 64 bits, for 2^31 indices or more in a flat grid, and arrays with 2^31
  elements or more along or between their axes.
* A kernel that runs in *blocks* has blocks of its own sizes, of which a launch has a whole number along each axis. It
  is never coarse or flat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

from anabranch._launch.target import Target
from anabranch.kernels._parameter import Parameter
from anabranch.kernels._signature import Code, Signature

# Maximum indices per thread of a coarse kernel; the launcher uses the same number.
MOST_PER_THREAD: Final = 4


class Layout(NamedTuple):
    """Mapping from the words that a launch packs to the wrapper's parameters.

    Attributes
    ----------
    slots : list of int
        For each parameter after those of the index space, the 8-byte slot of its value.
    known : dict of int to int
        Values, by position among all parameters, that are the same in every launch.
    sizes, strides : list of int
        Positions, among all parameters, of element counts.
    """

    slots: list[int]
    known: dict[int, int]
    sizes: list[int]
    strides: list[int]


def source_of(
    parameters: Sequence[Parameter],
    signature: Signature,
    target: Target,
    call: str = "function({})",
    unrolled: bool = False,
    block: Sequence[int] = (),
) -> str:
    """Return the wrapper as Python source. It names dtypes as ``float32`` and so on, and calls the kernel by `call`.

    With `unrolled`, a coarse kernel also contains the calls of a full thread in sequence. `block`: the sizes of the
    blocks of a kernel that runs in blocks, whose threads all have an index.
    """
    launch_ndim, codes = signature
    names = [f"n{axis}" for axis in range(launch_ndim)]
    if target.coarse:
        names.append("count")
    lines, arguments = [], []
    for position, (parameter, code) in enumerate(zip(parameters, codes, strict=True)):
        name = f"a{position}"
        arguments.append(name)
        if code[0] == "array":
            names.append(name)
            continue
        names += [f"{name}_real", f"{name}_imag"] if code[1].startswith("complex") else [f"{name}_word"]
        lines.append(f"    {name} = {_scalar(name, parameter, code)}")
    if len(block) == launch_ndim:
        index = _index_in_blocks(block)
    elif target.flat:
        index = _flat_index(launch_ndim, 64 if target.wide else 32)
    else:
        index = _index(launch_ndim, target.coarse)
    lines += [*index.lines, f"    if {index.inside}:"]

    def run(value: str) -> str:
        return call.format(", ".join([value, *arguments]))

    lines += _repeated(launch_ndim, index.value, run, unrolled) if target.coarse else [f"        {run(index.value)}"]
    return "\n".join([f"def entry({', '.join(names)}):", *lines, ""])


def _repeated(launch_ndim: int, value: str, run: Callable[[str], str], unrolled: bool) -> list[str]:
    """Return lines that run every index of a coarse kernel's thread; `value` is the first index."""
    axis, size = ("x", "n0") if launch_ndim == 1 else ("y", f"n{launch_ndim - 2}")
    # Casts keep 32 bits: the compiler multiplies two 32-bit numbers in 64 bits.
    step = f"cuda.blockDim.{axis}"
    lines = [f"        last = uint32({axis} + uint32({step} * count))"]
    indent = "        "
    if unrolled:
        lines.append(f"        if count == {MOST_PER_THREAD} and last <= uint32({size}):")
        for number in range(MOST_PER_THREAD):
            each = value.replace(f"int64({axis})", f"int64(uint32({axis} + uint32({step} * {number})))")
            lines.append(f"            {run(each)}")
        lines.append("        else:")
        indent += "    "
    loop = [
        f"if last > uint32({size}):",
        f"    last = uint32({size})",
        f"while {axis} < last:",
        f"    {run(value)}",
        f"    {axis} = uint32({axis} + uint32({step}))",
    ]
    return lines + [indent + line for line in loop]


def _scalar(name: str, parameter: Parameter, code: Code) -> str:
    # As on the CPU: the word becomes the value passed, which is cast to the declared dtype.
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
    """Lines that compute a thread's index, the condition that it has one, and the index itself."""

    lines: list[str]
    inside: str
    value: str


def _index(launch_ndim: int, coarse: bool) -> _Index:
    # Unsigned: the compiler then sees that no index is negative and that 32 bits suffice.
    repeated = ("x" if launch_ndim == 1 else "y") if coarse else ""
    lines = [
        f"    {axis} = uint32(cuda.blockIdx.{axis} * cuda.blockDim.{axis}"
        f"{' * count' if axis == repeated else ''} + cuda.threadIdx.{axis})"
        for axis in "xyz"[: min(launch_ndim, 3)]
    ]
    if launch_ndim == 4:
        lines += ["    w = uint32(z // uint32(n1))", "    z = uint32(z % uint32(n1))"]
    axes = "xyzw"[:launch_ndim]
    # With four axes z is a remainder, which is in bounds.
    sizes = {axis: launch_ndim - 1 - place for place, axis in enumerate(axes) if launch_ndim < 4 or axis != "z"}
    sizes.pop(repeated, None)  # the loop compares it
    tests = [f"{axis} < uint32(n{size})" for axis, size in sizes.items()] or ["True"]
    index = ", ".join(f"int64({axis})" for axis in reversed(axes))
    return _Index(lines, " and ".join(tests), index if launch_ndim == 1 else f"({index})")


def _index_in_blocks(block: Sequence[int]) -> _Index:
    # A sum of 64 bits cannot overflow, so the compiler sees that an index less its place in the block is not negative.
    index = [
        f"int64(uint32(cuda.blockIdx.{axis})) * {size} + int64(uint32(cuda.threadIdx.{axis}))"
        for axis, size in zip("xyz", reversed(block), strict=False)
    ]
    value = ", ".join(reversed(index))
    return _Index([], "True", value if len(block) == 1 else f"({value})")


def _flat_index(launch_ndim: int, bits: int) -> _Index:
    # Unsigned division handles no signs.
    whole = f"uint{bits}"
    place = f"{whole}(cuda.blockIdx.x) * {whole}(cuda.blockDim.x) + {whole}(cuda.threadIdx.x)"
    lines = [f"    i0 = {whole}({place})"]
    for axis in reversed(range(1, launch_ndim)):
        lines += [f"    i{axis} = {whole}(i0 % {whole}(n{axis}))", f"    i0 = {whole}(i0 // {whole}(n{axis}))"]
    index = ", ".join(f"int64(i{axis})" for axis in range(launch_ndim))
    return _Index(lines, f"i0 < {whole}(n0)", index if launch_ndim == 1 else f"({index})")


def make_entry(source: str, function: Any, scope: dict[str, Any]) -> FunctionType:
    """Return the wrapper as a function that calls `function`, the kernel in the compiler's form."""
    names = {**scope, "function": function}
    exec(compile(source, "<anabranch>", "exec"), names)
    entry: FunctionType = names["entry"]
    return entry


def first_argument(signature: Signature, target: Target) -> int:
    """Return the number of parameters before those of the arguments."""
    return signature[0] + target.coarse


def layout_of(signature: Signature, target: Target) -> Layout:
    """Return the layout that fills the wrapper's parameters from the words that a launch packs."""
    codes = signature[1]
    first = first_argument(signature, target)
    slots: list[int] = []
    known: dict[int, int] = {}
    sizes = list(range(first))
    strides: list[int] = []
    slot = 0
    for code in codes:
        if code[0] == "scalar":
            words = 2 if code[1].startswith("complex") else 1
            slots += range(slot, slot + words)
            slot += words
            continue
        ndim, contiguous = code[2], code[3]
        known[first + len(slots) + 2] = 0  # the offset: pointers point to the first element
        slots += [slot, slot, slot, *range(slot + 1, slot + 1 + 2 * ndim)]
        end = first + len(slots)
        sizes += range(end - 2 * ndim, end - ndim)
        strides += range(end - ndim, end)
        if contiguous and ndim:
            known[first + len(slots) - 1] = 1
        slot += 1 + 2 * ndim
    return Layout(slots, known, sizes, strides)
