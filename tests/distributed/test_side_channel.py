"""What a rank hears of the others before it has a communicator with them, of which rank 0 here is a socket."""

from __future__ import annotations

import json
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

import anabranch as ab
from anabranch.distributed import _init
from anabranch.distributed._side_channel import SideChannel

pytestmark = pytest.mark.mpi


class World:
    """Of rank 1, which rank 0 tells where it listens."""

    rank, size = 1, 2

    def __init__(self, listener: socket.socket) -> None:
        self.address = *listener.getsockname(), "secret"

    def gather(self, *_: Any) -> None:
        return None

    def bcast(self, *_: Any) -> tuple[str, int, str]:
        return self.address


class Communicator:
    name, members, rank, size, timeout = "world.0", [0, 1], 1, 2, 60.0
    closed, is_waiting, error, started = False, True, None, 0
    oldest = ""

    def __init__(self) -> None:
        self.failed: list[tuple[str, tuple[int, ...]]] = []
        self.told = threading.Event()

    def fail(self, reason: str, ranks: tuple[int, ...]) -> None:
        self.failed.append((reason, ranks))
        self.told.set()


@pytest.fixture
def rank_0():
    """The side channel of rank 1, and the socket that it is connected to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        side = SideChannel(World(listener))
        connection, _ = listener.accept()
    with connection:
        yield side, connection
        side.close(60)


def told(side: SideChannel, connection: socket.socket, *messages: dict[str, Any]) -> None:
    """Send messages, and wait until they have been heard: an answer follows them."""
    for message in (*messages, {"t": "where", "comm": "world.0", "question": 1}):
        connection.sendall(json.dumps(message).encode() + b"\n")
    text = b""
    while b'"at"' not in text:
        text += connection.recv(4096)


LOST = {"t": "lost", "rank": 0}
FAIL = {"t": "fail", "comm": "world.0", "reason": "rank 0: a kernel has failed", "ranks": [0]}


@pytest.mark.parametrize(
    ("message", "reason"), [(LOST, "rank 0 has died"), (FAIL, FAIL["reason"])], ids=["lost", "fail"]
)
@pytest.mark.parametrize("early", [True, False])
def test_a_communicator_hears_what_was_said_before_it_was_there(rank_0, message, reason, early):
    side, connection = rank_0
    communicator = Communicator()
    if early:
        told(side, connection, message)
        side.register(communicator)
    else:
        side.register(communicator)
        told(side, connection, message)
    assert communicator.failed == [(reason, (0,))]


def test_rank_0_may_die_before_a_communicator_is_there(rank_0):
    side, connection = rank_0
    connection.shutdown(socket.SHUT_RDWR)
    communicator = Communicator()
    side.register(communicator)
    assert communicator.told.wait(60)
    assert communicator.failed == [("rank 0 has died", (0,))]


def test_other_communicators_go_on(rank_0):
    side, connection = rank_0
    told(side, connection, {**FAIL, "comm": "world.1"})
    communicator = Communicator()
    side.register(communicator)
    assert communicator.failed == []


class Interrupted(Communicator):
    """Its waiting call is interrupted, as by the keyboard, when the answer is already on its way."""

    def __init__(self, connection: socket.socket, answer: dict[str, Any]) -> None:
        super().__init__()
        self._left = [(connection, answer)]

    @property
    def error(self) -> None:  # type: ignore[override]
        if self._left:
            connection, answer = self._left.pop()
            message = {"t": "verdict", "comm": self.name, "number": 1, **answer}
            connection.sendall(json.dumps(message).encode() + b"\n")
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("answer", "breaks"),
    [({"error": None, "ranks": []}, True), ({"missing": [0], "instead": []}, False)],
    ids=["all have come", "withdrawn"],
)
def test_a_call_that_an_exception_ends_breaks_the_communicator_if_the_others_go_on(rank_0, answer, breaks):
    side, connection = rank_0
    communicator = Interrupted(connection, answer)
    side._communicators[communicator.name] = communicator
    call = {"what": ["split"], "text": "split()", "place": "main.py:7"}
    with pytest.raises(KeyboardInterrupt):
        side.compare(communicator, 1, call)
    side.announce(t="last")
    sent = b""
    while b'"last"' not in sent:
        sent += connection.recv(4096)
    messages = [json.loads(line) for line in sent.splitlines()]
    reason = "rank 1 has left split() at main.py:7 with KeyboardInterrupt"
    kinds = [message.get("t") for message in messages if message.get("t") in ("call", "withdraw", "fail")]
    assert kinds == ["call", "withdraw", *(["fail"] if breaks else [])]
    assert communicator.failed == ([(reason, (1,))] if breaks else [])


LEFT = {"t": "left", "rank": 0, "started": {}}


@pytest.mark.parametrize(("message", "reason"), [(LOST, "has died"), (LEFT, "has ended")], ids=["lost", "left"])
@pytest.mark.parametrize("early", [True, False])
def test_init_fails_at_once_where_a_rank_is_gone(rank_0, message, reason, early):
    side, connection = rank_0

    def leave() -> None:
        while b'"call"' not in connection.recv(4096):
            pass
        told(side, connection, message)

    leaving = threading.Thread(target=leave)
    if early:
        told(side, connection, message)
    else:
        leaving.start()
    process: Any = SimpleNamespace(side=side, meetings=0)
    with pytest.raises(ab.Error, match=f"^rank 0 {reason}, and init needs all ranks$"):
        _init._meet(process, 60.0)
    if not early:
        leaving.join(60)


@pytest.mark.parametrize(
    ("oldest", "advice"),
    [
        ("recv at main.py:7", "; messages that wait for each other belong in one comm.group()"),
        ("send at main.py:7", "; messages that wait for each other belong in one comm.group()"),
        ("group at main.py:7", ""),
    ],
)
def test_a_late_message_outside_a_group_says_where_it_may_belong(rank_0, oldest, advice):
    side, _ = rank_0
    communicator = Communicator()
    communicator.oldest = oldest
    side.ask_who_is_late(communicator, 0)
    assert communicator.failed == [(f"its 60 s are over{advice}", ())]
