"""The heat example's steps on ranks that are simulated: events with a clock of their own, and no threads.

What a step is made of and what waits for what is as in ``examples/heat_distributed.py``: two border rows, then the
exchange with the neighbours, on one stream; the inside of the band on another. A rank computes one thing at a time, the
border first. A message of n bytes leaves its rank ``beta * n`` after those before it, and is there ``alpha`` later.
The same numbers come out each time: what varies is drawn from what was measured, by a generator with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import NamedTuple


class Machine(NamedTuple):
    """What the model knows about a machine; times in seconds."""

    alpha: float  # of a message, whatever its size
    beta: float  # of each of its bytes
    row_bytes: int  # of a row, which is what neighbours need
    border: float  # of the kernels of both border rows
    launch: float  # of the kernel of the inside, whatever its size
    row: float  # of each of its rows
    host: float  # of enqueuing a step
    # How much longer than that a message or the inside has taken: factors, of which each time one is drawn.
    late: tuple[float, ...] = (1.0,)
    slow: tuple[float, ...] = (1.0,)


class Span(NamedTuple):
    """From when to when."""

    begin: float
    end: float


class Outcome(NamedTuple):
    """What a simulation has come to."""

    hidden: float  # share of the exchanges' time in which the inside was computed, as the example prints it
    step: float  # seconds of a step


class Transport:
    """Messages that take as long as alpha and beta say; those of one rank leave it one after the other."""

    def __init__(self, ranks: int, machine: Machine) -> None:
        self._machine, self._random = machine, Random(1)
        self._free = [0.0] * ranks

    def send(self, now: float, source: int, nbytes: int) -> float:
        """Return when a message arrives that is sent now."""
        self._free[source] = max(now, self._free[source]) + self._machine.beta * nbytes
        return self._free[source] + self._machine.alpha * self._random.choice(self._machine.late)


class Rank:
    """A band of the plate, and how far its steps are."""

    def __init__(self, simulation: Simulation, index: int, height: int) -> None:
        self.simulation, self.index = simulation, index
        self.neighbours = [each for each in (index - 1, index + 1) if 0 <= each < simulation.size]
        machine = simulation.machine
        self.border, self.inside = machine.border, machine.launch + machine.row * (height - 2)
        self.issued = 0
        self.done = {"border": 0, "inside": 0, "exchange": 0}
        self.arrived = [0] * simulation.steps
        self.began: list[float] = []  # of exchanges
        self.exchanges: list[Span] = []
        self.insides: list[Span] = []
        # What is computed; what is left of an inside that gave way to the border, and when it began.
        self.running = ""
        self.since, self.turn = 0.0, 0
        self.left: float | None = None
        self.inside_began = 0.0

    def issue(self) -> None:
        """Enqueue a step: the host's part."""
        self.issued += 1
        if self.issued < self.simulation.steps:
            self.simulation.at(self.simulation.now + self.simulation.machine.host, self.issue)
        self.go_on()

    def go_on(self) -> None:
        """Start what can be computed now, unless what is computed comes first."""
        simulation = self.simulation
        border, inside, exchange = self.done["border"], self.done["inside"], self.done["exchange"]
        if self.running != "border" and self.issued > border and exchange >= border and inside >= border:
            if self.running:
                assert self.left is not None
                self.left -= simulation.now - self.since
            self._start("border", self.border)
        elif not self.running and self.issued > inside and border >= inside:
            if self.left is None:
                self.left = self.inside * simulation.random.choice(simulation.machine.slow)
                self.inside_began = simulation.now
            self._start("inside", self.left)

    def _start(self, part: str, time: float) -> None:
        self.running, self.since = part, self.simulation.now
        self.turn += 1
        self.simulation.at(self.since + time, self.finish, self.turn)

    def finish(self, turn: int) -> None:
        """End what is computed, if it is still that of this turn."""
        if turn != self.turn:
            return
        part, self.running = self.running, ""
        self.done[part] += 1
        if part == "inside":
            self.left = None
            self.insides.append(Span(self.inside_began, self.simulation.now))
        else:
            self.exchange()
        self.go_on()

    def exchange(self) -> None:
        """Send the border rows of the step that has just been computed."""
        simulation, step = self.simulation, self.done["border"] - 1
        self.began.append(simulation.now)
        for neighbour in self.neighbours:
            arrival = simulation.transport.send(simulation.now, self.index, simulation.machine.row_bytes)
            simulation.at(arrival, simulation.ranks[neighbour].receive, step)
        self.complete(step)

    def receive(self, step: int) -> None:
        """Take a neighbour's row."""
        self.arrived[step] += 1
        self.complete(step)
        self.go_on()

    def complete(self, step: int) -> None:
        """End the exchange of a step, if it has begun and all rows are there."""
        if step == len(self.began) - 1 == self.done["exchange"] and self.arrived[step] == len(self.neighbours):
            self.done["exchange"] += 1
            if self.neighbours:
                self.exchanges.append(Span(self.began[step], self.simulation.now))

    def hidden(self) -> float:
        """Return the share of its exchanges' time in which it computed the inside."""
        covered, first = 0.0, 0
        for exchange in self.exchanges:
            while first < len(self.insides) and self.insides[first].end <= exchange.begin:
                first += 1
            for inside in self.insides[first:]:
                if inside.begin >= exchange.end:
                    break
                covered += min(exchange.end, inside.end) - max(exchange.begin, inside.begin)
        return covered / (sum(each.end - each.begin for each in self.exchanges) or 1.0)


class Simulation:
    """Ranks that share a plate of so many rows, and the events to come, in the order of their times."""

    def __init__(self, machine: Machine, size: int, rows: int, steps: int) -> None:
        if rows < 3 * size:
            raise ValueError(f"a band has 3 rows or more, for which {rows} rows are not enough on {size} ranks")
        self.machine, self.size, self.steps, self.now = machine, size, steps, 0.0
        self.random = Random(0)
        self.transport = Transport(size, machine)
        self.ranks = [Rank(self, rank, (rank + 1) * rows // size - rank * rows // size) for rank in range(size)]
        self._events: list[tuple[float, int, Callable[..., None], tuple[int, ...]]] = []
        self._number = count()  # of two events at one time, the earlier made comes first

    def at(self, time: float, action: Callable[..., None], *arguments: int) -> None:
        """Have something happen later."""
        heappush(self._events, (time, next(self._number), action, arguments))

    def run(self) -> Outcome:
        """Let everything happen."""
        for rank in self.ranks:
            self.at(self.machine.host, rank.issue)
        while self._events:
            self.now, _, action, arguments = heappop(self._events)
            action(*arguments)
        return Outcome(sum(rank.hidden() for rank in self.ranks) / self.size, self.now / self.steps)


def predict(machine: Machine, size: int, rows: int, steps: int = 12) -> Outcome:
    """Return what the example is to show on so many ranks."""
    return Simulation(machine, size, rows, steps).run()
