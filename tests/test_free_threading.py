"""On a free-threaded interpreter nothing that Anabranch loads may switch the interpreter lock back on."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
PACKAGE = Path(__file__).parents[1] / "src" / "anabranch"
MODULES = sorted(f"anabranch.{file.stem}" for file in PACKAGE.glob("_*.pyx"))


@pytest.mark.skipif(not FREE_THREADED, reason="this interpreter always has its lock")
def test_no_module_switches_the_lock_on() -> None:
    code = f"import sys, numpy, anabranch, {', '.join(MODULES)}; print(sys._is_gil_enabled())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
    assert not sys._is_gil_enabled()
