"""The rows of the CUDA device in a process that has just begun, and in one that has lived.

`compare.py --lived` runs this file in new processes, with ours and the floor alone: what other libraries do to a
process is part of its life. A virtual machine has phases of seconds in which every call takes up to twice as long, so
there are several processes of each age in turn, and each row is taken from the one in which its floor was lowest.

A process that has lived has used a GiB and given some of it back, has made a hundred streams and dropped some, used the
default stream, and PyTorch on the same device, where that is installed.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu import DEVICE, PAGE, imported
from harness import OURS, AbsentError, Result, in_fresh_process, load, measure
from tables import in_words, table

import anabranch as ab

FLOOR = "driver"
# How many times what it takes in a fresh process a call may take.
MOST = 1.15
PROCESSES = 3  # of each age

HEADINGS = ("benchmark", "fresh", "ratio", "lived", "ratio", "lived/fresh", "floor's", "target", "verdict")

# 1 GiB.
LIFE_ARRAYS = 16
LIFE_SIZE = 2**24
LIFE_STREAMS = 100


@dataclass(frozen=True)
class Ages:
    """One benchmark at both ages of a process."""

    fresh: dict[str, Result]
    lived: dict[str, Result]

    @property
    def both(self) -> tuple[dict[str, Result], dict[str, Result]]:
        return self.fresh, self.lived

    @property
    def ratios(self) -> tuple[float | None, float | None]:
        """Return ours, divided by the floor of the same process."""
        fresh, lived = (_quotient(results.get(OURS), results.get(FLOOR)) for results in self.both)
        return fresh, lived

    def aged(self, name: str = OURS) -> float | None:
        """Return what an implementation takes in a process that has lived, divided by what it takes in a fresh one."""
        return _quotient(self.lived.get(name), self.fresh.get(name))

    @property
    def verdict(self) -> str:
        aged = self.aged()
        return "" if aged is None else "met" if aged <= MOST else "missed"

    def record(self) -> dict[str, Any]:
        """Return what is kept of it."""
        medians = [{name: result.value for name, result in each.items() if result.samples} for each in self.both]
        return {
            **dict(zip(("fresh", "lived"), medians, strict=True)),
            **dict(zip(("fresh_ratio", "lived_ratio"), self.ratios, strict=True)),
            "aged": self.aged(),
            "floor_aged": self.aged(FLOOR),
            "verdict": self.verdict,
        }


def _quotient(upper: Result | None, lower: Result | None) -> float | None:
    return upper.value / lower.value if upper and lower and upper.samples and lower.samples else None


def measure_ages(benchmarks: Sequence[str], *, quick: bool = False) -> tuple[dict[str, Ages], str]:
    """Measure the benchmarks at both ages; and why PyTorch was no part of the life, or nothing."""
    count = 1 if quick else PROCESSES
    turns = [[_measured(age, benchmarks, quick) for age in ("fresh", "lived")] for _ in range(count)]
    fresh, lived = ([each["results"] for each in of_age] for of_age in zip(*turns, strict=True))
    ages = {name: Ages(undisturbed(fresh, name), undisturbed(lived, name)) for name in benchmarks}
    return ages, turns[0][1]["without"]


def undisturbed(processes: Sequence[dict[str, dict[str, Result]]], name: str) -> dict[str, Result]:
    """Return the results of one benchmark from the process in which its floor, or else ours, took the least."""

    def cost(results: dict[str, Result]) -> float:
        found = [result.value for by in (FLOOR, OURS) if (result := results.get(by)) and result.samples]
        return found[0] if found else math.inf

    return min((each[name] for each in processes), key=cost)


def age_cells(benchmark: str, ages: Ages, *, judge: bool = True) -> tuple[str, ...]:
    """Put one benchmark into one row: ours in a fresh process and in one that has lived, each beside its floor."""
    fresh, lived = (in_words(ours.value, ours.unit) if (ours := each[OURS]).samples else "-" for each in ages.both)
    ratios = (*ages.ratios, ages.aged(), ages.aged(FLOOR))
    in_fresh, in_lived, aged, floor = ("" if ratio is None else f"{ratio:.3f}" for ratio in ratios)
    verdict = ages.verdict if judge else ""
    return benchmark, fresh, in_fresh, lived, in_lived, aged, floor, f"≤ {MOST}", verdict


def age_table(all_ages: dict[str, Ages], *, judge: bool = True, markdown: bool = False) -> str:
    rows = [age_cells(name, ages, judge=judge) for name, ages in all_ages.items()]
    return table(rows, HEADINGS, markdown=markdown)


def _measured(age: str, benchmarks: Sequence[str], quick: bool) -> dict[str, Any]:
    printed = in_fresh_process("import lived; lived.main()", age, "quick" if quick else "all", *benchmarks)
    # Other libraries may print too.
    told: dict[str, Any] = json.loads(printed.splitlines()[-1])
    results = {
        name: {by: Result(**result) for by, result in each.items()} for name, each in told.pop("results").items()
    }
    return {**told, "results": results}


def main() -> None:
    age, rounds, *benchmarks = sys.argv[1:]
    known = load()
    without, kept = "", []
    if age == "lived" and ab.devices("cuda"):
        kept = live(DEVICE)
        try:
            kept += live_with_torch(imported("torch"), DEVICE)
        except AbsentError as absent:
            without = str(absent)
    results = {}
    for name in benchmarks:
        set_ups = {by: set_up for by, set_up in known[name].items() if by in (OURS, FLOOR)}
        measured = measure(set_ups, quick=rounds == "quick", parts=PROCESSES)
        results[name] = {by: dataclasses.asdict(result) for by, result in measured.items()}
    print(json.dumps({"without": without, "results": results}))
    del kept


def live(device: str, size: int = LIFE_SIZE) -> list[Any]:
    """Do what a program does that runs for long, with arrays of that many elements; what is to be kept of it."""
    kept: list[Any] = [ab.full(size, 1.0, "float32", device=device) for _ in range(LIFE_ARRAYS)]
    ab.synchronize(device)
    del kept[::2]
    streams = [ab.Stream(device) for _ in range(LIFE_STREAMS)]
    event = ab.Event(device=device)
    for before, stream in zip([ab.legacy_stream(device), *streams], streams, strict=False):
        event.record(before)
        event.wait(stream)
        kept.append(ab.zeros(PAGE, stream=stream))
    del streams[::3]
    with ab.legacy_stream(device):
        ab.copy(kept[0][:PAGE], kept[-1])
        kept.append(ab.ones(PAGE))
    ab.synchronize(device)
    return [*kept, *streams]


def live_with_torch(torch: Any, device: str, size: int = LIFE_SIZE) -> list[Any]:
    """Let PyTorch do its part."""
    tensor = torch.ones(size, device=device)
    with torch.cuda.stream(torch.cuda.Stream()):
        kept = [tensor, tensor + tensor]
    tensor.sum().item()
    torch.cuda.synchronize()
    return kept
