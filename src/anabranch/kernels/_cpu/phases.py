"""Kernels that run in blocks, as phases: the code from the kernel's start, or a barrier, to the next barriers.

Numba compiles generators, so a barrier becomes a ``yield``, and Numba finds which variables live across it. What it
makes of them differs here. The generator's ``next`` is a function of the phase to run, the index, and the kernel's
arguments::

    int32 phase(int32 number, int64 thread, void* shared, void* state, const void* before, void* after,
                int64 place..., index, arguments...)

It returns the number of the barrier that it came to, or 0 at the kernel's end. ``state`` is an array per variable that
lives across a barrier, with an element per thread, so a loop over the threads of a block accesses them in sequence.
Variables that are the same for all threads (see `uniform`) are read from ``before`` and written to ``after``, so LLVM
sees that they do not change in that loop. Variables that depend on nothing but the arguments and the index are computed
again instead.
"""

from __future__ import annotations

import math
from typing import Any, Final

from llvmlite import ir as llvm
from numba.core import cgutils, errors, generators, ir, ir_utils, postproc, types
from numba.core.funcdesc import FunctionDescriptor
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin
from numba.np import arrayobj

from anabranch.kernels._block import barrier, block, shared
from anabranch.kernels._block_rule import (
    NOT_IN_BLOCKS,
    SHARED_ALIGNMENT,
    TAKES_SIZES,
    TWO_BLOCKS,
    block_sizes,
    called,
    check_block_call,
    check_shared_bytes,
    check_shared_call,
    check_state_bytes,
    constants_of,
    shared_shape,
)
from anabranch.kernels._cpu.uniform import uniform_variables

_I32: Final = llvm.IntType(32)
_I64: Final = llvm.IntType(64)
_ALIGNMENT: Final = 64
# Longer chains of operations are kept in the state.
_DEEPEST: Final = 12
_PURE: Final = ("exhaust_iter", "static_getitem", "build_tuple", "getattr", "binop", "unary", "cast")


def split_at_barriers(state: Any) -> tuple[int, ...]:
    """Turn the barriers of a kernel's code into suspensions; return the sizes of its blocks.

    `state` is that of Numba's compiler once unreachable code is gone.
    """
    func_ir = state.func_ir
    sizes: tuple[int, ...] | None = None
    count = 0
    for body in func_ir.blocks.values():
        statements: list[Any] = []
        for statement in body.body:
            function = called(func_ir, ir, statement.value) if isinstance(statement, ir.Assign) else None
            if function is block:
                if not statement.value.args or statement.value.kws or statement.value.vararg:
                    raise errors.TypingError(TAKES_SIZES, loc=statement.loc)
                found = block_sizes(errors.TypingError, constants_of(func_ir, ir, statement.value.args))
                if sizes not in (None, found):
                    raise errors.TypingError(TWO_BLOCKS.format(sizes, found), loc=statement.loc)
                sizes = found
            if function is barrier and not statement.value.args and not statement.value.kws:
                count += 1
                statements += _suspension(func_ir, body, statement.target, statement.loc)
            else:
                statements.append(statement)
        body.body = statements
    if sizes is None:
        raise errors.TypingError("ab.block is read but not called: the kernel's blocks have no size", loc=func_ir.loc)
    if not count:
        _suspend_at_start(func_ir)
    func_ir.is_generator = func_ir.func_id.is_generator = True
    postproc.PostProcessor(func_ir).run()
    return sizes


def _suspension(func_ir: Any, body: Any, target: Any, loc: Any) -> list[Any]:
    nothing = ir.Var(body.scope, ir_utils.mk_unique_var("$barrier"), loc)
    constant = ir.Const(None, loc)
    suspension = ir.Yield(value=nothing, loc=loc, index=0)
    func_ir._definitions[nothing.name] = [constant]
    func_ir._definitions[target.name] = [suspension]
    return [ir.Assign(constant, nothing, loc), ir.Assign(suspension, target, loc)]


def _suspend_at_start(func_ir: Any) -> None:
    """Suspend a kernel without barriers once, since a generator has a ``yield``."""
    body = func_ir.blocks[min(func_ir.blocks)]
    at = 0
    while isinstance(body.body[at], ir.Assign) and isinstance(body.body[at].value, ir.Arg):
        at += 1
    target = ir.Var(body.scope, ir_utils.mk_unique_var("$start"), body.loc)
    body.body[at:at] = _suspension(func_ir, body, target, body.loc)


