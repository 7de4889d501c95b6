"""Signatures, for which a kernel is specialised: the kinds of its arguments, never their values.

A signature is ``(launch_ndim, (code, ...))``, one code per parameter after the index:

* ``("array", dtype, ndim, contiguous, readonly)`` for an array; contiguous means C order,
* ``("scalar", dtype)`` for a scalar.

Dtypes are canonical NumPy names. Signatures are plain tuples, because the launcher builds one per launch and uses it as
a dict key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from anabranch.kernels._annotation import ACCESS_NAMES, IN_CODE
from anabranch.kernels._dtype import BOOL, COMPLEX, FLOAT, INTEGER, KINDS
from anabranch.kernels._parameter import Parameter

ArrayCode: TypeAlias = tuple[Literal["array"], str, int, bool, bool]
ScalarCode: TypeAlias = tuple[Literal["scalar"], str]
Code: TypeAlias = ArrayCode | ScalarCode
Signature: TypeAlias = tuple[int, tuple[Code, ...]]

MAX_LAUNCH_NDIM: Final = 4
_KIND_WORDS: Final = {BOOL: "a bool", INTEGER: "an integer", FLOAT: "a float", COMPLEX: "a complex number"}


def check_signature(name: str, parameters: Sequence[Parameter], signature: Signature) -> None:
    """Check that arguments of these kinds may be passed to the kernel called `name`.

    Raises
    ------
    TypeError
        Wrong number of arguments, a scalar for an array or the other way round, or a dtype or
        number of dimensions that the kernel does not declare. Names the parameter.
    ValueError
        A launch of less than 1 or more than 4 dimensions.
    """
    launch_ndim, codes = signature
    if not 1 <= launch_ndim <= MAX_LAUNCH_NDIM:
        raise ValueError(f"kernel {name!r}: a launch has 1 to {MAX_LAUNCH_NDIM} dimensions, not {launch_ndim}")
    if len(codes) != len(parameters):
        expected = ", ".join(parameter.name for parameter in parameters) or "none"
        raise TypeError(
            f"kernel {name!r} takes {len(parameters)} arguments after the index ({expected}), {len(codes)} given"
        )
    for parameter, code in zip(parameters, codes, strict=True):
        reason = _mismatch(parameter, code)
        if reason is not None:
            raise TypeError(f"kernel {name!r}, parameter {parameter.name!r}: {reason}")


def _mismatch(parameter: Parameter, code: Code) -> str | None:
    if code[1] not in KINDS:
        return f"dtype {code[1]} is not one that kernels take ({', '.join(KINDS)})"
    if code[0] == "array":
        if parameter.scalar is not None:
            return f"declared as a {parameter.scalar} scalar, an array was given"
        if parameter.dtype is not None and parameter.dtype != code[1]:
            return f"declared with dtype {parameter.dtype}, an array of {code[1]} was given"
        if parameter.ndim is not None and parameter.ndim != code[2]:
            return f"declared with {parameter.ndim} dimensions, an array of {code[2]} was given"
        return None
    if parameter.access is not None:
        declared = ACCESS_NAMES[parameter.access_code]
        return f"declared as an array (ab.{declared}), a scalar of {code[1]} was given"
    if parameter.scalar is not None and KINDS[code[1]] > KINDS[parameter.scalar]:
        return f"declared as {parameter.scalar}, {_KIND_WORDS[KINDS[code[1]]]} was given"
    return None


def is_readonly(parameter: Parameter, code: ArrayCode) -> bool:
    """Whether the kernel must not write this array: declared `In`, or read-only memory."""
    return parameter.access_code == IN_CODE or code[4]


def describe(parameters: Sequence[Parameter], signature: Signature) -> str:
    """Return the kinds of the arguments for a message, such as ``alpha: float64, x: array(float32, 1d, C)``."""
    words = []
    for parameter, code in zip(parameters, signature[1], strict=True):
        if code[0] == "array":
            prefix = "readonly " if is_readonly(parameter, code) else ""
            words.append(f"{parameter.name}: {prefix}array({code[1]}, {code[2]}d, {'C' if code[3] else 'A'})")
        else:
            words.append(f"{parameter.name}: {parameter.scalar or code[1]}")
    return ", ".join(words)
