"""What the sdist holds. `make wheels` builds from it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.source
pytest.importorskip("scikit_build_core", reason="scikit-build-core, which builds the package, is not installed")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The archive, open, and the names of its files below the one folder that it has."""
    folder = tmp_path_factory.mktemp("sdist")
    code = f"from scikit_build_core.build import build_sdist; build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    (path,) = folder.glob("anabranch-*.tar.gz")
    with tarfile.open(path) as archive:
        yield archive, {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}


def test_it_has_all_that_a_build_reads(sdist):
    _, names = sdist
    suffixes = {".cpp", ".hpp", ".cu", ".cuh", ".map", ".pyx", ".pxd", ".pyi", ".py", ".js", ".css", ".html"}
    files = [file for folder in ("core", "src", "examples") for file in (ROOT / folder).rglob("*")]
    wanted = {"LICENSE", "README.md", "pyproject.toml", "src/anabranch/py.typed"}
    wanted |= {str(file.relative_to(ROOT)) for file in files if file.suffix in suffixes}
    wanted |= {str(file.relative_to(ROOT)) for file in files if file.name == "CMakeLists.txt"}
    assert wanted - names == set()


def test_it_has_nothing_that_was_built(sdist):
    _, names = sdist
    assert [name for name in names if name.endswith((".so", ".o", ".pyc", ".whl"))] == []
    assert {PurePosixPath(name).parts[0] for name in names} & {"build", "dist", ".venv", ".ci"} == set()


def test_its_metadata_are_those_of_the_package(sdist):
    archive, _ = sdist
    (member,) = (member for member in archive.getmembers() if PurePosixPath(member.name).parts[1:] == ("PKG-INFO",))
    metadata = Parser().parsestr(archive.extractfile(member).read().decode())
    assert metadata["Requires-Python"] == ">=3.11"
    assert {"kernels", "cu12", "cu13", "trace"} <= set(metadata.get_all("Provides-Extra"))
    always = [needed for needed in metadata.get_all("Requires-Dist") if "extra ==" not in needed]
    assert [needed.partition(">")[0] for needed in always] == ["numpy"]
