"""What the tests of arrays share."""

import threading
from concurrent.futures import wait

import numpy as np

import anabranch as ab

DTYPES = [
    "bool",
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
    *("complex64", "complex128"),
]

# Long enough for a loaded machine. Only a test that fails waits as long as this.
TIMEOUT = 20.0


def values(shape, dtype="float32"):
    """Return a NumPy array whose neighbours differ, in every dtype."""
    numbers = np.arange(np.prod(shape, dtype=np.int64)) * 7 % 97 + 1
    if dtype == "bool":
        return (numbers % 3 == 0).reshape(shape)
    if np.dtype(dtype).kind == "c":
        numbers = numbers - 1j * numbers
    return numbers.astype(dtype).reshape(shape)


def zeros(shape, dtype="float32", **where):
    """Make an array of zeros that is ready, so that any stream may use it."""
    return ab.array(np.zeros(shape, dtype), **where)


def becomes(holds):
    """Wait until something holds that others bring about; whether it does.

    In short waits: on free-threaded Python an object that another thread lets go of is finalized by the thread that
    made it, and that only while it runs Python.
    """
    pause = threading.Event()
    return any(holds() or pause.wait(0.01) for _ in range(int(TIMEOUT / 0.01)))


def comes(event):
    """Wait for an event that a finalizer sets, which wants the lock of the event's own `wait`; whether it came."""
    return becomes(event.is_set)


def held(future):
    """Tell whether a call is still held, after a moment in which one that is not would have returned."""
    return not wait([future], timeout=0.05).done
