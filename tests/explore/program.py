"""Random programs of a few operations, as data: `schedules` says what they may do, and `running` has them done."""

from dataclasses import dataclass, replace
from typing import NamedTuple

SIZE = 8  # elements of each array


class Part(NamedTuple):
    """Some elements of an array."""

    array: int
    start: int
    stop: int

    def overlaps(self, other):
        return self.array == other.array and self.start < other.stop and other.start < self.stop

    @property
    def elements(self):
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class Step:
    """What the host does next.

    `other` is a stream, an event, an array, or the step of a gate or a host function, as the kind has it.
    """

    kind: str
    stream: int = 0
    other: int = 0
    reads: tuple = ()
    writes: tuple = ()
    value: int = 0
    only_if: tuple = ()  # the step of a query, and the answer to it
    nodes: tuple = ()  # of a graph: steps, each in order of all that it comes after
    after: tuple = ()  # of a node: the nodes, by number, that it comes after

    @property
    def is_operation(self):
        return self.kind in OPERATIONS

    def conflicts(self, other):
        mine, theirs = (*self.reads, *self.writes), (*other.reads, *other.writes)
        return any(a.overlaps(b) for a in self.writes for b in theirs) or any(
            a.overlaps(b) for a in mine for b in other.writes
        )


OPERATIONS = ("mix", "put", "copy", "fill", "submit", "gate", "replay")


@dataclass(frozen=True)
class Program:
    """Streams, events and arrays by number, with their devices, and steps."""

    devices: tuple  # of each stream
    roles: tuple  # of each stream: "legacy", "blocking" or "non-blocking"
    arrays: tuple  # the device of each
    events: tuple  # the device of each
    steps: tuple

    def shrunk(self, fails):
        """Return what is left when no further step can be left out of a program that fails."""
        smaller = self
        for at in range(len(self.steps)):
            steps = list(smaller.steps)
            steps[at] = Step("nothing")
            one_less = replace(smaller, steps=tuple(steps))
            if is_sound(one_less) and fails(one_less):
                smaller = one_less
        return smaller

    def __str__(self):
        lines = ["with ab.hazards('off'):"]
        for number, device in enumerate(self.devices):
            made = {
                "legacy": f"ab.legacy_stream('cpu:{device}')",
                "blocking": f"ab.Stream('cpu:{device}', non_blocking=False)",
                "non-blocking": f"ab.Stream('cpu:{device}')",
            }
            lines.append(f"    s{number} = {made[self.roles[number]]}")
        for number, device in enumerate(self.events):
            lines.append(f"    e{number} = ab.Event(device='cpu:{device}')")
        for number, device in enumerate(self.arrays):
            home = f"ab.Stream('cpu:{device}')"
            lines.append(f"    a{number} = ab.array(np.arange({SIZE}) + {100 * number}, stream={home})")
        for number, step in enumerate(self.steps):
            if step.kind != "nothing":
                condition = f"if q{step.only_if[0]} is {step.only_if[1]}: " if step.only_if else ""
                lines.append(f"    {condition}{as_code(number, step)}")
        return "\n".join(lines)


def is_sound(program):
    """Tell whether no step needs one that is not there."""
    steps = program.steps
    needed = [step.only_if[0] for step in steps if step.only_if]
    needed += [step.other for step in steps if step.kind in ("open", "result")]
    opened = {step.other for step in steps if step.kind == "open"}
    gates = {number for number, step in enumerate(steps) if step.kind == "gate"}
    return all(steps[number].kind != "nothing" for number in needed) and gates <= opened


def as_code(number, step):
    """Return what a step is in Python."""
    s, e, other = f"s{step.stream}", f"e{step.other}", f"s{step.other}"
    reads, writes = (
        [f"a{part.array}[{part.start}:{part.stop}]" for part in parts] for parts in (step.reads, step.writes)
    )
    size = step.writes[0].stop - step.writes[0].start if step.writes else 0
    if step.kind == "mix":
        return f"ab.launch(mix, {size}, {step.value}, {reads[0]}, {writes[0]}, stream={s})"
    if step.kind == "put":
        return f"ab.launch(put, {size}, {step.value}, {writes[0]}, stream={s})"
    if step.kind == "copy":
        return f"ab.copy({writes[0]}, {reads[0]}, stream={s})"
    if step.kind == "fill":
        return f"ab.fill({writes[0]}, {step.value}, stream={s})"
    if step.kind == "replay":
        nodes = ", ".join(f"{as_code(at, node)} after {node.after}" for at, node in enumerate(step.nodes))
        return f"graph({nodes}).launch({s})"
    if step.kind == "submit":
        return f"f{number} = {s}.submit(int, reads=[{', '.join(reads)}], writes=[{', '.join(writes)}])"
    return {
        "record": f"{e}.record({s})",
        "wait_event": f"{s}.wait_event({e})",
        "wait_stream": f"{s}.wait_stream({other})",
        "query": f"q{number} = {s}.query()",
        "query_event": f"q{number} = {e}.query()",
        "synchronize": f"{s}.synchronize()",
        "synchronize_event": f"{e}.synchronize()",
        "result": f"f{step.other}.result()",
        "gate": f"g{number} = ab.testing.Gate({s})",
        "open": f"g{step.other}.open()",
        "drop": f"del a{step.other}",
    }[step.kind]


# Making them


def random_program(rng, operations=8):
    """Return a program of up to so many operations on up to four streams of one or two devices."""
    return _Maker(rng, rng.randint(1, operations)).made()


