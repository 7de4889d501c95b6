"""The side channel: the TCP connection of a rank to rank 0, and the thread that reads it."""

from __future__ import annotations

import os
import secrets
import selectors
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from anabranch.distributed import _progress
from anabranch.distributed._connection import Connection, Message
from anabranch.distributed._coordinator import Coordinator

if TYPE_CHECKING:
    from anabranch.distributed._ranks import Ranks

# How often it is asked, once a rank has left, whether something waits for it: it may have completed its part.
_GRACE = 5.0
# Longer than the coordinator waits for the ranks.
_PATIENCE = 5.0

# What MPI says about ranks whose calls do not fit says little to who does not know its internals.
_HINT = '. ab.hazards("check") compares the calls of the ranks first'


class AbsentError(Exception):
    """Ranks have not come to a call in time.

    Attributes
    ----------
    ranks : tuple of int
        Those that have not; empty where nobody could say.
    who, instead : str
        The same in words, and which messages they wait in.
    """

    def __init__(self, ranks: tuple[int, ...], instead: list[str]) -> None:
        who = ranks_of(ranks) if ranks else "another rank has"
        where = f": {' and '.join(instead)}" if instead else ""
        super().__init__(who, where)
        self.ranks = ranks
        self.who = who
        self.instead = where


@dataclass(frozen=True, order=True)
class _Due:
    """A communicator that breaks at a time, if this rank waits for something then.

    Attributes
    ----------
    time : float
        Of the monotonic clock.
    name : str
        The communicator's.
    reason : str
    rank : int
        The one that is to blame.
    started : int or None
        How many operations of all ranks that one has started, and left: what it took part in does not wait for it.
    """

    time: float
    name: str
    reason: str
    rank: int
    started: int | None = None


