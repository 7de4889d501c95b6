"""Local improvements of PTX that neither the compiler nor the assembler makes. Requires neither toolkit nor device."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from anabranch.kernels._cuda.ptx import end_of_block

_LONGEST: Final = 8  # instructions that a loop's second condition may take to be computed in vain
# Instructions that only compute, in a few cycles.
_CHEAP: Final = re.compile("mov|add|sub|mul|mad|fma|neg|abs|min|max|cvt|and|or|xor|not|shl|shr|setp|selp")
# The end of a loop with two exits to the code behind it.
_TWO_EXITS: Final = re.compile(
    r"^\t@(?P<leaves>%p\d+) bra[ \t]+(?P<exit>\$\w+);\n+"
    rf"(?P<block>(?:\t[^@:{{}}/\n]+;\n){{1,{_LONGEST}}})"
    r"(?P<back>\t@(?P<stays>%p\d+) bra[ \t]+(?P<head>\$\w+);\n)\n*(?P=exit):",
    re.MULTILINE,
)
_LABEL: Final = re.compile(r"^\$\w+:", re.MULTILINE)
_END_OF_BLOCK: Final = re.compile(r"^\$\w+:\n|\bbra(?:\.uni)?[ \t][^\n]*\n", re.MULTILINE)
_INSTRUCTION: Final = re.compile(r"\t(?P<name>[a-z]+)(?P<kinds>[\w.]*)\s+(?P<target>%\w+),")
_INTEGERS: Final = {"eq": "ne", "lt": "ge", "gt": "le", "lo": "hs", "hi": "ls"}
# A comparison of floats is false for nan, and its opposite true.
_FLOATS: Final = {"eq": "neu", "lt": "geu", "gt": "leu", "le": "gtu", "ge": "ltu", "ne": "equ", "num": "nan"}
# An atomic that can do without its result.
_ATOMIC: Final = re.compile(
    r"\batom(?P<kinds>\.global\.(?:add(?:\.noftz)?|min|max)\.\w+)\s+(?P<old>%\w+),\s*(?P<operands>[^;]*;)"
)


def improve(ptx: str) -> str:
    """Return `ptx` with the improvements of this module, in every function."""
    return _in_bodies(ptx, lambda body: reduce_unread(merge_exits(body)))


def _in_bodies(ptx: str, change: Callable[[str], str]) -> str:
    # Each function has its own registers.
    parts: list[str] = []
    at = 0
    while (start := ptx.find("{", at)) >= 0:
        end = end_of_block(ptx, start)
        parts += [ptx[at:start], change(ptx[start:end])]
        at = end
    return "".join(parts) + ptx[at:]


def merge_exits(body: str) -> str:
    """Give loops that end with ``@a bra exit; ...; @b bra head; exit:`` one exit, by a branch on both conditions.

    The assembler can then unroll the loop. It needs the condition on the counter as it is compared, hence the opposite
    comparison, not a negated predicate. The compiler does the same, but only if the second condition takes a single
    instruction. What lies between the branches only computes, and nothing but the next round reads it, so the last
    round may compute it in vain.

    Parameters
    ----------
    body : str
        Of a function.
    """
    at = 0
    while (match := _TWO_EXITS.search(body, at)) is not None:
        start = _with_opposite(body[: match.start()], match["leaves"])
        if start is None or not _may_merge(body, match):
            at = match.start("block")
            continue
        both = match["leaves"]
        start += (
            f"{match['block']}\tand.pred  \t{both}, {both}, {match['stays']};\n\t@{both} bra \t{match['head']};\n\n"
        )
        body, at = f"{start}{match['exit']}:{body[match.end() :]}", len(start)
    return body


def _may_merge(body: str, match: re.Match[str]) -> bool:
    head = body.rfind(f"\n{match['head']}:", 0, match.start())
    if head < 0 or _count(body, match["head"]) != 2 or _LABEL.search(body, head + 2, match.start()):
        return False  # not a loop of one block that is entered from above
    if _count(body, match["leaves"]) != 2:
        return False
    found = [_INSTRUCTION.match(line) for line in match["block"].splitlines()]
    return all(
        each is not None
        and _CHEAP.fullmatch(each["name"])
        and ".cc" not in each["kinds"]
        and _is_private(body, head, match, each["target"])
        for each in found
    )


def _is_private(body: str, head: int, match: re.Match[str], register: str) -> bool:
    """Whether only the loop that begins at `head` reads a register, and only what it set or what its entry did."""
    if _count(body, register) == _count(match["block"] + match["back"], register):
        return True
    entry = max((each.end() for each in _END_OF_BLOCK.finditer(body, 0, head)), default=0)
    if _count(body[:entry] + body[match.end() :], register):
        return False
    first = next((line for line in body[entry:head].splitlines() if _count(line, register)), "")
    return re.match(rf"\tmov\.\w+\s+{re.escape(register)},", first) is not None


def _with_opposite(text: str, predicate: str) -> str | None:
    """Return `text` with the opposite of the comparison that sets a predicate; None if there is no such comparison."""
    pattern = re.compile(rf"\bsetp\.(?P<order>\w+)(?P<kind>(?:\.ftz)?\.[busf]\d+)(?=\s+{re.escape(predicate)},)")
    found = pattern.search(text)
    if found is None:
        return None
    pairs = _FLOATS if ".f" in found["kind"] else _INTEGERS
    opposite = {**pairs, **{other: one for one, other in pairs.items()}}.get(found["order"])
    return opposite and f"{text[: found.start()]}setp.{opposite}{found['kind']}{text[found.end() :]}"


def reduce_unread(body: str) -> str:
    """Make reductions of atomics whose result nothing reads: a thread does not wait for those.

    Parameters
    ----------
    body : str
        Of a function.
    """

    def reduced(match: re.Match[str]) -> str:
        return match[0] if _count(body, match["old"]) > 1 else f"red{match['kinds']} {match['operands']}"

    return _ATOMIC.sub(reduced, body)


def _count(text: str, register: str) -> int:
    return len(re.findall(rf"{re.escape(register)}(?![\w$])", text))
