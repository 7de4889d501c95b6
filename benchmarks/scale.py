"""How much of the heat example's exchange is hidden, against the number of ranks: measured, and predicted by a model.

    ANABRANCH_CPU_WORKERS=1 mpiexec -n 2 python benchmarks/scale.py measure FILE
    python benchmarks/scale.py predict FILE [--plot PICTURE]

The first measures what ``scale_model.py`` wants to know, and what the example shows on these ranks, for plates of
several sizes; rank 0 adds it to FILE. The second prints tables: what the model is given, how far it is off, and what it
predicts for up to 4096 ranks of the first machine in FILE.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final

from scale_model import Machine, Outcome, predict
from scale_plot import plot

FOLDER = Path(__file__).parent
PLATES: Final = (48, 128, 512, 2048)  # rows that are measured
LARGE: Final = 32768  # rows of the plate that is predicted: 8 for each of 4096 ranks
RANKS: Final = [1 << power for power in range(13)]
ROUNDS: Final = 15


# -- measured --


def quantiles(values: list[float]) -> list[float]:
    """Return so many of the values as tell how they are spread, in order."""
    ordered = sorted(values)
    return [ordered[(2 * part + 1) * len(ordered) // 40] for part in range(20)]


def measure(file: Path, plates: Sequence[int], rounds: int) -> None:
    """Measure on all ranks at once, and add what is found to a file of JSON."""
    import anabranch as ab

    sys.path.insert(0, str(FOLDER.parent / "examples"))
    import heat_distributed as heat

    def average(value: float) -> float:
        held = ab.full(1, value)
        comm.all_reduce(held, "avg")
        return float(held.numpy()[0])

    def seconds(call: Callable[[], None], repeat: int) -> float:
        """Return seconds of a call, of a chain of them that a stream runs on every rank at the same time."""
        call()
        found = []
        for _ in range(5):
            ab.synchronize()
            comm.barrier()
            ab.synchronize()
            begin = time.perf_counter()
            for _ in range(repeat):
                call()
            ab.synchronize()
            found.append((time.perf_counter() - begin) / repeat)
        return average(median(found))

    def traced(kind: str, enqueue: Callable[[], None]) -> list[float]:
        """Return the seconds of each operation of a kind that a call enqueues on every rank at the same time."""
        comm.barrier()
        ab.synchronize()
        with ab.trace() as trace:
            enqueue()
            ab.synchronize()
        return [(each.end - each.begin) / 1e3 for each in trace.operations if each.kind == kind]

    def messages(nbytes: int, busy: bool) -> list[float]:
        """Return seconds of exchanges of two ranks after their border rows, alone or while all ranks compute."""
        partner, band = comm.rank ^ 1, heat.Band(comm)
        own, theirs = ab.zeros(nbytes, "uint8"), ab.zeros(nbytes, "uint8")
        now, after = band.plates
        other = ab.zeros(after.shape, "float64")

        def enqueue() -> None:
            for _ in range(40 if busy else 0):
                band.compute(band.inner, now, other, 2, band.height)
            for _ in range(100):
                band.compute(band.border, now, after, 1, 2)
                band.compute(band.border, now, after, band.height, band.height + 1)
                with comm.group():
                    comm.send(own, partner, stream=band.border)
                    comm.recv(theirs, partner, stream=band.border)

        return quantiles(traced("collective", enqueue))

    def insides(band: Any, now: Any, after: Any) -> None:
        for _ in range(100):
            band.compute(band.inner, now, after, 2, band.height)

    def shown(rows: int) -> dict[str, Any]:
        """Return what the example shows on a plate of so many rows."""
        heat.ROWS = rows
        band, hidden, step, host = heat.Band(comm), [], [], []

        def timed(now: Any, after: Any) -> None:
            begin = time.perf_counter()
            band.step(now, after)
            host.append(time.perf_counter() - begin)

        band.run(band.step)
        for _ in range(rounds):
            with ab.trace() as trace:
                band.run(timed)
            work = [each for each in trace.operations if each.kind in ("kernel", "collective")]
            hidden.append(average(heat.hidden(trace)))
            step.append((max(each.end for each in work) - min(each.begin for each in work)) / 1e3 / heat.STEPS)
        now, after = band.plates
        return {
            "rows": rows,
            "hidden": sorted(hidden),
            "step": average(median(step)),
            "host": average(median(host)),
            "inside": quantiles(traced("kernel", lambda: insides(band, now, after))),
            "border": 2 * seconds(lambda: band.compute(band.border, now, after, 1, 2), 60),
        }

    with ab.distributed.init() as comm, ab.hazards("auto"):
        if comm.size % 2:
            raise SystemExit("an even number of ranks measures messages between two of them")
        before, row_bytes = os.getloadavg()[0], 8 * heat.COLUMNS
        sent = {
            when: [messages(8, when == "busy"), messages(4 * row_bytes, when == "busy")] for when in ("calm", "busy")
        }
        shows = [shown(rows) for rows in plates]
        if comm.rank == 0:
            found = {"ranks": comm.size, "cores": os.cpu_count(), "load": before, "row_bytes": row_bytes}
            found |= {"messages": sent, "plates": shows}
            records = json.loads(file.read_text()) if file.exists() else []
            file.write_text(json.dumps([*records, found], indent=1) + "\n")


# -- predicted --


def machine_of(record: dict[str, Any], when: str) -> Machine:
    """Return the machine that a record describes: with messages of ranks that are "calm" or "busy"."""
    small, large = record["messages"][when]
    plates = record["plates"]
    first, last = plates[0], plates[-1]

    def height(plate: dict[str, Any]) -> float:
        return plate["rows"] / record["ranks"] - 2

    row = (median(last["inside"]) - median(first["inside"])) / (height(last) - height(first))
    return Machine(
        alpha=median(small),
        beta=max(median(large) - median(small), 0.0) / (4 * record["row_bytes"]),
        row_bytes=record["row_bytes"],
        border=median(plate["border"] for plate in plates),
        launch=max(median(first["inside"]) - row * height(first), 0.0),
        row=row,
        host=median(plate["host"] for plate in plates),
        late=tuple(each / median(small) for each in small),
        slow=tuple(each / median(last["inside"]) for each in last["inside"]),
    )


def constants(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table of what the model is given."""
    yield "| ranks | alpha | beta | a row as message | both border rows | inside | a step enqueued |"
    yield "|---|---|---|---|---|---|---|"
    for record, when in product(records, ("calm", "busy")):
        machine = machine_of(record, when)
        message = machine.alpha + machine.beta * machine.row_bytes
        yield (
            f"| {record['ranks']}, {when} | {1e6 * machine.alpha:.0f} µs | {1e9 * machine.beta:.2f} ns/byte | "
            f"{1e6 * message:.0f} µs | {1e6 * machine.border:.0f} µs | "
            f"{1e6 * machine.launch:.0f} µs + {1e6 * machine.row:.2f} µs/row | {1e6 * machine.host:.0f} µs |"
        )


