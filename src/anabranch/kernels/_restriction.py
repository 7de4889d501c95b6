"""Restrictions on kernels for every device, checked before compilation.

Nothing can catch an exception where a kernel runs, so kernels cannot raise: no ``raise`` and no ``assert``, and
therefore no ``try``. The same holds for helper functions.
"""

from __future__ import annotations

import dis
from types import FunctionType
from typing import Final

from anabranch._launch.indices import KernelBase
from anabranch.kernels._compile_error import compile_error, definition
from anabranch.kernels._reference import codes_of, helpers, references

# Opcodes. An assertion has both, its own before that of `raise`.
_ASSERT: Final = "LOAD_ASSERTION_ERROR"
_RAISE: Final = "RAISE_VARARGS"
_TRY: Final = "PUSH_EXC_INFO"
_YIELD: Final = "YIELD_VALUE"


def check_restrictions(function: FunctionType) -> None:
    """Raise `CompileError` with the line of the first violation in `function` or one of its helpers."""
    for part in (function, *helpers(function)):
        _check_calls(function, part)
        for code in codes_of(part.__code__):
            line = code.co_firstlineno
            for instruction in dis.get_instructions(code):
                line = _line(instruction) or line
                reason = _forbidden(instruction)
                if reason is not None:
                    where = "" if part is function else f" (in {part.__name__!r}, which it calls)"
                    raise compile_error(function, f"{reason}{where}", (code.co_filename, line))


def _check_calls(function: FunctionType, part: FunctionType) -> None:
    for name, value in references(part):
        if isinstance(value, KernelBase):
            raise compile_error(
                function,
                f"{name!r} is a kernel and cannot be called from another; "
                "put what both need into an undecorated function",
                definition(part),
            )


def _line(instruction: dis.Instruction) -> int | None:
    return None if instruction.positions is None else instruction.positions.lineno


def _forbidden(instruction: dis.Instruction) -> str | None:
    if instruction.opname == _ASSERT or (
        instruction.opname == "LOAD_COMMON_CONSTANT" and "AssertionError" in instruction.argrepr
    ):
        return "a kernel cannot assert: nobody could catch the error"
    if instruction.opname == _RAISE:
        return "a kernel cannot raise: nobody could catch the exception; write a flag to an array instead"
    if instruction.opname == _TRY:
        return "a kernel cannot use try, with or finally: nothing in it raises"
    if instruction.opname == _YIELD:
        return "a kernel cannot yield"
    return None
