"""`anabranch doctor`. Each test in a process of its own."""

from __future__ import annotations

import re

import pytest

from .command_line import anabranch

CPU = {"ANABRANCH_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": ""}


def findings(result):
    lines = [re.split(r" {2,}", line.strip(), maxsplit=2) for line in result.stdout.split("\n\n")[0].splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) == 3}


def test_a_machine_that_is_well(tmp_path):
    result = anabranch("doctor", env={**CPU, "ANABRANCH_CACHE_DIR": str(tmp_path / "cache")})
    assert (result.returncode, result.stderr) == (0, "")
    found = findings(result)
    assert found["devices"] == ["ok", "cpu:0; first cpu:0"]
    assert found["ANABRANCH_DEVICE"] == ["ok", "cpu"]
    assert found["cache folder"] == ["ok", f"{tmp_path / 'cache'}, 0 kernels"]
    assert found["kernels"][0] in ("ok", "note")
    assert "numpy" in found["kernels"][1]


def test_an_unknown_variable_is_a_problem_with_advice():
    result = anabranch("doctor", env={**CPU, "ANABRANCH_CPU_DEVICE": "2"})
    assert result.returncode == 1
    assert findings(result)["ANABRANCH_CPU_DEVICE"] == ["problem", "is no variable that anything reads"]
    assert "ANABRANCH_CPU_DEVICE: unset it, or set ANABRANCH_CPU_DEVICES\n" in result.stdout


def test_a_device_that_is_none_is_a_problem():
    result = anabranch("doctor", env={"ANABRANCH_DEVICE": "cuda:99"})
    assert result.returncode == 1
    assert findings(result)["devices"][0] == "problem"
    assert "cuda:99" in findings(result)["devices"][1]


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_cache_that_others_may_write_is_a_problem(tmp_path, mode):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    result = anabranch("doctor", env={**CPU, "ANABRANCH_CACHE_DIR": str(folder)})
    assert result.returncode == 1
    assert findings(result)["cache folder"] == ["problem", f"{folder} may be written by others: it is not used"]
    assert f"cache folder: chmod go-w '{folder}'\n" in result.stdout


def test_a_cache_that_is_a_file_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")
    result = anabranch("doctor", env={**CPU, "ANABRANCH_CACHE_DIR": str(tmp_path / "file")})
    assert result.returncode == 1
    assert findings(result)["cache folder"] == ["problem", f"{tmp_path / 'file'} is no folder"]


def test_every_variable_of_the_reference_is_known():
    from pathlib import Path

    from anabranch.cli._doctor import VARIABLES

    page = (Path(__file__).parents[1] / "docs" / "reference" / "environment.md").read_text()
    assert set(re.findall(r"^\| `(ANABRANCH_\w+)`", page, re.MULTILINE)) == set(VARIABLES)
