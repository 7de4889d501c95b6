"""Variables that code generation adds to those of the user's function, to pass values on to lowerings."""

from __future__ import annotations

from typing import Any

from numba_cuda_mlir.numba_cuda.core import ir


def declared(builder: Any, owner: Any, label: str, kind: Any) -> Any:
    """Return a new variable of a type. The label makes its name unique among those of `owner`, a variable."""
    variable = ir.Var(owner.scope, f"{owner.name}.{label}", owner.loc)
    builder.fndesc.typemap[variable.name] = kind
    return variable


def assigned(builder: Any, owner: Any, label: str, kind: Any, value: Any) -> Any:
    """Return such a variable with a value."""
    variable = declared(builder, owner, label, kind)
    builder.store_var(variable, value)
    return variable


def converted(builder: Any, owner: Any, number: int, kind: Any, variable: Any) -> Any:
    """Return such a variable with the value of another one, cast to a type; `number` makes its name unique."""
    value = builder.lower_cast(builder.get_numba_type(variable.name), kind, builder.load_var(variable))
    return assigned(builder, owner, f"operand_{number}", kind, value)
