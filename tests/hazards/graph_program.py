"""Random programs that are captured, on a model that is run anew for each replay.

What a capture forbids is left out: host waits, gates, the legacy stream, waits for work from outside.
"""

import threading

import numpy as np

import anabranch as ab

from .parts import SHAPE, SIZE, Block


class GraphProgram:
    """Grows step by step within a capture. `effects` says what a replay does to the blocks' values."""

    def __init__(self, rng, devices):
        self.rng, self.devices = rng, devices
        self.host_memory = devices[0].kind == "cpu"
        self.effects, self.log, self.kept = [], [], []
        self.numbers = iter(range(2**30))
        self.inputs = [self.make_input() for _ in range(3)]
        self.blocks = list(self.inputs)
        self.origin = ab.Stream(devices[0], non_blocking=bool(rng.randrange(2)))
        ab.synchronize()

    def make_input(self):
        array = ab.zeros(SHAPE, "int64", device=self.rng.choice(self.devices))
        return Block(next(self.numbers), array, np.zeros(SHAPE, "int64"))

    def run(self, steps, replays=3):
        try:
            with ab.capture(self.origin) as graph:
                self.streams = [self.origin] + [self.new_stream() for _ in range(3)]
                self.events = [self.rng.choice(self.streams).record_event() for _ in range(3)]
                for _ in range(self.rng.randrange(steps) + 1):
                    getattr(self, self.rng.choice(STEPS))()
            self.log.append(graph.to_dot())
            launched = [graph, graph.instance()] if self.rng.randrange(2) else [graph]
            for _ in range(replays):
                self.replay(self.rng.choice(launched))
        except BaseException as error:
            error.add_note("\n".join(self.log))
            raise
        finally:
            ab.synchronize()

    # What is chosen.

    def new_stream(self, after=None):
        stream = ab.Stream(self.rng.choice(self.devices), non_blocking=bool(self.rng.randrange(2)))
        stream.wait_stream(after or self.origin)
        return stream

    def stream(self, *devices):
        chosen = [stream for stream in self.streams if not devices or stream.device in devices]
        return self.rng.choice(chosen) if chosen else None

    def view(self, shape):
        return self.rng.choice(self.blocks).view(self.rng, shape)

    def shape(self):
        return SHAPE if not self.rng.randrange(3) else tuple(self.rng.randrange(size) + 1 for size in SHAPE)

    # Accesses.

    def fill(self):
        block, value = self.view(self.shape()), self.rng.randrange(100)
        stream = self.stream(block.array.device)
        if stream is not None:
            self.log.append(f"fill {block.number}{sorted(block.places)} = {value}")
            ab.fill(block.array, value, stream=stream)
            self.effects.append(lambda: block.values.__setitem__(..., value))

    def copy(self):
        shape = self.shape()
        dst, src = self.view(shape), self.view(shape)
        stream = self.stream(dst.array.device, src.array.device)
        if stream is not None:
            self.log.append(f"copy {dst.number}{sorted(dst.places)} = {src.number}{sorted(src.places)}")
            ab.copy(dst.array, src.array, stream=stream)
            self.effects.append(lambda: dst.values.__setitem__(..., src.values.copy()))

    def part(self):
        dst, src = (self.rng.choice(self.blocks) for _ in range(2))
        stream = self.stream(dst.array.device, src.array.device)
        count = self.rng.randrange(SIZE // 2) + 1
        to, start = (self.rng.randrange(SIZE - count + 1) for _ in range(2))
        if stream is None:
            return

        def effect():
            dst.values.flat[to : to + count] = src.values.flatten()[start : start + count]

        self.log.append(f"part {dst.number}[{to}:] = {src.number}[{start}:], {count}")
        ab.copy(dst.array, src.array, stream=stream, dst_offset=to, src_offset=start, count=count)
        self.effects.append(effect)

    def create(self):
        stream, value = self.stream(), self.rng.randrange(100)
        block = Block(next(self.numbers), None, np.zeros(SHAPE, "int64"))
        block.array = ab.full(SHAPE, value, "int64", stream=stream)
        self.log.append(f"create {block.number} = {value}")
        self.effects.append(lambda: block.values.__setitem__(..., value))
        self.blocks.append(block)

    def drop(self):
        made = self.blocks[len(self.inputs) :]
        if made:
            self.blocks.remove(self.rng.choice(made))
            self.log.append("drop")

    def submit(self):
        if not self.host_memory:
            return
        shape, factor, stream = self.shape(), self.rng.randrange(5), self.stream()
        dst, src = self.view(shape), self.view(shape)
        to, source = dst.array, src.array

        def call():
            values = source.numpy()
            with to.host(write=True) as view:
                view[...] = values * 3 % 1000 + factor

        self.log.append(f"submit {dst.number}{sorted(dst.places)} from {src.number}{sorted(src.places)}")
        stream.submit(call, reads=[source], writes=[to])
        self.effects.append(lambda: dst.values.__setitem__(..., src.values * 3 % 1000 + factor))

    def launch(self):
        """Launch a small graph, which becomes a node."""
        block, value = self.view(self.shape()), self.rng.randrange(100)
        stream = self.stream(block.array.device)
        if stream is None or any(block.number == made.number for made in self.blocks[len(self.inputs) :]):
            return
        self.log.append(f"graph fills {block.number}{sorted(block.places)} = {value}")
        self.inner(block.array, value).launch(stream)
        self.effects.append(lambda: block.values.__setitem__(..., value))

    def inner(self, array, value):
        made = []

        def capture():
            with ab.capture(ab.Stream(array.device)) as graph:
                ab.fill(array, value)
            made.append(graph)

        # A task of its own, since this one is in a capture.
        thread = threading.Thread(target=capture)
        thread.start()
        thread.join()
        return made[0]

    # Order.

    def record(self):
        at = self.rng.randrange(len(self.events))
        self.events[at] = self.stream().record_event()

    def wait_event(self):
        self.stream().wait_event(self.rng.choice(self.events))

    def wait_stream(self):
        self.stream().wait_stream(self.stream())

    def renew(self):
        at = self.rng.randrange(1, len(self.streams))
        if self.rng.randrange(2):
            self.streams[at].close()
        self.streams[at] = self.new_stream(self.stream_open())

    def stream_open(self):
        return self.rng.choice([stream for stream in self.streams if not stream.closed])

    def brief(self):
        """Make a stream that only waits and is gone."""
        self.new_stream(self.stream())

    # Replays.

    def replay(self, graph):
        for block in self.inputs:
            value = self.rng.randrange(1000)
            block.values[...] = np.arange(SIZE).reshape(SHAPE) + value
            given = ab.array(block.values, device=block.array.device, stream=ab.Stream(block.array.device))
            ab.copy(block.array, given, stream=ab.Stream(block.array.device))
        for effect in self.effects:
            effect()
        graph.launch(self.rng.choice([None, self.origin, ab.Stream(self.devices[0])]))
        for block in self.blocks:
            np.testing.assert_array_equal(block.array.numpy(), block.values)


STEPS = [
    *("fill", "copy") * 4,
    *("part", "create", "drop", "submit", "brief", "launch"),
    *("record", "wait_event", "wait_stream", "wait_stream", "renew") * 2,
]
