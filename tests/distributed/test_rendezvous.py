"""The server that ranks meet at, without MPI."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest

from anabranch.distributed._rendezvous import Server


class Rank:
    """Says hello to the server in a thread of its own."""

    def __init__(self, server: Server, rank: int, size: int) -> None:
        self._answers: SimpleQueue[str] = SimpleQueue()
        self._thread = threading.Thread(target=lambda: self._answers.put(server._meet(rank, size)))
        self._thread.start()

    def answer(self) -> str:
        self._thread.join(60)
        return self._answers.get(timeout=1)


@pytest.mark.parametrize(
    ("rank", "size", "contradiction"),
    [
        (1, 2, "rank 1 says that there are 2 ranks, rank 0 says 3"),
        (3, 4, "rank 3 says that there are 4 ranks, rank 0 says 3"),
        (0, 3, "two processes say that they are rank 0"),
    ],
)
def test_a_contradiction_is_told_at_once_to_all_that_wait(rank, size, contradiction):
    server = Server(3, timeout=600)
    first = Rank(server, 0, 3)
    with server._changed:
        assert server._changed.wait_for(lambda: server._present, 60)
    assert Rank(server, rank, size).answer() == contradiction
    assert first.answer() == contradiction
    assert Rank(server, 2, 3).answer() == contradiction


def test_who_comes_after_all_were_there_stops_nobody():
    server = Server(2, timeout=600)
    ranks = [Rank(server, rank, 2) for rank in range(2)]
    assert [rank.answer() for rank in ranks] == ["ready", "ready"]
    assert Rank(server, 1, 2).answer() == "two processes say that they are rank 1"
    assert not server._contradiction


def test_ranks_that_do_not_come_are_named():
    assert Rank(Server(4, timeout=0.01), 1, 4).answer() == "missing 0, 2, 3"
