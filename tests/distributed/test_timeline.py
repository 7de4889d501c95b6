"""The traces of several ranks as one, without the ranks."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import pytest

from anabranch._trace.operation import Operation
from anabranch.distributed import _timeline


@dataclass
class Control:
    """A communicator of two ranks that are threads."""

    rank: int
    queues: list[SimpleQueue[Any]]
    size: int = 2

    def send(self, message: Any, rank: int) -> None:
        self.queues[rank].put(message)

    def recv(self, *, source: int) -> Any:
        return self.queues[self.rank].get(timeout=60)


def clocks(monkeypatch: pytest.MonkeyPatch, readings: Any) -> list[tuple[float, float]]:
    """What rank 0 finds out about two ranks' clocks; `readings` is called for each reading, with the rank."""
    queues: list[SimpleQueue[Any]] = [SimpleQueue(), SimpleQueue()]
    other = threading.Thread(target=_timeline._clocks, args=[Control(1, queues)])
    monkeypatch.setattr(_timeline, "now", lambda: readings(int(threading.current_thread() is other)))
    other.start()
    found = _timeline._clocks(Control(0, queues))
    other.join()
    return found


def test_each_exchange_narrows_how_far_clocks_are_apart(monkeypatch):
    # The second rank is 5000 ahead. Half of the messages are slow on their way there, half on their way back.
    time, reads = 0, 0

    def read(rank: int) -> int:
        nonlocal time, reads
        slow = reads % 6 in (1, 5)
        time, reads = time + (100_000 if slow else 1_000), reads + 1
        return time + 5_000 * rank

    ((_, none), (ahead, error)) = clocks(monkeypatch, read)
    assert none == 0
    assert error <= 1_000
    assert abs(ahead - 5_000) <= error


def test_clocks_that_stay_apart_end(monkeypatch):
    time = 0

    def read(rank: int) -> int:
        nonlocal time
        time += 50_000_000
        return time

    (_, (ahead, error)) = clocks(monkeypatch, read)
    assert error == 50_000_000
    assert abs(ahead) <= error


def operation(begin: float, end: float) -> Operation:
    stream: Any = None
    device: Any = None
    return Operation("collective", "world all_reduce #2", stream, device, begin, end)


def test_a_rank_waits_for_the_last():
    first, last = operation(1.0, 4.0), operation(3.0, 4.1)
    wait, after, untouched = _timeline._with_arrivals([[first], [last]])
    assert (wait.kind, wait.begin, wait.end, wait.source) == ("wait", 1.0, 3.0, last)
    assert (after.kind, after.begin, after.end) == ("collective", 3.0, 4.0)
    assert untouched is last


def test_a_rank_that_ended_before_the_last_began_waited_all_the_same():
    # The clocks are off by more than the collective took after the last rank had come.
    first, last = operation(1.0, 2.9), operation(3.0, 4.1)
    wait, after, _ = _timeline._with_arrivals([[first], [last]])
    assert (wait.begin, wait.end, wait.source) == (1.0, 2.9, last)
    assert (after.begin, after.end) == (2.9, 2.9)


def test_what_a_rank_skipped_waits_for_nobody_and_stays_marked():
    stream: Any = None
    device: Any = _timeline.RankDevice("cpu:0")
    names = {"skipped": (False, True), "failed": (True, False), "ran": (False, False)}
    operations = [
        Operation("collective", "world all_reduce #2", stream, device, 1.0, 1.0, failed=failed, skipped=skipped)
        for failed, skipped in names.values()
    ]
    (skipped, failed, ran) = _timeline._operations(_timeline._rows(operations, 0), "rank 0 ", "", 0)
    assert [(each.failed, each.skipped) for each in (skipped, failed, ran)] == list(names.values())
    late = operation(3.0, 4.0)
    assert _timeline._with_arrivals([[skipped], [late]]) == [skipped, late]
