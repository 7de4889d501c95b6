"""The schedules that a program may have, and their classes: by search, with nothing of the library.

The host takes its steps one after the other, and each operation runs at one moment after it was enqueued. A schedule is
one order of all these that the rules of streams allow. Two schedules are of one class if each query is answered alike
in both and each two operations that conflict, by the elements that they access, run in the same order: one can then be
turned into the other by swapping neighbours that do not depend on each other (Mazurkiewicz).

Sets of operations are numbers with a bit for each step. With `added`, an operation comes after all earlier ones that it
conflicts with, too: that is what hazards "auto" make of a program.
"""

from dataclasses import dataclass, replace

from .program import SIZE


class DeadlockError(Exception):
    """Some schedule gets stuck."""


@dataclass(frozen=True)
class Host:
    """How far the host has come."""

    step: int
    answers: tuple  # step and answer of each query
    before: tuple  # each operation that is enqueued, and what must have run before it
    tails: tuple  # of each stream: what has run when all of it has
    records: tuple  # of each event: None, or the stream, and what has run when the newest record is complete
    opened: int  # gates


def begin(program):
    return Host(0, (), (), (0,) * len(program.devices), (None,) * len(program.events), 0)


def other_side(program, host, stream):
    """Return what the order of the legacy stream puts before a stream's next operation."""
    wanted = {"legacy": "blocking", "blocking": "legacy"}.get(program.roles[stream])
    found = 0
    for number, role in enumerate(program.roles):
        if role == wanted and program.devices[number] == program.devices[stream]:
            found |= host.tails[number]
    return found


def seen(program, host, step):
    """Return what must have run for a host wait to be over, or a query to be answered with True."""
    if step.kind == "result":
        return 1 << step.other
    if step.kind in ("query_event", "synchronize_event"):
        return host.records[step.other][1] if host.records[step.other] else 0
    tail = host.tails[step.stream]
    return tail | other_side(program, host, step.stream) if program.roles[step.stream] == "legacy" else tail


def put(values, number, value):
    return (*values[:number], value, *values[number + 1 :])


def marked(program, host, stream, also=0):
    """Return the host after it has put a marker into a stream that comes after `also`, too."""
    # All on the legacy stream of a device are one queue.
    tail = host.tails[stream] | other_side(program, host, stream) | also
    return replace(host, tails=put_all(program, host.tails, stream, tail)), tail


def put_all(program, tails, stream, tail):
    if program.roles[stream] != "legacy":
        return put(tails, stream, tail)
    same = [
        role == "legacy" and device == program.devices[stream]
        for role, device in zip(program.roles, program.devices, strict=True)
    ]
    return tuple(tail if is_same else old for is_same, old in zip(same, tails, strict=True))


def advanced(program, host, done, added=False):
    """Return the host after its next step, or None if it waits."""
    number, step = host.step, program.steps[host.step]
    after = replace(host, step=number + 1)
    if step.only_if and step.only_if not in host.answers:
        return after
    if step.is_operation:
        before = host.tails[step.stream] | other_side(program, host, step.stream)
        if added:
            before |= sum(1 << earlier for earlier, _ in host.before if step.conflicts(program.steps[earlier]))
        tails = put_all(program, host.tails, step.stream, 1 << number)
        return replace(after, before=(*host.before, (number, before)), tails=tails)
    if step.kind == "record":
        after, tail = marked(program, after, step.stream)
        return replace(after, records=put(host.records, step.other, (queue(program, step.stream), tail)))
    if step.kind == "wait_event":
        record = host.records[step.other]
        if record is None or record[0] == queue(program, step.stream):
            return after
        return marked(program, after, step.stream, record[1])[0]
    if step.kind == "wait_stream":
        if queue(program, step.stream) == queue(program, step.other):
            return after
        after, tail = marked(program, after, step.other)
        return marked(program, after, step.stream, tail)[0]
    if step.kind == "open":
        return replace(after, opened=host.opened | 1 << step.other)
    if step.kind in ("query", "query_event"):
        answer = not seen(program, host, step) & ~done
        return replace(after, answers=(*host.answers, (number, answer)))
    if step.kind in ("synchronize", "synchronize_event", "result"):
        return after if not seen(program, host, step) & ~done else None
    return after


