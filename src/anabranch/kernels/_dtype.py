"""Names of element types, without importing NumPy.

A dtype is its canonical NumPy name, such as ``"float32"``. Kinds are in NumPy's casting order: a value may be cast to a
later kind, but not to an earlier one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

BOOL: Final = 0
INTEGER: Final = 1
FLOAT: Final = 2
COMPLEX: Final = 3

KINDS: Final = MappingProxyType(
    {
        "bool": BOOL,
        "int8": INTEGER,
        "int16": INTEGER,
        "int32": INTEGER,
        "int64": INTEGER,
        "uint8": INTEGER,
        "uint16": INTEGER,
        "uint32": INTEGER,
        "uint64": INTEGER,
        "float16": FLOAT,
        "float32": FLOAT,
        "float64": FLOAT,
        "complex64": COMPLEX,
        "complex128": COMPLEX,
    }
)

# Spellings that NumPy's constructor accepts; "int" and "long" have the meaning of 64-bit Unix.
_ALIASES: Final = {
    "?": "bool", "b1": "bool", "bool_": "bool",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
    "half": "float16", "single": "float32", "double": "float64",
    "int": "int64", "uint": "uint64", "float": "float64", "complex": "complex128",
    "intp": "int64", "uintp": "uint64",
    "long": "int64", "ulong": "uint64", "longlong": "int64", "ulonglong": "uint64",
}  # fmt: skip


def dtype_name(value: object) -> str | None:
    """Return the canonical name of a dtype, or None if Anabranch does not support `value`.

    Parameters
    ----------
    value : object
        A name or NumPy code, a NumPy scalar type or dtype, or ``bool``, ``int``, ``float``,
        ``complex``.

    Examples
    --------
    >>> dtype_name("f4"), dtype_name(float), dtype_name("colour")
    ('float32', 'float64', None)
    """
    if isinstance(value, str):
        name = value
    elif isinstance(value, type):
        if value.__module__ not in ("builtins", "numpy"):
            return None
        name = value.__name__
    elif type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "newbyteorder"):
        if not getattr(value, "isnative", True):
            return None
        name = str(getattr(value, "name", ""))
    else:
        return None
    name = name.lstrip("=<|")
    name = _ALIASES.get(name, name)
    return name if name in KINDS else None
