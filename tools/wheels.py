"""Build the sdist and, from it, a wheel for each Python; check the wheels, and try each in an environment of its own.

    python tools/wheels.py [PYTHON...]      # `make wheels`; without any, those of PYTHONS that are on PATH

Everything goes into dist/. Wheels are linked for manylinux_2_28 (`core/manylinux` says how) and audited for it. The
first of them is built twice, in different folders, and the two must be the same. Each is tried in an environment of its
own, into which packages come as wheels alone, with no compiler on PATH; the first one with `--extras` too.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name
from sbom import bill

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / "tests" / "wheel" / "smoke.py"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14", "python3.13t", "python3.14t")
PLATFORM = "manylinux_2_28_x86_64"
MOST_BYTES = 4 * 1024 * 1024
# With these extras, what the smoke test is told: of which CUDA the compilers for GPUs are to be.
MAJORS = {"cu12": ["12"], "cu13": ["13"]}


class WheelError(Exception):
    """What a wheel is not, or cannot do."""


class Interpreter(NamedTuple):
    """A Python to build for: its path, its version, and its name in the names of wheels."""

    path: str
    version: str
    tag: str


def run(*command: str | Path, **options: object) -> str:
    """Run a command, and return what it prints. What it says where it fails is shown."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    if done.returncode != 0:
        raise WheelError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def interpreters(names: list[str]) -> Iterator[Interpreter]:
    """Find the Pythons of these names or paths, and say which there are not."""
    code = "import sys, sysconfig as s; print(sys.version.split()[0], s.get_config_var('SOABI').split('-')[1])"
    for name in names:
        try:
            version, abi = run(name, "-c", code).split()
        except (OSError, WheelError):
            print(f"missing: {name}")
        else:
            yield Interpreter(name, version, f"cp{abi}")


@contextmanager
def folder(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"anabranch-{name}-") as path:
        yield Path(path)


def environment(python: Interpreter, place: Path) -> Path:
    """Make a virtual environment with a current pip, and return its interpreter."""
    run(python.path, "-m", "venv", place)
    run(place / "bin" / "python", "-m", "pip", "install", "-q", "--upgrade", "pip>=25.1")
    return place / "bin" / "python"


def build_sdist(out: Path, epoch: int) -> Path:
    variables = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
    run(sys.executable, "-m", "build", "--sdist", "--outdir", out, ROOT, env=variables)
    (sdist,) = out.glob("anabranch-*.tar.gz")
    return sdist


def parts(python: Path, version: str) -> dict[str, str]:
    """Return the versions of what a build in this environment puts together."""
    packages = json.loads(run(python, "-m", "pip", "list", "--format", "json"))
    compiler = run(os.environ.get("CXX", "g++"), "-dumpfullversion").strip()
    return {canonicalize_name(package["name"]): package["version"] for package in packages} | {
        "cpython": version,
        "g++": compiler,
        "libstdc++": compiler,
    }


