"""Sphinx's settings, and the signatures of what is written in Cython, which stand in the stubs."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

from sphinx import addnodes
from sphinx.application import Sphinx

import anabranch

sys.path.insert(0, str(Path(__file__).parent))
from results import fill_in

project = "Anabranch"
author = "The Anabranch developers"
language = "en"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

# Single backticks in docstrings name objects.
default_role = "py:obj"
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = "Anabranch"
html_copy_source = False
html_show_copyright = False

PACKAGE = Path(anabranch.__file__).parent


class PrivateNames(ast.NodeTransformer):
    """Writes out the private names that a stub has for types."""

    def __init__(self, stub: ast.Module) -> None:
        pairs = [(node.target, node.value) for node in stub.body if isinstance(node, ast.AnnAssign)]
        pairs += [(node.targets[0], node.value) for node in stub.body if isinstance(node, ast.Assign)]
        self.meanings = {
            target.id: value
            for target, value in pairs
            if isinstance(target, ast.Name) and target.id.startswith("_") and isinstance(value, ast.BinOp)
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a private name by what it stands for."""
        return self.meanings.get(node.id, node)


def decorated(node: ast.FunctionDef, decorator: str) -> bool:
    """Return whether a function or method has a decorator."""
    return any(ast.unparse(each) == decorator for each in node.decorator_list)


TYPES: dict[str, str] = {}  # of properties


def read_stubs() -> dict[str, str]:
    """Return the signatures of public functions, classes and methods, by their name below the package.

    None for overloads: what the function itself says is all of them in one.
    """
    signatures: dict[str, str] = {}
    for file in PACKAGE.rglob("*.pyi"):
        stub = ast.parse(file.read_text())
        stub = PrivateNames(stub).visit(stub)
        for node in stub.body:
            if isinstance(node, ast.FunctionDef) and not decorated(node, "overload"):
                signatures[node.name] = signature(node, bound=False)
            elif isinstance(node, ast.ClassDef):
                for member in node.body:
                    if isinstance(member, ast.FunctionDef) and not decorated(member, "overload"):
                        bound = not decorated(member, "staticmethod")
                        if decorated(member, "property") and member.returns is not None:
                            TYPES[f"{node.name}.{member.name}"] = ast.unparse(member.returns)
                        signatures[f"{node.name}.{member.name}"] = signature(member, bound=bound)
    return signatures


def signature(node: ast.FunctionDef, *, bound: bool) -> str:
    """Return the parameters and the result, as Sphinx wants them; a method's without ``self``."""
    if bound:
        positional = node.args.posonlyargs or node.args.args
        positional.pop(0)
    result = "" if node.returns is None or node.name in ("__init__", "__new__") else f" -> {ast.unparse(node.returns)}"
    return f"({ast.unparse(node.args)}){result}"


STUBS = read_stubs()


def take_from_stub(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, given: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """Give Sphinx the signature that the stub has of a function or method, annotations included; else its own."""
    if not given:
        return None
    found = STUBS.get(name.removeprefix("anabranch.").removeprefix("testing."))
    return (found, None) if found else (given.replace("(self, ", "("), returned)


def add_type(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Put the type of a property behind its name: extension types do not know it."""
    signature = content.parent[0]
    found = TYPES.get(signature.get("fullname", "").removeprefix("testing."))
    if kind in ("attribute", "property") and found:
        signature += addnodes.desc_annotation("", f": {found}")


def add_constructors(app: Sphinx, page: str, source: list[str]) -> None:
    """Give each class on a page its parameters: Sphinx finds none in an extension type."""

    def with_parameters(entry: re.Match[str]) -> str:
        name = entry["name"].removeprefix("testing.")
        return entry[0] + STUBS.get(f"{name}.__init__", STUBS.get(f"{name}.__new__", ""))

    source[0] = re.sub(
        r"^\.\. autoclass:: anabranch\.(?P<name>[\w.]+)$", with_parameters, source[0], flags=re.MULTILINE
    )


def add_results(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the benchmarks' tables into the page that shows them."""
    if page == "measured":
        source[0] = fill_in(source[0])


def setup(app: Sphinx) -> None:
    """Connect the signatures and the tables."""
    app.connect("autodoc-process-signature", take_from_stub)
    app.connect("object-description-transform", add_type)
    app.connect("source-read", add_constructors)
    app.connect("source-read", add_results)
