"""What the benchmarks of the CUDA device share: where they run, what they run, and with how many threads.

Every ID begins with `cuda.`. All implementations that launch code of their own launch the same code, scaled_sum.ptx.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from harness import FOLDER, AbsentError, Case, SetUp, Timed, implementation

import anabranch as ab

PREFIX = "cuda."
DEVICE = "cuda:0"
PTX = FOLDER / "scaled_sum.ptx"
KERNEL = "scaled_sum"

# Elements of an array of 4 KiB, and threads of a block.
PAGE = 1024
BLOCK = 256

# Most threads that launch at the same time.
THREADS = 8

# Graphs of 1000 kernels: a replay takes the GPU some 2 ms.
GRAPH_CALLS = 10
GRAPH_ROUNDS = 11

# The pipeline: 64 MiB each, which take turns on the streams.
LANES = 3
CHUNKS = 16
CHUNK = 2**24
CHUNK_BLOCKS = CHUNK // BLOCK
PIPELINE_ROUNDS = 11


def on_gpu(name: str, *packages: str) -> Callable[[str], Callable[[Callable[..., Iterator[Case]]], SetUp]]:
    """Like `harness.implementation`, for what needs a CUDA device and these packages, which the set-up is given."""

    def benchmark(identifier: str) -> Callable[[Callable[..., Iterator[Case]]], SetUp]:
        def register(set_up: Callable[..., Iterator[Case]]) -> SetUp:
            return implementation(name)(PREFIX + identifier)(guarded(set_up, *packages))

        return register

    return benchmark


def guarded(set_up: Callable[..., Iterator[Case]], *packages: str) -> SetUp:
    """Return what sets up, given these packages, where there is a CUDA device, and is absent elsewhere."""

    @functools.wraps(set_up)
    def where_possible() -> Iterator[Case]:
        if not ab.devices("cuda"):
            raise AbsentError("there is no CUDA device")
        yield from set_up(*map(imported, packages))

    return where_possible


def imported(package: str) -> ModuleType:
    """Import a package of others. One that is broken here counts as absent."""
    found = _outcome(package)
    if isinstance(found, AbsentError):
        raise found
    return found


@functools.cache
def _outcome(package: str) -> ModuleType | AbsentError:
    try:
        return importlib.import_module(package)
    except Exception as error:  # such as a library that is missing, in each package's own way
        return AbsentError(f"{package} cannot be imported: {error}")


@functools.cache
def streams() -> tuple[ab.Stream, ab.Stream]:
    """Return the two streams of ours and of the twin in C: in some streams the same call of the driver takes longer."""
    return ab.Stream(DEVICE), ab.Stream(DEVICE)


def pipeline_case(push: Callable[[Any], object], lanes: Sequence[Any], wait: Callable[[Any], object]) -> Case:
    """One call: `push` for chunk after chunk, the lanes taking turns, then `wait` for every lane."""

    def batch(calls: int) -> None:
        for number in range(calls):
            push(lanes[number % LANES])
        for lane in lanes:
            wait(lane)

    return Timed(batch, calls=CHUNKS, rounds=PIPELINE_ROUNDS)
