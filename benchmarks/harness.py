"""How a benchmark is written, and how its value is taken.

A benchmark has one ID. Each implementation of it, ours and every twin, is a generator function that sets up, yields a
`Case` and tears down. All implementations of an ID are measured in turn, one batch each, so that what disturbs one
disturbs all; what is compared is the ratio of their medians. Before each batch comes one that does not count, since the
caches are full of what another implementation needed: the value is that of a call in a loop of such calls.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import resource
import statistics
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
OURS = "anabranch"
ROUNDS = 51
QUICK_CALLS = 3
# The calls of each of several threads in a batch: so many that starting the threads does not count.
THREAD_CALLS = 500
# Threads of an OpenMP that has just finished a loop go on looking for the next; they are let come to rest.
REST_SECONDS = 0.02


class AbsentError(Exception):
    """What the implementation needs is not there; the message says what."""


def nothing() -> None:
    pass


class Case:
    """One implementation of a benchmark, set up. `rounds` is how many samples make its median."""

    unit: str
    rounds: int

    def warm_up(self) -> None:
        """Do once what is measured."""

    def sample(self, quick: bool) -> float:
        """Measure once."""
        raise NotImplementedError


@dataclass(frozen=True)
class Timed(Case):
    """The time of one call, in nanoseconds: that of a batch, divided by its number of calls.

    `batch(calls)` is timed and `drain()` is not; it leaves nothing queued.
    """

    batch: Callable[[int], object]
    drain: Callable[[], object] = nothing
    calls: int = 200
    rounds: int = ROUNDS
    unit: str = "ns"

    def warm_up(self) -> None:
        self.batch(self.calls)
        self.drain()

    def sample(self, quick: bool) -> float:
        calls = min(self.calls, QUICK_CALLS) if quick else self.calls
        begin = time.perf_counter_ns()
        self.batch(calls)
        elapsed = time.perf_counter_ns() - begin
        self.drain()
        return elapsed / calls


@dataclass(frozen=True)
class Counted(Case):
    """Whatever `measure(count)` returns, in a unit of its own. `warms_up`: it is done once before."""

    measure: Callable[[int], float]
    count: int
    unit: str
    rounds: int = 3
    warms_up: bool = False

    def warm_up(self) -> None:
        if self.warms_up:
            self.measure(self.count)

    def sample(self, quick: bool) -> float:
        return self.measure(min(self.count, QUICK_CALLS) if quick else self.count)


SetUp = Callable[[], Iterator[Case]]
registry: dict[str, dict[str, SetUp]] = {}


def in_threads(
    makers: Sequence[Callable[[], Callable[[int], object]]], drain: Callable[[], object], calls: int = THREAD_CALLS
) -> Iterator[Case]:
    """Yield a case whose batches run a body in each of several threads, all at the same time.

    Each thread makes its own, and with it what it uses alone, as threads of programs do: without the interpreter lock
    an object costs less in the thread that made it. The value is the time from the first begin to the last end, divided
    by the calls of all threads.
    """
    start = threading.Barrier(len(makers))
    left, mine = list(makers), threading.local()

    def make() -> None:
        mine.body = left.pop()()

    def run(calls: int) -> tuple[int, int]:
        # None returns before all have started, so that none runs two.
        start.wait()
        begin = time.perf_counter_ns()
        mine.body(calls)
        return begin, time.perf_counter_ns()

    with ThreadPoolExecutor(len(makers), initializer=make) as pool:

        def measure(calls: int) -> float:
            times = list(pool.map(run, [calls] * len(makers)))
            drain()
            return (max(end for _, end in times) - min(begin for begin, _ in times)) / (calls * len(makers))

        yield Counted(measure, calls, "ns", rounds=ROUNDS, warms_up=True)


def implementation(name: str) -> Callable[[str], Callable[[SetUp], SetUp]]:
    """Return a decorator factory: `implementation("numpy")("import")` registers NumPy's twin of `import`."""

    def benchmark(identifier: str) -> Callable[[SetUp], SetUp]:
        def register(set_up: SetUp) -> SetUp:
            known = registry.setdefault(identifier, {})
            if name in known:
                raise ValueError(f"{identifier} has two implementations called {name}")
            known[name] = set_up
            return set_up

        return register

    return benchmark


def load() -> dict[str, dict[str, SetUp]]:
    """Import every benchmark and every twin; the registry, ours first."""
    for file in sorted(FOLDER.glob("bench_*.py")):
        importlib.import_module(file.stem)
    for file in sorted(FOLDER.glob("twins/[a-z]*.py")):
        importlib.import_module(f"twins.{file.stem}")
    return registry


@dataclass
class Result:
    """What an implementation measured, or why it did not."""

    unit: str = ""
    samples: list[float] = field(default_factory=list)
    absent: str = ""
    failure: str = ""

    @property
    def value(self) -> float:
        return statistics.median(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.samples) < 2:
            return self.value, self.value
        first, _, third = statistics.quantiles(self.samples, n=4, method="inclusive")
        return first, third


def measure(set_ups: dict[str, SetUp], *, quick: bool = False, parts: int = 1) -> dict[str, Result]:
    """Measure all implementations of one benchmark, interleaved.

    `quick`: each once, as it is set up. `parts`: in how many processes the rounds are done.
    """
    results = {name: Result() for name in set_ups}
    with contextlib.ExitStack() as stack:
        cases: dict[str, Case] = {}
        for name, set_up in set_ups.items():
            with _noted(results[name]):
                context = contextlib.contextmanager(set_up)()
                case = context.__enter__()
                stack.callback(_leave, context, results[name])
                value = case.sample(quick=True)  # compiles, imports, fills caches, and shows what cannot run
                if quick:
                    results[name].samples.append(value)
                results[name].unit = case.unit
                cases[name] = case
        most = max((case.rounds for case in cases.values()), default=0)
        rounds = 0 if quick else -(-most // parts) + 1
        gc.collect()
        gc.disable()
        stack.callback(gc.enable)
        # The first round does not count: it warms up what only a whole batch reaches.
        for turn in range(rounds):
            names = [name for name in cases if not results[name].failure]
            shift = turn % max(len(names), 1)
            for name in names[shift:] + names[:shift]:
                with _noted(results[name]):
                    cases[name].warm_up()
                    value = cases[name].sample(quick=False)
                    if turn > 0:
                        results[name].samples.append(value)
    return results


def _leave(context: contextlib.AbstractContextManager[Case], result: Result) -> None:
    with _noted(result):
        context.__exit__(None, None, None)


@contextlib.contextmanager
def _noted(result: Result) -> Iterator[None]:
    try:
        yield
    except (AbsentError, ModuleNotFoundError) as missing:
        result.absent = str(missing)
    except Exception:
        result.failure = traceback.format_exc()


def repeat(count: int) -> itertools.repeat[None]:
    """The cheapest thing to loop over."""
    return itertools.repeat(None, count)


def in_fresh_process(code: str, *arguments: object, options: tuple[str, ...] = ()) -> str:
    """Run Python code in a new interpreter and return what it printed; an error shows what it wrote to stderr."""
    command = [sys.executable, *options, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"a process ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def resident_bytes() -> int:
    """The memory of this process that is in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
