"""Numba's target for kernels on a CPU, with NumPy's division and with reported errors.

No exception leaves a kernel. Where Numba's code would raise one, in the kernel, in a helper or in a function of Numba
that either calls, the code reports the place through `anabranch_fault` (see ``anabranch/kernel/fault.hpp``) and returns
an error status from call to call, up to the loop over the indices, which then ends.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any, Final

from llvmlite import ir
from numba.core import (
    callconv,
    cgutils,
    compiler,
    compiler_machinery,
    cpu,
    lowering,
    typed_passes,
    types,
    typing,
    untyped_passes,
)
from numba.core import ir as numba_ir
from numba.core.registry import cpu_target

from anabranch.kernels._block import runs_in_blocks
from anabranch.kernels._cpu.arithmetic import Definitions, is_whole_power
from anabranch.kernels._cpu.flat import arrays_at_index
from anabranch.kernels._cpu.half import constant_type, read_type
from anabranch.kernels._cpu.parts import store_part, type_of_store
from anabranch.kernels._cpu.phases import Phases, split_at_barriers
from anabranch.kernels._failure import Spot, array_text, indexed_array
from anabranch.kernels._integer import operand_types

_I64: Final = ir.IntType(64)
_ZERO: Final = _I64(0)
_NO_AXIS: Final = _I64(-1)
_BYTES: Final = ir.IntType(8).as_pointer()
# Reports a failure, see ``anabranch/kernel/fault.hpp``; code that refers to it may fail.
FAULT_FUNCTION: Final = "anabranch_fault"


class Build:
    """One compilation: the user's functions in it, and the places where they may fail.

    Attributes
    ----------
    typing, target
        Numba's contexts for all of its code.
    spots : list of Spot
        Filled during code generation.
    at_index : frozenset of int
        See `flat.arrays_at_index`; set during code generation.
    block : tuple of int
        The sizes of the kernel's blocks; empty if it does not run in blocks. Set before type inference.
    phases : Phases or None
        The lowering of such a kernel; set during code generation.
    """

    block: tuple[int, ...] = ()
    phases: Phases | None = None

    def __init__(self, parts: Sequence[FunctionType], parameters: Sequence[str], codegen: Any) -> None:
        self.spots: list[Spot] = []
        self.at_index: frozenset[int] = frozenset()
        self._numbers: dict[Spot, int] = {}
        self._parts = {part: number for number, part in enumerate(parts)}
        self._parameters = {name: number for number, name in enumerate(parameters)}
        self._lowering: dict[str, tuple[Any, int]] = {}
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
        self.typing = _Typing.over(cpu_target.typing_context)
        self.kernel = parts[0]
        target: Any = cpu_target.target_context
        self.target = target.subtarget(_internal_codegen=codegen, typing_context=self.typing)
        self.target.__class__ = _Target
        self.target.build = self
        self.target._defns = Definitions(target._defns)

    def number(self, spot: Spot) -> int:
        """Return the number under which the code reports a spot."""
        if spot not in self._numbers:
            self._numbers[spot] = len(self.spots)
            self.spots.append(spot)
        return self._numbers[spot]

    def enter(self, lower: Any) -> None:
        """Register a function before its code is generated."""
        part = self._parts.get(lower.func_ir.func_id.func)
        if part is not None:
            self._lowering[lower.function.name] = lower, part
        if part == 0 and not self.block:
            self.at_index = arrays_at_index(lower)

    def phases_of(self, builder: Any) -> Phases | None:
        """Return the phases that the function whose code is being generated is part of."""
        lower, _ = self._lowering.get(builder.function.name, (None, 0))
        return None if lower is None or self.phases is None or lower is not self.phases.lower else self.phases

    def number_at(self, line: int, what: str) -> int:
        """Return the number of an error at a line of the kernel."""
        return self.number(Spot(0, line - self.kernel.__code__.co_firstlineno, what, "", -1))

    def here(self, builder: Any, what: str = "") -> Spot | None:
        """Return the place whose code is being generated; None outside the user's functions."""
        lower, part = self._lowering.get(builder.function.name, (None, 0))
        if lower is None:
            return None
        line = lower.loc.line - lower.func_ir.func_id.func.__code__.co_firstlineno
        if what:
            return Spot(part, line, what, "", -1)
        name, root = indexed_array(lower.current, lower.func_ir, numba_ir)
        # The shape of a view is unknown.
        parameter = self._parameters.get(root, -1) if part == 0 and name == root else -1
        return Spot(part, line, what, array_text(name, root) if name else "", parameter)


