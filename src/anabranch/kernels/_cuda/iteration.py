"""Loops over arrays, tuples of tuples, `enumerate` and `zip` in kernels on CUDA, and the unpacking of arrays.

The compiler loops over ranges, one-dimensional arrays and tuples of numbers, and reads elements of arrays without the
rules of `element`. An iterator here is an object with `next`, which generates the code of one step: whether there is
another value, and the value. As in Python, `zip` ends with its shortest iterable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from numba_cuda_mlir import lowering_utilities, mlir_lowering
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering import numpy as lowering_numpy
from numba_cuda_mlir.lowering.cuda import T, arith, index_of, memref
from numba_cuda_mlir.lowering_utilities import IterResult, RangeObject, scf
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.ir import Expr
from numba_cuda_mlir.numba_cuda.typing.templates import signature

from anabranch.kernels._cuda.failure import if_, is_active, lowers_statements, report
from anabranch.kernels._cuda.refusal import RefusedError
from anabranch.kernels._cuda.variable import declared

_Lowering: Final = mlir_lowering.MLIRLower
_lower_getiter: Final = _Lowering.lower_getiter_expr_assign
_lower_iternext: Final = _Lowering.lower_iternext_expr_assign
_subview: Final = lowering_numpy._rank_reducing_subview


class _Counter:
    """A counter in the thread's memory, which the optimizer keeps in a register."""

    def __init__(self, lower: Any, start: Any) -> None:
        with lower.alloca_insertion_point():
            self._cell = memref.alloca(T.memref(1, T.i64()), [], [])
        memref.store(start, self._cell, [index_of(0)])

    def advance(self) -> Any:
        """Return the count, and add one to it."""
        count = memref.load(self._cell, [index_of(0)])
        memref.store(arith.addi(count, _integer(1)), self._cell, [index_of(0)])
        return count


class _Positions:
    """Positions from 0 to a length."""

    def __init__(self, lower: Any, length: Any) -> None:
        self._length = length
        self._counter = _Counter(lower, _integer(0))

    def next(self) -> tuple[Any, Any]:
        """Return whether there is another position, and the position; 0 after the last one."""
        position = self._counter.advance()
        is_valid = arith.cmpi(arith.CmpIPredicate.slt, position, self._length)
        return is_valid, index_of(arith.select(is_valid, position, _integer(0)))


class _Elements:
    """The elements of an array of one dimension."""

    def __init__(self, lower: Any, kind: Any, array: Any) -> None:
        self._kind, self._array = kind, array
        self._positions = _Positions(lower, arith.index_cast(T.i64(), memref.dim(array, index_of(0))))
        self._type = lower.get_mlir_type(types.float32 if kind.dtype == types.float16 else kind.dtype)

    def next(self) -> Any:
        is_valid, position = self._positions.next()
        read = scf.IfOp(is_valid, results_=[self._type], has_else=True)
        with lowering_utilities.ir.InsertionPoint(read.then_block):
            value = lowering_utilities.array_element_value_load(self._kind, self._array, [position])
            scf.yield_([value])
        with lowering_utilities.ir.InsertionPoint(read.else_block):
            scf.yield_([lowering_utilities._zero_value_for_type(self._type)])
        return IterResult(read.results[0], is_valid)


class _Rows:
    """The rows of an array of several dimensions, as views."""

    def __init__(self, lower: Any, array: Any) -> None:
        self._array = array
        self._sizes = [memref.dim(array, index_of(axis)) for axis in range(array.type.rank)]
        self._positions = _Positions(lower, arith.index_cast(T.i64(), self._sizes[0]))

    def next(self) -> Any:
        is_valid, position = self._positions.next()
        return IterResult(self.at(position), is_valid)

    def at(self, position: Any) -> Any:
        """Return the row at a position, as a view."""
        rest = len(self._sizes) - 1
        return _subview(
            self._array,
            [position, *[index_of(0)] * rest],
            [index_of(1), *self._sizes[1:]],
            [index_of(1)] * (rest + 1),
            [True, *[False] * rest],
        )


