"""Timelines as files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from anabranch._trace import save as module
from anabranch._trace.save import save

from .parts import photos

STARTS = {".html": b"<!doctype html>", ".json": b'{"traceEvents"', ".pftrace": b"\n", ".svg": b"<svg "}


@pytest.mark.parametrize("suffix", STARTS)
@pytest.mark.parametrize("make", [str, Path, lambda path: Path(str(path).upper())], ids=["str", "path", "upper"])
def test_the_suffix_names_the_format(tmp_path, monkeypatch, suffix, make):
    if suffix == ".pftrace":
        pytest.importorskip("perfetto", reason="perfetto is not installed")
    monkeypatch.chdir(tmp_path)
    path = make(f"timeline{suffix}")
    save(photos(), path)
    assert Path(path).read_bytes().startswith(STARTS[suffix])
    assert os.listdir() == [str(path)]


def test_text_is_utf_8(tmp_path):
    save(photos(), tmp_path / "t.html")
    assert "µs" in (tmp_path / "t.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["timeline.png", "timeline", ".html"])
def test_another_suffix_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"\.html, \.json, \.pftrace, \.svg.*not as '\.?\w"):
        save(photos(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("before")
    save(photos(), path)
    assert len(json.loads(path.read_text())["traceEvents"]) > len(photos())


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    path.write_text("before")

    def fail(*_):
        raise OSError("no room")

    monkeypatch.setattr(module.Path, "replace", fail)
    with pytest.raises(OSError, match="no room"):
        save(photos(), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        save(photos(), tmp_path / "missing" / "t.svg")
