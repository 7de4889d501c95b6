"""What NCCL is asked for. There is no GPU here: nccl4py and the driver are stand-ins."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.mpi
SIMULATED = Path(__file__).parents[2] / "build" / "core" / "core" / "tests" / "simulated"


def test_nccl_gets_the_calls_with_the_streams(ranks):
    if not SIMULATED.is_dir():
        pytest.skip("the simulated driver is not built: make simulated-driver")
    driver = {"LD_LIBRARY_PATH": str(SIMULATED), "FAKE_DEVICES": "1", "ANABRANCH_DEVICE": "cuda:0"}
    assert "fine" in ranks(1, "nccl_calls.py", **driver).output
