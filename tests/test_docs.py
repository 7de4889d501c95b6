"""The documentation is true: its code runs, what it names exists, and what exists is named.

Runs the code of README.md and of every page in docs/, and the examples in the package's docstrings.
"""

from __future__ import annotations

import doctest
import inspect
import os
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import anabranch

from .documentation import OPTIONS, blocks
from .prepared import Prepared

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "anabranch"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = {"python", "pycon"}
READ = {"console", "sh", "text"}  # not run: what to type in a shell, and output
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))

# What is compiled: kernels, and those behind operators and reductions.
NEEDS_KERNELS = re.compile(r"ab\.(kernel|arange|linspace|where)\b|\.(sum|mean|min|max)\(")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def stated_environment(page: Path) -> dict[str, str]:
    """Return what comments such as ``<!-- environment: NAME=value -->`` set for a page."""
    return dict(re.findall(r"^<!-- environment: (\w+)=(.*?) -->$", page.read_text(), re.MULTILINE))


def environment(page: Path, kind: str) -> dict[str, str]:
    """Return a user's environment in which devices of a kind come first, with what the page states."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("ANABRANCH_", "CUDA_PYTHON_"))}
    return ours | {"ANABRANCH_DEVICE": kind} | stated_environment(page)


def pages_that_run() -> Iterator[Any]:
    """Yield each page that has code, with every kind of device that there is unless the page states one."""
    kinds = list(dict.fromkeys(device.kind for device in anabranch.devices()))
    no_compiler, no_mpi, no_dask = (find_spec(each) is None for each in ("numba_cuda_mlir", "mpi4py", "distributed"))
    for page in PAGES:
        code = "".join(block.code for block in blocks(page) if block.language in RUN)
        if code:
            marks = [pytest.mark.numba] if NEEDS_KERNELS.search(code) else []
            name = page.relative_to(ROOT).as_posix()
            for kind in ["cpu"] if "ANABRANCH_DEVICE" in stated_environment(page) else kinds:
                lacks = kind == "cuda" and "ab.kernel" in code and no_compiler
                skip = pytest.mark.skipif(lacks, reason="numba-cuda-mlir is not installed")
                alone = pytest.mark.skipif("distributed.init" in code and no_mpi, reason="mpi4py is not installed")
                no_workers = "from distributed import" in code and no_dask
                farmed = pytest.mark.skipif(no_workers, reason="Dask's distributed is not installed")
                yield pytest.param(page, kind, marks=[*marks, skip, alone, farmed], id=f"{name}-{kind}")


@pytest.mark.parametrize(("page", "kind"), list(pages_that_run()))
def test_the_code_of_a_page_runs(page: Path, kind: str, prepared: Prepared, tmp_path: Path) -> None:
    program = Path(__file__).with_name("documentation.py")
    done = prepared.run(program, page, env=environment(page, kind), cwd=tmp_path, timeout=50)
    assert done.stderr == "", done.stderr
    assert done.returncode == 0


@each_page
def test_every_block_says_what_it_is(page: Path) -> None:
    unknown = [
        block for block in blocks(page) if block.language not in RUN | READ and not block.language.startswith("{")
    ]
    assert unknown == []
    # A directive that shows code would not be run, unless it shows a program that test_examples.py runs.
    shown = [
        block.language for block in blocks(page) if re.match(r"\{(code|sourcecode|literalinclude)", block.language)
    ]
    assert [each for each in shown if not re.fullmatch(r"\{literalinclude\} \S*/examples/\w+\.py", each)] == []


@each_page
def test_every_make_target_named_exists(page: Path) -> None:
    targets = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shell = "\n".join(block.code for block in blocks(page) if block.language in {"console", "sh"})
    named = re.findall(r"^(?:\$ )?make ([\w-]+)", shell, re.MULTILINE)
    named += re.findall(r"`make ([\w-]+)`", page.read_text())
    assert set(named) - set(targets) == set()


@each_page
def test_every_link_to_a_file_leads_there(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", page.read_text())  # kernel[grid, block](x) is no link
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


# The reference


def documented() -> list[str]:
    """Return the names that the reference has entries for."""
    text = "\n".join(page.read_text() for page in REFERENCE)
    return re.findall(r"^\.\. (?:auto\w+|py:\w+):: anabranch\.([\w.]+)", text, re.MULTILINE)


def test_the_reference_has_every_public_name() -> None:
    names = {name for name in anabranch.__all__ if not inspect.ismodule(getattr(anabranch, name))} - {"__version__"}
    for module in ("distributed", "interop", "testing"):
        names |= {f"{module}.{name}" for name in getattr(anabranch, module).__all__}
    assert set(documented()) == names


def test_the_reference_has_no_name_twice() -> None:
    assert sorted(documented()) == sorted(set(documented()))


def test_the_reference_tells_every_variable_that_is_read() -> None:
    sources = [
        file
        for folder in (PACKAGE, ROOT / "core" / "src", ROOT / "core" / "include")
        for suffix in ("py", "pyx", "cpp", "hpp")
        for file in folder.rglob(f"*.{suffix}")
        if "_examples" not in file.parts
    ]
    read = {name for file in sources for name in re.findall(r'"((?:ANABRANCH|CUDA_PYTHON)_[A-Z_]+)"', file.read_text())}
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    assert read - set(re.findall(r"`([A-Z_]+)`", page)) == set()


# Docstrings


def examples_in(file: Path) -> int:
    return len(re.findall(r"^\s*>>> ", file.read_text(), re.MULTILINE))


MODULES = [
    file
    for suffix in ("py", "pyx")
    for file in sorted(PACKAGE.rglob(f"*.{suffix}"))
    if "_examples" not in file.relative_to(PACKAGE).parts and examples_in(file)
]


def docstrings(module: Any) -> Iterator[tuple[str, str]]:
    """Yield names and docstrings of what a module defines; doctest's own finder leaves out Cython's."""
    yield module.__name__, module.__doc__ or ""
    named = [(name, value) for name, value in vars(module).items() if hasattr(value, "__name__")]
    waiting = [(name, value) for name, value in named if getattr(value, "__module__", None) == module.__name__]
    while waiting:
        name, value = waiting.pop()
        yield f"{module.__name__}.{name}", inspect.getdoc(value) or ""
        if inspect.isclass(value):
            members = [(f"{name}.{key}", member) for key, member in vars(value).items()]
            waiting += [(key, member) for key, member in members if hasattr(member, "__get__")]


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_the_examples_of_a_module_are_true(file: Path) -> None:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    if parts[0] == "distributed" and find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    module = import_module(".".join(["anabranch", *(part for part in parts if part != "__init__")]))
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    report: list[str] = []
    for name, text in docstrings(module):
        session = doctest.DocTestParser().get_doctest(text, dict(vars(module)), name, str(file), 0)
        with anabranch.Device("cpu"):  # which the examples show where they name no device
            runner.run(session, out=report.append)
    assert "".join(report) == ""
    assert runner.tries == examples_in(file), "an example stands where no docstring is, or one that was not found"