def build(python: Interpreter, sdist: Path, place: Path, epoch: int) -> Path:
    """Build a wheel from the sdist, audited, all of it below a folder; return its path."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    source = place / sdist.name.removesuffix(".tar.gz")
    builder = environment(python, place / "environment")
    groups = [f"--group={source}/pyproject.toml:{group}" for group in ("build", "wheel")]
    run(builder, "-m", "pip", "install", "-q", "--only-binary", ":all:", *groups)
    version = sdist.name.removeprefix("anabranch-").removesuffix(".tar.gz")
    sbom = place / "anabranch.cdx.json"
    sbom.write_text(bill(version, parts(builder, python.version), epoch))
    variables = os.environ | {
        "PATH": f"{builder.parent}:{os.environ['PATH']}",
        "SOURCE_DATE_EPOCH": str(epoch),
        "CXXFLAGS": f"-ffile-prefix-map={place}=.",
    }
    settings = {
        "build-dir": place / "build",
        "wheel.reproducible": "true",
        "cmake.define.ANABRANCH_MANYLINUX": "ON",
        # Else there is room in each library for the path that it had in the build's folder.
        "cmake.define.CMAKE_BUILD_WITH_INSTALL_RPATH": "ON",
        "cmake.define.ANABRANCH_SBOM": sbom,
    }
    options = [option for name, value in settings.items() for option in ("-C", f"{name}={value}")]
    command = [builder, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", place / "linked"]
    run(*command, *options, source, env=variables)
    (linked,) = (place / "linked").glob("*.whl")
    documented = add_documentation(builder, linked, place, variables)
    run("auditwheel", "repair", "--plat", PLATFORM, "-w", place / "audited", documented, env=variables)
    (wheel,) = (place / "audited").glob("*.whl")
    return wheel


def add_documentation(python: Path, wheel: Path, place: Path, variables: dict[str, str]) -> Path:
    """Copy the docstrings of extension modules into their stubs: editors read nothing else. Return the new wheel."""
    run(python, "-m", "wheel", "unpack", "-d", place / "unpacked", wheel)
    (unpacked,) = (place / "unpacked").iterdir()
    options = {"env": variables | {"PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"}}
    run(python, "-m", "docify", "-q", "--if-needed", "--in-place", unpacked / "anabranch", **options)
    (place / "documented").mkdir()
    run(python, "-m", "wheel", "pack", "-d", place / "documented", unpacked, env=variables)
    (documented,) = (place / "documented").glob("*.whl")
    return documented


def check(wheel: Path, place: Path) -> None:
    """Check what is in a wheel that was built below a folder.

    Raises
    ------
    WheelError
        If it is too large, or holds what does not belong there, or lacks what does.
    """
    if wheel.stat().st_size >= MOST_BYTES:
        raise WheelError(f"{wheel.name} has {wheel.stat().st_size} bytes; {MOST_BYTES} are too many")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        libraries = [name for name in names if re.search(r"\.so\b", name)]
        ours = re.compile(r"anabranch/(libanabranch|\w+/(\w+/)*\w+\.cpython-.*)\.so")
        foreign = [name for name in libraries if not ours.fullmatch(name)]
        sources = [name for name in names if name.endswith((".pyx", ".pxd", ".hpp", ".cpp"))]
        if foreign or sources:
            raise WheelError(f"{wheel.name} holds {', '.join(foreign + sources)}")
        modules = {name.partition(".")[0] for name in libraries} - {"anabranch/libanabranch"}
        wanted = {f"{module}.pyi" for module in modules} | {"anabranch/py.typed"}
        boms = [name for name in names if re.search(r"\.dist-info/sboms/[^/]+\.cdx\.json$", name)]
        if not modules or wanted - set(names) or not boms:
            raise WheelError(f"{wheel.name} lacks {', '.join(sorted(wanted - set(names))) or 'modules, or a bill'}")
        leaks = [name for name in names if str(place).encode() in archive.read(name)]
        if leaks:
            raise WheelError(f"{', '.join(leaks)} of {wheel.name} name the folder of the build")


def try_out(python: Interpreter, wheel: Path, extras: str, arguments: list[str]) -> str:
    """Install a wheel where there is no compiler, and run the smoke test there; return its last line."""
    with folder("try") as place:
        interpreter = environment(python, place / "environment")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_"))}
        variables |= {"PATH": str(interpreter.parent), "ANABRANCH_CPU_DEVICES": "2"}
        options = {"cwd": place, "env": variables}
        what = f"{wheel}[{extras}]" if extras else str(wheel)
        run(interpreter, "-m", "pip", "install", "-q", "--no-compile", "--only-binary", ":all:", what, **options)
        run(interpreter, "-m", "pip", "check", **options)
        return run(interpreter, "-I", shutil.copy(SMOKE, place), *arguments, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="*", default=PYTHONS, metavar="PYTHON", help="names or paths of interpreters")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where they go")
    parser.add_argument("--extras", default="", help="to try with the first Python, such as 'kernels,trace cu13'")
    given = parser.parse_args()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    found = list(interpreters(given.pythons))
    if not found:
        raise WheelError("none of these Pythons is there")
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    sdist = build_sdist(given.out, epoch)
    print(f"{sdist.name}: {sdist.stat().st_size} bytes", flush=True)
    for python in found:
        with folder("build") as place:
            built = build(python, sdist, place, epoch)
            check(built, place)
            wheel = Path(shutil.copy(built, given.out))
        print(f"{wheel.name}: {wheel.stat().st_size} bytes", flush=True)
        if python is found[0]:
            with folder("again") as place:
                if not filecmp.cmp(wheel, build(python, sdist, place, epoch), shallow=False):
                    raise WheelError(f"{wheel.name} is another when it is built a second time, in another folder")
            print("  the same when built again elsewhere", flush=True)
        for extras in ["", *(given.extras.split() if python is found[0] else ())]:
            said = try_out(python, wheel, extras, MAJORS.get(extras, []))
            print(f"  [{extras}] {said.splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except WheelError as error:
        sys.exit(str(error))
