"""Restrictions on kernels for every device, checked before compilation.

Nothing can catch an exception where a kernel runs, so kernels cannot raise: no ``raise`` and no ``assert``, and
therefore no ``try``. They make no text, capture no arrays of ours, and have no generator of random numbers with a state
of its own, nor a library for whole arrays. The same holds for helper functions.
"""

from __future__ import annotations

import dis
import re
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from anabranch._launch.indices import KernelBase
from anabranch._memory.array import Array
from anabranch.kernels._block import is_of_blocks, runs_in_blocks
from anabranch.kernels._block_rule import NOT_IN_BLOCKS
from anabranch.kernels._compile_error import captured, compile_error, definition
from anabranch.kernels._reference import UNDEFINED, codes_of, helpers, library_name, loads

# Opcodes. An assertion has both, its own before that of `raise`.
_ASSERT: Final = "LOAD_ASSERTION_ERROR"
_RAISE: Final = "RAISE_VARARGS"
_TRY: Final = "PUSH_EXC_INFO"
_YIELD: Final = "YIELD_VALUE"
_IMPORT: Final = "IMPORT_NAME"
_OUTER: Final = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_TEXT: Final = frozenset({"BUILD_STRING", "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"})

_DELETE: Final = frozenset({"DELETE_FAST", "DELETE_DEREF"})
_GENERATOR: Final = "<genexpr>"

# Functions of whole arrays, which call a library.
_WHOLE_ARRAYS: Final = frozenset(
    {"dot", "vdot", "matmul", "inner", "outer", "einsum", "tensordot", "convolve", "correlate"}
)
_WHOLE_ARRAY_MODULES: Final = ("numpy.linalg", "numpy.fft")
_ON_WHOLE_ARRAYS: Final = (
    "works on whole arrays, and a kernel is called for one index: write the loop, or call a library such as NumPy, "
    "CuPy or PyTorch outside of kernels"
)
# Names of Numba's modules for CUDA, whose kernels know of threads.
_CUDA_MODULES: Final = ("numba.cuda", "numba_cuda", "numba_cuda_mlir")
_CUDA_INDEX: Final = frozenset({"grid", "gridsize", "threadIdx", "blockIdx", "blockDim", "gridDim"})
_CUDA_BLOCK: Final = re.compile(r"\.(?:shared\b|syncthreads)")


def check_restrictions(function: FunctionType) -> None:
    """Raise `CompileError` with the line of the first violation in `function` or one of its helpers."""
    for part in (function, *helpers(function)):
        _check_calls(function, part)
        for code in codes_of(part.__code__):
            line = code.co_firstlineno
            for instruction in dis.get_instructions(code):
                line = _line(instruction) or line
                reason = _forbidden(instruction, code)
                if reason is not None:
                    where = "" if part is function else f" (in {part.__name__!r}, which it calls)"
                    raise compile_error(function, f"{reason}{where}", (code.co_filename, line))


def _check_calls(function: FunctionType, part: FunctionType) -> None:
    for load in loads(part):
        reason = _missing(load.name) if load.value is UNDEFINED else _refused(load.name, load.value)
        if is_of_blocks(load.value) and (part is not function or not runs_in_blocks(function)):
            reason = NOT_IN_BLOCKS.format(load.value.__name__)
        if reason is not None:
            raise compile_error(function, reason, _place_of(part, load.name))


def _missing(name: str) -> str | None:
    """Return why a kernel cannot use a name that is nowhere; None if that is for the compiler to say."""
    if re.search(r"\brandom\.\w+$", name):
        return f"there is no {name}; a kernel calls ab.random(seed, counter) with a counter of each index"
    return None


