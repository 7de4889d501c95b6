"""Programs that use the public names pass the strict checks of mypy and pyright, and their mistakes are found."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PROGRAMS = sorted(str(file) for file in FOLDER.glob("use_*.py"))

CHECKERS = {
    # With what `make lint` has kept of the package and of NumPy, whose declarations take mypy most of the time.
    "mypy": ["--strict", "--config-file", str(ROOT / "pyproject.toml")],
    "pyright": ["--pythonpath", sys.executable],
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_programs_are_typed(checker: str) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    command = [sys.executable, "-m", checker, *CHECKERS[checker], *PROGRAMS]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
