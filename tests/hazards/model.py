"""What the streams, events and host waits of a program put in order, by search in the graph of its operations.

Independent of the library and as plain as can be. An operation is a number; of each the graph has those that it comes
directly after. Records, waits and gates are operations, too. All of a program is one host task.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Access:
    """What an operation does to some elements of a block of memory."""

    node: int
    block: int
    places: frozenset
    reads: bool
    writes: bool
    line: int = 0
    handle: int = 0
    mode: str = "auto"

    def conflicts(self, other):
        shared = self.block == other.block and not self.places.isdisjoint(other.places)
        return shared and (self.writes or other.writes)


@dataclass
class Order:
    """Streams go by any key that can be hashed; `role` is "legacy", "blocking" or "non-blocking"."""

    after: list = field(default_factory=list)
    made_in: list = field(default_factory=list)  # of each operation, its stream
    last: dict = field(default_factory=dict)  # the newest operation of each stream that has one
    streams: dict = field(default_factory=dict)  # key: (device, role)
    host: set = field(default_factory=set)  # what the host has found to be over

    def add_stream(self, key, device, role):
        self.streams[key] = device, role

    def other_side(self, key):
        """Return the newest operations that the legacy stream's order puts before the stream's next one."""
        device, role = self.streams[key]
        wanted = {"legacy": "blocking", "blocking": "legacy"}.get(role)
        return {
            self.last[other] for other, like in self.streams.items() if like == (device, wanted) and other in self.last
        }

    def own(self, key):
        return {self.last[key]} if key in self.last else set()

    def ends(self, key):
        """Return what the stream's next operation, enqueued now, comes directly after."""
        return self.own(key) | self.other_side(key) | self.host

    def operation(self, key, also=()):
        self.after.append(self.ends(key) | set(also))
        self.made_in.append(key)
        self.last[key] = len(self.after) - 1
        return self.last[key]

    def precedes(self, node, ends):
        """Tell whether an operation is among others or comes before one of them."""
        seen, todo = set(ends), list(ends)
        while todo:
            for earlier in self.after[todo.pop()] - seen:
                seen.add(earlier)
                todo.append(earlier)
        return node in seen

    def wait_stream(self, key, other):
        if key != other:
            self.operation(key, {self.operation(other)})

    def wait_event(self, key, record):
        # For a record of its own a stream does nothing.
        if record is not None and self.made_in[record] != key:
            self.operation(key, {record})

    def seen_by_host(self, key):
        """Return what a query or synchronization of the stream looks at; the legacy stream's sees the blocking ones."""
        return self.own(key) | (self.other_side(key) if self.streams[key][1] == "legacy" else set())

    def seen_on(self, device):
        return {self.last[key] for key, (where, _) in self.streams.items() if where == device and key in self.last}

    def races(self, touches, earlier, ends):
        """Return the pairs of an earlier access and one of `touches`, to be made after `ends`, that nothing orders."""
        return [
            (first, touch)
            for touch in touches
            for first in earlier
            if first.conflicts(touch) and not self.precedes(first.node, ends)
        ]

    def newest(self, nodes):
        """Return those of some operations that come before no other of them."""
        return {one for one in nodes if not any(one != other and self.precedes(one, {other}) for other in nodes)}


def kind(first, second):
    """Return what a race between two accesses of streams is called."""
    if first.writes and second.reads:
        return "RAW"
    return "WAW" if first.writes else "WAR"
