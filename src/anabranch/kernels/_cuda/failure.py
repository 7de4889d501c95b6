"""Errors in kernels on CUDA: a thread that encounters one reports it and ends.

The compiler handles errors in a few places: where it sets its own error code, and where it turns an index into an
address. All of them are replaced while a kernel is compiled. The replacement keeps the error with the lowest index
among all threads of a launch, in the launch's *record* in device memory, and ends the thread. Nothing traps, so the
context survives. See ``FaultRecord`` in ``core/src/cuda/checked.hpp`` for the record, and `add_record` in `ptx` for the
passing of its address.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final

from numba_cuda_mlir import errors, lowering_utilities, mlir_lowering
from numba_cuda_mlir.lowering import numpy as lowering_numpy
from numba_cuda_mlir.lowering.cuda import T, arith, llvm
from numba_cuda_mlir.lowering_utilities import linalg_lowering, scf
from numba_cuda_mlir.numba_cuda.core import ir as numba_ir

from anabranch.kernels._cuda.ptx import LAUNCH_WORDS
from anabranch.kernels._failure import Spot, array_text, indexed_array

_active: Final = threading.local()
_NUMBERED: Final = re.compile(r"a(\d+)")
# Prefix of names in a short function that the compiler inlines.
_INLINED: Final = re.compile(r"^.*_v\d+_")
# A name that the compiler gave there, such as to the row in ``x[i][j]``.
_UNNAMED: Final = re.compile(r"_v\d+")
_EXCEPTIONS: Final = {code: kind.__name__ for kind, code in mlir_lowering.KERNEL_ERROR_CODES.items()}

# $0: the place, $1: the axis or -1, $2: the index, $3: the size of the axis. The braces are a scope. If millions of
# threads fail, most see that a lower index has failed before they try for the lock.
_TELL: Final = f"""{{
.reg .pred taken, higher;
.reg .b32 old, block, blocks, thread;
.reg .b64 record, position, y, z, known;
mov.u64 record, {LAUNCH_WORDS[0]};
mov.u32 block, %ctaid.z;
mov.u32 blocks, %ntid.z;
mov.u32 thread, %tid.z;
mad.lo.u32 block, block, blocks, thread;
cvt.u64.u32 z, block;
mov.u32 block, %ctaid.y;
mov.u32 blocks, %ntid.y;
mov.u32 thread, %tid.y;
mad.lo.u32 block, block, blocks, thread;
cvt.u64.u32 y, block;
mov.u64 known, {LAUNCH_WORDS[1]};
mad.lo.s64 y, z, known, y;
mov.u32 block, %ctaid.x;
mov.u32 blocks, %ntid.x;
mov.u32 thread, %tid.x;
mul.wide.u32 position, block, blocks;
cvt.u64.u32 z, thread;
add.s64 position, position, z;
mov.u64 known, {LAUNCH_WORDS[2]};
mad.lo.s64 position, y, known, position;
not.b64 position, position;
again:
ld.volatile.global.b64 known, [record];
setp.le.u64 higher, position, known;
@higher bra over;
atom.global.cas.b32 old, [record+56], 0, 1;
setp.ne.b32 taken, old, 0;
@taken bra again;
ld.volatile.global.b64 known, [record];
setp.le.u64 higher, position, known;
@higher bra unlock;
st.volatile.global.b64 [record+8], $0;
st.volatile.global.b64 [record+16], $1;
st.volatile.global.b64 [record+24], $2;
st.volatile.global.b64 [record+32], $3;
st.volatile.global.b64 [record], position;
unlock:
membar.gl;
atom.global.exch.b32 old, [record+56], 0;
over:
exit;
}}"""


class Failures:
    """The places where the compiled code may fail.

    Attributes
    ----------
    spots : list of Spot
        By the numbers that the code reports; filled during code generation.
    checked : bool
        Whether every index is compared with the size of its axis.
    code : list
        The compiler's representation of each function whose code was generated.
    """

    def __init__(self, parts: Sequence[FunctionType], parameters: Sequence[str], checked: bool) -> None:
        self.spots: list[Spot] = []
        self.checked = checked
        self.code: list[Any] = []
        self._parts = list(parts)
        self._names = list(parameters)
        self._at: list[tuple[Any, Any]] = []

    @contextmanager
    def at(self, lower: Any, inst: Any) -> Iterator[None]:
        if not any(known is lower.func_ir for known in self.code):
            self.code.append(lower.func_ir)
        self._at.append((lower, inst))
        try:
            yield
        finally:
            self._at.pop()

    def report(self, what: str, axis: Any = None, index: Any = None, size: Any = None) -> None:
        """Generate code that reports an error and ends the thread.

        For an index out of bounds: the axis, the index, and the size of the axis.
        """
        spot = self._here(what)
        if spot not in self.spots:
            self.spots.append(spot)
        values = [_constant(self.spots.index(spot)), _constant(-1) if axis is None else axis]
        values += [_constant(0) if value is None else arith.index_cast(T.i64(), value) for value in (index, size)]
        llvm.inline_asm(None, values, _TELL, "l,l,l,l,~{memory}", has_side_effects=True)

    def _here(self, what: str) -> Spot:
        for lower, inst in reversed(self._at):
            part = self._part_at(inst.loc)
            if part is None:
                continue
            function = self._parts[part]
            line = inst.loc.line - function.__code__.co_firstlineno
            if what:
                return Spot(part, line, what, "", -1)
            name, root = indexed_array(inst, lower.func_ir, numba_ir)
            if lower.func_ir.func_id.func not in self._parts:
                name = _INLINED.sub("", name)
            # A short function is inlined into the wrapper, whose parameters are named by number.
            if number := _NUMBERED.fullmatch(root):
                name = self._names[int(number[1])] if name == root else name
                root = self._names[int(number[1])]
            if _UNNAMED.match(name):
                name = f"{root}[...]" if root else ""
            parameter = self._names.index(root) if part == 0 and name == root and root in self._names else -1
            return Spot(part, line, what, array_text(name, root) if name else "", parameter)
        return Spot(-1, 0, what, "", -1)

    def _part_at(self, loc: Any) -> int | None:
        for number, part in enumerate(self._parts):
            code = part.__code__
            if loc.filename == code.co_filename and loc.line in _lines_of(part):
                return number
        return None


def _lines_of(part: FunctionType) -> range:
    lines = [line for _, _, line in part.__code__.co_lines() if line is not None]
    return range(part.__code__.co_firstlineno, max(lines, default=0) + 1)


def _constant(value: int) -> Any:
    return arith.constant(T.i64(), value=value)


@contextmanager
def reporting(failures: Failures) -> Iterator[None]:
    """Make code compiled during the block report errors. The caller must hold the compiler's lock."""
    _active.failures = failures
    changes = [
        *[(module, "set_error_code_if_zero", _set_error_code_if_zero) for module in _USERS],
        (mlir_lowering.MLIRLower, "set_error_code", _set_error_code),
        (mlir_lowering.MLIRLower, "lower_inst", _lower_inst),
        (mlir_lowering.MLIRLower, "verify_mlir_module", _verify),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, replacement in changes:
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        _active.failures = None
        for owner, name, original in before:
            setattr(owner, name, original)


_USERS: Final = (lowering_utilities, lowering_numpy, linalg_lowering)
_lower_any_inst: Final = mlir_lowering.MLIRLower.lower_inst
_statements: Final[list[Callable[[Any, Any], bool]]] = []


def lowers_statements(lower: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Have a function generate statements in the compiler's place; it returns False for those that it leaves to it."""
    _statements.append(lower)
    return lower


def is_active() -> bool:
    """Whether this thread compiles a kernel of Anabranch."""
    return getattr(_active, "failures", None) is not None


def report(what: str) -> None:
    """Generate code, in the kernel being compiled, that reports an error and ends the thread."""
    _active.failures.report(what)


def check_indices(indices: Sequence[Any], sizes: Sequence[Any]) -> None:
    """Generate the comparison of indices with the sizes of the first axes (MLIR index type) if checks are enabled."""
    failures: Failures | None = getattr(_active, "failures", None)
    if failures is None or not failures.checked:
        return
    # One unsigned comparison each: an index that is still negative is very large.
    outside = [arith.cmpi(arith.CmpIPredicate.uge, index, size) for index, size in zip(indices, sizes, strict=True)]
    any_outside = outside[0]
    for one in outside[1:]:
        any_outside = arith.ori(any_outside, one)
    with if_(any_outside):
        axis, index, size = _constant(len(indices) - 1), indices[-1], sizes[-1]
        for number in reversed(range(len(indices) - 1)):
            axis = arith.select(outside[number], _constant(number), axis)
            index = arith.select(outside[number], indices[number], index)
            size = arith.select(outside[number], sizes[number], size)
        # A negative index has had the size added, and is reported as the program has it.
        negative = arith.cmpi(arith.CmpIPredicate.slt, arith.index_cast(T.i64(), index), _constant(0))
        failures.report("", axis, arith.select(negative, arith.subi(index, size), index), size)


@contextmanager
def if_(condition: Any) -> Iterator[None]:
    """Generate code that runs if `condition` holds."""
    with scf.if_ctx_manager(condition):
        yield
        scf.yield_([])


def _set_error_code_if_zero(_: Any, error_code: int) -> None:
    report(_EXCEPTIONS.get(error_code, "RuntimeError"))


def _set_error_code(_: Any, error_code: Any) -> None:
    report(_EXCEPTIONS.get(error_code, "RuntimeError"))


def _verify(self: Any) -> None:
    """Verify the module as the compiler does, which prints an invalid one."""
    try:
        self.mlir_module.operation.verify()
    except Exception as error:
        raise errors.InternalCompilerError(f"Invalid MLIR module: {error}") from error


def _lower_inst(self: Any, inst: Any) -> None:
    with _active.failures.at(self, inst):
        if not any(lower(self, inst) for lower in _statements):
            _lower_any_inst(self, inst)
