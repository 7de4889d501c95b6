"""What the benchmarks of the CUDA device share: where they run, what they run, and with how many threads.

Every ID begins with `cuda.`. All implementations that launch code of their own launch the same code, scaled_sum.ptx.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

from harness import FOLDER, ROUNDS, AbsentError, Case, Counted, SetUp, Timed, implementation

import anabranch as ab

PREFIX = "cuda."
DEVICE = "cuda:0"
PTX = FOLDER / "scaled_sum.ptx"
KERNEL = "scaled_sum"

# Elements of an array of 4 KiB, and threads of a block.
PAGE = 1024
BLOCK = 256

# The launches of each of 8 threads in a batch: so many that starting the threads does not count.
THREADS = 8
THREAD_CALLS = 500

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
            @functools.wraps(set_up)
            def guarded() -> Iterator[Case]:
                if not ab.devices("cuda"):
                    raise AbsentError("there is no CUDA device")
                yield from set_up(*map(imported, packages))

            return implementation(name)(PREFIX + identifier)(guarded)

        return register

    return benchmark


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


def in_threads(bodies: Sequence[Callable[[int], object]], drain: Callable[[], object]) -> Iterator[Case]:
    """Yield a case whose batches run each body in a thread of its own, all at the same time.

    The value is the time from the first begin to the last end, divided by the calls of all threads.
    """
    start = threading.Barrier(len(bodies))

    def run(body: Callable[[int], object], calls: int) -> tuple[int, int]:
        start.wait()
        begin = time.perf_counter_ns()
        body(calls)
        return begin, time.perf_counter_ns()

    with ThreadPoolExecutor(len(bodies)) as pool:

        def measure(calls: int) -> float:
            # None returns before all have started, so that none runs two.
            times = list(pool.map(run, bodies, [calls] * len(bodies)))
            drain()
            return (max(end for _, end in times) - min(begin for begin, _ in times)) / (calls * len(bodies))

        yield Counted(measure, THREAD_CALLS, "ns", rounds=ROUNDS, warms_up=True)


def pipeline_case(push: Callable[[Any], object], lanes: Sequence[Any], wait: Callable[[Any], object]) -> Case:
    """One call: `push` for chunk after chunk, the lanes taking turns, then `wait` for every lane."""

    def batch(calls: int) -> None:
        for number in range(calls):
            push(lanes[number % LANES])
        for lane in lanes:
            wait(lane)

    return Timed(batch, calls=CHUNKS, rounds=PIPELINE_ROUNDS)
