"""The program that runs Cython makes what the command `cython` makes, and only what has changed."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "transpile.py"
FILES = {
    "plain.pxd": "cdef int plus_one(int x) except -1\n",
    "plain.pyx": "cdef int plus_one(int x) except -1:\n    return x + 1\n",
    # A function in declarations, which is compiled into each module that needs them, and calls that of another.
    "inline.pxd": "from package.plain cimport plus_one\ncdef inline int plus_two(int x) except -1:\n"
    "    return plus_one(x) + 1\n",
    "inline.pyx": "def call(x):\n    return plus_two(x)\n",
    "text.pxd": 'cdef extern from *:\n    """\n    static int three() { return 3; }\n    """\n    int three()\n',
    "sub/user.pyx": "from package.text cimport three\nfrom package.inline cimport plus_two\n"
    "def call():\n    return plus_two(three())\n",
    # What others have read must not come to be in it.
    "sub/other.pyx": "from package.plain cimport plus_one\nfrom libcpp.vector cimport vector\n"
    "def count():\n    cdef vector[int] numbers\n    return numbers.size()\n",
}
MODULES = ["plain", "inline", "sub/other", "sub/user"]

pytestmark = [
    pytest.mark.source,
    pytest.mark.skipif(importlib.util.find_spec("Cython") is None, reason="needs Cython"),
]


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for each in (folder, folder / "sub"):
        (each / "__init__.py").touch()
    return folder


def transpile(package):
    command = [sys.executable, str(TOOL), str(package.parent), "package", str(package.parent / "out")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def made(package, module):
    return package.parent / "out" / f"{module}.cxx"


def lines(text):
    """Return the lines in any order, without the numbers of files and of temporary variables, which depend on it."""
    return sorted(re.sub(r"PYX_ERR\(\d+|__pyx_t_\d+", "", line) for line in text.splitlines() if ".pxd" not in line)


def test_it_makes_what_cython_makes(package, tmp_path):
    done = transpile(package)
    assert done.returncode == 0, done.stderr
    directives = ["freethreading_compatible=True", "boundscheck=False", "wraparound=False", "binding=True"]
    command = [sys.executable, "-m", "cython", "-3", "--cplus", "-X", ",".join(directives), "-I", "."]
    # One process for all of them, in which Cython begins anew with each.
    subprocess.run([*command, *(f"package/{module}.pyx" for module in MODULES)], cwd=tmp_path, check=True)
    for module in MODULES:
        theirs = package / f"{module}.cpp"
        assert lines(made(package, module).read_text()) == lines(theirs.read_text()), module


def test_it_makes_what_has_changed(package):
    assert transpile(package).returncode == 0
    before = {module: made(package, module).stat().st_mtime_ns for module in MODULES}
    newest = max(before.values()) / 1e9
    os.utime(package / "text.pxd", (newest + 1, newest + 1))
    assert transpile(package).returncode == 0
    assert [module for module in MODULES if made(package, module).stat().st_mtime_ns != before[module]] == ["sub/user"]


def test_errors_are_told_and_what_has_none_is_made(package):
    (package / "sub" / "user.pyx").write_text("cdef int x = unknown\n")
    done = transpile(package)
    assert done.returncode == 1
    assert "package/sub/user.pyx:1:13: undeclared name not builtin: unknown" in done.stderr
    assert made(package, "plain").exists()
    assert not list(made(package, "sub/user").parent.glob("user*"))
    again = transpile(package)
    assert again.returncode == 1
    assert "undeclared name" in again.stderr


def test_errors_in_declarations_are_told(package):
    (package / "plain.pxd").write_text("cdef int plus_one(unknown x) except -1\n")
    done = transpile(package)
    assert done.returncode == 1
    assert "package/plain.pxd:1:18: 'unknown' is not a type identifier" in done.stderr