def _refused(name: str, value: Any) -> str | None:
    """Return why a kernel cannot use a value from outside; None if that is for the compiler to say."""
    if isinstance(value, KernelBase):
        return (
            f"{name!r} is a kernel and cannot be called from another; put what both need into an undecorated function"
        )
    if isinstance(value, Array):
        return f"{name!r} is an array from outside the kernel; make it a parameter, and pass it to ab.launch"
    if type(value) in (list, dict, set):
        return captured(name, value)
    if _is_random(value):
        return (
            f"{name} draws from a generator with a state, which the indices of a kernel cannot share; "
            "call ab.random(seed, counter) with a counter of each index"
        )
    known = library_name(value) or ""
    module, _, last = known.rpartition(".")
    if (module == "numpy" and last in _WHOLE_ARRAYS) or module.startswith(_WHOLE_ARRAY_MODULES):
        return f"{name} {_ON_WHOLE_ARRAYS}"
    return _of_cuda(name, value)


def _of_cuda(name: str, value: Any) -> str | None:
    """Return why a kernel cannot use a value of Numba's modules for CUDA; None if it is none of those known here."""
    module = str(getattr(value, "__module__", None) or getattr(value, "__name__", None) or "")
    if not any(module == known or module.startswith(f"{known}.") for known in _CUDA_MODULES):
        return None
    if getattr(value, "__name__", name.rpartition(".")[2]) in _CUDA_INDEX:
        return f"{name} is not supported in kernels: their first parameter is the index, and ab.launch sets its range"
    if _CUDA_BLOCK.search(f".{name}"):
        return (
            f"{name} is not supported in kernels: ab.block makes blocks of indices, which share arrays of ab.shared "
            "and wait for each other at ab.barrier"
        )
    return None


def _is_random(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__ in ("random", "numpy.random")
    owner = getattr(value, "__self__", None)
    kind = type(value if owner is None or isinstance(owner, ModuleType) else owner)
    modules = (kind.__module__, getattr(value, "__module__", None) or "")  # a function's or a class's own, too
    return any(module == "random" or module.startswith("numpy.random") for module in modules)


def _place_of(part: FunctionType, name: str) -> tuple[str, int]:
    """Return file and line of the first read of a name, dotted or not, in a function."""
    for code in codes_of(part.__code__):
        line = code.co_firstlineno
        for instruction in dis.get_instructions(code):
            line = _line(instruction) or line
            if instruction.opname.startswith("LOAD_") and instruction.argval == name.partition(".")[0]:
                return code.co_filename, line
    return definition(part)


def _line(instruction: dis.Instruction) -> int | None:
    return None if instruction.positions is None else instruction.positions.lineno


def _forbidden(instruction: dis.Instruction, code: CodeType) -> str | None:
    """Return why a kernel cannot do what an instruction of its code does; None if that is for the compiler to say."""
    if instruction.opname == _ASSERT or (
        instruction.opname == "LOAD_COMMON_CONSTANT" and "AssertionError" in instruction.argrepr
    ):
        return "a kernel cannot assert: nobody could catch the error"
    if instruction.opname == _RAISE:
        return "a kernel cannot raise: nobody could catch the exception; write a flag to an array instead"
    if instruction.opname == _TRY:
        return "a kernel cannot use try, with or finally: nothing in it raises"
    if instruction.opname in _TEXT:
        return "a kernel cannot make text, as an f-string does: no interpreter runs where it does"
    if instruction.opname == _YIELD:
        if code.co_name == _GENERATOR:
            return "a kernel cannot use a generator expression, as in sum(... for ...): write the loop"
        return "a kernel cannot yield"
    if instruction.opname == _IMPORT:
        return "a kernel cannot import: import the module outside of it, at the top of the file"
    if instruction.opname in _OUTER:
        return f"a kernel cannot assign to the global name {instruction.argval!r}: write into an array instead"
    return _forbidden_form(instruction)


def _forbidden_form(instruction: dis.Instruction) -> str | None:
    """Return why a kernel cannot have an expression or a statement that could be written in another form."""
    if instruction.opname == "UNPACK_EX":
        return "a kernel cannot unpack into a name with a star: index the tuple, as in rest = values[1:]"
    if instruction.opname in _DELETE:
        return f"a kernel cannot delete a name: leave out del {instruction.argval}"
    if instruction.opname == "BINARY_OP" and instruction.argrepr in ("@", "@="):
        return f"{instruction.argrepr} {_ON_WHOLE_ARRAYS}"
    return None
