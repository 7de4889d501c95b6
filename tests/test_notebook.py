"""The notebook in `examples`: its cells run one after the other, each as a notebook's kernel would run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anabranch as ab

pytestmark = pytest.mark.numba
NOTEBOOK = Path(__file__).parents[1] / "examples" / "tour.ipynb"

RUN = """
import ast, json, linecache, pathlib, sys

namespace = {"__name__": "__main__"}
for number, cell in enumerate(json.loads(pathlib.Path(sys.argv[1]).read_text())["cells"]):
    if cell["cell_type"] != "code":
        continue
    source, name = "".join(cell["source"]), f"<cell {number}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    *statements, last = ast.parse(source).body
    exec(compile(ast.Module(statements, []), name, "exec"), namespace)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
        if value is not None:
            print(repr(value))
    else:
        exec(compile(ast.Module([last], []), name, "exec"), namespace)
"""


@pytest.mark.parametrize("kind", sorted({device.kind for device in ab.devices()}))
def test_the_tour_runs(tmp_path, kind):
    if kind == "cuda":
        pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, str(NOTEBOOK)],
        cwd=tmp_path,
        env={**os.environ, "ANABRANCH_DEVICE": kind},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    first, chunks, race, *timeline = done.stdout.splitlines()
    assert first == repr(ab.Device(kind))
    assert chunks == "[0.0, 1.0, 2.0, 3.0]"
    assert race == "RAW mended by compute.wait_stream(upload)"
    assert re.search(r"on 2 streams of 1 device in .* added$", timeline[0])
    assert (tmp_path / "tour.svg").read_text().startswith("<svg")


def test_the_notebook_is_stored_without_outputs():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if "outputs" in cell)