def comparison(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table that compares."""
    yield "| ranks | rows | hidden | middle half | predicted, calm | busy | a step | predicted, calm | busy |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for record in records:
        for plate in record["plates"]:
            hidden = plate["hidden"]
            low, middle, high = (hidden[len(hidden) * quarter // 4] for quarter in (1, 2, 3))
            calm, busy = (
                predict(machine_of(record, when), record["ranks"], plate["rows"]) for when in ("calm", "busy")
            )
            yield (
                f"| {record['ranks']} | {plate['rows']} | {middle:.0%} | {low:.0%} to {high:.0%} | "
                f"{calm.hidden:.0%} | {busy.hidden:.0%} | "
                f"{1e3 * plate['step']:.2f} ms | {1e3 * calm.step:.2f} ms | {1e3 * busy.step:.2f} ms |"
            )


def outcomes(record: dict[str, Any]) -> dict[int, tuple[Outcome, Outcome]]:
    """Return what is predicted for the large plate, by the number of ranks: with times that vary, and with medians."""
    machine = machine_of(record, "calm")
    alike = machine._replace(late=(1.0,), slow=(1.0,))
    return {ranks: (predict(machine, ranks, LARGE), predict(alike, ranks, LARGE)) for ranks in RANKS}


def prediction(found: dict[int, tuple[Outcome, Outcome]]) -> Iterator[str]:
    """Yield the lines of the table of the large plate."""
    yield "| ranks | rows of each | hidden | a step | hidden, times alike | a step |"
    yield "|---|---|---|---|---|---|"
    for ranks, both in found.items():
        cells = []
        for outcome in both:
            cells += [f"{outcome.hidden:.0%}" if ranks > 1 else "no exchange", f"{1e3 * outcome.step:.2f} ms"]
        yield f"| {ranks} | {LARGE // ranks} | {' | '.join(cells)} |"


def main() -> None:
    """Measure or predict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "predict"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--plot", type=Path, metavar="PICTURE", help="write what is predicted as SVG")
    parser.add_argument("--quick", action="store_true", help="measure two plates once, to see that it works")
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.file, PLATES[:2] if options.quick else PLATES, 1 if options.quick else ROUNDS)
        return
    records = json.loads(options.file.read_text())
    found = outcomes(records[0])
    print("\n\n".join("\n".join(table) for table in (constants(records), comparison(records), prediction(found))))
    if options.plot:
        options.plot.write_text(plot({ranks: [each.hidden for each in both] for ranks, both in found.items()}))


if __name__ == "__main__":
    main()
