"""From a Python function to an object file, through Numba.

Imported when a kernel must be compiled: importing Numba takes most of a second.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final, NamedTuple

import numpy  # noqa: F401  Numba's types need it loaded
from llvmlite import binding as llvm
from numba.core import codegen, compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from anabranch.kernels._cpu import atomic  # noqa: F401  registers the atomics
from anabranch.kernels._cpu.arithmetic import ufunc_division
from anabranch.kernels._cpu.blocks import add_block_entry
from anabranch.kernels._cpu.entry import add_entry, index_type
from anabranch.kernels._cpu.half import half
from anabranch.kernels._cpu.helper import Helpers
from anabranch.kernels._cpu.overflow import allow_wraparound
from anabranch.kernels._cpu.target import FAULT_FUNCTION, Build, Pipeline, bounds_reported
from anabranch.kernels._cpu.wraparound import expect_no_wraparound
from anabranch.kernels._failure import Spot
from anabranch.kernels._parameter import Parameter
from anabranch.kernels._reference import helpers
from anabranch.kernels._signature import Code, Signature, is_readonly

# Division follows NumPy. Indices out of bounds are the user's responsibility, as on a GPU. No wrapper for Python
# callers; everything is inlined into the entry's loop.
_OPTIONS: Final = {
    "nopython": True,
    "error_model": "numpy",
    "boundscheck": False,
    "fastmath": False,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


class ReturnsValueError(Exception):
    """The function returns a value; `kind` is its type."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Built(NamedTuple):
    """A compiled kernel.

    Attributes
    ----------
    code : bytes
        The object file.
    spots : list of Spot
        Places where the code may fail, by the numbers that it reports.
    block : tuple of int
        The sizes of its blocks; empty if it does not run in blocks.
    has_addresses : bool
        Whether the code contains addresses of this process: those of large global arrays.
    """

    code: bytes
    spots: list[Spot]
    block: tuple[int, ...]
    has_addresses: bool


class _ObjectLibrary(codegen.CPUCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """A code library that emits an object file instead of using Numba's JIT engine.

    That engine never frees code, and ends the process if a symbol is missing.
    """

    entry = ""

    def _optimize_final_module(self) -> None:
        if self.entry:
            for function in self._final_module.functions:
                if not function.is_declaration and function.name != self.entry:
                    function.linkage = llvm.Linkage.internal
        super()._optimize_final_module()

    def _finalize_specific(self) -> None:
        pass

    def add_ir_module(self, ir_module: Any) -> None:
        """Add Numba's output, with integers that wrap around, and hints that indices are rarely negative."""
        allow_wraparound(ir_module, self._codegen.kernel, self._codegen.index)
        expect_no_wraparound(ir_module)
        super().add_ir_module(ir_module)

    def compiled(self, description: Any) -> Any:
        """Return the library's code of a function."""
        return self._final_module.get_function(description.mangled_name)

    def add_entry_module(self, module: Any) -> None:
        """Add a module without the passes that Numba runs on each function separately.

        They would rewrite the entry's loop before the kernel is inlined, and drop the flag that the index does not
        overflow. The test for a negative index would then remain, and the loop would not vectorise.
        """
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        self._final_module.link_in(parsed)

    def emit_object(self, entry: str) -> bytes:
        """Optimize the whole library and emit it as an object file with one public function."""
        self.entry = entry
        self.finalize()
        return bytes(self._codegen._tm.emit_object(self._final_module))


class _ObjectCodegen(codegen.JITCPUCodegen):  # type: ignore[misc]  # Numba has no types
    """Numba's code generator for the host CPU, with the library above."""

    _library_class = _ObjectLibrary
    # The names of the kernel function and of its first parameter.
    kernel = index = ""

    def _add_module(self, module: Any) -> None:
        pass


def scalar_type(dtype: str) -> Any:
    """Return the Numba type of a scalar of this dtype in a kernel."""
    if dtype == "bool":
        return types.boolean
    # The kernel computes in float32 (see `half`), so the scalar is passed as float32.
    return getattr(types, "float32" if dtype == "float16" else dtype)


def _source_type(parameter: Parameter, code: Code) -> Any:
    if code[0] == "scalar":
        return scalar_type(code[1])
    element = half if code[1] == "float16" else scalar_type(code[1])
    layout = "C" if code[3] else "A"
    return types.Array(element, code[2], layout, readonly=is_readonly(parameter, code))


def _flags(**more: bool) -> Any:
    flags: Any = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, {**_OPTIONS, **more})
    flags.no_compile = True  # the library still lacks the entry
    return flags


def _compile(
    function: FunctionType, parameters: tuple[Parameter, ...], signature: Signature, flags: Any
) -> tuple[Build, Any, list[Any]]:
    launch_ndim, codes = signature
    sources = [_source_type(*pair) for pair in zip(parameters, codes, strict=True)]
    targets = [
        scalar_type(parameter.scalar) if parameter.scalar else source
        for parameter, source in zip(parameters, sources, strict=True)
    ]
    names = [parameter.name for parameter in parameters]
    library_maker = _ObjectCodegen("anabranch")
    library_maker.kernel, library_maker.index = function.__name__, function.__code__.co_varnames[0]
    build = Build((function, *helpers(function)), names, library_maker)

    def compile_part(part: FunctionType, kinds: tuple[Any, ...], options: dict[str, Any]) -> Any:
        own = _flags(boundscheck=flags.boundscheck, **options) if options else flags
        return compiler.compile_extra(build.typing, build.target, part, kinds, None, own, {}, pipeline_class=Pipeline)

    build.typing.launch_ndim = launch_ndim
    build.typing.helpers = Helpers(compile_part, build.target)
    with ufunc_division(), bounds_reported():
        result = compile_part(function, (index_type(launch_ndim), *targets), {})
    return build, result, sources


@global_compiler_lock  # type: ignore[untyped-decorator]
def build(
    function: FunctionType, parameters: tuple[Parameter, ...], signature: Signature, symbol: str, checked: bool
) -> Built:
    """Compile `function` for `signature` into an object file that defines `symbol`.

    With `checked`, the code compares every index with the size of its axis.

    Raises
    ------
    ReturnsValueError
        The function returns something.
    numba.core.errors.NumbaError, and errors of NumPy and LLVM that Numba passes on
        The function cannot be compiled.
    """
    build, result, sources = _compile(function, parameters, signature, _flags(boundscheck=checked))
    returned = build.phases.returned if build.phases else result.signature.return_type
    if returned != types.none:
        raise ReturnsValueError(str(returned))
    with build.target.push_code_library(result.library):  # receives the code that casts need
        if build.phases:
            add_block_entry(build.target, result.library, build.phases, symbol, sources)
        else:
            # A flat index is out of bounds of the last axis.
            at_index = frozenset() if checked else build.at_index
            add_entry(build.target, result.library, result.fndesc, symbol, signature[0], sources, at_index)
    code = result.library.emit_object(symbol)
    spots = build.spots if FAULT_FUNCTION.encode() in code else []
    return Built(code, spots, build.block, result.library.has_dynamic_globals)


@global_compiler_lock  # type: ignore[untyped-decorator]
def find_allocation(function: FunctionType, parameters: tuple[Parameter, ...], signature: Signature) -> Exception:
    """Return Numba's error for `function`, which compiles, in a mode without memory allocation.

    Without its memory manager Numba names the line that allocates. This is not the normal mode, because Numba would
    keep the helpers compiled in it for the user's own functions.
    """
    try:
        _compile(function, parameters, signature, _flags(_nrt=False))
    except Exception as error:
        return error
    return ValueError()
