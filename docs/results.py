"""The tables of measured.md: what the benchmarks have put on record, in words. No number is written by hand."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RECORDS = BENCHMARKS / "results"

sys.path.insert(0, str(BENCHMARKS))
from compare import FLOOR, in_words  # noqa: E402
from harness import OURS, load  # noqa: E402

NO_BREAK = "\N{NO-BREAK SPACE}"  # between a number and its unit

NAMES = {
    OURS: "Anabranch",
    "c++": "C++",
    FLOOR: "C",
    "cupy": "CuPy",
    "futures": "ThreadPoolExecutor",
    "numba": "Numba",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "triton": "Triton",
    "warp": "Warp",
}
GROUPS = {
    "launch": "Launches",
    "first": "The first kernel of a process",
    "kernel": "Kernels",
    "kernels.cuda": "Kernels on the GPU, without what the host does",
    "kernels.cpu": "Kernels on the CPU, without what the caller does",
    "event": "Events",
    "stream": "Streams",
    "memory": "Memory",
    "threads": "Threads",
    "copy": "Copies",
    "pipeline": "Copies and kernels at once",
    "graph": "Graphs",
    "hazard": "Hazards",
    "object": "Sizes of objects",
    "import": "Import",
}


def description(benchmark: str) -> str:
    """Return what a benchmark does, in the words of its code; for one that has no code any more, its ID."""
    code = load().get(benchmark, {}).get(OURS)
    # Markdown: a bar ends a cell, and single backticks are code as they are.
    return " ".join((code.__doc__ or "").split()).removesuffix(".").replace("|", "\\|") if code else f"`{benchmark}`"


def in_full(benchmark: str) -> str:
    """Return what a benchmark does where those before it in its file are not seen."""
    text, before = description(benchmark), [name for name in load() if group(name) == group(benchmark)]
    while text.startswith("The same") and (at := before.index(benchmark)):
        benchmark = before[at - 1]
        text = f"{description(benchmark)}; {text[0].lower()}{text[1:]}"
    return text


def group(benchmark: str) -> str:
    """Return the part of an ID that names its table: that of its file without the device's, or a kernel's device."""
    first, *rest = benchmark.removeprefix("cuda.").split(".")
    return f"{first}.{rest[0]}" if first == "kernels" else first


def newest() -> list[dict[str, Any]]:
    """Return the newest run of each machine and interpreter, newest first."""
    runs: dict[str, Path] = {}
    for file in sorted(RECORDS.glob("20*.json")):  # names begin with the date
        runs[re.sub(r"^[\d-]+", "", file.stem)] = file
    return [json.loads(file.read_text()) for file in sorted(runs.values(), reverse=True)]


def markdown(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table, the first as its heading."""
    heading, *body = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [heading, ["---"] * len(heading), *body])


def in_table(run: dict[str, Any], benchmarks: list[str]) -> str:
    """Return the table of some benchmarks: a column for each implementation, with how many times the floor it is."""
    values = run["values"]
    others = sorted({name for benchmark in benchmarks for name in values[benchmark]} - {OURS, FLOOR}, key=str.lower)
    floors = [FLOOR] if any(FLOOR in values[benchmark] for benchmark in benchmarks) else []
    columns = [*floors, OURS]
    targets = [{row["twin"]: row for row in judged(run) if row["benchmark"] == benchmark} for benchmark in benchmarks]
    rows = [["", *(NAMES.get(name, name) for name in columns), "target", *(NAMES.get(name, name) for name in others)]]
    for benchmark, limits in zip(benchmarks, targets, strict=True):
        # Where the target is a time, what C does is not the same thing.
        floor = None if "" in limits else values[benchmark].get(FLOOR)
        cells = {name: cell(values[benchmark].get(name), None if name == FLOOR else floor) for name in columns + others}
        target = "; ".join(in_target(run, row) for row in limits.values())
        rows.append([description(benchmark), *map(cells.get, columns), target, *map(cells.get, others)])
    return markdown(rows)


def cell(value: dict[str, Any] | None, floor: dict[str, Any] | None) -> str:
    """Return a value in words, with its ratio to the floor where there is one."""
    if value is None:
        return ""
    words = in_words(value["median"], value["unit"]).replace(" ", NO_BREAK)
    return f"{words} ({value['median'] / floor['median']:.2f})" if floor else words


def judged(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what of a run was measured and has a target."""
    return [row for row in run["rows"] if row["verdict"] in ("met", "missed")]


def in_target(run: dict[str, Any], row: dict[str, Any]) -> str:
    """Return a target in words, with the verdict if it was missed."""
    if not row["twin"]:
        words = f"≤ {in_words(row['target'], run['values'][row['benchmark']][OURS]['unit'])}"
    elif row["twin"] == FLOOR:
        words = f"≤ {row['target']:.3g}"
    else:
        words = f"≤ {row['target']:.3g} of {NAMES.get(row['twin'], row['twin'])}"
    words = words.replace(" ", NO_BREAK)
    return f"{words}, **missed**" if row["verdict"] == "missed" else words


def place(run: dict[str, Any]) -> str:
    """Return where and with what a run was measured."""
    cpu = f"{run['cores']} cores of {run['cpu']}"
    machine = f"{run['gpu']}, driver {run['driver']}, and {cpu}" if "gpu" in run else cpu
    lock = ", free-threaded" if run["free_threaded"] else ""
    packages = ", ".join(f"{name} {version}" for name, version in run["packages"].items())
    return f"Measured on {run['date']}: {machine}; {run['python']}{lock}; {packages}."


def sections() -> Iterator[str]:
    """Yield the text of each run: where, the tables, and the targets that are missed."""
    for run in newest():
        kernels = "Kernels on " if all(name.startswith("kernels.") for name in run["values"]) else ""
        lock = " (free-threaded)" if run["free_threaded"] else ""
        yield f"## {kernels}{run.get('gpu', run['cpu'])}, {run['python']}{lock}"
        yield place(run)
        targets = judged(run)
        missed = [row for row in targets if row["verdict"] == "missed"]
        met = len(targets) - len(missed)
        yield f"Of {len(targets)} targets {met} are met and {len(missed)} missed; those are marked in the tables."
        for stem in dict.fromkeys(group(name) for name in run["values"]):
            yield f"### {GROUPS.get(stem, stem)}"
            yield in_table(run, [name for name in run["values"] if group(name) == stem and OURS in run["values"][name]])


def counts() -> str:
    """Return the table of instructions per call on the CPU device, by interpreter."""
    recorded = json.loads((RECORDS / "counts.json").read_text())
    benchmarks = sorted({name for values in recorded.values() for name in values})
    rows = [["", *recorded]]
    rows += [[in_full(name), *(str(values.get(name, "")) for values in recorded.values())] for name in benchmarks]
    return markdown(rows)


def fill_in(text: str) -> str:
    """Return a page's text with the tables in the places that it names."""
    return text.replace("<!-- results -->", "\n\n".join(sections())).replace("<!-- counts -->", counts())