class Caller(Protocol):
    """Whose calls are compared, such as a communicator."""

    @property
    def name(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def timeout(self) -> float: ...
    @property
    def error(self) -> BaseException | None: ...


class SideChannel:
    """One per process. Its thread also handles the failures that the progress thread reports."""

    def __init__(self, world: Any) -> None:
        self.rank: int = world.rank
        self.size: int = world.size
        self._communicators: dict[str, Ranks] = {}
        self._left: dict[int, dict[str, int]] = {}  # how many operations it had started, by communicator
        self._lost: dict[int, str] = {}  # ranks that have died, with what is known about it
        self._failed: dict[str, Message] = {}  # by the name of a communicator that this rank does not have yet
        self._verdicts: dict[tuple[str, int], Message | None] = {}
        self._comparing: Counter[str] = Counter()  # calls by communicator
        self._changed = threading.Condition()
        self._due: list[_Due] = []
        self._ending = False
        self._coordinator: Coordinator | None = None
        self._connection = self._connect(world) if self.size > 1 else None
        self._bell, self._ringer = os.pipe()
        self._thread = threading.Thread(target=self._run, name="anabranch-ranks", daemon=True)
        self._thread.start()

    def _connect(self, world: Any) -> Connection:
        told = None
        if self.rank == 0:
            one_host = len(set(world.gather(socket.gethostname(), 0))) == 1
            host = "127.0.0.1" if one_host else socket.gethostname()
            listener = socket.create_server((host, 0), backlog=self.size)
            token = secrets.token_hex(16)
            self._coordinator = Coordinator(listener, self.size, token)
            told = host, listener.getsockname()[1], token
        else:
            world.gather(socket.gethostname(), 0)
        host, port, token = world.bcast(told, 0)
        connection = Connection(socket.create_connection((host, port), timeout=60))
        connection.send(token=token, rank=self.rank)
        connection._socket.settimeout(None)
        return connection

    def register(self, communicator: Ranks) -> None:
        """Deliver messages about a communicator to it: those from now on, and what others have heard of already."""
        with self._changed:
            for name, other in list(self._communicators.items()):
                if other.closed and not other.is_waiting:
                    del self._communicators[name]
            self._communicators[communicator.name] = communicator
            lost = self._lost.keys() & set(communicator.members)
            left = self._left.keys() & set(communicator.members)
            failed = self._failed.pop(communicator.name, None)
        for member in lost:
            self._break(communicator, member)
        for member in left:
            self._expect_nothing_from(communicator, member)
        if failed is not None:
            communicator.fail(failed["reason"], tuple(failed["ranks"]))

    def compare(self, communicator: Caller, number: int, call: Message, series: str = "") -> Message | None:
        """Compare a call with those of the other ranks; return what differs, or None. Blocks until all have called.

        Calls have a number within their series. One that an exception ends, such as a KeyboardInterrupt, counts as not
        made. If all ranks had come by then and go on, it breaks the communicator for them, if there is one.

        Raises
        ------
        AbsentError
            They have not, in the communicator's time. The call counts as not made.
        """
        if self._connection is None or communicator.size == 1:
            return None
        key = communicator.name + series, number
        with self._changed:
            self._verdicts[key] = None
            self._comparing[communicator.name] += 1
        try:
            self.announce(
                t="call", comm=key[0], number=number, rank=communicator.rank, size=communicator.size, call=call
            )
            verdict = self._verdict(key, communicator, communicator.timeout)
            if verdict is None and communicator.error is None:
                verdict = self._withdraw(key, communicator)
                if verdict is None and communicator.error is None:
                    verdict = {"missing": [], "instead": []}  # rank 0 is silent
        except BaseException as error:  # a signal handler's, too
            self._leave(key, communicator, f"{call['text']} at {call['place']}", error)
            raise
        finally:
            with self._changed:
                del self._verdicts[key]
                self._comparing[communicator.name] -= 1
        if verdict is not None and "missing" in verdict:
            raise AbsentError(tuple(verdict["missing"]), verdict["instead"])
        return verdict if verdict is not None and verdict["error"] else None

    def _withdraw(self, key: tuple[str, int], communicator: Caller) -> Message | None:
        """Take a call back; return the coordinator's answer, which is the verdict if all ranks have just come."""
        self.announce(t="withdraw", comm=key[0], number=key[1], rank=communicator.rank)
        return self._verdict(key, communicator, _PATIENCE)

    def _leave(self, key: tuple[str, int], communicator: Caller, call: str, error: BaseException) -> None:
        """Take back a call that an exception ends. If all ranks have made it and go on, break the communicator."""
        verdict = self._withdraw(key, communicator)
        if verdict is None or "missing" in verdict or verdict["error"]:
            return
        reason = f"rank {communicator.rank} has left {call} with {_first_line(error)}"
        self.announce(t="fail", comm=communicator.name, reason=reason, ranks=[communicator.rank])
        own = self._communicators.get(communicator.name)
        if own is not None:
            own.fail(reason, (communicator.rank,))

    def _verdict(self, key: tuple[str, int], communicator: Caller, timeout: float) -> Message | None:
        """Wait for the coordinator's answer; return None where there is none in time, or the communicator breaks."""
        with self._changed:
            self._changed.wait_for(lambda: self._verdicts[key] is not None or communicator.error is not None, timeout)
            return self._verdicts[key]

    @property
    def gone(self) -> str:
        """Which rank is gone and why, such as ``rank 2 has died``; empty while all are there."""
        with self._changed:
            gone = {**dict.fromkeys(self._left, "has ended"), **self._lost}
            return f"rank {min(gone)} {gone[min(gone)]}" if gone else ""

    def announce(self, **message: Any) -> None:
        """Send a message to the coordinator, if there is one."""
        if self._connection is not None:
            self._connection.send(**message)

    def close(self, timeout: float, error: BaseException | None = None) -> None:
        """Say goodbye, or which error ends this process, and end the threads."""
        self._ending = True
        if error is None:
            with self._changed:
                started = {name: communicator.started for name, communicator in self._communicators.items()}
            self.announce(t="bye", started=started)
        else:
            self.announce(t="died", why=f"has ended with {_first_line(error)}")
        os.write(self._ringer, b"x")
        self._thread.join(timeout)
        if self._connection is not None:
            self._connection.close()
        if self._coordinator is not None:
            self._coordinator.join(timeout)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(_progress.descriptor(), selectors.EVENT_READ, self._take_failures)
            selector.register(self._bell, selectors.EVENT_READ, self._answer_bell)
            if self._connection is not None:
                selector.register(self._connection, selectors.EVENT_READ, self._hear)
            while not self._ending:
                for key, _ in selector.select(self._until_due()):
                    if not key.data():
                        selector.unregister(key.fileobj)
                self._act_on_due()

    def _answer_bell(self) -> bool:
        os.read(self._bell, 64)
        return True

    def _until_due(self) -> float | None:
        with self._changed:
            return max(0.0, min(self._due).time - time.monotonic()) if self._due else None

    def _act_on_due(self) -> None:
        now = time.monotonic()
        with self._changed:
            due = [one for one in self._due if one.time <= now]
            self._due = [one for one in self._due if one.time > now]
        for one in due:
            communicator = self._communicators.get(one.name)
            if communicator is None or communicator.error is not None:
                continue
            if communicator.closed and not communicator.is_waiting:
                continue
            if one.started is None:
                breaks = communicator.is_waiting
            else:
                breaks = communicator.lacks(one.rank, one.started)
            if breaks or self._comparing[one.name]:
                communicator.fail(one.reason, (one.rank,))
                self.wake()
            elif one.started is not None:
                self._fail_at(replace(one, time=now + _GRACE))

    def _expect_nothing_from(self, communicator: Ranks, member: int) -> None:
        """Break a communicator once something waits for a rank that has ended."""
        started = self._left[member].get(communicator.name)
        if started is None:  # it had closed the communicator: what it took part in is not known
            return
        rank = communicator.members.index(member)
        self._fail_at(_Due(time.monotonic() + _GRACE, communicator.name, f"rank {rank} has ended", rank, started))

    def _fail_at(self, due: _Due) -> None:
        with self._changed:
            self._due.append(due)
        os.write(self._ringer, b"x")

    def _break(self, communicator: Ranks, member: int) -> None:
        rank = communicator.members.index(member)
        communicator.fail(f"rank {rank} {self._lost[member]}", (rank,))

    def _take_failures(self) -> bool:
        for channel, number, late, text in _progress.take_failures():
            for communicator in list(self._communicators.values()):
                if not communicator.has_channel(channel) or communicator.error is not None:
                    continue
                if late:
                    self.ask_who_is_late(communicator, number)
                else:
                    reason = f"rank {communicator.rank} has given up: {text}"
                    if not text.startswith("its stream"):
                        reason += _HINT
                    communicator.fail(reason, (communicator.rank,))
                    self.announce(t="fail", comm=communicator.name, reason=reason, ranks=[communicator.rank])
        return True

    def ask_who_is_late(self, communicator: Ranks, number: int) -> None:
        """Break a communicator whose operation is late, with the ranks that have not come to it. Any thread."""
        reason = f"its {communicator.timeout:g} s are over"
        if self._connection is None or number == 0:
            # Of a message this rank knows as much as anybody.
            if communicator.oldest.startswith(("send at ", "recv at ")):
                reason += "; messages that wait for each other belong in one comm.group()"
            self._tell_late(communicator, reason, ())
            return
        self.announce(t="where", comm=communicator.name, number=number, members=communicator.members)
        silent = f"{reason}, and rank 0 is silent"
        self._fail_at(_Due(time.monotonic() + _PATIENCE, communicator.name, silent, 0))

    def _tell_late(self, communicator: Ranks, reason: str, missing: tuple[int, ...]) -> None:
        """Break a communicator whose oldest operation is late; the other ranks hear which one."""
        late = communicator.oldest
        communicator.fail(reason, missing)
        reason = f"{late} of rank {communicator.rank}: {reason}" if late else reason
        self.announce(t="fail", comm=communicator.name, reason=reason, ranks=list(missing))

    def _hear(self) -> bool:
        assert self._connection is not None
        messages = self._connection.receive()
        if messages is None:
            if 0 not in self._left:
                self._on_lost({"rank": 0})
            return False
        for message in messages:
            getattr(self, f"_on_{message['t']}")(message)
        return True

    def _on_verdict(self, message: Message) -> None:
        with self._changed:
            key = message["comm"], message["number"]
            if key in self._verdicts:
                self._verdicts[key] = message
            self._changed.notify_all()

    def _on_fail(self, message: Message) -> None:
        with self._changed:
            communicator = self._communicators.get(message["comm"])
            if communicator is None:
                self._failed[message["comm"]] = message
        if communicator is not None:
            communicator.fail(message["reason"], tuple(message["ranks"]))
        self.wake()

    def wake(self) -> None:
        """Wake up the waiting calls, which then test their condition again."""
        with self._changed:
            self._changed.notify_all()

    def _on_lost(self, message: Message) -> None:
        with self._changed:
            self._lost.setdefault(message["rank"], message.get("why", "has died"))  # rank 0 is lost a second time
            communicators = list(self._communicators.values())
        for communicator in communicators:
            if message["rank"] in communicator.members:
                self._break(communicator, message["rank"])
        self.wake()

    def _on_left(self, message: Message) -> None:
        with self._changed:
            self._left[message["rank"]] = message["started"]
            self._changed.notify_all()
        for communicator in list(self._communicators.values()):
            if message["rank"] in communicator.members:
                self._expect_nothing_from(communicator, message["rank"])

    def _on_where(self, message: Message) -> None:
        communicator = self._communicators.get(message["comm"])
        started = communicator.started if communicator is not None else 0
        self.announce(t="at", question=message["question"], started=started)

    def _on_arrived(self, message: Message) -> None:
        communicator = self._communicators.get(message["comm"])
        if communicator is None or communicator.error is not None:
            return
        missing = tuple(communicator.members.index(rank) for rank in message["missing"])
        reason = f"its {communicator.timeout:g} s are over"
        if missing:
            reason += f", and {ranks_of(missing)} not arrived"
        self._tell_late(communicator, reason, missing)


def _first_line(error: BaseException) -> str:
    text, _, more = str(error).partition("\n")
    return f"{type(error).__name__}: {text}{' …' if more else ''}" if text else type(error).__name__


def ranks_of(ranks: tuple[int, ...]) -> str:
    """Return ``rank 1 has`` or ``ranks 1, 2 have``."""
    return f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"
