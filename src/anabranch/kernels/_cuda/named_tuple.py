"""Named tuples in kernels on CUDA, which the compiler types but cannot make, and those of `numpy.finfo` and `iinfo`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numba_cuda_mlir.extending import lower_builtin
from numba_cuda_mlir.lowering.cuda import arith
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.ir import Expr
from numba_cuda_mlir.numba_cuda.np.numpy_support import as_dtype
from numba_cuda_mlir.numba_cuda.typing.templates import signature
from numba_cuda_mlir.numba_cuda.typing.typeof import typeof

from anabranch.kernels._cuda.failure import lowers_statements

# What a number can tell of a dtype; the compiler has no objects.
_FIELDS: Final = {
    np.finfo: (
        *("bits", "eps", "epsneg", "iexp", "machep", "max", "maxexp", "min", "minexp", "negep", "nexp", "nmant"),
        *("precision", "resolution", "tiny", "smallest_normal", "smallest_subnormal"),
    ),
    np.iinfo: ("bits", "max", "min"),
}


@lowers_statements
def _make(builder: Any, inst: Any) -> bool:
    """Generate a statement that makes a named tuple of values for all of its fields; return False for any other."""
    call = getattr(inst, "value", None)
    if not (isinstance(call, Expr) and call.op == "call") or call.vararg is not None:
        return False
    made = builder.get_numba_type(call.func.name)
    if not isinstance(made, types.NamedTupleClass):
        return False
    named = dict(call.kws)
    variables = [*call.args, *(named[name] for name in made.instance_class._fields[len(call.args) :] if name in named)]
    kinds = builder.get_numba_type(inst.target.name)
    if len(variables) != len(kinds):  # the others have default values
        return False
    values = zip(variables, kinds, strict=True)
    builder.store_var(
        inst.target,
        tuple(
            builder.lower_cast(builder.get_numba_type(var.name), kind, builder.load_var(var)) for var, kind in values
        ),
    )
    return True


def limits(function: Any, args: Any) -> Any:
    """Return the signature of a call of `numpy.finfo` or `iinfo`; None for any other."""
    if function not in _FIELDS or len(args) != 1:
        return None
    try:
        values = _limits_of(function, args[0])
    except (ValueError, NotImplementedError):
        return None
    kinds = [types.float64 if isinstance(value, float) else typeof(value) for value in values]
    return signature(types.BaseTuple.from_types(kinds, type(values)), *args)


@cache
def _limits_of(function: Any, kind: Any) -> Any:
    """Return what `numpy.finfo` or `iinfo` say of a type, or of a value of it, as a named tuple."""
    found = function(as_dtype(getattr(kind, "instance_type", None) or getattr(kind, "dtype", kind)))
    fields = {name: getattr(found, name) for name in _FIELDS[function]}
    return namedtuple(function.__name__, fields)(**fields)  # noqa: PYI024  the fields are those of NumPy


def _lower_limits(function: Any) -> Callable[..., None]:
    def lower(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
        values = _limits_of(function, builder.get_numba_type(args[0].name))
        kinds = [builder.get_mlir_type(kind) for kind in builder.get_numba_type(target.name)]
        numbers = [value.item() if hasattr(value, "item") else value for value in values]
        made = (arith.constant(kind, value=number) for kind, number in zip(kinds, numbers, strict=True))
        builder.store_var(target, tuple(made))

    return lower


for _function in _FIELDS:
    lower_builtin(_function, types.Any)(_lower_limits(_function))


def _length(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    kind = builder.get_mlir_type(builder.get_numba_type(target.name))
    builder.store_var(target, arith.constant(kind, value=len(builder.get_numba_type(args[0].name))))


for _tuple in (types.NamedTuple, types.NamedUniTuple):
    lower_builtin(len, _tuple)(_length)
