"""The code blocks of a page of the documentation, and running them.

As a program, ``documentation.py PAGE`` runs a page: its ``python`` blocks in order in one namespace, its ``pycon``
blocks through doctest in the same one. A ``text`` block right after a ``python`` block is what that prints. Line
numbers in tracebacks are those of the page.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FENCE = re.compile(r"^ {0,3}(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
OPTIONS = doctest.ELLIPSIS


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    code: str
    line: int  # of its first line of code, from 1
    follows: bool  # nothing but blank lines stands between the block before and this one


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    closing, info, first, code = "", "", 0, list[str]()
    text_between = True
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if not closing:
            if fence:
                closing, info, first, code = fence["ticks"], fence["info"].strip(), number + 1, []
            elif line.strip():
                text_between = True
        elif fence and not fence["info"] and fence["ticks"].startswith(closing):
            found.append(Block(info, "".join(f"{each}\n" for each in code), first, not text_between))
            closing, text_between = "", False
        else:
            code.append(line)
    if closing:
        raise ValueError(f"{page}:{first - 1}: this block is not closed")
    return found


class Row(NamedTuple):
    """A row of a page's table, by the headings of its columns."""

    cells: dict[str, str]
    line: int  # from 1


def rows(page: Path) -> Iterator[Row]:
    """Yield the rows of the tables outside of blocks."""
    code = {number for block in blocks(page) for number in range(block.line, block.line + block.code.count("\n"))}
    headings: list[str] | None = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if number in code or not line.startswith("|"):
            headings = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        if headings is None:
            headings = cells
        elif not all(re.fullmatch(":?-+:?", cell) for cell in cells):
            yield Row(dict(zip(headings, cells, strict=True)), number)


def _import_others(page: Path) -> None:
    """Import the libraries of others that the page does. What they warn about there is no concern of its."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for names in re.findall(r'^ *import (cupy|torch|warp)\b|"(numba_cuda_mlir)"', page.read_text(), re.MULTILINE):
            name = "".join(names)
            if importlib.util.find_spec(name):
                importlib.import_module(name)


def run(page: Path) -> None:
    """Run every block of the page; raises on the first that fails."""
    _import_others(page)
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(page)}
    printed = ""
    for block in blocks(page):
        if block.language == "python":
            printed = _execute(page, block, namespace)
        elif block.language == "pycon":
            _check_session(page, block, namespace)
        elif block.language == "text" and block.follows:
            _compare(page, block, printed)


def _execute(page: Path, block: Block, namespace: dict[str, Any]) -> str:
    output = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(output):
        exec(code, namespace)
    return output.getvalue()


def _check_session(page: Path, block: Block, namespace: dict[str, Any]) -> None:
    session = doctest.DocTestParser().get_doctest(block.code, {}, page.name, str(page), block.line - 1)
    session.globs = namespace
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    report: list[str] = []
    runner.run(session, out=report.append, clear_globs=False)
    if runner.failures:
        raise AssertionError("".join(report))


def _compare(page: Path, block: Block, printed: str) -> None:
    checker = doctest.OutputChecker()
    if not checker.check_output(block.code, printed, OPTIONS):
        raise AssertionError(
            f"{page}:{block.line}: the page says\n{block.code}\nbut the block above it printed\n{printed}"
        )


if __name__ == "__main__":
    # Libraries that a page uses may use what others call deprecated; we and the page may not.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("error", category=DeprecationWarning, module=r"(anabranch\b|__main__$)")
    run(Path(sys.argv[1]))