class _Items:
    """The items of a tuple, which have one type: numbers, or tuples of them."""

    def __init__(self, lower: Any, item: Any, kinds: Any, values: list[Any]) -> None:
        self._item = _table(lower, item, kinds, values)
        self._positions = _Positions(lower, _integer(len(values)))

    def next(self) -> Any:
        is_valid, position = self._positions.next()
        return IterResult(_read(self._item, position), is_valid)


def _next(source: Any) -> Any:
    """Return the next step of an iterator, also of one of the compiler's, whose ranges return it in memory."""
    found = source.next()
    if isinstance(found, IterResult):
        return found
    value, is_valid = (memref.load(found, [index_of(number)]) for number in range(2))
    return IterResult(value, lowering_utilities.convert(is_valid, T.bool()))


class _Enumerated:
    def __init__(self, lower: Any, start: Any, source: Any) -> None:
        self._counter = _Counter(lower, start)
        self._source = source

    def next(self) -> Any:
        found = _next(self._source)
        return IterResult((self._counter.advance(), found.value), found.is_valid)


class _Zipped:
    def __init__(self, sources: list[Any]) -> None:
        self._sources = sources

    def next(self) -> Any:
        found = [_next(source) for source in self._sources]
        is_valid = found[0].is_valid
        for other in found[1:]:
            is_valid = arith.andi(is_valid, other.is_valid)
        return IterResult(tuple(each.value for each in found), is_valid)


_OURS: Final = (_Elements, _Rows, _Items, _Enumerated, _Zipped)


def _integer(value: int) -> Any:
    return arith.constant(T.i64(), value=value)


def _parts(value: Any, count: int) -> list[Any]:
    """Return the items of a tuple, which the compiler keeps as a tuple or, if it is assigned often, in memory."""
    if isinstance(value, tuple):
        return list(value)
    return [memref.load(value, [index_of(number)]) for number in range(count)]


def _table(lower: Any, item: Any, kinds: Any, values: list[Any]) -> Any:
    """Return a table of the values as items of the type `item`; a tuple of tables for one of tuples."""
    if isinstance(item, types.BaseTuple):
        rows = [_parts(value, len(item)) for value in values]
        columns = zip(item, zip(*kinds, strict=True), zip(*rows, strict=True), strict=True)
        return tuple(_table(lower, part, own, list(column)) for part, own, column in columns)
    with lower.alloca_insertion_point():
        table = memref.alloca(T.memref(len(values), lower.get_mlir_type(item)), [], [])
    for number, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        memref.store(lower.lower_cast(kind, item, value), table, [index_of(number)])
    return table


def _read(table: Any, position: Any) -> Any:
    return (
        tuple(_read(part, position) for part in table) if isinstance(table, tuple) else memref.load(table, [position])
    )


