"""The examples of several ranks, and what they show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.mpi, pytest.mark.numba]
EXAMPLES = Path(__file__).parents[2] / "examples"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("number", [1, 3])
def test_heat_is_the_same_on_any_number_of_ranks(ranks, number, tmp_path):
    timeline = tmp_path / "heat.json"
    done = ranks(number, EXAMPLES / "heat_distributed.py", timeline)
    assert re.search(rf"on {number} ranks: \d+% of the exchange was hidden", done.output)
    events = json.loads(timeline.read_text())["traceEvents"]
    processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert [name.split(" (clock within ")[0] for name in processes] == [f"rank {rank} cpu:0" for rank in range(number)]
    assert all("clock within" in name for name in processes[1:])
    assert any(event.get("cat") == "collective" for event in events) == (number > 1)


def test_data_parallel_training_gives_every_rank_the_same_model(ranks):
    done = ranks(2, EXAMPLES / "data_parallel.py")
    assert re.search(r"2 ranks, 6 layers: a step takes .* ms, with overlap .* ms", done.output)


def test_a_joint_timeline_shows_who_came_last(ranks, tmp_path):
    ranks(3, "timeline.py", tmp_path / "joint.json")
    events = json.loads((tmp_path / "joint.json").read_text())["traceEvents"]
    collectives = [event for event in events if event.get("cat") == "collective"]
    assert [event["name"] for event in collectives] == ["all_reduce #2"] * 3
    waits = [event for event in events if event.get("cat") == "wait" and event["ph"] == "X"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    # Rank 1 came last: the others waited for it, and go on together.
    assert sorted(processes[wait["pid"]].split(" cpu")[0] for wait in waits) == ["rank 0", "rank 2"]
    begins = [event["ts"] for event in collectives]
    within = [int(found[1]) for name in processes.values() if (found := re.search(r"clock within (\d+) µs", name))]
    assert max(begins) - min(begins) < 1.0 + sum(within)


def test_what_the_model_of_heat_is_given_is_measured(ranks, tmp_path):
    ranks(2, BENCHMARKS / "scale.py", "measure", tmp_path / "scale.json", "--quick", ANABRANCH_CPU_WORKERS="1")
    (record,) = json.loads((tmp_path / "scale.json").read_text())
    assert (record["ranks"], record["row_bytes"], len(record["plates"])) == (2, 16384, 2)
    assert all(seconds > 0 for found in record["messages"].values() for each in found for seconds in each)
    for plate in record["plates"]:
        assert all(0 <= share <= 1 for share in plate["hidden"])
        assert min(plate["step"], plate["host"], plate["border"], *plate["inside"]) > 0