class _Typing(typing.Context):  # type: ignore[misc]  # Numba has no types
    """Numba's typing context, whose knowledge it shares, with the helpers of a build."""

    helpers: Any = None
    launch_ndim: int | None = None

    @classmethod
    def over(cls, base: Any) -> _Typing:
        context = cls.__new__(cls)
        for name, value in vars(base).items():
            setattr(context, name, value)
        return context

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        func = self.helpers.of_more(func, len(args)) or func
        key = getattr(func, "typing_key", None)
        if key is bool and len(args) == 1 and isinstance(args[0], types.Optional):
            return typing.signature(types.boolean, *args)
        args = operand_types(key, args, types.Integer, types.int64)
        found = super().resolve_function_type(func, args, kws)
        if is_whole_power(key, args):
            return found.replace(args=(found.args[0], types.int64))
        if func is operator.getitem and found is not None:
            return found.replace(return_type=read_type(found.return_type))
        return found

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        return type_of_store(self, target, index, value) or super().resolve_setitem(target, index, value)

    def resolve_value_type(self, val: Any) -> Any:
        return self.helpers.type_of(val) or constant_type(super().resolve_value_type(val))

    def resolve_getattr(self, typ: Any, attr: str) -> Any:
        if isinstance(typ, types.Module):
            kind = self.helpers.type_of(getattr(typ.pymod, attr, None))
            if kind is not None:
                return kind
        return super().resolve_getattr(typ, attr)


class _Target(cpu.CPUContext):  # type: ignore[misc]  # Numba has no types
    build: Build

    def cast(self, builder: Any, val: Any, fromty: Any, toty: Any) -> Any:
        # A float that does not fit is undefined, and what becomes of it then depends on the place in a vector.
        is_narrow = isinstance(toty, types.Integer) and toty.bitwidth < types.int32.bitwidth
        if is_narrow and isinstance(fromty, types.Float):
            wide = super().cast(builder, val, fromty, types.int32)
            return builder.trunc(wide, self.get_value_type(toty))
        return super().cast(builder, val, fromty, toty)

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        fn = self.build.typing.helpers.of_more(fn, len(sig.args)) or fn
        key = getattr(fn, "typing_key", None)
        if is_whole_power(key, sig.args):
            fn = key  # Numba's type of the function knows the complex power alone
        if key is bool and isinstance(sig.args[0], types.Optional):
            return partial(self._truth_of_optional, sig.args[0])
        return super().get_function(fn, sig, _firstcall)

    def _truth_of_optional(self, kind: Any, builder: Any, args: Any, loc: Any = None) -> Any:
        """Return whether a value that may be None is true, where Numba raises for None."""
        value = self.make_helper(builder, kind, args[0])
        truth = self.cast(builder, value.data, kind.type, types.boolean)
        return builder.and_(cgutils.as_bool_bit(builder, value.valid), cgutils.as_bool_bit(builder, truth))

    @property
    def call_conv(self) -> _CallConv:
        return _CallConv(self)


class _CallConv(callconv.CPUCallConv):  # type: ignore[misc]  # Numba has no types
    """Numba's calling convention; it reports an error when returning it."""

    def return_user_exc(
        self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: Any = None
    ) -> None:
        what = f"{exc.__name__}: {', '.join(map(str, exc_args))}" if exc_args else exc.__name__
        build = self.context.build
        spot = build.here(builder, what) or Spot(-1, 0, what, "", -1)
        number = build.number(spot)
        self._tell(builder, number if spot.part >= 0 else -1, number)
        slot = self._get_excinfo_argument(builder.function)
        builder.store(cgutils.get_null_value(slot.type.pointee), slot)
        self._leave(builder, callconv.RETCODE_USEREXC)

    def return_out_of_bounds(self, builder: Any, axis: Any, index: Any, size: Any) -> None:
        """Return an error: an index, counted from the end if negative, is not below the size of an axis."""
        build = self.context.build
        spot = build.here(builder) or Spot(-1, 0, "", "", -1)
        number = build.number(spot)
        self._tell(builder, number, number, axis, index, size)
        slot = self._get_excinfo_argument(builder.function)
        builder.store(cgutils.get_null_value(slot.type.pointee), slot)
        self._leave(builder, callconv.RETCODE_USEREXC)

    def report(self, builder: Any, number: Any) -> None:
        """Emit the report of an error at the place of this number, without a return."""
        self._tell(builder, number, number)

    def _leave(self, builder: Any, code: Any) -> None:
        self.check_try_status(builder)
        handler = getattr(builder, "_in_try_block", None)
        if handler:
            builder.branch(handler["target"])
        else:
            self._return_errcode_raw(builder, code)

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        spot = self.context.build.here(builder)
        if spot is not None:
            where = self.context.build.number(spot)
            # An error in code that Numba compiled separately is known only by its exception information.
            none = cgutils.is_null(builder, status.excinfoptr)
            with builder.if_else(builder.or_(builder.not_(status.is_user_exc), none)) as (reported, pickled):
                with reported:
                    self._tell(builder, where, -1)
                with pickled:
                    info = builder.load(status.excinfoptr)
                    length = builder.sext(builder.extract_value(info, callconv.PICKLE_BUFSZ_IDX), _I64)
                    text = builder.extract_value(info, callconv.PICKLE_BUF_IDX)
                    self._tell(builder, where, -1, raised=text, length=length)
        super().return_status_propagate(builder, status)

    def _tell(
        self,
        builder: Any,
        where: Any,
        what: Any,
        axis: Any = _NO_AXIS,
        index: Any = _ZERO,
        size: Any = _ZERO,
        raised: Any = None,
        length: Any = _ZERO,
    ) -> None:
        kind = ir.FunctionType(ir.VoidType(), [_I64] * 5 + [_BYTES, _I64])
        function = cgutils.get_or_insert_function(builder.module, kind, FAULT_FUNCTION)
        for attribute in ("cold", "nounwind"):
            function.attributes.add(attribute)
        numbers = [value if value.type == _I64 else builder.sext(value, _I64) for value in (axis, index, size)]
        null = cgutils.get_null_value(_BYTES)
        places = [place if isinstance(place, ir.Value) else _I64(place) for place in (where, what)]
        builder.call(function, [*places, *numbers, raised or null, length])