def queue(program, stream):
    """Return what tells queues apart: streams, but that a device has one legacy stream."""
    return ("legacy", program.devices[stream]) if program.roles[stream] == "legacy" else stream


def ready(program, host, done):
    """Return the operations that may run next."""
    return [
        number
        for number, before in host.before
        if not (done >> number & 1 or before & ~done)
        and (program.steps[number].kind != "gate" or host.opened >> number & 1)
    ]


# All schedules


def every_schedule(program, added=False):
    """Yield each schedule, as the class that it is of and the order in which its operations run.

    This is the definition and nothing else: no two schedules are taken together.
    """

    def go(host, order):
        done = sum(1 << number for number in order)
        if host.step < len(program.steps):
            after = advanced(program, host, done, added)
            if after is not None:
                yield from go(after, order)
        moves = ready(program, host, done)
        for number in moves:
            yield from go(host, (*order, number))
        if not moves and host.step == len(program.steps):
            pairs = {
                (first, second)
                for at, second in enumerate(order)
                for first in order[:at]
                if program.steps[first].conflicts(program.steps[second])
            }
            yield (host.answers, frozenset(pairs)), order
        elif not moves and after is None:
            raise DeadlockError

    yield from go(begin(program), ())


def classes(program, added=False):
    """Return the classes of all schedules, each with the order in which the operations of one of them run.

    What may still happen depends on what the host has been answered and on what has run, and not on the order of that.
    """
    count = len(program.steps)
    conflicting = [
        sum(1 << other for other in range(count) if program.steps[number].conflicts(program.steps[other]))
        for number in range(count)
    ]
    known = {}

    def ends(host, done):
        key = host.step, host.answers, done
        if key not in known:
            known[key] = found(host, done)
        return known[key]

    def found(host, done):
        result, stuck = {}, True
        if host.step < count:
            after = advanced(program, host, done, added)
            if after is not None:
                stuck = False
                result.update(ends(after, done))
        for number in ready(program, host, done):
            stuck = False
            pairs = (conflicting[number] & done) << number * count
            for (answers, later), order in ends(host, done | 1 << number).items():
                result.setdefault((answers, later | pairs), (number, *order))
        if stuck and host.step == count:
            return {(host.answers, 0): ()}
        if stuck:
            raise DeadlockError
        return result

    return ends(begin(program), 0)


# What comes of it


def contents(program, order):
    """Return what the arrays contain when the operations have run in this order; None for those that are dropped."""
    arrays = [[100 * number + i for i in range(SIZE)] for number in range(len(program.arrays))]
    for number in order:
        step = program.steps[number]
        if step.kind in ("gate", "submit"):
            continue
        to = step.writes[0]
        if step.kind in ("fill", "put"):
            new = [step.value] * (to.stop - to.start)
        else:
            new = arrays[step.reads[0].array][step.reads[0].elements]
        if step.kind == "mix":
            new = [3 * old + more + step.value for old, more in zip(arrays[to.array][to.elements], new, strict=True)]
        arrays[to.array][to.elements] = new
    for step in program.steps:
        if step.kind == "drop":
            arrays[step.other] = None
    return tuple(None if array is None else tuple(array) for array in arrays)


def outcomes(program, added=False):
    """Return the answers and contents that each class comes to."""
    return [(tuple(answers), contents(program, order)) for (answers, _), order in classes(program, added).items()]


def in_program_order(program, answers):
    """Return the contents if each operation had run at once, with these answers to queries."""
    given = set(answers)
    steps = range(len(program.steps))
    return contents(
        program,
        [
            number
            for number in steps
            if program.steps[number].is_operation
            and (not program.steps[number].only_if or program.steps[number].only_if in given)
        ],
    )
