"""What NCCL is asked for, with stand-ins for it, nccl4py and the driver, and what it computes where there are GPUs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import anabranch as ab

pytestmark = pytest.mark.mpi
SIMULATED = Path(__file__).parents[2] / "build" / "core" / "core" / "tests" / "simulated"


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
def test_nccl_gets_the_calls_with_the_streams(ranks, device):
    if not SIMULATED.is_dir():
        pytest.skip("the simulated driver is not built: make simulated-driver")
    driver = {"LD_LIBRARY_PATH": str(SIMULATED), "FAKE_DEVICES": "2", "ANABRANCH_DEVICE": device}
    assert "fine" in ranks(1, "nccl_calls.py", **driver).output


def test_a_rank_that_is_late_is_named(ranks, tmp_path):
    if not SIMULATED.is_dir():
        pytest.skip("the simulated driver is not built: make simulated-driver")
    driver = {"LD_LIBRARY_PATH": str(SIMULATED), "FAKE_DEVICES": "2", "ANABRANCH_DEVICE": "cuda:0"}
    output = ranks(2, "nccl_late.py", tmp_path, **driver).output
    late = r"all_reduce at \S*nccl_late.py:\d+, enqueued .* its 1 s are over, and rank 1 has not arrived"
    assert re.search(rf"CollectiveError \(1,\): {late}", output), output


def test_nccl_computes_what_numpy_does(ranks):
    gpus = len(ab.devices("cuda"))
    if gpus == 0 or importlib.util.find_spec("nccl") is None:
        pytest.skip("needs a GPU and nccl4py")
    number = min(gpus, 4)
    output = ranks(number, "nccl_values.py", 7, ANABRANCH_DEVICE="cuda:0").output
    assert output.count(f"{number} ranks are fine") == number
