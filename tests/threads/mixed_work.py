"""Random work for the stress test: what each thread does, beside a model of what its arrays must hold."""

import contextlib
import gc
import random
import threading
from collections import deque
from queue import Empty
from types import SimpleNamespace

import numpy as np
import pytest

import anabranch as ab
from anabranch.testing import Gate  # itself: what tests have in its place keeps every gate

from .shared_work import SIZE, nothing

TIMEOUT = 60.0


class Mixed:
    """One thread's part: operations in an order of its own."""

    def __init__(self, shared, seed):
        self.shared, self.device = shared, shared.device
        self.choose = random.Random(seed)
        self.done = deque(maxlen=20)  # the newest operations, for whom it fails
        self.futures = []
        self.streams = [ab.Stream(self.device) for _ in range(2)]
        self.arrays = []
        for _ in range(3):
            self.make()

    def run(self, count):
        for _ in range(count):
            operation = self.choose.choices(OPERATIONS, WEIGHTS)[0]
            self.done.append(operation.__name__)
            operation(self)

    def end(self):
        """Look at everything once more."""
        self.done.append("end")
        for future, value in self.futures:
            assert future.result(TIMEOUT) == value
        for array, expected in self.arrays:
            np.testing.assert_array_equal(array.numpy(), expected)

    # -- what is chosen from --

    def stream(self):
        """Any stream that is nobody's to close: the thread's own, or one of those that all share."""
        return self.choose.choice(self.streams + self.shared.streams)

    def capturable(self):
        """A stream of its own: a capture takes it away from everybody else."""
        return self.choose.choice(self.streams)

    def own(self):
        return self.choose.choice(self.arrays)

    def value(self):
        return float(self.choose.randrange(1000))

    def part(self):
        start, stop = sorted(self.choose.sample(range(SIZE + 1), 2))
        return slice(start, stop, self.choose.choice([1, 1, 2, 3]))

    # -- arrays --

    def make(self):
        value, stream = self.value(), self.stream() if self.arrays else None
        if self.choose.random() < 0.5:
            array = ab.full(SIZE, value, "float32", device=self.device, stream=stream)
        else:
            array = ab.array(np.full(SIZE, value, "float32"), device=self.device, stream=stream)
        self.arrays.append((array, np.full(SIZE, value, "float32")))
        if len(self.arrays) > 5:
            self.arrays.pop(self.choose.randrange(len(self.arrays)))

    def fill(self):
        array, expected = self.own()
        part, value = self.part(), self.value()
        ab.fill(array[part], value, stream=self.stream())
        expected[part] = value

    def copy(self):
        (source, given), (target, expected) = self.own(), self.own()
        if source is not target:
            ab.copy(target[::-1], source, stream=self.stream())
            expected[::-1] = given

    def read(self):
        array, expected = self.own()
        part = self.part()
        np.testing.assert_array_equal(array[part].numpy(), expected[part])

    def view(self):
        array, expected = self.own()
        if self.device.kind == "cpu":
            with array.host(write=True) as view:
                view += 1
            expected += 1

    def close_array(self):
        base, expected = self.arrays.pop()
        kept = base[1:]
        base.close()
        with pytest.raises(ab.ClosedError):
            base.numpy()
        np.testing.assert_array_equal(kept.numpy(), expected[1:])
        if not self.arrays:
            self.make()

    def exchange(self):
        array, expected = self.own()
        if self.device.kind == "cpu":
            np.testing.assert_array_equal(np.from_dlpack(array), expected)
            data = np.full(SIZE, self.value(), "float32")
            given = ab.from_dlpack(data)
            ab.copy(array, given, stream=self.stream())
            expected[:] = data
        else:
            np.testing.assert_array_equal(ab.from_dlpack(array).numpy(), expected)

    def hand_over(self):
        """Put an array where the next thread finds it, and take one that another thread left."""
        self.shared.handed.put(self.arrays.pop())
        self.arrays.append(self.shared.handed.get(timeout=TIMEOUT))
        self.read()

    # -- streams and events --

    def replace_stream(self):
        blocking, priority = self.choose.random() < 0.3, -self.choose.randrange(2)
        old = self.streams[0]
        self.streams[0] = self.streams[1]
        self.streams[1] = ab.Stream(self.device, priority=priority, non_blocking=not blocking)
        if self.choose.random() < 0.5:
            old.close()
        else:
            self.shared.bin.put(old)

    def event(self):
        event, stream, other = ab.Event(device=self.device), self.stream(), self.stream()
        event.record(stream)
        event.wait(other)
        if self.choose.random() < 0.3:
            event.synchronize()
            assert event.query()
        if self.choose.random() < 0.3:
            event.close()

    def shared_event(self):
        event = self.choose.choice(self.shared.events)
        event.record(self.stream())
        event.wait(self.stream())
        event.query()

    def time(self):
        begin, end = (ab.Event(enable_timing=True, device=self.device) for _ in range(2))
        stream = self.capturable()
        begin.record(stream)
        ab.fill(self.own()[0][:0], 1, stream=stream)
        end.record(stream)
        assert begin.elapsed_time(end) >= 0

    def wait(self):
        self.stream().wait_stream(self.stream())

    def synchronize(self):
        stream = self.stream()
        stream.query()
        stream.synchronize()

    def wrap(self):
        wrapper = ab.Stream.from_external(self.streams[0].handle, self.device)
        assert wrapper == self.streams[0]
        wrapper.record_event()
        wrapper.close()

    def scope(self):
        with self.stream() as stream:
            assert ab.current_stream(self.device) is stream
            ab.fill(ab.empty(SIZE), 1)

    def fork(self):
        array, expected = self.own()
        low, high = self.value(), self.value()
        with ab.fork(2, self.stream()) as (a, b):
            ab.fill(array[: SIZE // 2], low, stream=a)
            ab.fill(array[SIZE // 2 :], high, stream=b)
        expected[: SIZE // 2], expected[SIZE // 2 :] = low, high

    # -- host functions, gates, failures --

    def submit(self):
        (array, expected), value = self.own(), self.choose.randrange(1000)
        # The view stays when the array is closed, and the next write comes after the function.
        view, seen = array[...], expected.copy()

        def look():
            np.testing.assert_array_equal(view.numpy(), seen)
            return value

        self.futures.append((self.capturable().submit(look, writes=[array]), value))
        if len(self.futures) > 10:
            for future, result in self.futures:
                assert future.result(TIMEOUT) == result
            self.futures.clear()

    def submit_error(self):
        future = self.stream().submit(int, "no number")
        assert isinstance(future.exception(TIMEOUT), ValueError)

    def cancel(self):
        future = self.stream().submit(int, 3)
        if not future.cancel():
            assert future.result(TIMEOUT) == 3

    def gate(self):
        stream = self.capturable()
        gate = Gate(stream)
        self.shared.gates.put(gate)
        self.fill()

    def fail(self):
        """Fail a stream, and what is put into it; nobody else waits for that."""
        stream = ab.Stream(self.device)
        array = ab.array(np.zeros(SIZE, "float32"), device=self.device)
        ab.testing.fail(stream, "meant")
        ab.fill(array, 1, stream=stream)
        for observe in (stream.synchronize, array.numpy):
            with pytest.raises((ab.KernelError, ab.DriverError)):
                observe()

    # -- graphs --

    def capture(self):
        (array, expected), value, stream = self.own(), self.value(), self.capturable()
        with ab.capture(stream) as graph:
            ab.fill(array, value)
            with ab.fork(2) as (a, b):
                temporary = ab.full(SIZE // 2, value + 1, "float32", stream=a)
                ab.copy(array[: SIZE // 2], temporary, stream=a)
                ab.fill(array[SIZE // 2 :], value + 2, stream=b)
                del temporary
        if self.choose.random() < 0.2:
            graph = graph.instance()
        for _ in range(self.choose.randrange(1, 4)):
            graph.launch(self.stream())
        expected[: SIZE // 2], expected[SIZE // 2 :] = value + 1, value + 2
        if self.choose.random() < 0.3:
            self.shared.bin.put(graph)

    def branch(self):
        (array, expected), chosen, stream = self.own(), self.choose.randrange(2), self.capturable()
        flag = ab.full(1, chosen, "int32", device=self.device, stream=stream)
        with ab.capture(stream) as graph:
            ab.run_if(flag, lambda: ab.fill(array, 1), lambda: ab.fill(array, 2))
        graph.launch(stream)
        expected[:] = 1 if chosen else 2

    def refused_capture(self):
        stream = self.capturable()
        with pytest.raises(ab.CaptureError), ab.capture(stream):
            stream.synchronize()
        assert not stream.is_capturing

    def replay_shared(self):
        self.shared.graph.launch(self.stream())

    def change_shared(self):
        graph = self.shared.graph
        graph.update(self.choose.choice(self.shared.graphs))
        nodes = graph.nodes
        assert 1 <= len(nodes) <= 3
        assert len(graph.edges) <= 2
        if nodes[-1].kind == "kernel":
            # Another thread may have updated the graph, whose node it is no more then.
            with contextlib.suppress(ValueError):
                graph.set_args(nodes[-1], self.shared.scratch, self.shared.scratch)
        assert graph.replays >= 0

    def graphed(self):
        (source, given), (target, expected) = self.own(), self.own()
        if source is target:
            return
        # Two kinds of arguments take turns, and now and then all is forgotten.
        part = self.choose.choice([slice(None), slice(0, SIZE // 2)])
        with self.capturable():
            self.shared.graphed(source[part], target[part])
        expected[part], given[part] = given[part], 0
        if self.choose.random() < 0.1:
            self.shared.graphed.clear()

    def launch(self):
        if self.device.kind == "cpu":
            ab.launch(nothing, SIZE, self.own()[0], self.own()[0], stream=self.stream())

    # -- modes --

    def check(self):
        a, b = (ab.Stream(self.device) for _ in range(2))
        with ab.hazards("check"):
            array = ab.full(SIZE, 3, "float32", device=self.device, stream=a)
            if self.choose.random() < 0.5:
                with pytest.raises(ab.RaceError):
                    ab.fill(array, 4, stream=b)
            b.wait_stream(a)
            ab.fill(array, 5, stream=b)
            b.synchronize()
            np.testing.assert_array_equal(array.numpy(), np.full(SIZE, 5))

    def off(self):
        stream = ab.Stream(self.device)
        with ab.hazards("off"):
            array = ab.full(SIZE, 3, "float32", device=self.device, stream=stream)
            ab.fill(array[::2], 4, stream=stream)
            assert array.numpy()[:2].tolist() == [4, 3]

    def trace(self):
        with ab.trace() as trace:
            self.fill()
        assert any(operation.kind == "fill" for operation in trace.operations)

    # -- what is dropped --

    def drop(self):
        """Let go of what another thread made."""
        try:
            for _ in range(4):
                self.shared.bin.get_nowait()
        except Empty:
            pass

    def leave_cycle(self):
        node = SimpleNamespace(stream=ab.Stream(self.device), event=self.stream().record_event())
        node.array = ab.full(SIZE, 1, "float32", device=self.device, stream=node.stream)
        node.itself = node
        self.shared.bin.put(node)

    def collect(self):
        gc.collect()

    def in_new_thread(self):
        """Do a few operations in a thread that ends at once, whose per-thread stream ends with it."""
        errors = []

        def body():
            try:
                for _ in range(3):
                    ab.fill(self.own()[0][:0], 1, stream=ab.per_thread_stream(self.device))
                self.fill()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join(TIMEOUT)
        assert not thread.is_alive()
        assert errors == []


# How often each comes, in proportion.
SHARES = {
    **dict.fromkeys([Mixed.fill, Mixed.copy, Mixed.read, Mixed.launch, Mixed.event, Mixed.wait], 8),
    **dict.fromkeys([Mixed.make, Mixed.view, Mixed.submit, Mixed.scope, Mixed.shared_event, Mixed.replay_shared], 5),
    **dict.fromkeys([Mixed.close_array, Mixed.exchange, Mixed.hand_over, Mixed.replace_stream, Mixed.synchronize], 3),
    **dict.fromkeys([Mixed.fork, Mixed.capture, Mixed.graphed, Mixed.change_shared, Mixed.gate, Mixed.drop], 3),
    **dict.fromkeys([Mixed.time, Mixed.wrap, Mixed.submit_error, Mixed.cancel, Mixed.check, Mixed.off], 2),
    **dict.fromkeys([Mixed.fail, Mixed.branch, Mixed.refused_capture, Mixed.leave_cycle, Mixed.in_new_thread], 1),
    **dict.fromkeys([Mixed.collect, Mixed.trace], 0.3),
}
OPERATIONS, WEIGHTS = list(SHARES), list(SHARES.values())
