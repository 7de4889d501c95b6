"""Measure the benchmarks and their twins in one run, and say which targets are met.

    python benchmarks/compare.py                    # all; `make bench` does this with the package as users install it
    python benchmarks/compare.py 'launch.*' import  # some
    python benchmarks/compare.py cuda               # those that begin with `cuda.`: what runs on the CUDA device
    python benchmarks/compare.py cuda --lived       # those also in a fresh process, and in one that has lived
    python benchmarks/compare.py kernels            # how long kernels take on the device
    python benchmarks/compare.py --save             # and keep the result in benchmarks/results/

Every value is the median of many batches, taken in turn from all implementations of the ID. Times hold only within one
run: what counts is the ratio, ours divided by the twin's. Lower is better everywhere. A twin whose package is not
installed is left out. On the CUDA device the twin that counts is the one in C on the driver API, the floor; the others
are shown as so many times the floor. For the time of kernels on the device, `kernels.*`, it is the fastest written by
hand: in C++, or on the CPU with Numba.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from gpu import PREFIX
from harness import FOLDER, OURS, Result, load, measure
from kernels import PREFIX as KERNELS
from lived import FLOOR, Ages, age_table, measure_ages
from record import FREE_THREADED, heading, measured, setting, stem_of
from tables import in_words, line_of, table

# How many times the twin's value ours may be.
RATIOS: dict[str, dict[str, float]] = {
    "launch.enqueue_empty": {"warp": 0.15, "futures": 0.5},
    "launch.4args": {"warp": 0.15, "futures": 0.5},
    "launch.chain1000": {"futures": 0.1},
    "await.function": {"futures": 1},
    "await.held1000": {"futures": 1},
    "kernel.saxpy_memory_bound": {"numba": 1 / 0.95},
    "copy.strided.rows": {"numpy": 1.0},
    "copy.strided.elements": {"numpy": 1.0},
    "copy.transposed.float32": {"numpy": 1.0},
    "copy.transposed.float64": {"numpy": 1.0},
    "import": {"numpy": 0.5},
    "math.sum_10m": {"numpy": 1.1},
    **{f"math.cuda.{name}": {"cupy": 1.05} for name in ("sum_10m", "max_10m", "sum_rows", "sum_columns")},
    "copy.cuda.strided.rows": {"contiguous": 1 / 0.85},
    "copy.cuda.transposed.float32": {"contiguous": 1 / 0.85},
    "copy.cuda.transposed.float64": {"contiguous": 1 / 0.85},
    "cuda.launch.4args": {FLOOR: 1.1},
    "cuda.launch.kernel4": {FLOOR: 1.1},
    "cuda.event.record": {FLOOR: 1.35},
    "cuda.event.record_wait": {FLOOR: 1.35},
    "cuda.event.query": {FLOOR: 1.5},
    "cuda.event.elapsed_time": {FLOOR: 3.0},
    "cuda.event.create_destroy": {FLOOR: 1.0},
    "cuda.stream.create_destroy": {FLOOR: 0.15},
    "cuda.stream.synchronize_idle": {FLOOR: 1.15},
    "cuda.memory.alloc_free_4k": {FLOOR: 1.3},
    "cuda.memory.zeros_free_4k": {FLOOR: 1.2},
    "cuda.copy.pinned_4k": {FLOOR: 1.15},
    "cuda.copy.device_4k": {FLOOR: 1.1},
    "cuda.graph.replay10": {FLOOR: 1.15},
    "cuda.graph.replay1000": {FLOOR: 1.05},
    "cuda.graph.update10": {FLOOR: 1.5},
    "cuda.graph.capture1000": {FLOOR: 1.3},
    "cuda.pipeline.overlap": {FLOOR: 1.03},
}
if FREE_THREADED:
    RATIOS |= {f"cuda.launch.threads{count}": {FLOOR: 1.2} for count in (1, 2, 4, 8)}
    RATIOS["threads.launch2"] = {"one thread": 1 / 1.7}

# The twins of `kernels.*` that are written by hand, and how many times the fastest of them ours may be.
BY_HAND = ("c++", "numba")
KERNEL_RATIOS = {"cuda": 1.03, "cpu": 1.05}

# What ours may be at most, in its unit.
LIMITS: dict[str, float] = {
    "object.stream_bytes": 1024,
    "object.event_bytes": 1024,
    "object.array_bytes": 1024,
    "object.view_bytes": 1024,
    "event.million_growth": 256 * 1024,  # a quarter of a byte per event: the allocator's own coming and going
    "hazard.auto_extra": 100,
    "hazard.check_extra": 500,
    "hazard.needed_wait": 1.3,
    "graph.node": 150,
    "graph.node_enqueued": 1,
    "cuda.stream.with": 250,
    "cuda.stream.current": 40,
}


@dataclass(frozen=True)
class Row:
    """Ours beside one twin, or beside a limit."""

    benchmark: str
    ours: str
    twin: str = ""
    theirs: str = ""
    ratio: float | None = None
    target: float | None = None
    target_text: str = ""
    verdict: str = ""

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.3f}"
        return self.benchmark, self.ours, self.twin, self.theirs, ratio, self.target_text, self.verdict


HEADINGS = ("benchmark", "ours", "twin", "twin's", "ratio", "target", "verdict")
FLOOR_HEADINGS = ("benchmark", "C floor", "ours", "ratio", "target", "verdict", "others, times the floor")
FLOOR_WIDTHS = (32, 8, 8, 6, 8, 7, 0)
KERNEL_HEADINGS = ("kernel", "by hand", "ours", "ratio", "target", "verdict", "others, times the best by hand")
KERNEL_WIDTHS = (34, 14, 8, 6, 8, 7, 0)


def rows_of(benchmark: str, results: dict[str, Result], *, judge: bool = True) -> list[Row]:
    """Put the results of one benchmark into rows, one for each limit and each twin; without any, a row of its own."""
    ours = results.get(OURS, Result(absent="not written"))
    if not ours.samples:
        return [Row(benchmark, "-", verdict=_without_value(ours))]
    value = in_words(ours.value, ours.unit)

    def verdict(reached: float, target: float | None) -> str:
        return "" if target is None or not judge else "met" if reached <= target else "missed"

    rows, targets = [], ratios_of(benchmark, results)
    if benchmark in LIMITS:
        limit = LIMITS[benchmark]
        text = f"≤ {in_words(limit, ours.unit)}"
        rows.append(Row(benchmark, value, target=limit, target_text=text, verdict=verdict(ours.value, limit)))
    for twin, result in results.items():
        if twin == OURS:
            continue
        target = targets.get(twin)
        text = "" if target is None else f"≤ {target:.3g}"
        if result.samples:
            ratio = ours.value / result.value
            theirs = in_words(result.value, result.unit)
            rows.append(Row(benchmark, value, twin, theirs, ratio, target, text, verdict(ratio, target)))
        else:
            why = _without_value(result)
            rows.append(Row(benchmark, value, twin, "-", target=target, target_text=text, verdict=why))
    return rows or [Row(benchmark, value)]


def floor_of(benchmark: str, results: dict[str, Result]) -> str:
    """Return the twin that counts, where one does: of a kernel, the fastest that is written by hand."""
    if not benchmark.startswith(KERNELS):
        return FLOOR
    measured = [name for name in BY_HAND if name in results and results[name].samples]
    return min(measured, key=lambda name: results[name].value, default=BY_HAND[0])


def ratios_of(benchmark: str, results: dict[str, Result]) -> dict[str, float]:
    """Return how many times each twin's value ours may be, for those that have a target."""
    if benchmark.startswith(KERNELS):
        return {floor_of(benchmark, results): KERNEL_RATIOS[benchmark.split(".")[1]]}
    return RATIOS.get(benchmark, {})


