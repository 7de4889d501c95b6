"""The schedules that a program may have, and their classes: by search, with nothing of the library.

The host takes its steps one after the other, and each event of a stream happens at one moment after it was enqueued: an
operation, a wait, or the mark that a record needs where the order of the legacy stream adds something to it. A schedule
is one order of all these that the rules of streams allow. Two schedules are of one class if each question is answered
alike in both and each two operations that conflict, by the elements that they access, run in the same order: one can
then be turned into the other by swapping neighbours that do not depend on each other (Mazurkiewicz).

A query asks whether the newest event of its stream has happened. That of a legacy stream asks in turn about its own and
about those of the blocking streams that have got one since, until one has not.

The event of step n is n, of a graph its end; a mark that it needs is n more than there are steps, and the nodes of
all graphs follow. Sets of events are numbers with a bit for each. With `added`, an operation comes after all earlier
ones that it conflicts with, too: that is what hazards "auto" make of a program.
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
    asked: tuple  # event and answer of each question
    before: tuple  # each event that is enqueued, and what must have happened before it
    newest: tuple  # of each stream: its newest event, or None
    fresh: tuple  # blocking streams, by when they got their first event that no event of the legacy stream comes after
    joined: tuple  # of each blocking stream: the event of the legacy stream that its newest one comes after, or None
    records: tuple  # of each event object: None, or its stream and the newest event of that when it was recorded
    opened: int  # gates


def begin(program):
    none = (None,) * len(program.devices)
    return Host(0, (), (), (), none, (), none, (None,) * len(program.events), 0)


def legacy_of(program, device):
    """Return the legacy stream of a device, or None if the program does not have it."""
    found = [
        number
        for number, (role, where) in enumerate(zip(program.roles, program.devices, strict=True))
        if (role, where) == ("legacy", device)
    ]
    return found[0] if found else None


def queue(program, stream):
    """Return the first stream that is the same: a device has one legacy stream, however often a program gets it."""
    return legacy_of(program, program.devices[stream]) if program.roles[stream] == "legacy" else stream


def put(values, number, value):
    return (*values[:number], value, *values[number + 1 :])


def union(events):
    return sum(1 << event for event in set(events) - {None})


def fresh(program, host, legacy):
    return [stream for stream in host.fresh if program.devices[stream] == program.devices[legacy]]


def owed(program, host, stream):
    """Return the events that the order of the legacy stream puts before a stream's next event."""
    if program.roles[stream] == "legacy":
        return [host.newest[other] for other in fresh(program, host, stream)]
    legacy = legacy_of(program, program.devices[stream])
    if program.roles[stream] != "blocking" or legacy is None or host.newest[legacy] == host.joined[stream]:
        return []
    return [host.newest[legacy]]


def enqueued(program, host, stream, event, also=0):
    """Return the host after it has put an event into a stream that comes after `also`, too."""
    before = union([host.newest[stream], *owed(program, host, stream)]) | also
    host = replace(host, before=(*host.before, (event, before)), newest=put(host.newest, stream, event))
    if program.roles[stream] == "legacy":
        joined = fresh(program, host, stream)
        return replace(host, fresh=tuple(other for other in host.fresh if other not in joined))
    if program.roles[stream] == "blocking":
        legacy = legacy_of(program, program.devices[stream])
        if legacy is not None:
            host = replace(host, joined=put(host.joined, stream, host.newest[legacy]))
        if stream not in host.fresh:
            host = replace(host, fresh=(*host.fresh, stream))
    return host


def marked(program, host, stream, event):
    return enqueued(program, host, stream, event) if owed(program, host, stream) else host


def questions(program, host, step):
    """Return the events that a query asks about, or that the host waits for."""
    if step.kind == "result":
        return [step.other]
    if step.kind in ("query_event", "synchronize_event"):
        record = host.records[step.other]
        return [] if record is None or record[1] is None else [record[1]]
    stream = queue(program, step.stream)
    found = [host.newest[stream]]
    if program.roles[stream] == "legacy":
        found += [host.newest[other] for other in fresh(program, host, stream)]
    return [event for event in found if event is not None]


def advanced(program, host, done, added=False):
    """Return the host after its next step, or None if it waits."""
    number, step = host.step, program.steps[host.step]
    after = replace(host, step=number + 1)
    if step.only_if and step.only_if not in host.answers:
        return after
    stream = queue(program, step.stream)
    if step.is_operation:
        earlier = [event for event, _ in host.before if event < len(program.steps)]
        conflicting = [event for event in earlier if program.steps[event].conflicts(step)]
        also = union(conflicting) if added else 0
        return replayed(program, enqueued(program, after, stream, number, also), number, added)
    if step.kind == "record":
        after = marked(program, after, stream, number)
        return replace(after, records=put(host.records, step.other, (stream, after.newest[stream])))
    if step.kind == "wait_event":
        record = host.records[step.other]
        return after if record is None else waited(program, after, stream, *record)
    if step.kind == "wait_stream":
        other = queue(program, step.other)
        if other == stream:
            return after
        after = marked(program, after, other, number + len(program.steps))
        return waited(program, after, stream, other, after.newest[other])
    if step.kind == "open":
        return replace(after, opened=host.opened | 1 << step.other)
    if step.kind in ("query", "query_event"):
        return answered(program, after, done, questions(program, host, step))
    if step.kind in ("synchronize", "synchronize_event", "result"):
        return None if union(questions(program, host, step)) & ~done else after
    return after


