"""From a Python function to PTX, through numba-cuda-mlir.

Imported when a kernel must be compiled for CUDA: importing the compiler takes most of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FunctionType
from typing import Any, Final, NamedTuple

import numpy
from numba_cuda_mlir import cuda, tools, types
from numba_cuda_mlir.descriptor import mlir_target
from numba_cuda_mlir.numba_cuda.core.compiler_lock import global_compiler_lock

from anabranch._launch.target import Target
from anabranch.kernels._block import runs_in_blocks
from anabranch.kernels._cuda import (  # noqa: F401  register what kernels use
    atomic,
    attributes,
    blocks,
    booleans,
    comparison,
    constants,
    conversion,
    functions,
    in_place,
    indexing,
    math_functions,
    named_tuple,
    optional,
    order,
    parts,
    reduction,
    slices,
    tuple_comparison,
    type_rules,
)
from anabranch.kernels._cuda.callback import callbacks
from anabranch.kernels._cuda.division import numpy_division
from anabranch.kernels._cuda.element import element_access
from anabranch.kernels._cuda.entry import first_argument, layout_of, make_entry, source_of
from anabranch.kernels._cuda.failure import Failures, reporting
from anabranch.kernels._cuda.helper import register_helpers
from anabranch.kernels._cuda.iteration import loops
from anabranch.kernels._cuda.overflow import index_of
from anabranch.kernels._cuda.peephole import improve
from anabranch.kernels._cuda.ptx import (
    LAUNCH_WORDS,
    RECORD_SLOT,
    add_record,
    entries,
    fold_parameters,
    narrow_parameters,
    require_threads,
    without_functions,
)
from anabranch.kernels._cuda.result import ignore, may_return, nothing_returned
from anabranch.kernels._cuda.rows import moves_across_rows
from anabranch.kernels._cuda.straight import is_straight
from anabranch.kernels._dtype import KINDS
from anabranch.kernels._failure import Spot
from anabranch.kernels._parameter import Parameter
from anabranch.kernels._reference import helpers
from anabranch.kernels._signature import Code, Signature, is_readonly

_SCOPE: Final = {
    **{name: numpy.bool_ if name == "bool" else getattr(numpy, name) for name in KINDS},
    "cuda": cuda,
    "ignore": ignore,
}


class Ptx(NamedTuple):
    """A kernel as PTX.

    Has the text, the slot of each parameter after those of the index space, the places where the kernel may fail,
    whether it moves across rows, and the sizes of its blocks if it runs in blocks.
    """

    text: str
    slots: tuple[int, ...]
    spots: list[Spot]
    across: bool = False
    block: tuple[int, ...] = ()


def scalar_type(dtype: str) -> Any:
    """Return the compiler's type for elements of a dtype."""
    return types.boolean if dtype == "bool" else getattr(types, dtype)


def _parameter_types(parameter: Parameter, code: Code) -> list[Any]:
    if code[0] == "array":
        layout = "C" if code[3] else "A"
        return [types.Array(scalar_type(code[1]), code[2], layout, readonly=is_readonly(parameter, code))]
    if code[1].startswith("complex"):
        return [types.float64, types.float64]
    if code[1].startswith("float"):
        return [types.float64]
    return [types.uint64 if code[1] == "uint64" else types.int64]


@contextmanager
def _target(capability: tuple[int, int]) -> Iterator[None]:
    """Compile for a compute capability, independently of the machine's devices.

    The compiler queries the current device once for its link target, which may be a different one.
    """
    found = tools._cached_cc
    tools._cached_cc = capability
    try:
        yield
    finally:
        tools._cached_cc = found


@global_compiler_lock  # type: ignore[untyped-decorator]
def build(
    function: FunctionType,
    parameters: tuple[Parameter, ...],
    signature: Signature,
    symbol: str,
    target: Target,
) -> Ptx:
    """Compile `function` for `signature` into PTX that defines the kernel `symbol`.

    Raises
    ------
    ReturnsValueError
        The function returns something.
    numba_cuda_mlir's NumbaError, and other errors that it passes on
        The function cannot be compiled.
    """
    mlir_target.typing_context.refresh()  # it may predate the rules registered here
    register_helpers(function)
    launch_ndim, codes = signature
    kinds = [types.int64] * first_argument(signature, target)
    for parameter, code in zip(parameters, codes, strict=True):
        kinds += _parameter_types(parameter, code)

    names = [parameter.name for parameter in parameters]
    failures = Failures((function, *helpers(function)), names, target.checked)

    straight = target.coarse and is_straight(function)

    in_blocks = runs_in_blocks(function)
    sizes = blocks.declared_sizes(function) if in_blocks else ()
    shape: tuple[int, ...] = ()

    def compile_as(call: str) -> str:
        nonlocal shape
        device = cuda.jit(device=True)(function)
        source = source_of(parameters, signature, target, call, straight, sizes)
        entry = make_entry(source, device, _SCOPE)
        kind = types.void(*kinds)
        with blocks.in_blocks(launch_ndim) if in_blocks else nullcontext() as found:
            text: str = cuda.compile(entry, kind, device=False, abi="numba", output="ptx", cc=target.capability)[0]
        shape = found.sizes if found else ()
        return text

    with (
        _target(target.capability),
        numpy_division(),
        index_of(function),
        reporting(failures),
        loops(),
        callbacks(),
        element_access(target, straight),
    ):
        if may_return(function):
            with nothing_returned():
                compile_as("ignore(function({}))")
        text = compile_as("function({})")
    across = any(moves_across_rows(code, launch_ndim) for code in failures.code)
    if shape:
        text = require_threads(text, shape)
    return _finish(text, symbol, signature, target, failures.spots)._replace(across=across, block=shape)


def _finish(text: str, symbol: str, signature: Signature, target: Target, spots: list[Spot]) -> Ptx:
    text = text.rstrip("\0")
    (mangled,) = entries(text)
    text = re.sub(rf"(?<![\w$.]){re.escape(mangled)}(?=(?:_param_\d+)?(?![\w$.]))", symbol, text)
    layout = layout_of(signature, target)
    first = first_argument(signature, target)
    text = improve(without_functions(text))
    if not target.wide:
        text = narrow_parameters(text, symbol, layout.sizes, "u32")
        text = narrow_parameters(text, symbol, layout.strides, "s32")
    text, kept = fold_parameters(text, symbol, layout.known, first)
    slots = tuple(layout.slots[position - first] for position in kept[first:])
    if f"{LAUNCH_WORDS[0]};" not in text:
        return Ptx(text, slots, [])
    return Ptx(add_record(text, symbol, signature[0]), (*slots, RECORD_SLOT), spots)
