"""What the threads of the stress test share."""

import contextlib
import ctypes
from collections import deque
from queue import Empty, SimpleQueue
from types import SimpleNamespace

import numpy as np

import anabranch as ab

SIZE = 64


@ab.kernel
def nothing(i, x: ab.In, y: ab.InOut):
    pass


# In place of what Numba would make, which free-threaded Python may lack: a function that heeds no arguments.
nothing.compile_cpu = lambda signature, checked: SimpleNamespace(
    address=ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p).value, keepalive=None, places=(), block=()
)


def move(x, y):
    ab.copy(y, x)
    ab.fill(x, 0)


class Shared:
    """What all threads use at once."""

    def __init__(self, device):
        self.device = device
        self.streams = [ab.Stream(device, non_blocking=bool(index % 2)) for index in range(4)]
        self.streams += [ab.legacy_stream(device), ab.per_thread_stream(device)]
        self.events = [ab.Event(device=device) for _ in range(4)]
        self.scratch = ab.array(np.zeros(SIZE, "float32"), device=device)
        self.graphs = [self._graph(count) for count in (1, 2, 2)]
        self.graph = self._graph(1)
        self.graphed = ab.graphed(move, size=2)
        self.gates = SimpleQueue()  # for the thread that opens them
        self.bin = SimpleQueue()  # for other threads to drop
        self.handed = SimpleQueue()  # arrays, each with what it holds, for the next thread

    def _graph(self, count):
        with ab.capture(ab.Stream(self.device)) as graph:
            for value in range(count):
                ab.fill(self.scratch, value)
            if self.device.kind == "cpu":
                ab.launch(nothing, 1, self.scratch, self.scratch)
        return graph

    def open_gates(self):
        """Open each gate a moment after it came, until None comes."""
        held = deque()
        while True:
            with contextlib.suppress(Empty):
                held.append(self.gates.get(timeout=0.001))
                if held[-1] is not None and len(held) < 8:
                    continue
            last = bool(held) and held[-1] is None
            while held:
                gate = held.popleft()
                if gate is not None:
                    gate.open()
            if last:
                return
