"""The public names: exported, documented and typed, each in every place or in none."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import anabranch

PACKAGE = Path(__file__).parents[1] / "src" / "anabranch"
PACKAGE_AS_IMPORTED = Path(anabranch.__file__).parent
STUBS = pytest.mark.parametrize("stub", sorted(PACKAGE.rglob("*.pyi")), ids=lambda stub: name_of(stub))


def name_of(stub: Path) -> str:
    """Return the dotted name of the module that a stub describes."""
    return ".".join(("anabranch", *stub.relative_to(PACKAGE).with_suffix("").parts))


def public(names: list[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("_"))


@pytest.mark.parametrize("name", anabranch.__all__)
def test_every_exported_name_exists_and_is_documented(name: str) -> None:
    exported = getattr(anabranch, name)
    if name != "__version__":
        assert inspect.getdoc(exported)


def test_all_names_everything_public() -> None:
    defined = [name for name, value in vars(anabranch).items() if not inspect.ismodule(value)]
    assert set(public(defined)) <= set(anabranch.__all__)
    assert set(anabranch.__all__) <= set(dir(anabranch))


def test_what_few_programs_need_is_not_imported_at_once() -> None:
    ours = ["anabranch._trace.trace", "anabranch.interop", "anabranch.testing", "anabranch.kernels._cpp"]
    others = ["dataclasses", "html", "inspect", "json", "numba", "numpy", "pathlib"]
    if not list(PACKAGE_AS_IMPORTED.glob("_core/core.*.so")):
        pytest.skip("the package is installed for development, and found by hooks")
    # Without what the hooks of an environment import.
    paths = [str(PACKAGE_AS_IMPORTED.parent)]
    code = f"import sys; sys.path += {paths}; import anabranch; print(*(set({ours + others}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    later = f"{code}; anabranch.trace, anabranch.interop; print(*(set({ours}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", later], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["anabranch._trace.trace", "anabranch.interop"]


def test_all_has_no_duplicates() -> None:
    assert len(anabranch.__all__) == len(set(anabranch.__all__))


def definitions(stub: Path) -> dict[str, ast.stmt]:
    """Return the functions, classes and constants that a stub defines, protocols left out: they only exist there."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(stub.read_text()).body:
        match node:
            case ast.ClassDef(name=name, bases=bases) if "Protocol" not in [ast.unparse(base) for base in bases]:
                found[name] = node
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
    return found


def exported_from(module: str) -> list[str]:
    """Return the names that the package's ``__init__`` takes from one of its modules."""
    nodes = ast.parse((PACKAGE / "__init__.py").read_text()).body
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == module]
    return [alias.name for node in imports for alias in node.names]


@STUBS
def test_stub_has_what_the_package_exports(stub: Path) -> None:
    names = [name for name in exported_from(name_of(stub)) if name in anabranch.__all__]
    assert set(names) - set(definitions(stub)) == set()


@STUBS
def test_module_has_what_its_stub_says(stub: Path) -> None:
    module = import_module(name_of(stub))
    missing = [
        name
        for name, node in definitions(stub).items()
        if not hasattr(module, name) and "TypeAlias" not in ast.unparse(node)
    ]
    assert missing == []


@STUBS
def test_stub_and_module_define_the_same_members(stub: Path) -> None:
    module = import_module(name_of(stub))
    for name, node in definitions(stub).items():
        if isinstance(node, ast.ClassDef) and name in anabranch.__all__:
            functions = [member.name for member in node.body if isinstance(member, ast.FunctionDef)]
            variables = [ast.unparse(member.target) for member in node.body if isinstance(member, ast.AnnAssign)]
            defined = getattr(module, name)
            members = [member for member in dir(defined) if hasattr(defined, member)]
            assert sorted(set(public(functions + variables))) == public(members)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sum", "'; arrays have it: x.sum"),
        ("exp", "'; in a kernel, np.exp takes elements"),
        ("dot", "'; write (x * y).sum() for vectors; for matrices, lend it to a library, as by torch.from_dlpack(x)"),
        ("vecdot", "'vecdot'"),
        ("float32", "'; dtypes are NumPy's, np.float32, or their names"),
        ("device", "'; it is ab.Device"),
        ("tensor", "'; ab.array copies data, ab.asarray takes memory as it is"),
        ("clip", "'; write a function of an element with @ab.kernel, or ab.where(x < low, low, x)"),
        ("sort", "'; write np.sort(x.numpy()), or lend it to a library, as by torch.from_dlpack(x)"),
        ("vstack", "'; make an array for all, and assign to its parts"),
        ("eye", "'; write ab.array(np.eye(n))"),
        ("newaxis", "'; write None, as in x[:, None]"),
        ("split", "'; write slices, as in x[:n], x[n:]"),
        ("ones_like", "'; write ab.full_like(x, 1)"),
        ("nothing", "'nothing'"),
        ("_sum", "'_sum'"),
    ],
)
def test_a_name_of_other_libraries_is_told_what_stands_for_it(name, said):
    with pytest.raises(AttributeError, match=f"{re.escape(said)}$"):
        getattr(anabranch, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("init_process_group", "'; write comm = ab.distributed.init()"),
        ("get_rank", "write comm.rank"),
        ("get_world_size", "write comm.size"),
        ("barrier", "write comm.barrier(...)"),
        ("all_gather_into_tensor", "write comm.all_gather(out, x)"),
        (
            "Gatherv",
            "write comm.gather(out, x); parts are of equal size: pad them, or send and receive in a comm.group()",
        ),
        ("Ibarrier", "write comm.barrier(), which returns at once"),
        ("Scan", "gather with comm.all_gather(out, x), and add up the parts of the ranks before"),
        ("monitored_barrier", "its stream fails where ranks are late, and the error names them"),
        ("MPI", "mpi4py itself is there beside it, as mpi4py.MPI"),
        ("SUM", '\'; reductions are "sum", "prod", "min", "max" and "avg"'),
        ("ANY_SOURCE", "names one rank, whose messages arrive in the order in which they were sent"),
        ("Work", "what uses an array later waits by itself, and stream.synchronize() holds the host"),
        ("init_device_mesh", "'; write comm.split(color) for each row and each column of the ranks"),
        ("nothing", "'nothing'"),
        ("_rank", "'_rank'"),
    ],
)
def test_a_name_of_other_libraries_for_processes_is_told_what_stands_for_it(name, said):
    with pytest.raises(AttributeError, match=f"{re.escape(said)}$"):
        getattr(anabranch.distributed, name)


def test_types_for_annotations_are_those_of_the_objects() -> None:
    types = import_module("anabranch.typing")
    assert all(getattr(types, name) for name in types.__all__)
    with anabranch.Device("cpu"):
        made = anabranch.zeros(3)
        assert type(made.host()) is types.HostView
        with anabranch.capture() as graph:
            anabranch.fill(made, 1)
        assert {type(node) for node in graph.nodes} == {types.Node}
        assert type(anabranch.Stream().submit(len, "")) is types.StreamFuture


def test_importing_brings_in_neither_numpy_nor_numba() -> None:
    names = ("numpy", "numba", "asyncio", "argparse")
    code = f"import sys, anabranch; print([name for name in {names} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