def replayed(program, host, number, added):
    """Return the host with the nodes of a graph, if the step is one, whose end it has just enqueued."""
    nodes, first = program.steps[number].nodes, first_node(program, number)
    (*others, (end, before)) = host.before
    found = []
    for at, node in enumerate(nodes):
        after = {other for other in range(at) if other in node.after or (added and nodes[other].conflicts(node))}
        found.append((first + at, before | union(first + other for other in after)))
    return replace(host, before=(*others, *found, (end, before | union(event for event, _ in found))))


def first_node(program, number):
    return 2 * len(program.steps) + sum(len(step.nodes) for step in program.steps[:number])


def accesses(program):
    """Return the operation of each event that accesses something."""
    found = {number: step for number, step in enumerate(program.steps) if step.is_operation and not step.nodes}
    for number, step in enumerate(program.steps):
        found.update(enumerate(step.nodes, first_node(program, number)))
    return found


def waited(program, host, stream, other, event):
    """Return the host after its step has let a stream wait for an event of another one."""
    if other == stream:
        return host
    if event is None:
        return marked(program, host, stream, host.step - 1)
    return enqueued(program, host, stream, host.step - 1, 1 << event)


def answered(program, host, done, events):
    asked = []
    for event in events:
        asked.append((event, bool(done >> event & 1)))
        if not asked[-1][1]:
            break
    answer = all(found for _, found in asked)
    return replace(host, asked=(*host.asked, *asked), answers=(*host.answers, (host.step - 1, answer)))


def conflict(found, event, other):
    """Tell whether two events conflict. Waits, marks and the ends of graphs access nothing."""
    return event in found and other in found and found[event].conflicts(found[other])


def ready(program, host, done):
    """Return the events that may happen next."""
    gates = [number for number, step in enumerate(program.steps) if step.kind == "gate"]
    return [
        event
        for event, before in host.before
        if not (done >> event & 1 or before & ~done) and (event not in gates or host.opened >> event & 1)
    ]


# All schedules


def every_schedule(program, added=False):
    """Yield each schedule, as the class that it is of and the order in which its events happen.

    This is the definition and nothing else: no two schedules are taken together.
    """
    found = accesses(program)

    def go(host, order):
        done = union(order)
        after = None
        if host.step < len(program.steps):
            after = advanced(program, host, done, added)
            if after is not None:
                yield from go(after, order)
        moves = ready(program, host, done)
        for event in moves:
            yield from go(host, (*order, event))
        if not moves and host.step == len(program.steps):
            pairs = {
                (first, second)
                for at, second in enumerate(order)
                for first in order[:at]
                if conflict(found, first, second)
            }
            yield (host.asked, frozenset(pairs)), order
        elif not moves and after is None:
            raise DeadlockError

    yield from go(begin(program), ())


def classes(program, added=False):
    """Return the classes of all schedules, each with the answers to queries and the order of events of one of them.

    What may still happen depends on what the host has been answered and on what has happened, and not on the order of
    that.
    """
    count, events = len(program.steps), first_node(program, len(program.steps))
    found = accesses(program)
    conflicting = {event: union(other for other in found if conflict(found, event, other)) for event in found}
    known = {}

    def ends(host, done):
        key = host.step, host.asked, done
        if key not in known:
            known[key] = looked_for(host, done)
        return known[key]

    def looked_for(host, done):
        result, stuck = {}, True
        if host.step < count:
            after = advanced(program, host, done, added)
            if after is not None:
                stuck = False
                result.update(ends(after, done))
        for event in ready(program, host, done):
            stuck = False
            pairs = (conflicting.get(event, 0) & done) << event * events
            for (asked, later), (answers, order) in ends(host, done | 1 << event).items():
                result.setdefault((asked, later | pairs), (answers, (event, *order)))
        if stuck and host.step == count:
            return {(host.asked, 0): (host.answers, ())}
        if stuck:
            raise DeadlockError
        return result

    return ends(begin(program), 0)


# What comes of it


def contents(program, order):
    """Return what the arrays contain when the operations have run in this order; None for those that are dropped."""
    arrays = [[100 * number + i for i in range(SIZE)] for number in range(len(program.arrays))]
    found = accesses(program)
    for event in order:
        step = found.get(event)
        if step is None or step.kind not in ("mix", "put", "copy", "fill"):
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
    return [(answers, contents(program, order)) for answers, order in classes(program, added).values()]


def in_program_order(program, answers):
    """Return the contents if each operation had run at once, with these answers to queries."""
    given, order = set(answers), []
    for number, step in enumerate(program.steps):
        if step.is_operation and (not step.only_if or step.only_if in given):
            first = first_node(program, number)
            order += [number, *range(first, first + len(step.nodes))]
    return contents(program, order)
