"""`In`, `Out` and `InOut`: declarations of how a kernel accesses an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from anabranch.kernels._dtype import KINDS, dtype_name

INOUT_CODE: Final = 0
IN_CODE: Final = 1
OUT_CODE: Final = 2

ACCESS_NAMES: Final = ("InOut", "In", "Out")
_MAX_NDIM: Final = 16  # of an array

# mypy assumes that this name is true; every other tool evaluates it.
MYPY = False


class Access:
    """How a kernel uses one array parameter, and what it asks of the array.

    `anabranch.In`, `anabranch.Out` and `anabranch.InOut` are the three accesses that ask
    nothing; indexing one fixes the dtype and the number of dimensions.

    Attributes
    ----------
    code : int
        0 for in-out, 1 for in, 2 for out.
    word : str
        "inout", "in" or "out".
    dtype : str or None
        Canonical NumPy name the array must have.
    ndim : int or None
        Number of dimensions the array must have.

    Examples
    --------
    >>> In["float32", 2]
    ab.In['float32', 2]
    """

    __slots__ = ("code", "dtype", "ndim")

    code: int
    dtype: str | None
    ndim: int | None

    def __init__(self, code: int, dtype: str | None = None, ndim: int | None = None) -> None:
        self.code = code
        self.dtype = dtype
        self.ndim = ndim

    @property
    def word(self) -> str:
        return ACCESS_NAMES[self.code].lower()

    def __getitem__(self, item: object) -> Access:
        if self.dtype is not None or self.ndim is not None:
            raise TypeError(f"{self!r} is already complete; write ab.{ACCESS_NAMES[self.code]}[dtype, ndim]")
        parts = item if isinstance(item, tuple) else (item,)
        if not 1 <= len(parts) <= 2:
            raise TypeError(
                f"ab.{ACCESS_NAMES[self.code]}[...] takes a dtype and a number of dimensions, "
                f'such as ab.{ACCESS_NAMES[self.code]}["float32", 2], not {len(parts)} items'
            )
        dtype = self._read_dtype(parts[0])
        ndim = self._read_ndim(parts[1]) if len(parts) == 2 else None
        return Access(self.code, dtype, ndim)

    def _read_dtype(self, value: object) -> str:
        name = dtype_name(value)
        if name is None:
            raise TypeError(
                f"ab.{ACCESS_NAMES[self.code]}[...]: {value!r} is no dtype of an array; "
                f"the dtypes are {', '.join(KINDS)}"
            )
        return name

    def _read_ndim(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(
                f"ab.{ACCESS_NAMES[self.code]}[dtype, ndim]: the number of dimensions is an int, not {value!r}"
            )
        if not 0 <= value <= _MAX_NDIM:
            raise ValueError(
                f"ab.{ACCESS_NAMES[self.code]}[dtype, ndim]: arrays have 0 to {_MAX_NDIM} dimensions, not {value}"
            )
        return value

    def __call__(self, *args: object, **kwargs: object) -> Access:
        name = ACCESS_NAMES[self.code]
        raise TypeError(f'ab.{name} is an annotation; write x: ab.{name} or x: ab.{name}["float32", 2]')

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Access):
            return NotImplemented
        return (self.code, self.dtype, self.ndim) == (other.code, other.dtype, other.ndim)

    def __hash__(self) -> int:
        return hash((self.code, self.dtype, self.ndim))

    def __repr__(self) -> str:
        name = f"ab.{ACCESS_NAMES[self.code]}"
        if self.dtype is None:
            return name
        return f"{name}[{self.dtype!r}]" if self.ndim is None else f"{name}[{self.dtype!r}, {self.ndim}]"


if TYPE_CHECKING:
    # pyright accepts any subscript of a class with `__class_getitem__`. mypy does not support that method and uses a
    # name of type Any instead (see _annotation_mypy).
    if MYPY:
        from anabranch.kernels._annotation_mypy import In as In
        from anabranch.kernels._annotation_mypy import InOut as InOut
        from anabranch.kernels._annotation_mypy import Out as Out
    else:

        class _Array:
            def __class_getitem__(cls, item: Any) -> Any: ...
            def __getitem__(self, index: Any) -> Any: ...
            def __setitem__(self, index: Any, value: Any) -> None: ...
            def __getattr__(self, name: str) -> Any: ...
            def __len__(self) -> int: ...

        class In(_Array):
            """An array that the kernel only reads."""

        class Out(_Array):
            """An array that the kernel only writes, each element before anything reads it."""

        class InOut(_Array):
            """An array that the kernel reads and writes."""

else:
    In = Access(IN_CODE)
    Out = Access(OUT_CODE)
    InOut = Access(INOUT_CODE)
