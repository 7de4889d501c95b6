"""The coordinator on rank 0: compares calls, forwards failures, and detects lost ranks."""

from __future__ import annotations

import hmac
import selectors
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from anabranch.distributed._connection import Connection, Message

# Seconds in which ranks must answer a question.
_PATIENCE = 2.0


@dataclass
class _Question:
    """Asks all ranks whether they have started a collective, on behalf of a rank that timed out."""

    asker: int
    message: Message
    deadline: float
    open: set[int]
    missing: list[int] = field(default_factory=list)


class Coordinator:
    """A thread that all ranks are connected to.

    Parameters
    ----------
    listener : socket.socket
    size : int
    token : str
        The secret that a rank must send to connect.
    """

    def __init__(self, listener: socket.socket, size: int, token: str) -> None:
        self._listener = listener
        self._size = size
        self._token = token
        self._connections: dict[int, Connection] = {}
        self._left: set[int] = set()
        self._calls: dict[tuple[str, int], dict[int, Message]] = {}
        self._messages: dict[tuple[Any, ...], Message] = {}
        self._questions: dict[int, _Question] = {}
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name="anabranch-ranks-coordinator", daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait until all ranks are gone."""
        self._thread.join(timeout)

    def _run(self) -> None:
        early: list[tuple[int, list[Message]]] = []
        with self._listener:
            while len(self._connections) < self._size:
                early += self._accept()
        for rank, connection in self._connections.items():
            self._selector.register(connection, selectors.EVENT_READ, rank)
        for rank, messages in early:
            self._act_on(rank, messages)
        while self._connections:
            for key, _ in self._selector.select(self._until_due()):
                self._hear(key.data)
            self._give_up()

    def _accept(self) -> list[tuple[int, list[Message]]]:
        # Returns a rank with what came together with its hello: it does not wait for an answer.
        accepted, _ = self._listener.accept()
        accepted.settimeout(5)
        connection = Connection(accepted)
        while (messages := connection.receive()) == []:
            pass
        accepted.settimeout(None)
        if messages and hmac.compare_digest(str(messages[0].get("token")), self._token):
            hello, *others = messages
            self._connections[int(hello["rank"])] = connection
            return [(int(hello["rank"]), others)]
        connection.close()
        return []

    def _hear(self, rank: int) -> None:
        messages = self._connections[rank].receive()
        if messages is None:
            self._lose(rank)
        else:
            self._act_on(rank, messages)

    def _act_on(self, rank: int, messages: list[Message]) -> None:
        for message in messages:
            getattr(self, f"_on_{message['t']}")(rank, message)

    def _lose(self, rank: int) -> None:
        connection = self._connections.pop(rank)
        self._selector.unregister(connection)
        connection.close()
        if rank not in self._left:
            self._tell_all(t="lost", rank=rank)
        for question in self._questions.values():
            if rank in question.open:
                question.open.discard(rank)
                question.missing.append(rank)
        self._answer_settled()

    def _tell_all(self, but: int = -1, **message: Any) -> None:
        for rank, connection in list(self._connections.items()):
            if rank != but:
                connection.send(**message)

    def _on_bye(self, rank: int, message: Message) -> None:
        self._left.add(rank)
        self._tell_all(but=rank, t="left", rank=rank, started=message["started"])

    def _on_died(self, rank: int, message: Message) -> None:
        self._left.add(rank)
        self._tell_all(but=rank, t="lost", rank=rank, why=message["why"])

    def _on_fail(self, rank: int, message: Message) -> None:
        self._tell_all(but=rank, **message)

    def _on_call(self, rank: int, message: Message) -> None:
        key = message["comm"], message["number"]
        calls = self._calls.setdefault(key, {})
        calls[message["rank"]] = {**message, "world": rank}
        if len(calls) < message["size"] or any("withdrawn" in call for call in calls.values()):
            return
        del self._calls[key]
        error, ranks = disagreement([calls[each] for each in sorted(calls)])
        for call in calls.values():
            if call["world"] in self._connections:
                self._connections[call["world"]].send(t="verdict", comm=key[0], number=key[1], error=error, ranks=ranks)

    def _on_withdraw(self, rank: int, message: Message) -> None:
        # Where all have come in the meantime, their verdict is on its way instead of an answer.
        key = message["comm"], message["number"]
        calls = self._calls.get(key)
        if calls is None or message["rank"] not in calls:
            return
        withdrawn = calls[message["rank"]]
        withdrawn["withdrawn"] = True
        absent = [each for each in range(withdrawn["size"]) if each not in calls]
        missing = absent or [each for each, call in calls.items() if each != message["rank"] and "withdrawn" in call]
        communicator = key[0].partition(" ")[0]
        instead = [
            f"rank {one['rank']} calls {one['call']['text']} at {one['call']['place']}"
            for one in self._messages.values()  # those that nobody has answered
            if one["comm"] == communicator and one["rank"] in missing
        ]
        self._connections[rank].send(t="verdict", comm=key[0], number=key[1], missing=missing, instead=instead)
        if all("withdrawn" in call for call in calls.values()):
            del self._calls[key]

    def _on_message(self, rank: int, message: Message) -> None:
        key = message["comm"], message["source"], message["to"], message["number"]
        if key not in self._messages:
            self._messages[key] = message
            return
        both = sorted((self._messages.pop(key), message), key=lambda one: one["rank"])
        if both[0]["call"]["what"] != both[1]["call"]["what"]:
            error, ranks = disagreement(both)
            self._tell_all(t="fail", comm=message["comm"], reason=error, ranks=ranks)

    def _on_where(self, rank: int, message: Message) -> None:
        others = {each for each in message["members"] if each != rank}
        number = max(self._questions, default=0) + 1
        gone = [each for each in others if each not in self._connections]
        question = _Question(rank, message, time.monotonic() + _PATIENCE, others - set(gone), gone)
        self._questions[number] = question
        for each in question.open:
            self._connections[each].send(t="where", comm=message["comm"], question=number)
        self._answer_settled()

    def _on_at(self, rank: int, message: Message) -> None:
        question = self._questions.get(message["question"])
        if question is None:
            return
        question.open.discard(rank)
        if message["started"] < question.message["number"]:
            question.missing.append(rank)
        self._answer_settled()

    def _answer_settled(self) -> None:
        for number, question in list(self._questions.items()):
            if question.open:
                continue
            del self._questions[number]
            if question.asker in self._connections:
                self._connections[question.asker].send(
                    t="arrived", comm=question.message["comm"], missing=sorted(question.missing)
                )

    def _until_due(self) -> float | None:
        if not self._questions:
            return None
        return max(0.0, min(question.deadline for question in self._questions.values()) - time.monotonic())

    def _give_up(self) -> None:
        for question in self._questions.values():
            if question.deadline <= time.monotonic():
                question.missing += question.open
                question.open.clear()
        self._answer_settled()


def disagreement(calls: list[Message]) -> tuple[str | None, list[int]]:
    """Return how the first call that differs from that of the lowest rank does so, and the two ranks; None: none does.

    A call is a dict with ``rank`` and ``call``, which has ``what`` (all that has to be equal, or, of messages, that has
    to fit), ``text`` and ``place``.
    """
    first = calls[0]
    for other in calls[1:]:
        if other["call"]["what"] != first["call"]["what"]:
            text = " and ".join(
                f"rank {one['rank']} calls {one['call']['text']} at {one['call']['place']}" for one in (first, other)
            )
            return f"{text}: call number {first['number']} of the communicator differs", [first["rank"], other["rank"]]
    return None, []
