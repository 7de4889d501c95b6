"""The rules of the layout: what may include what, where names may stand, and how long files may be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core"
PACKAGE = ROOT / "src" / "anabranch"
FOLDERS = ("core", "src", "tests", "tools", "benchmarks", "examples")

BACKENDS = ("cpu", "cuda", "null")
REGISTRY = CORE / "src" / "registry.cpp"  # the one shared file that names the backends

# Files that one backend has and the others have no use for.
EXTRA_FILES: dict[str, set[str]] = {
    "cpu": {
        f"{stem}.{suffix}"
        for stem in (
            *("pool", "pace", "placement", "task", "task_memory"),  # threads that do the work of a GPU
            "range",  # what a kernel's indices are split into, for those threads
            *("graph", "plan"),  # graphs that run as a whole; null runs them node by node
        )
        for suffix in ("cpp", "hpp")
    }
    | {"explore.cpp"},  # of `stream.hpp`: operations that run one at a time
    "cuda": {
        f"{stem}.{suffix}"
        for stem in (
            *("driver", "primitive"),  # libcuda, and what of it goes into a stream or a graph alike
            *("graph", "graph_builder", "built_graph", "condition"),  # graphs of the driver's
            "event",  # CUevents; the others have none
            *("kernel", "checked", "transfer"),  # device code: loading it, its faults, copies and fills by kernels
            *("operation", "deferred_queue", "poller"),  # what streams hold back, and the thread that hands it on
            *("legacy_order", "stand_in"),  # what blocking streams and per-thread streams have beyond others
        )
        for suffix in ("cpp", "hpp")
    }
    | {
        "holding.cpp",  # of `stream.hpp`: holding work back
        "probes.hpp",  # the events of one stream
        "kept_blocks.hpp",  # freed memory of one stream
        "fault.cpp",  # a context that does not survive
        "allocator.cpp",  # the C functions that other libraries allocate through
    },
    "null": set(),
}

# The package's folders from the lowest to the highest; some modules stand by themselves. Imports go down this list.
ORDER = (
    *("_core", "_task", "_hazards", "_device", "_stream", "_races", "_memory", "_launch", "_graphs", "_trace"),
    *("kernels", "kernels._cpu", "kernels._cuda", "kernels._cpp", "kernels._kernel", "kernels.__init__", "_math"),
    *("interop", "testing", "distributed", "typing", "__init__", "cli", "__main__"),
)

# Imports inside functions that go up the list, by the module and the folder that it reaches, and why.
UPWARD = {
    ("_hazards.ordering", "_races"): "a report names streams and devices; it is loaded at the first race",
    ("_stream.host_threads", "_memory"): "`Stream.submit` takes the arrays that a host function declares to access",
    ("_stream.stream", "interop"): "`Stream.bridge` is a method, and what it opens knows all of a stream",
    ("_graphs.graphed.graphed", "kernels"): "what a function reads from outside is found as that of a kernel is",
    ("_trace.trace", "distributed"): "the type of an argument of `trace.save`; nothing is imported",
    ("_memory.allocator", "interop"): "`set_allocator` takes allocators of libraries that `interop` knows",
}

# Files over 400 lines, and why they are not two.
LONG_FILES: dict[str, str] = {
    "src/anabranch/_memory/array.pyx": "a class of Cython is written in one file, and a base class has no free list",
}


def sources(folder: Path, *suffixes: str) -> list[Path]:
    """Return the files below a folder that have one of the suffixes, links left out."""
    files = (file for suffix in suffixes for file in folder.rglob(f"*{suffix}"))
    return sorted(file for file in files if file.is_relative_to(file.resolve().parent))


def name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


CPP = sources(CORE, ".hpp", ".cpp")
SHARED_CPP = [
    file
    for file in CPP
    if not file.is_relative_to(CORE / "tests") and file.parent.name not in BACKENDS and file != REGISTRY
]
PYTHON = [file for folder in FOLDERS for file in sources(ROOT / folder, ".py", ".pyi", ".pyx", ".pxd")]
MODULES = sources(PACKAGE, ".pyx")


def includes(file: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', file.read_text(), re.MULTILINE)


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def test_headers_of_the_core_are_in_the_folders_of_its_sources() -> None:
    headers = CORE / "include" / "anabranch"
    folders = {folder.name for folder in headers.iterdir() if folder.is_dir()}
    shared = {folder.name for folder in (CORE / "src").iterdir() if folder.is_dir()} - set(BACKENDS)
    assert folders == shared


@pytest.mark.parametrize("file", CPP, ids=name)
def test_core_knows_no_python(file: Path) -> None:
    assert "Python.h" not in includes(file)


@pytest.mark.parametrize("file", [file for file in CPP if not file.is_relative_to(CORE / "tests")], ids=name)
def test_core_has_no_streams_of_text(file: Path) -> None:
    # They set up the locales of the C++ library. Where a compiler links that into ours, the one of another package that
    # is imported later shares what it must not, and crashes: ml_dtypes did, on a machine with g++ 13.
    assert (
        set(includes(file)) & {"fstream", "iomanip", "iostream", "istream", "locale", "ostream", "regex", "sstream"}
        == set()
    )


@pytest.mark.parametrize("file", SHARED_CPP, ids=name)
def test_shared_core_names_no_backend(file: Path) -> None:
    code = without_comments(file.read_text())
    folders = [include for include in includes(file) if set(Path(include).parts) & set(BACKENDS)]
    classes = re.findall(r"\b(?:Cpu|Cuda|Null)[A-Z]\w*|\b(?:cpu|cuda|null)::", code)
    conditions = re.findall(r"^\s*#\s*(?:el)?if.*(?:CPU|CUDA|NULL_).*", code, re.MULTILINE)
    assert folders + classes + conditions == []


def test_backends_have_the_same_files() -> None:
    files = {
        folder: {file.name for file in sources(CORE / "src" / folder, ".hpp", ".cpp")} - EXTRA_FILES[folder]
        for folder in BACKENDS
        if (CORE / "src" / folder).is_dir()
    }
    everywhere = set().union(*files.values())
    missing = {folder: everywhere - present for folder, present in files.items() if everywhere - present}
    assert missing == {}


def test_a_verb_is_in_the_same_file_of_each_backend() -> None:
    places: dict[str, set[str]] = {}
    interface = (CORE / "include" / "anabranch" / "backend.hpp").read_text()
    declared = re.findall(r"^  [^/\n]*?\b(\w+)\(", interface, re.MULTILINE)
    for folder in BACKENDS:
        for file in sources(CORE / "src" / folder, ".cpp"):
            for verb in re.findall(r"^\S[^(\n]*\b(?:Cpu|Cuda|Null)Backend::(\w+)\(", file.read_text(), re.MULTILINE):
                if verb in declared:
                    places.setdefault(verb, set()).add(file.name)
    assert len(places) > 20
    assert {verb: files for verb, files in places.items() if len(files) > 1} == {}


@pytest.mark.parametrize("file", [file for file in CPP if file.is_relative_to(CORE / "src")], ids=name)
def test_private_headers_stay_in_their_folder(file: Path) -> None:
    others = [folder for folder in BACKENDS if file.parent != CORE / "src" / folder]
    foreign = [include for include in includes(file) if set(Path(include).parts) & set(others)]
    assert file == REGISTRY or foreign == []


def test_no_file_is_too_long() -> None:
    lengths = {name(file): len(file.read_text().splitlines()) for file in [*CPP, *PYTHON, *sources(PACKAGE, ".hpp")]}
    assert {file: length for file, length in lengths.items() if length > 800} == {}
    assert {file: length for file, length in lengths.items() if length > 400 and file not in LONG_FILES} == {}


def lines_of_functions(file: Path) -> Iterator[tuple[str, int]]:
    """Yield each function's name and its number of lines, without its docstring and the functions within it."""
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, FUNCTIONS):
                yield node.name, lines_without_inner(node)
    elif file.suffix == ".pyx":
        # Of Cython, by indentation.
        text = re.sub(r'^ *"""[\s\S]*?"""\n', "", file.read_text(), flags=re.MULTILINE)
        for found in re.finditer(
            r"^( *)(?:cdef(?! class)|cpdef|async def|def)\b[^\n]*?(\w+)\((?![^\n]*\bextern\b)", text, re.MULTILINE
        ):
            body = re.match(rf"[^\n]*\n(?:\n|{found[1]}(?: [^\n]*|\)[^\n]*)\n)*", text[found.start() :])
            assert body is not None
            yield found[2], body[0].rstrip().count("\n") + 1


FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def lines_without_inner(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    for inner in ast.walk(node):
        if inner is not node and isinstance(inner, FUNCTIONS):
            assert inner.end_lineno is not None
            lines -= inner.end_lineno - inner.lineno + 1
    if ast.get_docstring(node) is not None:
        docstring = node.body[0]
        assert docstring.end_lineno is not None
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def test_no_function_is_longer_than_a_screen() -> None:
    files = [file for folder in FOLDERS for suffix in ("py", "pyx") for file in (ROOT / folder).rglob(f"*.{suffix}")]
    functions = {
        f"{file.relative_to(ROOT)}:{name}": lines for file in files for name, lines in lines_of_functions(file)
    }
    assert {name: lines for name, lines in functions.items() if lines > 60} == {}


def test_every_extension_module_has_a_stub() -> None:
    assert [name(file) for file in MODULES if not file.with_suffix(".pyi").is_file()] == []


def test_nothing_is_called_utils() -> None:
    assert [name(file) for file in [*CPP, *PYTHON] if "util" in file.stem] == []


def test_nothing_is_left_to_do() -> None:
    mark = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
    assert [name(file) for file in [*CPP, *PYTHON] if mark.search(file.read_text())] == []


def imported(file: Path) -> list[str]:
    """Return the dotted names of the modules that a Python file imports absolutely."""
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return names


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


PACKAGE_FILES = sources(PACKAGE, ".py", ".pyx", ".pxd", ".hpp")  # stubs name types from anywhere
PACKAGE_MODULES = {dotted(file) for file in PACKAGE_FILES}


def module_of(base: str, imported_name: str = "") -> str:
    """Return the module that is meant by a name imported from a folder or a module, both given below the package."""
    for found in (f"{base}.{imported_name}", base):
        for module in (found.strip("."), f"{found}.__init__".strip(".")):
            if module in PACKAGE_MODULES:
                return module
    raise AssertionError(f"nothing is called anabranch.{base}")


def imports_within(file: Path) -> set[tuple[str, bool]]:
    """Return the modules that a file imports, cimports or includes from the package, and whether in a function."""
    text = file.read_text()
    found = {
        (module_of(base.strip("."), imported_name.split()[0]), bool(indent))
        for indent, base, names in re.findall(
            r"^([ \t]*)from anabranch((?:\.\w+)*) c?import (\([^)]*\)|[^\n#]*)", text, re.MULTILINE
        )
        for imported_name in names.strip("()\n ,").split(",")
    }
    for indent, base in re.findall(r"^([ \t]*)c?import anabranch((?:\.\w+)*)", text, re.MULTILINE):
        found.add((module_of(base.strip(".")), bool(indent)))
    for header in re.findall(r'(?:#include|extern from) "anabranch/(_\w+/[\w/]+)\.hpp"', text):
        found.add((module_of(header.replace("/", ".")), False))
    return found


def level(module: str) -> int:
    return max(
        (len(entry), index) for index, entry in enumerate(ORDER) if module == entry or module.startswith(f"{entry}.")
    )[1]


def test_imports_go_down_the_list_of_folders() -> None:
    upward = {
        (dotted(file), ORDER[level(module)], in_function)
        for file in PACKAGE_FILES
        for module, in_function in imports_within(file)
        if level(module) > level(dotted(file))
    }
    assert upward == {(*pair, True) for pair in UPWARD}


def test_private_folders_export_nothing_of_their_modules() -> None:
    # Importing one module of a folder then imports what that needs, and no more.
    folders = [file for file in PACKAGE.rglob("_*/**/__init__.py") if len(ast.parse(file.read_text()).body) > 1]
    assert [name(file) for file in folders] == []


@pytest.mark.parametrize("file", sources(PACKAGE, ".py"), ids=name)
def test_package_uses_no_private_module_of_another(file: Path) -> None:
    private = [
        module
        for module in imported(file)
        if not module.startswith(("anabranch", "__future__")) and re.search(r"(?:^|\.)_", module)
    ]
    assert private == []


@pytest.mark.parametrize("file", [file for file in PYTHON if "tests/contract" in name(file)], ids=name)
def test_contract_tests_use_the_public_names(file: Path) -> None:
    assert [module for module in imported(file) if module.startswith("anabranch._")] == []


def test_contract_tests_are_in_the_folder_of_their_package() -> None:
    flat = {"test_mistakes.py", "test_new.py", "test_other_process.py"}  # of every package
    assert {file.name for file in (ROOT / "tests" / "contract").glob("test_*.py")} == flat


def test_the_bugs_to_be_planted_fit_the_files() -> None:
    command = [sys.executable, ROOT / "tools" / "mutate.py", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
