"""What PTX text says of its kernels: their names and parameters. Needs no toolkit and no device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_ENTRY: Final = re.compile(r"\.entry\s+(?P<name>[\w$.]+)\s*(?:\((?P<parameters>[^)]*)\))?")
_PARAMETER: Final = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(?P<kind>[bsuf])(?P<bits>\d+)"
    r"(?P<pointer>\s+\.ptr(?:\s+\.(?:const|global|local|shared))?(?:\s+\.align\s+\d+)?)?"
    r"\s+(?P<name>[\w$.]+)\s*(?:\[(?P<count>\d+)\])?"
)
_EXTERNAL: Final = re.compile(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?([\w$.]+)")


class PtxParameter(NamedTuple):
    """A parameter of a kernel in PTX.

    Attributes
    ----------
    name : str
        Its name in the text.
    kind : str
        "f" for a float, "u", "s" or "b" for bits; "struct" for an aggregate passed by value.
    size : int
        Bytes in parameter space.
    pointer : bool
        Whether the text says that it is one; compilers before PTX 8 do not say.
    """

    name: str
    kind: str
    size: int
    pointer: bool


def entries(ptx: str) -> dict[str, list[PtxParameter]]:
    """Return the parameters of every kernel that `ptx` defines, by the kernel's symbol."""
    return {match["name"]: _parameters(match["parameters"] or "") for match in _ENTRY.finditer(_uncommented(ptx))}


def externals(ptx: str) -> list[str]:
    """Return the functions that `ptx` calls and does not define."""
    return _EXTERNAL.findall(_uncommented(ptx))


def _uncommented(ptx: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.DOTALL)


def _parameters(text: str) -> list[PtxParameter]:
    found = []
    for match in _PARAMETER.finditer(text):
        size = int(match["bits"]) // 8 * int(match["count"] or 1)
        kind = "struct" if match["count"] else match["kind"]
        found.append(PtxParameter(match["name"], kind, size, bool(match["pointer"])))
    return found


def fold_parameters(ptx: str, symbol: str, known: Mapping[int, int], keep: int) -> tuple[str, list[int]]:
    """Put what is known of a kernel's 64-bit parameters into its code, and drop parameters that nothing reads.

    The launch then copies fewer parameters, and the assembler folds what depends on them.

    Parameters
    ----------
    ptx, symbol : str
        The text, and the kernel's name in it.
    known : mapping of int to int
        Values of parameters, by position.
    keep : int
        So many parameters at the front stay, read or not.

    Returns
    -------
    ptx : str
        The new text.
    kept : list of int
        Positions of the parameters that it still has.
    """
    names = [parameter.name for parameter in entries(ptx)[symbol]]
    for position, value in known.items():
        load = re.compile(rf"ld\.param\.[bsu]64(\s+%\w+,)\s*\[{re.escape(names[position])}\];")
        ptx = load.sub(rf"mov.b64\1 {value};", ptx)
    kept = list(range(keep))
    for position, name in enumerate(names[keep:], keep):
        uses = re.findall(rf"(?<![\w$.]){re.escape(name)}(?![\w$.])", ptx)
        if len(uses) > 1:
            kept.append(position)
    return _declare_only(ptx, symbol, {names[position] for position in kept}), kept


def _declare_only(ptx: str, symbol: str, names: set[str]) -> str:
    start = re.search(rf"\.entry\s+{re.escape(symbol)}\s*\(", ptx)
    if start is None:
        return ptx
    end = ptx.index(")", start.end())
    declarations = [part.strip() for part in ptx[start.end() : end].split(",")]
    wanted = [part for part in declarations if (match := _PARAMETER.match(part)) and match["name"] in names]
    return ptx[: start.end()] + "\n\t" + ",\n\t".join(wanted) + "\n" + ptx[end:]