def _without_value(result: Result) -> str:
    return "failed" if result.failure else f"absent: {result.absent}"


def floor_cells(benchmark: str, results: dict[str, Result], *, judge: bool = True) -> tuple[str, ...]:
    """Put one benchmark into one row: ours against the twin that counts, and the others beside it."""
    by = floor_of(benchmark, results)
    ours, floor = (results.get(name, Result(absent="not written")) for name in (OURS, by))
    rows = [row for row in rows_of(benchmark, results, judge=judge) if row.target is not None or not ours.samples]
    by_floor = bool(floor.samples) and benchmark not in LIMITS
    others = []
    for name, result in results.items():
        if name in (OURS, by) or result.absent:
            continue
        if result.failure:
            others.append(f"{name} failed")
        else:
            times = f"{result.value / floor.value:.2f}" if by_floor else in_words(result.value, result.unit)
            others.append(f"{name} {times}")
    value = in_words(floor.value, floor.unit) if floor.samples else _without_value(floor)
    return (
        benchmark,
        f"{value} {by}" if by in BY_HAND and floor.samples else value,
        in_words(ours.value, ours.unit) if ours.samples else "-",
        f"{ours.value / floor.value:.3f}" if ours.samples and by_floor else "",
        ", ".join(row.target_text for row in rows),
        ", ".join(row.verdict for row in rows),
        ", ".join(others),
    )


