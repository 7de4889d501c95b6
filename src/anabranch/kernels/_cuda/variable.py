"""Variables that code generation adds to those of the user's function, to pass values on to lowerings."""

from __future__ import annotations

import itertools
from typing import Any

from numba_cuda_mlir.numba_cuda.core import ir


def declared(builder: Any, owner: Any, label: str, kind: Any) -> Any:
    """Return a new variable of a type. Its name has that of `owner`, a variable, and the label."""
    kinds = builder.fndesc.typemap
    names = (f"{owner.name}.{label}{number or ''}" for number in itertools.count())
    variable = ir.Var(owner.scope, next(name for name in names if name not in kinds), owner.loc)
    kinds[variable.name] = kind
    return variable


def assigned(builder: Any, owner: Any, label: str, kind: Any, value: Any) -> Any:
    """Return such a variable with a value."""
    variable = declared(builder, owner, label, kind)
    builder.store_var(variable, value)
    return variable


def converted(builder: Any, owner: Any, kind: Any, variable: Any) -> Any:
    """Return such a variable with the value of another one, cast to a type."""
    value = builder.lower_cast(builder.get_numba_type(variable.name), kind, builder.load_var(variable))
    return assigned(builder, owner, "operand", kind, value)
