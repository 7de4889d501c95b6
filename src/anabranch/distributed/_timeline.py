"""The traces of several ranks as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from anabranch._trace.lanes import stream_label
from anabranch._trace.operation import Operation
from anabranch.distributed._progress import now

# Messages between two ranks go on until their clocks are known to within `_CLOSE` ns, or for `_PATIENCE` ns.
_EXCHANGES = 16
_CLOSE = 20_000
_PATIENCE = 1_000_000_000
# As the core's channel names what all ranks take part in.
_COMMON = re.compile(r" (.*)#(\d+)$")


@dataclass(frozen=True)
class RankDevice:
    """A device of a rank, as a timeline needs it."""

    alias: str


@dataclass(frozen=True)
class RankStream:
    """A stream of a rank, as a timeline needs it."""

    device: RankDevice
    name: str
    key: int


@dataclass
class _Row:
    """An operation on its way to rank 0. Times are nanoseconds of the rank's clock."""

    kind: Any
    name: str
    stream: str | None
    key: int
    device: str
    begin: float
    end: float
    file: str | None
    line: int | None
    added: bool
    nbytes: int | None
    failed: bool
    skipped: bool
    source: int | None


def joint(control: Any, operations: Sequence[Operation] | Exception, began: int) -> list[Operation] | None:
    """Gather the operations of all ranks. Returns them on rank 0, None elsewhere.

    Parameters
    ----------
    control : mpi4py.MPI.Comm
    operations : sequence of Operation or Exception
        Of this rank, in the order of enqueueing; or on rank 0, why it cannot write them. Then all ranks raise that.
    began : int
        When its trace began, in nanoseconds of its clock.
    """
    error = control.bcast(operations if control.rank == 0 and isinstance(operations, Exception) else None, 0)
    if error is not None:
        if control.rank != 0:
            error.add_note("Raised on rank 0, which writes the file.")
        raise error
    assert not isinstance(operations, Exception)
    ahead = _clocks(control)
    gathered = control.gather([asdict(row) for row in _rows(operations, began)], 0)
    if gathered is None:
        return None
    ranks = []
    for rank, (rows, (offset, error)) in enumerate(zip(gathered, ahead, strict=True)):
        off = f" (clock within {max(1, round(error / 1e3))} µs)" if rank else ""
        ranks.append(_operations([_Row(**row) for row in rows], f"rank {rank} ", off, offset))
    first = min((operation.begin for of_rank in ranks for operation in of_rank), default=0.0)
    return _shifted(_with_arrivals(ranks), -first)


def _clocks(control: Any) -> list[tuple[float, float]]:
    # On rank 0: how far the clock of each rank is ahead of its own, in ns, and how far off that may be.
    if control.rank != 0:
        while control.recv(source=0):
            control.send(now(), 0)
        return []
    found = [(0.0, 0.0)]
    for rank in range(1, control.size):
        least, most = -float("inf"), float("inf")
        began, exchanges = now(), 0
        while exchanges < _EXCHANGES or (most - least > 2 * _CLOSE and now() - began < _PATIENCE):
            asked = now()
            control.send(True, rank)
            theirs, answered = control.recv(source=rank), now()
            # They read their clock between the two readings of this one: each exchange narrows the range.
            least, most = max(least, theirs - answered), min(most, theirs - asked)
            exchanges += 1
        control.send(False, rank)
        found.append(((least + most) / 2, abs(most - least) / 2))
    return found


def _rows(operations: Sequence[Operation], began: int) -> list[_Row]:
    numbers = {operation: number for number, operation in enumerate(operations)}
    streams: dict[Any, int] = {}
    return [
        _Row(
            each.kind,
            each.name,
            None if each.stream is None else stream_label(each.stream),
            streams.setdefault(each.stream, len(streams)),
            each.device.alias,
            began + each.begin * 1e6,
            began + each.end * 1e6,
            each.file,
            each.line,
            each.added,
            each.nbytes,
            each.failed,
            each.skipped,
            None if each.source is None else numbers.get(each.source),
        )
        for each in operations
    ]


def _operations(rows: list[_Row], before: str, after: str, ahead: float) -> list[Operation]:
    made: list[Operation] = []
    for row in rows:
        device: Any = RankDevice(f"{before}{row.device}{after}")
        stream: Any = None if row.stream is None else RankStream(device, row.stream, row.key)
        begin, end = (row.begin - ahead) * 1e-6, (row.end - ahead) * 1e-6
        source = made[row.source] if row.source is not None and row.source < len(made) else None
        where = row.file, row.line, row.added, row.nbytes, source
        made.append(
            Operation(row.kind, row.name, stream, device, begin, end, *where, failed=row.failed, skipped=row.skipped)
        )
    return made


def _takes_part(operation: Operation) -> bool:
    return operation.kind == "collective" and not operation.skipped


def _with_arrivals(ranks: list[list[Operation]]) -> list[Operation]:
    # What all ranks take part in begins when the last of them has come to it; the others wait for that one.
    last: dict[str, Operation] = {}
    for operation in (each for of_rank in ranks for each in of_rank if _takes_part(each)):
        call = _COMMON.search(operation.name)
        if call and (call[0] not in last or last[call[0]].begin < operation.begin):
            last[call[0]] = operation
    shown = []
    for operation in (each for of_rank in ranks for each in of_rank):
        call = _COMMON.search(operation.name) if _takes_part(operation) else None
        latest = last[call[0]] if call else operation
        # No rank goes on before the last one has come: where it seems so, the clocks are off by the difference.
        came = min(latest.begin, operation.end)
        if came <= operation.begin:
            shown.append(operation)
            continue
        wait = replace(operation, kind="wait", name="wait", end=came, nbytes=None, source=latest)
        shown += [wait, replace(operation, begin=came)]
    return shown


def _shifted(operations: list[Operation], by: float) -> list[Operation]:
    moved: dict[Operation, Operation] = {}
    for operation in operations:
        moved[operation] = replace(operation, begin=operation.begin + by, end=operation.end + by)
    for each in moved.values():
        # Nobody has seen the copies yet. A source is a copy, too, and may have one itself.
        object.__setattr__(each, "source", None if each.source is None else moved.get(each.source))
    return list(moved.values())
