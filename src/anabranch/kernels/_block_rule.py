"""Rules of `block`, `shared` and `barrier` for both compilers, whose types and code representations are alike.

They raise `error`, a class that the compiler turns into a message with the line.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any, Final

from anabranch.kernels._block import is_of_blocks, runs_in_blocks
from anabranch.kernels._dtype import KINDS
from anabranch.kernels._signature import Signature

MOST_INDICES: Final = 1024
MOST_DEEP: Final = 64
MOST_AXES: Final = 3
# CUDA's limit for arrays of constant size, less what a kernel that may fail takes.
MOST_BYTES: Final = 48 * 1024 - 64
SHARED_ALIGNMENT: Final = 16
MOST_STATE_BYTES: Final = 64 * 1024 * 1024

_CONSTANTS: Final = "are constants: integers, globals or closure variables, and what +, -, *, // and % make of them"
_OPERATIONS: Final = frozenset({operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod})
# Of constants: beyond it, none is a size.
_LARGE: Final = 2**40


TAKES_SIZES: Final = (
    "ab.block takes the indices per block along each axis of the launch: 1 to 3 ints, or one tuple of them"
)


def check_block_call(error: Any, types: Any, args: tuple[Any, ...], kws: Any, launch_ndim: int | None) -> int:
    """Return how many axes a call of `block` with arguments of these types gives a block.

    Raises
    ------
    error
        It gives none, or not as many as the launch has.
    """
    parts = tuple(args[0]) if len(args) == 1 and isinstance(args[0], types.BaseTuple) else args
    if kws or not 1 <= len(parts) <= MOST_AXES or not all(isinstance(part, types.Integer) for part in parts):
        raise error(TAKES_SIZES)
    if launch_ndim is not None and launch_ndim != len(parts):
        raise error(
            f"ab.block: blocks of {_axes(len(parts))} in a launch over {_axes(launch_ndim)}; a launch has as many axes "
            "as its blocks"
        )
    return len(parts)


def _axes(count: int) -> str:
    return "1 axis" if count == 1 else f"{count} axes"


def check_shared_call(error: Any, types: Any, args: tuple[Any, ...], kws: Any) -> tuple[int, Any]:
    """Return the number of dimensions and the type of the elements of `shared`, called with these types.

    Raises
    ------
    error
        It makes no such array.
    """
    if kws or len(args) != 2:
        raise error('ab.shared takes a shape and a dtype, as in ab.shared((32, 33), "float32")')
    shape, dtype = args
    parts = tuple(shape) if isinstance(shape, types.BaseTuple) else (shape,)
    if not parts or not all(isinstance(part, types.Integer) for part in parts):
        raise error(f"ab.shared: a shape is an int or a tuple of ints, not {shape}")
    element = _element_of(types, dtype)
    if element is None:
        raise error(
            'ab.shared: the dtype is a literal or a global, such as "float32" or np.float32: one of booleans, '
            "integers, float32 and float64"
        )
    return len(parts), element


_PYTHON: Final[dict[Any, str]] = {bool: "bool", int: "int64", float: "float64"}


def _element_of(types: Any, dtype: Any) -> Any:
    name = dtype.literal_value if isinstance(dtype, types.StringLiteral) else None
    if name is None:
        name = _PYTHON.get(getattr(dtype, "typing_key", None) or getattr(dtype, "key", None))
    if name is None:
        found = getattr(dtype, "instance_type", None) or getattr(dtype, "dtype", None)
        name = {"bool": "bool", "boolean": "bool"}.get(str(found), str(found))
    if name not in KINDS or name == "float16" or name.startswith("complex"):
        return None
    return types.boolean if name == "bool" else getattr(types, name)


def outside_value(func_ir: Any, ir: Any, variable: Any) -> Any:
    """Return the object from outside the function that a variable stands for, followed through modules, or None."""
    found = _definition(func_ir, variable)
    if isinstance(found, ir.Global | ir.FreeVar):
        return found.value
    if isinstance(found, ir.Expr) and found.op == "getattr":
        owner = outside_value(func_ir, ir, found.value)
        return getattr(owner, found.attr, None) if isinstance(owner, ModuleType) else None
    return outside_value(func_ir, ir, found) if isinstance(found, ir.Var) else None


def called(func_ir: Any, ir: Any, expression: Any) -> Any:
    """Return `block`, `shared` or `barrier` if an expression calls it, else None."""
    if not isinstance(expression, ir.Expr) or expression.op != "call":
        return None
    found = outside_value(func_ir, ir, expression.func)
    return found if is_of_blocks(found) else None


def constants_of(func_ir: Any, ir: Any, variables: Any) -> tuple[int, ...] | None:
    """Return the values of constant integers, or of one tuple of them; None if one is not constant."""
    values = [_constant(func_ir, ir, variable) for variable in variables]
    if len(values) == 1 and isinstance(values[0], tuple):
        values = list(values[0])
    if not values or not all(map(_is_integer, values)):
        return None
    return tuple(map(operator.index, values))


def _is_integer(value: Any) -> bool:
    """Whether a value is an integer, of NumPy's ones too, but not a bool."""
    return hasattr(type(value), "__index__") and not isinstance(value, bool) and abs(operator.index(value)) < _LARGE


