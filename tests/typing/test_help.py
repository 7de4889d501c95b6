"""What `help`, `inspect.signature` and an editor's completion say of the public names."""

from __future__ import annotations

import ast
import inspect
import pydoc
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import anabranch as ab

SOURCES = Path(__file__).parents[2] / "src"

PUBLIC = {
    **{name: getattr(ab, name) for name in ab.__all__ if callable(getattr(ab, name))},
    **{
        f"{module}.{name}": getattr(getattr(ab, module), name)
        for module in ("distributed", "interop", "testing")
        for name in getattr(ab, module).__all__
    },
}
CLASSES = {name: value for name, value in PUBLIC.items() if isinstance(value, type)}
METHODS = {
    f"{name}.{member}": getattr(value, member)
    for name, value in CLASSES.items()
    if not issubclass(value, Exception)
    for member in dir(value)
    if not member.startswith("_") and callable(getattr(value, member, None))
}

# What nobody calls: objects of some classes come from functions, exceptions take what every exception takes, and the
# annotations of kernels are subscripted.
NOT_CALLED = {name for name, value in CLASSES.items() if value in (ab.Array, ab.Graph) or issubclass(value, Exception)}
NOT_CALLED |= {
    "In",
    "InOut",
    "Out",
    "distributed.Communicator",
    "distributed.Group",
    "interop.Bridge",
    "interop.Bridged",
}


@cache
def stub(module: str) -> dict[str, list[ast.FunctionDef]]:
    """Return the overloads of a stub's functions, methods and constructors, which have the name of their class."""
    file = SOURCES / f"{module.replace('.', '/')}.pyi"
    found: dict[str, list[ast.FunctionDef]] = defaultdict(list)
    for node in ast.parse(file.read_text()).body if file.exists() else []:
        match node:
            case ast.FunctionDef(name=name):
                found[name].append(node)
            case ast.ClassDef(name=name, body=body):
                for member in body:
                    if isinstance(member, ast.FunctionDef):
                        found[name if member.name == "__init__" else f"{name}.{member.name}"].append(member)
    return found


def parameters(node: ast.FunctionDef) -> list[str]:
    """Return the parameters that a stub declares, without ``self``."""
    spec = node.args
    plain = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
    rest = [spec.vararg, *spec.kwonlyargs, spec.kwarg]
    return [name for name in plain if name != "self"] + [argument.arg for argument in rest if argument]


@pytest.mark.parametrize("name", sorted({*PUBLIC, *METHODS} - NOT_CALLED))
def test_signature_is_the_stub_s(name):
    value = PUBLIC.get(name, METHODS.get(name))
    signature = inspect.signature(value)
    declared = stub(value.__module__ if name in PUBLIC else PUBLIC[name.rpartition(".")[0]].__module__)
    short = name.removeprefix("distributed.").removeprefix("interop.").removeprefix("testing.")
    if short in declared:
        given = [parameter for parameter in signature.parameters if parameter != "self"]
        assert given in [parameters(overload) for overload in declared[short]]


@pytest.mark.parametrize("name", sorted({*PUBLIC, *METHODS}))
def test_help_begins_with_a_sentence(name):
    value = PUBLIC.get(name, METHODS.get(name))
    text = inspect.getdoc(value)
    assert text
    assert text[0].isupper()
    assert text.partition("\n")[0] in pydoc.render_doc(value, renderer=pydoc.plaintext)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, value in sorted(PUBLIC.items())
        if not isinstance(value, type) and {"device", "stream"} & inspect.signature(value).parameters.keys()
    ],
)
def test_functions_of_a_device_or_a_stream_name_their_errors(name):
    assert "\nRaises\n------\n" in inspect.getdoc(PUBLIC[name])


@pytest.fixture(scope="module")
def completion():
    """What completes a program that has imported the package, from its sources and stubs alone."""
    jedi = pytest.importorskip("jedi", reason="jedi is not installed")
    project = jedi.Project(SOURCES, added_sys_path=[str(SOURCES)])
    # Not the environment of the tests, which finds the package by the hook of an editable install.
    environment = jedi.create_environment(sys._base_executable, safe=False)
    return lambda code: jedi.Script(f"import anabranch as ab\n{code}", project=project, environment=environment)


def test_editors_complete_every_name(completion):
    assert set(ab.__all__) <= {found.name for found in completion("ab.").complete()}
    for module in ("distributed", "interop", "testing"):
        names = {found.name for found in completion(f"ab.{module}.").complete()}
        assert set(getattr(ab, module).__all__) <= names


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - NOT_CALLED))
def test_editors_show_signatures(completion, name):
    shown = [
        [parameter.name for parameter in overload.params if parameter.name != "self"]
        for overload in completion(f"ab.{name}(").get_signatures()
    ]
    assert [parameter for parameter in inspect.signature(PUBLIC[name]).parameters if parameter != "self"] in shown


@pytest.mark.parametrize("name", sorted(METHODS))
def test_editors_complete_methods(completion, name):
    owner, _, member = name.rpartition(".")
    assert [found.name for found in completion(f"ab.{owner}.{member}").complete() if found.name == member]