def _is_of_numbers(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return len(kind) > 0 and all(map(_is_of_numbers, kind))
    return isinstance(kind, types.Number | types.Boolean)


def _getiter(lower: Any, target: Any, variable: Any) -> None:
    kind = lower.get_numba_type(variable.name)
    value = lower.load_var(variable)
    if isinstance(value, _OURS):  # already an iterator
        steps = value
    elif isinstance(kind, types.Array):
        steps = _Elements(lower, kind, value) if kind.ndim == 1 else _Rows(lower, value)
    elif isinstance(kind, types.BaseTuple) and _is_of_numbers(kind):
        item = lower.get_numba_type(target.name).yield_type
        steps = _Items(lower, item, list(kind), _parts(value, len(kind)))
    else:
        _lower_getiter(lower, target, variable)
        return
    lower.store_var(target, steps)


def _iternext(lower: Any, target: Any, variable: Any) -> None:
    steps = lower.load_var(variable)
    if isinstance(steps, _OURS):
        lower.store_var(target, steps.next())
    else:
        _lower_iternext(lower, target, variable)


@contextmanager
def loops() -> Iterator[None]:
    """Use these loops in code compiled during the block. The caller must hold the compiler's lock."""
    _Lowering.lower_getiter_expr_assign, _Lowering.lower_iternext_expr_assign = _getiter, _iternext
    try:
        yield
    finally:
        _Lowering.lower_getiter_expr_assign, _Lowering.lower_iternext_expr_assign = _lower_getiter, _lower_iternext


@lowers_statements
def _unpack(lower: Any, statement: Any) -> bool:
    """Generate a statement that unpacks an array, as in ``a, b = x[i]``; return False for any other."""
    value = getattr(statement, "value", None)
    if not (isinstance(value, Expr) and value.op == "exhaust_iter"):
        return False
    kind = lower.get_numba_type(value.value.name)
    if not isinstance(kind, types.Array):
        return False
    if kind.dtype == types.float16:
        raise RefusedError("an array of float16 is not unpacked in a kernel on a GPU: read its elements, as in x[0]")
    array = lower.load_var(value.value)
    with if_(arith.cmpi(arith.CmpIPredicate.ne, memref.dim(array, index_of(0)), index_of(value.count))):
        report("ValueError")
    rows = _Rows(lower, array) if kind.ndim > 1 else None
    places = map(index_of, range(value.count))
    if rows is None:
        items = [lowering_utilities.array_element_value_load(kind, array, [place]) for place in places]
    else:
        items = [rows.at(place) for place in places]
    lower.store_var(statement.target, tuple(items))
    return True


def _steps_of(builder: Any, owner: Any, kind: Any, variable: Any) -> Any:
    """Return an iterator of the type `kind` over the value of a variable."""
    steps = declared(builder, owner, "steps", kind)
    _getiter(builder, steps, variable)
    return builder.load_var(steps)


@lower_builtin(iter, types.Any)  # type: ignore[untyped-decorator]
def _iter(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        raise NotImplementedError("iter")
    _getiter(builder, target, args[0])


@lower_builtin(next, types.Any)  # type: ignore[untyped-decorator]
def _next_value(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        raise NotImplementedError("next")
    found = _next(builder.load_var(args[0]))
    with if_(arith.xori(found.is_valid, arith.constant(T.bool(), value=True))):
        report("StopIteration")
    builder.store_var(target, found.value)


def type_of_reversed(function: Any, args: Any) -> Any:
    """Return the signature of `reversed` of a range; None for any other call."""
    if function is reversed and len(args) == 1 and isinstance(args[0], types.RangeType):
        return signature(args[0], args[0])
    return None


@lower_builtin(reversed, types.RangeType)  # type: ignore[untyped-decorator]
def _reversed(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    found = builder.load_var(args[0])
    step = found.step
    before = arith.subi(found.start, step)
    last = arith.addi(before, arith.muli(found.count, step))
    backwards = arith.subi(arith.constant(step.type, value=0), step)
    builder.store_var(target, RangeObject(builder, last, before, backwards))


@lower_builtin(enumerate, types.Any)  # type: ignore[untyped-decorator]
@lower_builtin(enumerate, types.Any, types.Integer)  # type: ignore[untyped-decorator]
def _enumerate(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        raise NotImplementedError("enumerate")
    start = [*args[1:], *(value for _, value in kwargs)]
    first = _integer(0)
    if start:
        first = builder.lower_cast(builder.get_numba_type(start[0].name), types.int64, builder.load_var(start[0]))
    kind = builder.get_numba_type(target.name).source_type
    builder.store_var(target, _Enumerated(builder, first, _steps_of(builder, target, kind, args[0])))


@lower_builtin(zip, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _zip(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    if not is_active():
        raise NotImplementedError("zip")
    kinds = builder.get_numba_type(target.name).source_types
    pairs = zip(kinds, args, strict=True)
    builder.store_var(target, _Zipped([_steps_of(builder, target, kind, arg) for kind, arg in pairs]))
