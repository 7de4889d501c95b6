"""A kernel's parameters, read from its function once, at decoration."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, NamedTuple

from anabranch.kernels._annotation import INOUT_CODE, Access
from anabranch.kernels._dtype import KINDS, dtype_name

# Flags of code. The module `inspect`, which names them, takes longer to import than all of kernels.
_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x4, 0x8, 0x20, 0x80, 0x200


class Parameter(NamedTuple):
    """One parameter of a kernel after the index.

    Attributes
    ----------
    name : str
        Its name in the function.
    access : str or None
        "in", "out" or "inout"; None without a declaration, which means "inout" for an array and a value for a scalar.
    dtype : str or None
        Dtype that an array must have.
    ndim : int or None
        Number of dimensions that an array must have.
    scalar : str or None
        Dtype to which a scalar is cast. Such a parameter accepts no array.
    access_code : int
        0 in-out (also without a declaration), 1 in, 2 out.
    """

    name: str
    access: str | None
    dtype: str | None
    ndim: int | None
    scalar: str | None
    access_code: int


def read_parameters(function: FunctionType, scope: dict[str, Any]) -> tuple[Parameter, ...]:
    """Read the parameters of a kernel function, without the first one, the index.

    Parameters
    ----------
    function : function
        The decorated function.
    scope : dict
        Names in scope at the decorator, for string annotations that use names which the function itself does not use.

    Raises
    ------
    TypeError
        The function cannot be a kernel, or an annotation means nothing here.
    """
    code = function.__code__
    _check_shape(function, code)
    annotations = _annotations(function)
    names = code.co_varnames[1 : code.co_argcount]
    return tuple(_parameter(function, name, annotations.get(name), scope) for name in names)


def _check_shape(function: FunctionType, code: CodeType) -> None:
    def refuse(what: str, instead: str) -> TypeError:
        return TypeError(
            f"kernel {function.__qualname__!r} ({code.co_filename}:{code.co_firstlineno}) {what}; {instead}"
        )

    if code.co_flags & (_COROUTINE | _ASYNC_GENERATOR):
        raise refuse("is an async function", "a kernel is a plain function that returns nothing")
    if code.co_flags & _GENERATOR:
        raise refuse("is a generator", "a kernel is a plain function that returns nothing")
    if code.co_flags & _VARARGS:
        raise refuse("takes *args", "name each parameter")
    if code.co_flags & _VARKEYWORDS:
        raise refuse("takes **kwargs", "name each parameter")
    if code.co_kwonlyargcount:
        raise refuse("has keyword-only parameters", "arguments of a launch have positions only")
    if function.__defaults__:
        raise refuse("has default values", "pass every argument to ab.launch")
    if not code.co_argcount:
        raise refuse("has no parameters", "the first one is the index")


def _annotations(function: FunctionType) -> dict[str, Any]:
    try:
        return function.__annotations__
    except NameError as error:  # Python 3.14 evaluates annotations when they are read
        raise TypeError(
            f"kernel {function.__qualname__!r}: an annotation uses a name that is not defined: {error}"
        ) from error


def _parameter(function: FunctionType, name: str, annotation: object, scope: dict[str, Any]) -> Parameter:
    value = annotation
    if isinstance(value, str) and dtype_name(value) is None:
        value = _evaluate(function, name, value, scope)
    if value is None or value is Any or value is object:
        return Parameter(name, None, None, None, None, INOUT_CODE)
    if isinstance(value, Access):
        return Parameter(name, value.word, value.dtype, value.ndim, None, value.code)
    scalar = dtype_name(value)
    if scalar is None:
        raise TypeError(
            f"kernel {function.__qualname__!r}: the annotation of {name!r} is {annotation!r}; for an array "
            f'use ab.In, ab.Out or ab.InOut, such as ab.In["float32", 2], and for a scalar one of '
            f"float, int, {', '.join(KINDS)}"
        )
    return Parameter(name, None, None, None, scalar, INOUT_CODE)


def _evaluate(function: FunctionType, name: str, text: str, scope: dict[str, Any]) -> object:
    names = dict(scope)
    for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[free] = cell.cell_contents
        except ValueError:  # assigned after the function's definition
            continue
    value: object = text
    try:
        # Twice: under `from __future__ import annotations` a quoted annotation is a string of a string.
        for _ in range(2):
            if isinstance(value, str) and dtype_name(value) is None:
                value = eval(value, function.__globals__, names)
    except Exception as error:
        raise TypeError(
            f"kernel {function.__qualname__!r}: the annotation of {name!r}, {text!r}, cannot be evaluated: "
            f"{type(error).__name__}: {error}"
        ) from error
    return value