def _constant(func_ir: Any, ir: Any, variable: Any) -> Any:
    found = _definition(func_ir, variable)
    if isinstance(found, ir.Const):
        return found.value
    if isinstance(found, ir.Var):
        return _constant(func_ir, ir, found)
    if isinstance(found, ir.Expr):
        if found.op == "build_tuple":
            return tuple(_constant(func_ir, ir, item) for item in found.items)
        if found.op == "binop" and found.fn in _OPERATIONS:
            sides = _constant(func_ir, ir, found.lhs), _constant(func_ir, ir, found.rhs)
            if not all(map(_is_integer, sides)) or (found.fn in (operator.floordiv, operator.mod) and sides[1] == 0):
                return None
            return found.fn(*map(operator.index, sides))
        if found.op == "unary" and found.fn in (operator.neg, operator.pos):
            value = _constant(func_ir, ir, found.value)
            return found.fn(operator.index(value)) if _is_integer(value) else None
        if found.op == "static_getitem":
            whole = _constant(func_ir, ir, found.value)
            inside = (
                isinstance(whole, tuple) and isinstance(found.index, int) and -len(whole) <= found.index < len(whole)
            )
            return whole[found.index] if inside else None
    return outside_value(func_ir, ir, variable)


def _definition(func_ir: Any, variable: Any) -> Any:
    try:
        return func_ir.get_definition(variable)
    except KeyError:  # assigned in several places
        return None


def check_block(sizes: Sequence[int], function: FunctionType, signature: Signature) -> None:
    """Raise `ValueError` unless a kernel compiled for a signature may have blocks of these sizes."""
    axes = signature[0] if runs_in_blocks(function) else 0
    if len(sizes) != axes or axes > MOST_AXES:
        raise ValueError(f"blocks of {function.__qualname__}")


def block_sizes(error: Any, sizes: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the sizes of a block if there can be such a block.

    Raises
    ------
    error
        There cannot.
    """
    if sizes is None:
        raise error(f"ab.block: the sizes of blocks {_CONSTANTS}")
    if min(sizes) < 1 or math.prod(sizes) > MOST_INDICES or (len(sizes) == MOST_AXES and sizes[0] > MOST_DEEP):
        raise error(
            f"ab.block: blocks have 1 to {MOST_INDICES} indices, and of three axes at most {MOST_DEEP} along the "
            f"first, not {' x '.join(map(str, sizes))}"
        )
    return sizes


def shared_shape(error: Any, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the shape of a shared array if there can be such an array.

    Raises
    ------
    error
        There cannot.
    """
    if shape is None:
        raise error(f"ab.shared: the sizes of a shared array {_CONSTANTS}")
    if min(shape) < 1:
        raise error(f"ab.shared: sizes are at least 1, not {shape}")
    return shape


def check_shared_bytes(error: Any, total: int) -> None:
    """Raise `error` if a kernel's shared arrays of that size in total are too large."""
    if total > MOST_BYTES:
        raise error(f"ab.shared: the shared arrays have {total} bytes in all; at most {MOST_BYTES} fit")


def check_state_bytes(error: Any, total: int) -> None:
    """Raise `error` if the variables that live across barriers take too much memory for a block."""
    if total > MOST_STATE_BYTES:
        raise error(
            f"what lives across barriers takes {total} bytes in a block; on a CPU at most {MOST_STATE_BYTES} are kept"
        )


NOT_IN_BLOCKS: Final = (
    "ab.{} works in a kernel that calls ab.block, and in the kernel itself, not in a function that it calls"
)
TWO_BLOCKS: Final = "ab.block: the blocks of a kernel have one shape, here {} and {}"