def save(
    folder: Path,
    all_results: dict[str, dict[str, Result]],
    rows: list[Row],
    ages: dict[str, Ages] | None = None,
    *,
    judge: bool = True,
) -> list[Path]:
    """Write what was measured, for people and for programs."""
    values, absent = measured(all_results)
    on_gpu = [benchmark for benchmark in values if benchmark.startswith(PREFIX)]
    kernels = [benchmark for benchmark in values if benchmark.startswith(KERNELS)]
    about = setting(values)
    judged = [
        {"benchmark": row.benchmark, "twin": row.twin, "ratio": row.ratio, "target": row.target, "verdict": row.verdict}
        for row in rows
    ]
    text = [heading(about)]
    if on_gpu:
        floors = [floor_cells(name, all_results[name], judge=judge) for name in on_gpu]
        text.append(table(floors, FLOOR_HEADINGS, markdown=True))
    if ages:
        text.append(age_table(ages, judge=judge, markdown=True))
    if kernels:
        floors = [floor_cells(name, all_results[name], judge=judge) for name in kernels]
        text.append(table(floors, KERNEL_HEADINGS, markdown=True))
    cells = [row.cells() for row in rows if not row.benchmark.startswith((PREFIX, KERNELS))]
    if cells:
        text.append(table(cells, HEADINGS, markdown=True))
    folder.mkdir(parents=True, exist_ok=True)
    stem = stem_of(about, values)
    files = [folder / f"{stem}.json", folder / f"{stem}.md"]
    data = {**about, "values": values, "absent": absent, "rows": judged}
    if ages:
        data["ages"] = {name: each.record() for name, each in ages.items()}
    files[0].write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    files[1].write_text("\n\n".join(text) + "\n")
    return files


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern, or the part before a dot, chooses an ID."""
    return fnmatch.fnmatchcase(name, pattern) or name.startswith(f"{pattern}.")


def absent_on_gpu(all_results: dict[str, dict[str, Result]]) -> dict[str, list[str]]:
    """Return who is absent from the benchmarks of the CUDA device, by why."""
    found: dict[str, set[str]] = {}
    for name, results in all_results.items():
        for by, result in results.items():
            if name.startswith((PREFIX, f"{KERNELS}{PREFIX}")) and result.absent:
                found.setdefault(result.absent, set()).add(by)
    return {reason: sorted(names) for reason, names in found.items()}


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def parse_arguments() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("benchmarks", nargs="*", default=["*"], help="IDs, how they begin, or patterns; none: all")
    parser.add_argument("--list", action="store_true", help="print the IDs and who implements them")
    parser.add_argument("--quick", action="store_true", help="run each a few times: shows that it works, no more")
    parser.add_argument(
        "--lived", action="store_true", help="measure `cuda.*` also in a fresh process and in one that has lived"
    )
    parser.add_argument(
        "--save", nargs="?", type=Path, const=FOLDER / "results", metavar="FOLDER", help="keep the result, in results/"
    )
    return parser, parser.parse_args()


def main() -> int:
    parser, options = parse_arguments()
    known = load()
    chosen = [name for name in known if any(matches(name, pattern) for pattern in options.benchmarks)]
    if not chosen:
        parser.error(f"no benchmark matches; there are {', '.join(known)}")
    if options.list:
        for name in chosen:
            print(f"{name}: {', '.join(known[name])}")
        return 0

    all_results: dict[str, dict[str, Result]] = {}
    headings = ""
    for number, name in enumerate(chosen, 1):
        _show_progress(f"{number}/{len(chosen)} {name}")
        results = all_results[name] = measure(known[name], quick=options.quick)
        _show_progress("")
        if name.startswith((PREFIX, KERNELS)) and not all(result.absent for result in results.values()):
            # At once: who stops the program, or has a driver that hangs, still sees what was measured.
            kernel = name.startswith(KERNELS)
            widths = KERNEL_WIDTHS if kernel else FLOOR_WIDTHS
            heading = line_of(KERNEL_HEADINGS if kernel else FLOOR_HEADINGS, widths)
            if heading != headings:
                print(heading)
                headings = heading
            print(line_of(floor_cells(name, results, judge=not options.quick), widths), flush=True)
    rows = [row for name, results in all_results.items() for row in rows_of(name, results, judge=not options.quick)]
    elsewhere = [row.cells() for row in rows if not row.benchmark.startswith((PREFIX, KERNELS))]
    if elsewhere:
        print(table(elsewhere, HEADINGS))
    ages: dict[str, Ages] = {}
    broken = []
    on_gpu = [name for name, results in all_results.items() if name.startswith(PREFIX) and results[OURS].samples]
    if options.lived and on_gpu:
        try:
            ages, without = measure_ages(on_gpu, quick=options.quick)
        except RuntimeError as error:
            broken.append(f"\n--lived failed: {error}")
        else:
            print("", age_table(ages, judge=not options.quick), sep="\n")
            print(f"without PyTorch: {without}" if without else "with PyTorch")
    for reason, names in absent_on_gpu(all_results).items():
        print(f"absent on CUDA: {', '.join(names)}: {reason}")
    failures = [
        f"\n{name} of {by} failed:\n{result.failure}"
        for name, results in [*all_results.items(), *((name, age) for name, each in ages.items() for age in each.both)]
        for by, result in results.items()
        if result.failure
    ]
    failures += broken
    print(*failures, sep="\n", end="", file=sys.stderr)
    if options.save:
        for file in save(options.save, all_results, rows, ages, judge=not options.quick):
            print(f"saved {os.path.relpath(file)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