class Phases(generators.GeneratorLower):  # type: ignore[misc]  # Numba has no types
    """Lowering of a kernel that runs in blocks into its phases.

    Attributes
    ----------
    description
        Numba's description of the function ``phase``.
    barriers : dict of int to int
        The line of each barrier, by its number.
    returned
        The type of what the kernel returns.
    state_bytes, shared_bytes, uniform_bytes : int
        Sizes of ``state``, ``shared``, and ``before`` and ``after``; known after lowering.
    """

    def __init__(self, lower: Any) -> None:
        super().__init__(lower)
        lower.context.build.phases = self
        kernel = lower.fndesc
        self.sizes: tuple[int, ...] = lower.context.build.block
        place = [f"place.{axis}" for axis in range(len(self.sizes))]
        self.description = self.gendesc = FunctionDescriptor(
            kernel.native,
            kernel.modname,
            kernel.qualname,
            kernel.unique_name,
            kernel.doc,
            kernel.typemap,
            types.int32,
            kernel.calltypes,
            ["number", "thread", "shared", "state", "before", "after", *place, *kernel.args],
            kernel.kws,
            argtypes=(
                types.int32,
                types.int64,
                *[types.voidptr] * 4,
                *[types.int64] * len(place),
                *kernel.argtypes,
            ),
            mangler=lower.context.mangler,
            inline=True,
            env_name=kernel.env_name,
            abi_tags=["phase"],
        )
        self.barriers = {number: point.inst.loc.line for number, point in self.geninfo.yield_points.items()}
        self.state_bytes = self.shared_bytes = self.uniform_bytes = 0
        self._uniform = uniform_variables(lower.func_ir, lower.typeof)
        self.returned = types.none
        self._counted_bytes = 0
        self._slots: dict[str, int] = {}
        self._arrays: dict[int, int] = {}
        self._definitions: dict[str, Any] = {}
        for body in lower.func_ir.blocks.values():
            for statement in body.body:
                if isinstance(statement, ir.Return) and lower.typeof(statement.value.name) != types.none:
                    self.returned = lower.typeof(statement.value.name)
                if isinstance(statement, ir.Assign):
                    name = statement.target.name
                    self._definitions[name] = None if name in self._definitions else statement

    def lower_init_func(self, lower: Any) -> None:
        """Lower nothing: no generator is made."""

    def lower_next_func(self, lower: Any) -> None:
        """Lower the function ``phase``."""
        lower.setup_function(self.description)
        builder, function = lower.builder, lower.function
        number, self.thread, self.shared, self._state, self._before, self._after, *rest = (
            self.call_conv.decode_arguments(builder, self.description.argtypes, function)
        )
        self.place, lower.fnargs = rest[: len(self.sizes)], rest[len(self.sizes) :]
        dispatch = function.append_basic_block("dispatch")
        entry = lower.lower_function_body()
        nowhere = function.append_basic_block("nowhere")
        builder.position_at_end(nowhere)
        builder.unreachable()
        builder.position_at_end(dispatch)
        self.resume_blocks[0] = lower.blkmap[lower.firstblk]
        switch = builder.switch(number, nowhere)
        for index, target in self.resume_blocks.items():
            switch.add_case(_I32(index), target)
        builder.position_at_end(entry)
        builder.branch(dispatch)

    def lower_finalize_func(self, lower: Any) -> None:
        """Lower nothing: no generator is made."""

    def return_from_generator(self, lower: Any) -> None:
        """Return from the last phase."""
        self.call_conv.return_value(lower.builder, _I32(0))

    def suspend(self, lower: Any, index: int) -> None:
        """Return from a phase at a barrier, and begin the next one."""
        live = self.geninfo.yield_points[index].live_vars
        kept = sorted(name for name in live if not self._is_pure(name, 0))
        for name in kept:
            value = lower.loadvar(name)
            lower.context.pack_value(lower.builder, lower.typeof(name), value, self._slot(lower, name, self._after))
        self.call_conv.return_value(lower.builder, _I32(index))
        self.create_resumption_block(lower, index)
        for name in kept:
            slot = self._slot(lower, name, self._before)
            if name in self._uniform:
                # What Numba unpacks may point to its slot: an iterator goes on in place.
                slot = cgutils.alloca_once_value(lower.builder, lower.builder.load(slot))
            value = lower.context.unpack_value(lower.builder, lower.typeof(name), slot)
            lower.storevar(value, name)
        current, again = lower.current, dict[str, None]()
        for name in sorted(live - set(kept)):
            self._collect(name, again)
        for name in again:
            lower.lower_inst(self._definitions[name])
        lower.current = current

    def _slot(self, lower: Any, name: str, uniform: Any) -> Any:
        """Return where a thread keeps a variable; `uniform` is the memory of those that are the same for all."""
        builder = lower.builder
        kind = lower.context.get_data_type(lower.typeof(name))
        is_uniform = name in self._uniform
        if name not in self._slots:
            size = lower.context.get_abi_sizeof(kind)
            counter, count = ("uniform_bytes", 1) if is_uniform else ("state_bytes", math.prod(self.sizes))
            self._slots[name] = self._take(counter, count * size)
            check_state_bytes(errors.TypingError, self.state_bytes)
        memory = uniform if is_uniform else self._state
        start = builder.bitcast(builder.gep(memory, [_I64(self._slots[name])]), kind.as_pointer())
        return start if is_uniform else builder.gep(start, [self.thread], inbounds=True)

    def _take(self, counter: str, size: int) -> int:
        """Return where an array of that size begins, behind those before it."""
        start: int = getattr(self, counter)
        setattr(self, counter, start + -(-size // _ALIGNMENT) * _ALIGNMENT)
        return start

    def shared_array(self, expression: Any, size: int) -> Any:
        """Return the address of the array of `size` bytes that an expression, a call of `shared`, makes."""
        if id(expression) not in self._arrays:
            self._arrays[id(expression)] = self._take("shared_bytes", size)
            self._counted_bytes += -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT  # as on a GPU
            check_shared_bytes(errors.TypingError, self._counted_bytes)
        return self.lower.builder.gep(self.shared, [_I64(self._arrays[id(expression)])], inbounds=True)

    def _is_pure(self, name: str, depth: int) -> bool:
        """Whether a variable follows from the arguments and the index, and is cheap to compute again."""
        statement = self._definitions.get(name)
        if statement is None or depth > _DEEPEST:
            return False
        value = statement.value
        if isinstance(value, ir.Arg | ir.Const | ir.Global | ir.FreeVar):
            return True
        if isinstance(value, ir.Var):
            return self._is_pure(value.name, depth + 1)
        if not isinstance(value, ir.Expr) or (value.op == "call" and called(self.func_ir, ir, value) is None):
            return False
        if value.op != "call" and (value.op not in _PURE or not self._is_number(name, value)):
            return False
        return all(self._is_pure(each.name, depth + 1) for each in value.list_vars())

    def _is_number(self, name: str, expression: Any) -> bool:
        """Whether an expression makes a number, a tuple of them, or a function, without access to memory."""
        kind = self.lower.typeof(name)
        parts = tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,)
        if expression.op == "getattr":
            owner = self.lower.typeof(expression.value.name)
            return isinstance(owner, types.Module) or (
                isinstance(owner, types.Array) and expression.attr in ("shape", "size", "ndim")
            )
        if expression.op == "static_getitem" and not isinstance(
            self.lower.typeof(expression.value.name), types.BaseTuple
        ):
            return False
        return all(isinstance(part, types.Number | types.Boolean) for part in parts)

    def _collect(self, name: str, found: dict[str, None]) -> None:
        """Add the variables that a pure one is computed from, and then itself, in the order of their computation."""
        if name in found:
            return
        value = self._definitions[name].value
        operands = [value] if isinstance(value, ir.Var) else value.list_vars() if isinstance(value, ir.Expr) else []
        for operand in operands:
            self._collect(operand.name, found)
        found[name] = None


@infer_global(block)
class _Block(AbstractTemplate):  # type: ignore[misc]  # Numba has no types
    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        count = check_block_call(errors.TypingError, types, args, kws, self.context.launch_ndim)
        place = types.int64 if count == 1 else types.UniTuple(types.int64, count)
        return signature(place, *args)


@infer_global(shared)
class _Shared(AbstractTemplate):  # type: ignore[misc]  # Numba has no types
    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        ndim, element = check_shared_call(errors.TypingError, types, args, kws)
        return signature(types.Array(element, ndim, "C"), *args)


@infer_global(barrier)
class _Barrier(AbstractTemplate):  # type: ignore[misc]  # Numba has no types
    # Calls in a kernel that runs in blocks are no longer there.
    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        raise errors.TypingError("ab.barrier takes no arguments" if args or kws else NOT_IN_BLOCKS.format("barrier"))


def _phases(context: Any, builder: Any, name: str) -> Phases:
    found: Phases | None = context.build.phases_of(builder)
    if found is None:
        raise errors.TypingError(NOT_IN_BLOCKS.format(name))
    return found


@lower_builtin(block, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_block(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    place = _phases(context, builder, "block").place
    return place[0] if sig.return_type == types.int64 else context.make_tuple(builder, sig.return_type, place)


@lower_builtin(shared, types.Any, types.Any)  # type: ignore[untyped-decorator]
def _lower_shared(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    phases = _phases(context, builder, "shared")
    expression = phases.lower.current.value
    kind = sig.return_type
    shape = shared_shape(errors.TypingError, constants_of(phases.func_ir, ir, expression.args[:1]))
    element = context.get_data_type(kind.dtype)
    itemsize = context.get_abi_sizeof(element)
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    address = phases.shared_array(expression, strides[0] * shape[0])
    array = context.make_array(kind)(context, builder)
    arrayobj.populate_array(
        array,
        data=builder.bitcast(address, element.as_pointer()),
        shape=[_I64(size) for size in shape],
        strides=[_I64(stride) for stride in strides],
        itemsize=_I64(itemsize),
        meminfo=None,
    )
    return array._getvalue()