class _Maker:
    def __init__(self, rng, operations):
        self.rng, self.operations = rng, operations
        count = 1 + rng.randrange(3) // 2  # of devices; mostly one
        self.devices = tuple(rng.randrange(count) for _ in range(rng.choice((1, 2, 2, 3, 3, 4))))
        roles = rng.choice((["non-blocking"], ["non-blocking", "blocking", "legacy"]))
        self.roles = tuple(rng.choice(roles) for _ in self.devices)
        self.arrays = tuple(rng.choice(self.devices) for _ in range(rng.randint(1, 3)))
        self.events = tuple(rng.choice(self.devices) for _ in range(2))
        self.steps, self.dropped, self.queries, self.gates, self.functions = [], set(), [], [], []

    def made(self):
        while self.operations:
            getattr(self, f"_{self.rng.choice(KINDS)}")()
        for number in list(self.gates):
            self._add("open", other=number)
        return Program(self.devices, self.roles, self.arrays, self.events, tuple(self.steps))

    def _add(self, kind, stream=0, **more):
        self.steps.append(Step(kind, stream, **more))
        return len(self.steps) - 1

    def _stream(self, *devices):
        found = [number for number, device in enumerate(self.devices) if not devices or device in devices]
        return self.rng.choice(found) if found else None

    def _part(self, size, device=None, apart_from=None):
        found = [
            number
            for number, where in enumerate(self.arrays)
            if number not in self.dropped and number != apart_from and device in (None, where)
        ]
        if not found:
            return None
        start = self.rng.choice((0, 0, SIZE - size, self.rng.randint(0, SIZE - size)))
        return Part(self.rng.choice(found), start, start + size)

    def _operation(self, kind, stream, reads, writes, **more):
        if stream is None or None in (*reads, *writes):
            return
        self.operations -= min(self.operations, max(1, len(more.get("nodes", ()))))
        condition = self.rng.choice(self.queries) if self.queries and not self.rng.randrange(4) else ()
        more.update(reads=reads, writes=writes, value=self.rng.randint(1, 50), only_if=condition)
        number = self._add(kind, stream, **more)
        if kind == "submit" and not condition:
            self.functions.append(number)

    def _size(self):
        return self.rng.choice((SIZE, SIZE, SIZE // 2, self.rng.randint(1, SIZE)))

    # Operations.

    def _mix(self):
        stream, size = self._stream(), self._size()
        to = self._part(size, self.devices[stream])
        source = self._part(size, self.devices[stream], apart_from=to and to.array)
        self._operation("mix", stream, (source, to), (to,))

    def _put(self):
        stream = self._stream()
        self._operation("put", stream, (), (self._part(self._size(), self.devices[stream]),))

    def _fill(self):
        stream = self._stream()
        self._operation("fill", stream, (), (self._part(self._size(), self.devices[stream]),))

    def _copy(self):
        size = self._size()
        to = self._part(size)
        source = to and self._part(size, apart_from=to.array)
        if source:
            self._operation("copy", self._stream(self.arrays[to.array], self.arrays[source.array]), (source,), (to,))

    def _submit(self):
        part = self._part(self._size())
        if part and self.rng.randrange(2):
            self._operation("submit", self._stream(), (part,), ())
        elif part:
            self._operation("submit", self._stream(), (part,), (part,))

    def _replay(self):
        """A graph of up to three operations, each after some of those before it."""
        stream, nodes = self._stream(), []
        for number in range(self.rng.randint(1, 3)):
            kind, size = self.rng.choice(("mix", "put", "copy", "fill")), self._size()
            to = self._part(size, self.devices[stream])
            source = to and self._part(size, self.devices[stream], apart_from=to.array)
            reads = {"mix": (source, to), "copy": (source,)}.get(kind, ())
            if None in (to, *reads):
                return
            after = tuple(before for before in range(number) if self.rng.randrange(2))
            nodes.append(Step(kind, reads=reads, writes=(to,), value=self.rng.randint(1, 50), after=after))
        reads, writes = (
            tuple(part for node in nodes for part in getattr(node, which)) for which in ("reads", "writes")
        )
        self._operation("replay", stream, reads, writes, nodes=tuple(nodes))

    # Order.

    def _record(self):
        stream = self._stream()
        events = [number for number, device in enumerate(self.events) if device == self.devices[stream]]
        if events:
            self._add("record", stream, other=self.rng.choice(events))

    def _wait_event(self):
        self._add("wait_event", self._stream(), other=self.rng.randrange(len(self.events)))

    def _wait_stream(self):
        self._add("wait_stream", self._stream(), other=self._stream())

    def _query(self):
        self._ask("query", self._stream())

    def _query_event(self):
        self._ask("query_event", 0, other=self.rng.randrange(len(self.events)))

    def _ask(self, kind, stream, **more):
        # Who asks the same four times in a row is taken to wait for it.
        if len(self.queries) < 2 * 3:
            number = self._add(kind, stream, **more)
            self.queries += [(number, True), (number, False)]

    def _synchronize(self):
        self._add("synchronize", self._stream())

    def _synchronize_event(self):
        self._add("synchronize_event", other=self.rng.randrange(len(self.events)))

    def _result(self):
        if self.functions:
            self._add("result", other=self.functions.pop())

    def _gate(self):
        self.gates.append(self._add("gate", self._stream()))

    def _open(self):
        if self.gates:
            self._add("open", other=self.gates.pop(self.rng.randrange(len(self.gates))))

    def _drop(self):
        left = [number for number in range(len(self.arrays)) if number not in self.dropped]
        if len(left) > 1:
            chosen = self.rng.choice(left)
            self.dropped.add(chosen)
            self._add("drop", other=chosen)


KINDS = [
    *("mix", "put", "copy", "fill") * 4,
    *("submit", "record", "wait_event", "wait_stream") * 2,
    *("replay",) * 3,
    *("query", "query_event", "synchronize", "synchronize_event", "result", "gate", "open", "drop"),
]
