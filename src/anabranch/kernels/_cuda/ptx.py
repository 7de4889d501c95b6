"""Reading and rewriting PTX text: kernels and their parameters. Requires neither toolkit nor device."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_ENTRY: Final = re.compile(r"\.entry\s+(?P<name>[\w$.]+)\s*(?:\((?P<parameters>[^)]*)\))?")
_PARAMETER: Final = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(?P<kind>[bsuf])(?P<bits>\d+)"
    r"(?P<pointer>\s+\.ptr(?:\s+\.(?:const|global|local|shared))?(?:\s+\.align\s+\d+)?)?"
    r"\s+(?P<name>[\w$.]+)\s*(?:\[(?P<count>\d+)\])?"
)
# In shared memory: the address of the launch's failure record, then the sizes of the index space's last two axes.
LAUNCH_VARIABLE: Final = "anabranch_launch"
# Placeholders for its words in inline assembly, since the compiler assembles its output without that variable.
LAUNCH_WORDS: Final = (7516192768, 7516192776, 7516192784)
# The slot of the parameter that holds the record's address.
RECORD_SLOT: Final = 2**32 - 1
# A function with a body; a declaration ends with a semicolon.
_FUNCTION: Final = re.compile(
    r"^[ \t]*(?://[ \t]*\.globl[^\n]*\n)?\.(?:visible|weak)?[ \t]*\.?func[ \t]*(?:\([^)]*\)\s*)?"
    r"(?P<name>[\w$.]+)\s*\([^)]*\)\s*(?=\{)",
    re.MULTILINE,
)
_EXTERNAL: Final = re.compile(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?([\w$.]+)")


class PtxParameter(NamedTuple):
    """A kernel's parameter in PTX.

    Attributes
    ----------
    name : str
        Its name in the text.
    kind : str
        "f" for a float, "u", "s" or "b" for bits; "struct" for an aggregate passed by value.
    size : int
        Bytes in parameter space.
    pointer : bool
        Whether the text declares a pointer; compilers before PTX 8 do not.
    """

    name: str
    kind: str
    size: int
    pointer: bool


def entries(ptx: str) -> dict[str, list[PtxParameter]]:
    """Return the parameters of every kernel that `ptx` defines, by the kernel's symbol."""
    return {match["name"]: _parameters(match["parameters"] or "") for match in _ENTRY.finditer(_uncommented(ptx))}


def externals(ptx: str) -> list[str]:
    """Return the functions that `ptx` calls but does not define."""
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
    """Insert known values of a kernel's 64-bit parameters into its code, and drop unused parameters.

    The launch then copies fewer parameters, and the assembler folds dependent values.

    Parameters
    ----------
    ptx, symbol : str
        The text, and the kernel's symbol.
    known : mapping of int to int
        Values of parameters, by position.
    keep : int
        Number of leading parameters that stay even if unused.

    Returns
    -------
    ptx : str
        The new text.
    kept : list of int
        Positions of the remaining parameters.
    """
    names = [parameter.name for parameter in entries(ptx)[symbol]]
    for position, value in known.items():
        load = re.compile(rf"ld\.param\.[bsu](?:64|32)(\s+%\w+,)\s*\[{re.escape(names[position])}\];")
        ptx = load.sub(rf"mov.b64\1 {value};", ptx)
    kept = list(range(keep))
    for position, name in enumerate(names[keep:], keep):
        uses = re.findall(rf"(?<![\w$.]){re.escape(name)}(?![\w$.])", ptx)
        if len(uses) > 1:
            kept.append(position)
    return _declare_only(ptx, symbol, {names[position] for position in kept}), kept


def without_functions(ptx: str) -> str:
    """Drop functions that no other code calls: functions inlined everywhere need not be assembled."""
    while True:
        for match in _FUNCTION.finditer(ptx):
            end = end_of_block(ptx, match.end())
            name = re.compile(rf"(?<![\w$.]){re.escape(match['name'])}(?![\w$.])")
            if not name.search(ptx[: match.start()]) and not name.search(ptx[end:]):
                ptx = ptx[: match.start()] + ptx[end:]
                break
        else:
            return ptx


def end_of_block(ptx: str, start: int) -> int:
    """Return the end of the block of braces that begins at `start`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(ptx, start):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.end()
    return len(ptx)


def narrow_parameters(ptx: str, symbol: str, positions: Sequence[int], kind: str) -> str:
    """Read 64-bit parameters whose values fit in 32 bits as ``"u32"`` or ``"s32"``.

    The assembler can then compute in 32 bits.
    """
    names = [parameter.name for parameter in entries(ptx)[symbol]]
    for position in positions:
        load = re.compile(rf"ld\.param\.[bsu]64(\s+%\w+,\s*\[{re.escape(names[position])}\];)")
        ptx = load.sub(rf"ld.param.{kind}\1", ptx)
    return ptx


def require_threads(ptx: str, block: Sequence[int]) -> str:
    """State the sizes of the blocks of the one kernel in `ptx`; the last axis is x.

    The assembler then uses no more registers than the threads of a block can have.
    """
    (start,) = re.finditer(r"\.entry\s+[\w$.]+\s*\([^)]*\)", ptx)
    sizes = ", ".join(map(str, reversed(block)))
    return f"{ptx[: start.end()]}\n.reqntid {sizes}{ptx[start.end() :]}"


def add_record(ptx: str, symbol: str, launch_ndim: int) -> str:
    """Add a parameter to a kernel that may fail: the address of the launch's failure record.

    Each thread stores the address, and the sizes of the last two axes, where the code that reports an error reads them.
    That code may be in another function.
    """
    names = [parameter.name for parameter in entries(ptx)[symbol]]
    record = f"{symbol}_record"
    start = re.search(rf"\.entry\s+{re.escape(symbol)}\s*\(", ptx)
    assert start is not None
    end = ptx.index(")", start.end())
    body = ptx.index("{", end) + 1
    while (line := ptx[body : ptx.index("\n", body) + 1]).strip().startswith(".reg") or not line.strip():
        body += len(line)
    values = [record, names[max(launch_ndim - 2, 0)], names[launch_ndim - 1]]
    stores = "".join(
        f"\tld.param.u64 %anabranch, [{name}];\n\tst.shared.u64 [{LAUNCH_VARIABLE}+{8 * at}], %anabranch;\n"
        for at, name in enumerate(values)
    )
    ptx = ptx[:body] + "\t{\n\t.reg .b64 %anabranch;\n" + stores + "\t}\n" + ptx[body:]
    ptx = ptx[:end].rstrip() + f",\n\t.param .u64 {record}\n" + ptx[end:]
    for offset, word in zip((0, 8, 16), LAUNCH_WORDS, strict=True):
        ptx = re.sub(rf"mov\.u64 (\w+), {word};", rf"ld.shared.u64 \1, [{LAUNCH_VARIABLE}+{offset}];", ptx)
    at = ptx.index("\n", ptx.index(".address_size")) + 1
    return f"{ptx[:at]}\n.shared .align 8 .b8 {LAUNCH_VARIABLE}[24];\n{ptx[at:]}"


def _declare_only(ptx: str, symbol: str, names: set[str]) -> str:
    start = re.search(rf"\.entry\s+{re.escape(symbol)}\s*\(", ptx)
    if start is None:
        return ptx
    end = ptx.index(")", start.end())
    declarations = [part.strip() for part in ptx[start.end() : end].split(",")]
    wanted = [part for part in declarations if (match := _PARAMETER.match(part)) and match["name"] in names]
    return ptx[: start.end()] + "\n\t" + ",\n\t".join(wanted) + "\n" + ptx[end:]
