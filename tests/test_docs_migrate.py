"""The tables for those who come from another library: what they name of ours exists, and the page runs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab

from .documentation import blocks, rows

FOLDER = Path(__file__).parents[1] / "docs" / "migrate"
VARIABLES = (FOLDER.parent / "reference" / "environment.md").read_text()
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem != "index")

# What the names in the tables stand for; the pages say so, too.
ROOTS: dict[str, Any] = {
    "ab": ab,
    **dict.fromkeys(("s", "other"), ab.Stream),
    **dict.fromkeys(("e", "end"), ab.Event),
    **dict.fromkeys(("a", "b", "p"), ab.Array),
    "g": ab.Graph,
    "comm": ab.distributed.Communicator,
    "device": ab.Device,
}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def calls(page: Path) -> Iterator[tuple[int, str]]:
    """Yield what the tables show as ours, with its line."""
    for row in rows(page):
        for code in re.findall(r"`([^`]+)`", row.cells.get("ours", "")):
            yield row.line, code


def parse(code: str) -> ast.AST:
    """Parse an expression, the head of a `with`, or a decorator."""
    whole = f"{code} pass" if code.startswith("with ") else f"{code}\ndef f(): pass" if code[0] == "@" else code
    return compile(whole, code, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def names(tree: ast.AST) -> set[str]:
    """Return the attributes and keywords that code uses."""
    nodes = list(ast.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {f"{node.arg}=" for node in nodes if isinstance(node, ast.keyword) and node.arg}


def unknown(tree: ast.AST) -> list[str]:
    """Return the dotted names that lead nowhere."""
    chains = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [chain for chain in chains if re.fullmatch(r"[\w.]+", chain) and not leads_somewhere(chain)]


def leads_somewhere(chain: str) -> bool:
    root, *attributes = chain.split(".")
    found = ROOTS.get(root)
    for name in attributes:
        found = getattr(found, name, None)
    return found is not None


@each_page
def test_what_a_table_names_exists(page: Path) -> None:
    found = [(line, code) for line, code in calls(page) if not re.match(r"[A-Z_]+=", code)]
    assert len(found) > 20
    assert [(line, name) for line, code in found for name in unknown(parse(code))] == []


@each_page
def test_the_page_runs_what_its_tables_name(page: Path) -> None:
    program = ast.parse("".join(block.code for block in blocks(page) if block.language == "python"))
    run = names(program)
    shown = [(line, code) for line, code in calls(page) if not re.match(r"[A-Z_]+=", code)]
    assert [(line, name) for line, code in shown for name in sorted(names(parse(code)) - run)] == []


@each_page
def test_variables_of_the_environment_in_tables_are_ours(page: Path) -> None:
    variables = [(line, code.split("=")[0]) for line, code in calls(page) if re.match(r"[A-Z_]+=", code)]
    assert [(line, name) for line, name in variables if f"`{name}`" not in VARIABLES] == []


@each_page
def test_every_table_tells_theirs_ours_and_what_differs(page: Path) -> None:
    for row in rows(page):
        headings = list(row.cells)
        assert headings[1:] == ["ours", ""], f"line {row.line}"


def test_the_index_lists_every_page() -> None:
    index = (FOLDER / "index.md").read_text()
    assert [page.stem for page in PAGES if f"({page.name})" not in index] == []
