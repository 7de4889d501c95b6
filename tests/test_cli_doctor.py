"""`anabranch doctor`. Each test in a process of its own.

It compiles a kernel each time. The first test does it as a user does; the others in an interpreter that has Numba.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .command_line import anabranch, environment

CPU = {"ANABRANCH_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": ""}

# Plain Python, in a process for each test.
pytestmark = pytest.mark.source


def findings(result):
    lines = [re.split(r" {2,}", line.strip(), maxsplit=2) for line in result.stdout.split("\n\n")[0].splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) == 3}


@pytest.fixture
def doctor(prepared, tmp_path):
    """Run `anabranch doctor`, after a statement that changes its modules."""
    program = tmp_path / "program.py"

    def run(env=CPU, change=""):
        program.write_text(f"""
import sys
from anabranch.cli import main, _doctor as doctor, _versions as versions
{change}
sys.argv = ["anabranch", "doctor"]
main()
""")
        return prepared.run(program, env=environment(env), cwd=tmp_path, timeout=100)

    return run


def test_a_machine_that_is_well(tmp_path):
    result = anabranch("doctor", env={**CPU, "ANABRANCH_CACHE_DIR": str(tmp_path / "cache")})
    assert (result.returncode, result.stderr) == (0, "")
    found = findings(result)
    assert found["devices"] == ["ok", "cpu:0; first cpu:0"]
    assert found["ANABRANCH_DEVICE"] == ["ok", "cpu"]
    assert found["cache folder"] == ["ok", f"{tmp_path / 'cache'}, 0 kernels"]
    assert found["kernels"][0] in ("ok", "note")
    assert "numpy" in found["kernels"][1]


def test_an_unknown_variable_is_a_problem_with_advice(doctor):
    result = doctor({**CPU, "ANABRANCH_CPU_DEVICE": "2"})
    assert result.returncode == 1
    assert findings(result)["ANABRANCH_CPU_DEVICE"] == ["problem", "is no variable that anything reads"]
    assert "ANABRANCH_CPU_DEVICE: unset it, or set ANABRANCH_CPU_DEVICES\n" in result.stdout


def test_a_device_that_is_none_is_a_problem(doctor):
    result = doctor({"ANABRANCH_DEVICE": "cuda:99"})
    assert result.returncode == 1
    assert findings(result)["devices"][0] == "problem"
    assert "cuda:99" in findings(result)["devices"][1]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ANABRANCH_HAZARDS", "most", "is 'most'; it is one of auto, check, off"),
        ("ANABRANCH_CPU_WORKERS", "x", 'is "x"; it must be a number from 1 to 1024'),
    ],
)
def test_a_wrong_value_is_a_problem_of_its_variable_alone(doctor, name, value, text):
    result = doctor({**CPU, name: value})
    assert result.returncode == 1
    found = findings(result)
    assert found[name] == ["problem", text]
    assert found["devices"] == ["problem", f"none can be used: {name} {text}"]
    assert found["kernels"][0] == "note"
    assert f"{name}: set it to what can be used, or unset it\n" in result.stdout
    assert "reinstall" not in result.stdout


def test_a_package_that_is_too_old_is_a_problem(doctor):
    found = doctor(change="versions.version = lambda name: {'numpy': '1.26.4'}.get(name, '99.0')")
    assert "numpy: pip install --upgrade 'numpy>=2.0'\n" in found.stdout
    assert findings(found)["numpy"] == ["problem", "1.26.4 is older than 2.0"]


def test_a_driver_that_is_too_old_is_a_problem(doctor):
    found = doctor(change="doctor.driver_version = lambda: (12, 4); versions.version = lambda name: '13.2.0'")
    text = "numba-cuda-mlir 13.2.0, cuda-core 13.2.0, cuda-bindings 13.2.0, newer than the driver, of CUDA 12.4"
    assert findings(found)["kernels for GPUs"] == ["problem", text]
    assert "kernels for GPUs: pip install 'anabranch[cu12]', or a newer driver\n" in found.stdout


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
def test_a_cache_that_cannot_be_written_is_a_problem(doctor):
    result = doctor({**CPU, "ANABRANCH_CACHE_DIR": "/proc/cache"})
    assert result.returncode == 1
    assert findings(result)["cache folder"][0] == "problem"
    assert "/proc cannot be written" in findings(result)["cache folder"][1]


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_cache_that_others_may_write_is_a_problem(doctor, tmp_path, mode):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    result = doctor({**CPU, "ANABRANCH_CACHE_DIR": str(folder)})
    assert result.returncode == 1
    assert findings(result)["cache folder"] == ["problem", f"{folder} may be written by others: it is not used"]
    assert f"cache folder: chmod go-w '{folder}'\n" in result.stdout


def test_a_cache_that_is_a_file_is_a_problem(doctor, tmp_path):
    (tmp_path / "file").write_text("")
    result = doctor({**CPU, "ANABRANCH_CACHE_DIR": str(tmp_path / "file")})
    assert result.returncode == 1
    assert findings(result)["cache folder"] == ["problem", f"{tmp_path / 'file'} is no folder"]


def test_every_variable_of_the_reference_is_known():
    from anabranch.cli._doctor import VARIABLES

    page = (Path(__file__).parents[1] / "docs" / "reference" / "environment.md").read_text()
    assert set(re.findall(r"^\| `(ANABRANCH_\w+)`", page, re.MULTILINE)) == set(VARIABLES)
