"""Random programs that run as they are and on the model at the same time."""

import threading
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

import anabranch as ab
from anabranch._hazards.ordering import added_waits

from .model import Access, Order, kind
from .parts import SHAPE, SIZE, Block, Slot, at_line, random_programs

__all__ = ["Program", "at_line", "random_programs"]

Gate = ab.testing.Gate  # not what the tests' fixture puts there, which would keep the streams of all programs


class Program:
    """A program that grows step by step. `log` says what it was."""

    def __init__(self, rng, devices, modes=("auto",)):
        self.rng, self.devices, self.modes = rng, devices, modes
        self.has_contents = "check" not in modes
        # A device's synchronization tells nothing of a stream that is gone, which is no race but no order either: where
        # races are looked for, streams stay, or no device is synchronized.
        self.streams_go = self.has_contents or rng.randrange(2)
        self.host_memory = devices[0].kind == "cpu"
        # GPUs do copies between strided views in several parts, on streams of the library's own, and functions read
        # back on such streams: there the library knows of more order than the model, and waits that the model has not.
        self.counts_waits = self.host_memory
        self.order = Order()
        self.numbers = iter(range(2**30))
        self.accesses, self.gates, self.futures, self.log, self.kept = [], {}, [], [], []
        self.slots = [self.new_slot() for _ in range(4)]
        for device in devices[: rng.randrange(3)]:
            self.slots.append(self.add(Slot(next(self.numbers), ab.legacy_stream(device), "legacy")))
        self.events = [[ab.Event(device=device), device, None] for device in devices for _ in range(2)]
        self.blocks = []
        for _ in range(2):
            self.create()

    def add(self, slot):
        self.order.add_stream(slot.key, slot.device, slot.role)
        self.log.append(f"{slot.key} is new: {slot.role}, {slot.device}")
        return slot

    def new_slot(self):
        role = self.rng.choice(["blocking", "non-blocking"])
        stream = ab.Stream(self.rng.choice(self.devices), non_blocking=role == "non-blocking")
        if not self.streams_go:
            self.kept.append(stream)
        return self.add(Slot(next(self.numbers), stream, role))

    def run(self, steps):
        try:
            for _ in range(self.rng.randrange(steps) + 1):
                getattr(self, self.rng.choice(STEPS))()
            self.finish()
        except BaseException as error:
            error.add_note("\n".join(self.log))
            raise
        finally:
            for gate in self.gates.values():
                gate.open()
            ab.synchronize()

    # What is chosen.

    def slot(self, *devices):
        return self.rng.choice([slot for slot in self.slots if not devices or slot.device in devices] or self.slots)

    def shape(self):
        return SHAPE if not self.rng.randrange(3) else tuple(self.rng.randrange(size) + 1 for size in SHAPE)

    def pair(self):
        shape = self.shape()
        blocks = [self.rng.choice(self.blocks).view(self.rng, shape) for _ in range(2)]
        slots = [slot for slot in self.slots if slot.device in {block.array.device for block in blocks}]
        return (*blocks, self.rng.choice(slots)) if slots else None

    # What may be held, and by what.

    def open_for(self, nodes):
        """Open the gates without which some operations cannot end; of a GPU all, since more may be waited for there."""
        for node in list(self.gates):
            if not self.host_memory or self.order.precedes(node, nodes):
                self.gates.pop(node).open()

    def is_held(self, nodes):
        return any(self.order.precedes(node, nodes) for node in self.gates)

    # Accesses.

    def access(self, slot, what, touches, effect, operation, *args, **kwargs):
        """Enqueue an operation, unless it raises as it should. `touches`: blocks, places, whether read, written.

        A copy within a block goes through other memory, as two operations.
        """
        mode, line, handle = self.rng.choice(self.modes), len(self.log) + 1, slot.stream.handle
        node = len(self.order.after)
        halves = operation is ab.copy and within(*touches)
        made = [
            Access(node + (halves and writes), block.number, places, reads, writes, line, handle, mode)
            for block, places, reads, writes in touches
        ]
        self.log.append(f"{line} {mode} {what} " + ", ".join(f"{a.block}{sorted(a.places)}" for a in made))
        races = self.order.races(made, self.accesses, self.order.ends(slot.key))
        made_after = self.enqueue(mode, races, lambda: at_line(line, operation, *args, **kwargs), line)
        if made_after is not None:
            result, also = made_after
            self.order.operation(slot.key, also)
            if halves:
                self.order.operation(slot.key)
            self.accesses += made
            effect(result)

    def enqueue(self, mode, races, call, line):
        """Return the result, and what the operation was made to come after; None if it raised."""
        with ab.hazards(mode):
            if mode == "auto":
                before = added_waits()
                result = call()
                missing = {first.node for first, _ in races}
                assert not self.counts_waits or added_waits() - before <= len(self.order.newest(missing))
                assert not self.counts_waits or added_waits() - before >= self.is_held(missing)
                return result, missing
            try:
                result = call()
            except ab.RaceError as error:
                check_error(error, races, line)
                return None
        assert not races, f"not reported: {races}"
        return result, set()

    def create(self):
        slot, value = self.slot(), self.rng.randrange(100)
        block = Block(next(self.numbers), None, np.full(SHAPE, value))

        def effect(array):
            self.blocks.append(block)
            block.array = array

        touches = [(block, block.places, False, True)]
        self.access(slot, f"full on {slot.key}", touches, effect, ab.full, SHAPE, value, "int64", stream=slot.stream)

    def drop(self):
        if len(self.blocks) > 1:
            self.blocks.pop(self.rng.randrange(len(self.blocks)))

    def fill(self):
        block, value = self.rng.choice(self.blocks).view(self.rng, self.shape()), self.rng.randrange(100)
        slots = [slot for slot in self.slots if slot.device is block.array.device]
        if slots:
            slot = self.rng.choice(slots)
            touches = [(block, block.places, False, True)]

            def effect(_):
                block.values[...] = value

            self.access(slot, f"fill on {slot.key}", touches, effect, ab.fill, block.array, value, stream=slot.stream)

    def copy(self):
        chosen = self.pair()
        if chosen is None:
            return
        dst, src, slot = chosen
        if dst.number == src.number and np.array_equal(dst.index, src.index):
            return  # nothing is enqueued

        def effect(_):
            dst.values[...] = src.values.copy()

        touches = [(src, src.places, True, False), (dst, dst.places, False, True)]
        self.access(slot, f"copy on {slot.key}", touches, effect, ab.copy, dst.array, src.array, stream=slot.stream)

    def part(self):
        dst, src = (self.rng.choice(self.blocks) for _ in range(2))
        slots = [slot for slot in self.slots if slot.device in (dst.array.device, src.array.device)]
        count = self.rng.randrange(SIZE // 2) + 1
        to, start = (self.rng.randrange(SIZE - count + 1) for _ in range(2))
        if not slots or (dst is src and to == start):
            return

        def effect(_):
            dst.values.flat[to : to + count] = src.values.flatten()[start : start + count]

        slot = self.rng.choice(slots)
        touches = [(src, src.part(start, count), True, False), (dst, dst.part(to, count), False, True)]
        offsets = {"dst_offset": to, "src_offset": start, "count": count}
        self.access(
            slot, f"part on {slot.key}", touches, effect, ab.copy, dst.array, src.array, stream=slot.stream, **offsets
        )

    def submit(self):
        shape = self.shape()
        dst, src = (self.rng.choice(self.blocks).view(self.rng, shape) for _ in range(2))
        slot, factor = self.slot(), self.rng.randrange(5)
        touches, arrays = [(src, src.places, True, False)], {"reads": [src.array]}
        if self.host_memory:
            touches.append((dst, dst.places, True, True))
            arrays["writes"] = dst.array
        expected, writes = src.values.copy(), self.host_memory
        to, source = dst.array, src.array

        def call():
            values = source.numpy()
            if writes:
                with to.host(write=True) as view:
                    view[...] = values * 3 + factor
            return values

        def effect(future):
            self.futures.append((future, self.order.last[slot.key], expected))
            if writes:
                dst.values[...] = expected * 3 + factor

        # Where races only are looked for, the contents are nobody's business.
        if not self.has_contents:
            call = expected.copy
        self.access(slot, f"submit on {slot.key}", touches, effect, slot.stream.submit, call, **arrays)

    # Order.

    def record(self):
        slot = self.slot()
        event = self.rng.choice([event for event in self.events if event[1] is slot.device])
        event[0].record(slot.stream)
        event[2] = self.order.operation(slot.key)
        self.log.append(f"record {self.events.index(event)} on {slot.key}")

    def wait_event(self):
        slot, (event, _, record) = self.slot(), self.rng.choice(self.events)
        slot.stream.wait_event(event)
        self.order.wait_event(slot.key, record)
        self.log.append(f"{slot.key} waits for record {record}")

    def wait_stream(self, slot=None):
        slot, other = slot or self.slot(), self.slot()
        slot.stream.wait_stream(other.stream)
        self.order.wait_stream(slot.key, other.key)
        self.log.append(f"{slot.key} waits for {other.key}")

    def gate(self):
        slot = self.slot()
        gate = Gate(slot.stream)
        self.gates[self.order.operation(slot.key)] = gate
        self.log.append(f"gate on {slot.key}")

    def open(self):
        if self.gates:
            self.gates.pop(self.rng.choice(sorted(self.gates))).open()

    def renew(self):
        at = self.rng.randrange(4)
        if self.rng.randrange(2):
            self.slots[at].stream.close()
        self.slots[at] = self.new_slot()

    def brief(self):
        """Make a stream that only waits and is gone, so that the next one is likely to have its record."""
        self.wait_stream(self.new_slot())
        self.renew()

    # Host waits.

    @contextmanager
    def awaiting(self, nodes):
        """For a block that waits for some operations: nothing that holds them stays closed, and the wait is none."""
        held = [node for node in self.gates if self.order.precedes(node, nodes)]
        if not held or not self.host_memory or self.rng.randrange(4):
            self.open_for(nodes)
            yield
            return
        gates = [self.gates.pop(node) for node in held]
        begun = []

        def open_all():
            begun.append(True)
            for gate in gates:
                gate.open()

        # Who does wait is not through before that, however late it comes.
        timer = threading.Timer(0.001, open_all)
        timer.start()
        try:
            yield
            assert begun, "the host did not wait"
        finally:
            timer.join()

    def host_waits(self, nodes, wait, what):
        with self.awaiting(nodes):
            wait()
        self.order.host |= nodes
        self.log.append(what)

    def host_asks(self, nodes, query, what):
        held = self.is_held(nodes)
        answer = query()
        assert not (held and answer)
        if answer:
            self.order.host |= nodes
        self.log.append(f"{what}: {answer}")

    def synchronize(self):
        slot = self.slot()
        self.host_waits(self.order.seen_by_host(slot.key), slot.stream.synchronize, f"synchronize {slot.key}")

    def query(self):
        slot = self.slot()
        self.host_asks(self.order.seen_by_host(slot.key), slot.stream.query, f"query {slot.key}")

    def synchronize_event(self):
        event, _, record = self.rng.choice(self.events)
        self.host_waits({record} - {None}, event.synchronize, f"synchronize record {record}")

    def query_event(self):
        event, _, record = self.rng.choice(self.events)
        self.host_asks({record} - {None}, event.query, f"query record {record}")

    def synchronize_device(self):
        device = self.rng.choice(self.devices)
        if self.streams_go and not self.has_contents:
            return
        self.host_waits(self.order.seen_on(device), device.synchronize, f"synchronize {device}")

    def result(self):
        if self.futures:
            future, node, expected = self.futures.pop()
            self.host_waits(
                {node}, lambda: np.testing.assert_array_equal(future.result(), expected), f"result of {node}"
            )

    def touching(self, block, writing):
        touch = Access(-1, block.number, block.places, True, writing)
        return {first.node for first in self.accesses if first.conflicts(touch)}

    def numpy(self):
        block = self.rng.choice(self.blocks).view(self.rng, self.shape())

        def read():
            values = block.array.numpy()
            if self.has_contents:
                np.testing.assert_array_equal(values, block.values)

        self.host_waits(self.touching(block, False), read, f"numpy of {block.number}{sorted(block.places)}")

    def host(self):
        if not self.host_memory:
            return
        block, writing = self.rng.choice(self.blocks).view(self.rng, self.shape()), bool(self.rng.randrange(2))
        nodes, mode, line = self.touching(block, writing), self.rng.choice(self.modes), len(self.log) + 1
        unknown = {node for node in nodes if not self.order.precedes(node, self.order.host)}
        if mode == "check" and unknown:
            with ab.hazards("check"), pytest.raises(ab.RaceError) as caught:
                at_line(line, block.array.host(writing).__enter__)
            assert (caught.value.kind, caught.value.second.stream, caught.value.second.line) == ("HOST", None, line)
            assert caught.value.first.line in {first.line for first in self.accesses if first.node in unknown}
            self.log.append(f"{line} host raises")
            return
        with ab.hazards(mode), ExitStack() as access:
            with self.awaiting(nodes):
                view = access.enter_context(block.array.host(writing))
            if self.has_contents:
                np.testing.assert_array_equal(view, block.values)
            if writing:
                view[...] = block.values[...] = len(self.log)
        self.order.host |= nodes
        self.log.append(f"{line} host of {block.number}{sorted(block.places)}")

    def finish(self):
        if self.has_contents:
            for block in self.blocks:
                self.open_for(self.touching(block, False))
                np.testing.assert_array_equal(block.array.numpy(), block.values)


STEPS = [
    *("fill", "copy") * 4,
    *("part", "create", "drop", "submit", "brief"),
    *("record", "wait_event", "wait_stream", "wait_stream", "gate", "gate", "open", "renew") * 2,
    *("synchronize", "query", "synchronize_event", "query_event", "synchronize_device", "result", "numpy", "host"),
]


def within(src, dst):
    """Tell whether the arrays of a copy share elements, though maybe not those that are copied."""
    return src[0].number == dst[0].number and not src[0].places.isdisjoint(dst[0].places)


def check_error(error, races, line):
    """The error is about one of the races."""
    assert error.second.line == line
    told = error.kind, error.first.line, error.first.stream.handle, error.first.access, error.second.access
    side = {True: "write", False: "read"}
    assert told in {
        (kind(first, touch), first.line, first.handle, side[first.writes], side[touch.writes]) for first, touch in races
    }, (told, races)