@contextmanager
def bounds_reported() -> Iterator[None]:
    """Make index comparisons in code compiled during the block report failures. Needs Numba's compiler lock."""
    before = cgutils.do_boundscheck
    cgutils.do_boundscheck = _check_index
    try:
        yield
    finally:
        cgutils.do_boundscheck = before


def _check_index(context: Any, builder: Any, ind: Any, dimlen: Any, axis: Any = None) -> None:
    # One unsigned comparison: an index that is still negative is very large.
    with builder.if_then(builder.icmp_unsigned(">=", ind, dimlen), likely=False):
        number = axis if isinstance(axis, ir.Value) else ind.type(axis or 0)
        # A negative index has had the size added, and is reported as the program has it.
        negative = builder.icmp_signed("<", ind, ind.type(0))
        written = builder.select(negative, builder.sub(ind, dimlen), ind)
        context.call_conv.return_out_of_bounds(builder, number, written, dimlen)


class _Lower(lowering.Lower):  # type: ignore[misc]  # Numba has no types
    GeneratorLower = Phases
    current: Any = None

    def lower_yield(self, retty: Any, inst: Any) -> Any:
        self.genlower.suspend(self, inst.index)
        return self.context.get_constant_generic(self.builder, retty, None)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        signature = self.fndesc.calltypes[expr]
        if not is_whole_power(op, signature.args):
            return super().lower_binop(resty, expr, op)
        values = [
            self.context.cast(self.builder, self.loadvar(operand.name), self.typeof(operand.name), kind)
            for operand, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        power = self.context.get_function(op, signature)(self.builder, values)
        return self.context.cast(self.builder, power, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> None:
        if type_of_store(self.context.typing_context, *signature.args) is None:
            super().lower_setitem(target_var, index_var, value_var, signature)
            return
        names = (target_var.name, index_var.name, value_var.name)
        values = [
            self.context.cast(self.builder, self.loadvar(name), self.typeof(name), kind)
            for name, kind in zip(names, signature.args, strict=True)
        ]
        store_part(self.context, self.builder, signature, values)

    def incref(self, typ: Any, val: Any) -> None:
        # A kernel owns no memory. Numba removes pairs of these, but not from different phases.
        if not self.generator_info:
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        if not self.generator_info:
            super().decref(typ, val)

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        self.context.build.enter(self)

    def lower_inst(self, inst: Any) -> None:
        self.current = inst
        try:
            super().lower_inst(inst)
        except Exception as error:  # of Numba's implementations, some of which do not name the place
            located: Any = error
            located.loc = getattr(error, "loc", None) or self.loc
            raise


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):  # type: ignore[misc]  # Numba has no types
    _name = "anabranch_lowering"

    @property
    def lowering_class(self) -> type[_Lower]:
        return _Lower


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _Blocks(compiler_machinery.FunctionPass):  # type: ignore[misc]  # Numba has no types
    _name = "anabranch_blocks"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        build = state.targetctx.build
        if state.func_id.func is not build.kernel or not runs_in_blocks(build.kernel):
            return False
        build.block = split_at_barriers(state)
        return True


class Pipeline(compiler.CompilerBase):  # type: ignore[misc]  # Numba has no types
    """Numba's passes, and one for kernels that run in blocks; code generation records its current place."""

    def define_pipelines(self) -> list[Any]:
        builder = compiler.DefaultPassBuilder
        untyped = list(builder.define_untyped_pipeline(self.state).passes)
        # Behind the passes that remove unreachable code, and barriers with it.
        last = max(place for place, (step, _) in enumerate(untyped) if step is untyped_passes.DeadBranchPrune)
        untyped.insert(last + 1, (_Blocks, "suspend at barriers"))
        passes = compiler_machinery.PassManager("anabranch")
        for part in (
            untyped,
            builder.define_typed_pipeline(self.state).passes,
            builder.define_nopython_lowering_pipeline(self.state).passes,
        ):
            for step, description in part:
                passes.add_pass(_Lowering if step is typed_passes.NativeLowering else step, description)
        passes.finalize()
        return [passes]
