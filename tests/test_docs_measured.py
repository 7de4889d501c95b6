"""The page of measured tables shows what is on record, and no number of its own."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "measured.md"
MACHINE = {"cpu": "Z80", "cores": 1, "python": "CPython 3.12.0", "free_threaded": False, "packages": {"numpy": "2.0"}}


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PAGE.parent))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "path", list(sys.path))  # the module adds to it
    return import_module("results")


def row(benchmark, twin, ratio, target, verdict):
    return {"benchmark": benchmark, "twin": twin, "ratio": ratio, "target": target, "verdict": verdict}


@pytest.fixture
def recorded(results, tmp_path, monkeypatch):
    """Two runs of one machine, the later one with a target that is met and two that are missed."""
    monkeypatch.setattr(results, "RECORDS", tmp_path)
    values = {
        "cuda.launch.4args": {
            "anabranch": {"median": 3000, "unit": "ns"},
            "driver": {"median": 2000, "unit": "ns"},
            "cupy": {"median": 5000, "unit": "ns"},
        },
        "cuda.stream.current": {"anabranch": {"median": 55, "unit": "ns"}, "driver": {"median": 2, "unit": "ns"}},
        "import": {"anabranch": {"median": 4e6, "unit": "ns"}, "numpy": {"median": 16e6, "unit": "ns"}},
    }
    judged = [
        row("cuda.launch.4args", "driver", 1.5, 1.1, "missed"),
        row("cuda.launch.4args", "cupy", 0.6, None, ""),
        row("cuda.stream.current", "", None, 40, "missed"),
        row("import", "numpy", 0.25, 0.5, "met"),
    ]
    machine = {**MACHINE, "gpu": "Some GPU", "driver": "1.2"}
    kernels = {
        "kernels.cuda.transposed.1M": {
            "anabranch": {"median": 7000, "unit": "ns"},
            "c++": {"median": 5000, "unit": "ns"},
        }
    }
    rows = [row("kernels.cuda.transposed.1M", "c++", 1.4, 1.03, "missed")]
    run = {"date": "2021-02-03", **machine, "values": kernels, "absent": {}, "rows": rows}
    (tmp_path / "2021-02-03-kernels-some-gpu-python3.12.json").write_text(json.dumps(run))
    for date in "2020-01-01", "2021-02-03":
        run = {"date": date, **machine, "values": values, "absent": {}, "rows": judged}
        (tmp_path / f"{date}-some-gpu-python3.12.json").write_text(json.dumps(run))
    (tmp_path / "counts.json").write_text(json.dumps({"cpython-3.12": {"event.record": 556}}))
    return results.fill_in(PAGE.read_text()).replace("\N{NO-BREAK SPACE}", " ")


def test_of_each_machine_the_newest_run_is_shown(recorded) -> None:
    assert "2021-02-03" in recorded
    assert "2020-01-01" not in recorded


def test_values_are_shown_with_how_many_times_the_floor_they_are(recorded) -> None:
    assert "| 2 µs | 3 µs (1.50) | ≤ 1.1, **missed** | 5 µs (2.50) |" in recorded
    assert "| 4 ms | ≤ 0.5 of NumPy | 16 ms |" in recorded


def test_where_the_target_is_a_time_there_is_no_ratio(recorded) -> None:
    assert "| 2 ns | 55 ns | ≤ 40 ns, **missed** |" in recorded


def test_the_times_of_kernels_have_a_section_of_their_own(recorded) -> None:
    assert "## Kernels on Some GPU" in recorded
    assert "### Kernels on the GPU" in recorded
    assert "| Copy a plane, rows to columns; 1M elements | 7 µs | ≤ 1.03 of C++, **missed** | 5 µs |" in recorded


def test_the_page_counts_what_is_missed(recorded) -> None:
    assert "Of 3 targets 1 are met and 2 missed" in recorded


def test_instructions_are_shown(recorded) -> None:
    assert re.search(r"\| Record one event[^|]*\| 556 \|", recorded)


def test_what_is_on_record_now_can_be_shown(results) -> None:
    text = results.fill_in(PAGE.read_text())
    assert "<!--" not in text
    for run in results.newest():
        assert run["date"] in text
        missed = [row for row in run["rows"] if row["verdict"] == "missed"]
        assert text.count("**missed**") >= len(missed)


def test_no_number_of_a_table_is_written_by_hand() -> None:
    assert not re.search(r"^\|", PAGE.read_text(), re.MULTILINE)
