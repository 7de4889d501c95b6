"""Workers leave Python objects alone in a process that has had a second interpreter. Each test in a fresh one."""

import pytest

import anabranch as ab

FIRST = [device.alias for device in ab.devices() if device.index == 0]

SCRIPT = """
import threading
import numpy as np
import anabranch as ab

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.destroy(interpreters.create())

ended = []
ab.Device({alias!r}).__enter__()
stream = ab.Stream()

def comes(there):
    # What ends on another thread does so while it waits for the interpreter lock.
    pause = threading.Event()
    return any(there() or pause.wait(0.01) for _ in range(2000))
"""

# What streams keep until they are done with it.
KEPT = {
    "memory of another library": """
        class Owner:
            def __init__(self):
                self.memory = np.zeros(100)
                self.__array_interface__ = self.memory.__array_interface__

            def __del__(self):
                ended.append(True)  # by a thread without the lock that would crash

        with ab.Device("cpu"):
            stream = ab.Stream()
            array = ab.asarray(Owner())
        gate = ab.testing.Gate(stream)
        ab.fill(array, 2, stream=stream)
        del array
        gate.open()
        print(comes(lambda: ended), ended)
        """,
    "a graph and its arrays, in a trace": """
        array = ab.zeros(100)
        with ab.capture() as graph:
            ab.fill(array, 1)
            ab.current_stream().submit(ended.append, True)
        with ab.trace() as trace:
            gate = ab.testing.Gate(stream)
            graph.launch(stream)
            del graph, array
            gate.open()
            stream.synchronize()
            freed = comes(lambda: any(operation.kind == "free" for operation in trace.operations))
        print(freed, ended)
        """,
}


@pytest.mark.parametrize("alias", FIRST)
@pytest.mark.parametrize("kept", KEPT)
def test_what_a_stream_keeps_ends_on_a_thread_of_pythons(kept, alias, run_python):
    lines = "\n".join(line.removeprefix(" " * 8) for line in KEPT[kept].strip("\n").splitlines())
    assert run_python(SCRIPT.format(alias=alias) + lines) == "True [True]\n"
