"""Parameters of a module's kernel, combined from its source, its PTX and the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from anabranch.kernels._annotation import IN_CODE, INOUT_CODE, OUT_CODE
from anabranch.kernels._cpp.declaration import CppParameter
from anabranch.kernels._cuda.ptx import PtxParameter

_CODES: Final = {"inout": INOUT_CODE, "in": IN_CODE, "out": OUT_CODE}
# Elements that differ only in sign, or that are one byte, are interchangeable.
_GROUPS: Final = (
    ("bool", "int8", "uint8"),
    ("int16", "uint16"),
    ("int32", "uint32"),
    ("int64", "uint64"),
)


class ModuleParameter(NamedTuple):
    """A parameter of a module's kernel.

    Attributes
    ----------
    name : str
        As in the source; a position such as "#2" where it has none.
    kind : str
        "pointer", "float", "signed", "unsigned", "integer" (of unknown sign), "bool", "struct" or "bits" (of unknown
        kind; an array counts as its address).
    size : int
        Bytes.
    access : str or None
        "in", "out" or "inout" for an array; None where it is no array, or unknown.
    dtype : str or None
        Of a pointer's elements, or a scalar's, where the source says it.
    """

    name: str
    kind: str
    size: int
    access: str | None
    dtype: str | None

    @property
    def accepts(self) -> tuple[str, ...] | None:
        """The dtypes that its array may have; None: any."""
        if self.kind != "pointer" or self.dtype is None:
            return None
        return next((group for group in _GROUPS if self.dtype in group), (self.dtype,))

    def describe(self) -> str:
        """Return its description, such as ``const float32* x``."""
        if self.kind == "pointer":
            const = "const " if self.access == "in" else ""
            return f"{const}{self.dtype or 'void'}* {self.name}"
        if self.kind in ("struct", "bits"):
            return f"{self.size} bytes {self.name}"
        bits = 8 * self.size
        words = {"float": f"float{bits}", "unsigned": f"uint{bits}", "bool": "bool"}
        return f"{words.get(self.kind, f'int{bits}')} {self.name}"


def from_source(declared: Sequence[CppParameter], in_ptx: Sequence[PtxParameter]) -> list[ModuleParameter]:
    """Merge the source's and the PTX's view of the same parameters; the PTX decides on kinds and sizes."""
    found = []
    for position, (cpp, ptx) in enumerate(zip(declared, in_ptx, strict=True)):
        name = cpp.name or f"#{position}"
        if ptx.size == 8 and ptx.kind not in ("f", "struct") and (cpp.pointer or ptx.pointer):
            found.append(ModuleParameter(name, "pointer", 8, "in" if cpp.const else "inout", cpp.dtype))
        else:
            dtype = None if cpp.pointer else cpp.dtype
            found.append(ModuleParameter(name, _kind(ptx, dtype), ptx.size, None, dtype))
    return found


def from_symbol(in_ptx: Sequence[PtxParameter] | None, sizes: Sequence[int]) -> list[ModuleParameter]:
    """Return the parameters without source: kinds from PTX, else sizes from the driver."""
    if in_ptx is None:
        return [ModuleParameter(f"#{position}", "bits", size, None, None) for position, size in enumerate(sizes)]
    return [
        ModuleParameter(f"#{position}", "pointer", 8, "inout", None)
        if ptx.pointer
        else ModuleParameter(f"#{position}", _kind(ptx, None), ptx.size, None, None)
        for position, ptx in enumerate(in_ptx)
    ]


def _kind(ptx: PtxParameter, dtype: str | None) -> str:
    if ptx.kind == "struct":
        return "struct"
    if ptx.kind == "f" or dtype in ("float32", "float64"):
        return "float"
    if dtype == "bool":
        return "bool"
    if dtype is not None and dtype.startswith(("int", "uint")):
        return "unsigned" if dtype.startswith("u") else "signed"
    return "integer" if ptx.size <= 8 else "bits"


def access_codes(
    name: str, parameters: Sequence[ModuleParameter], access: str | Sequence[str] | Mapping[str, str] | None
) -> tuple[list[int | None], tuple[int, ...]]:
    """Return an access code per parameter, None if it is not an array, and the access codes of arrays in their order.

    The second is empty unless the code leaves open which parameters are arrays.

    Raises
    ------
    TypeError, ValueError
        `access` does not fit the kernel, or is not one of the three words.
    """
    known = [None if parameter.access is None else _CODES[parameter.access] for parameter in parameters]
    arrays = [position for position, code in enumerate(known) if code is not None]
    if access is None:
        return known, ()
    if isinstance(access, Mapping):
        return _by_name(name, parameters, known, access), ()
    if isinstance(access, str):
        code = _code(name, access)
        # A parameter that the code does not identify as an array may be one; every array passed for such a parameter
        # gets the code.
        by_order = (code,) * len(parameters) if len(arrays) < len(parameters) else ()
        return [code if parameter.access else None for parameter in parameters], by_order
    codes = [_code(name, word) for word in access]
    if not arrays and parameters:
        return known, tuple(codes)
    if len(codes) != len(arrays):
        names = ", ".join(parameters[position].name for position in arrays) or "none"
        raise ValueError(f"kernel {name!r} has {len(arrays)} arrays ({names}); access has {len(codes)} entries")
    for position, code in zip(arrays, codes, strict=True):
        known[position] = code
    return known, ()


def _by_name(
    name: str, parameters: Sequence[ModuleParameter], known: list[int | None], access: Mapping[str, str]
) -> list[int | None]:
    positions = {parameter.name: position for position, parameter in enumerate(parameters)}
    for key, word in access.items():
        if key not in positions:
            raise ValueError(f"kernel {name!r} has no parameter {key!r}; it has {', '.join(positions) or 'none'}")
        known[positions[key]] = _code(name, word)
    return known


def _code(name: str, word: object) -> int:
    if not isinstance(word, str) or word not in _CODES:
        raise ValueError(f"kernel {name!r}: access is 'in', 'out' or 'inout' for each array, not {word!r}")
    return _CODES[word]
