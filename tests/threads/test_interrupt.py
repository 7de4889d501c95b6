"""Signals reach a thread that waits: Python's handlers run while the host is blocked."""

import os
import signal
import threading

import pytest

import anabranch as ab


class InterruptError(Exception):
    """Raised by a signal's handler."""


def read(array):
    """Read an array and give it back: when it is dropped, its memory is freed in its stream, which has work again."""
    array.numpy()
    return array


WAIT = {
    "stream": lambda stream: stream.synchronize(),
    "event": lambda stream: stream.record_event().synchronize(),
    "blocking event": lambda stream: stream.record_event(ab.Event(blocking=True, device=stream.device)).synchronize(),
    "device": lambda stream: stream.device.synchronize(),
    "every device": lambda _: ab.synchronize(),
    "numpy": lambda stream: read(ab.zeros(1, device=stream.device, stream=stream)),
}
each_wait = pytest.mark.parametrize("wait", WAIT.values(), ids=WAIT)


@pytest.fixture
def signalled():
    """Gives a function that starts to send this thread a signal, until a function given to it has handled one."""
    before = signal.getsignal(signal.SIGUSR1)
    me, over, pending = threading.get_ident(), threading.Event(), {}

    def send():
        while pending and not over.wait(0.001):
            signal.pthread_kill(me, signal.SIGUSR1)

    def handle(number, _):
        # The next signal may come while this one is handled, so what is called here takes no lock: setting a
        # threading.Event does, and would wait for itself. A dictionary's pop is one step.
        if handler := pending.pop(number, None):
            handler()

    sender = threading.Thread(target=send, daemon=True)

    def start(handler):
        pending[signal.SIGUSR1] = handler
        signal.signal(signal.SIGUSR1, handle)
        sender.start()

    yield start
    over.set()
    sender.join()
    signal.signal(signal.SIGUSR1, before)


@each_wait
def test_a_handler_that_returns_lets_the_wait_go_on(wait, device, signalled):
    stream = ab.Stream(device)
    gate = ab.testing.Gate(stream)
    signalled(gate.open)
    kept = wait(stream)
    assert stream.query()
    del kept


@each_wait
def test_a_handler_that_raises_ends_the_wait_and_nothing_else(wait, device, signalled):
    def interrupt():
        raise InterruptError

    def start_and_wait():
        signalled(interrupt)
        wait(stream)

    stream = ab.Stream(device)
    with ab.testing.Gate(stream):
        work = stream.submit(int)
        with pytest.raises(InterruptError):
            start_and_wait()
        assert not work.done()
    assert work.result(10) == 0
    stream.synchronize()


@each_wait
def test_control_c_ends_a_wait(wait, device):
    def interrupt_and_wait():
        ab.Stream(device).submit(os.kill, os.getpid(), signal.SIGINT)  # once this thread waits
        wait(stream)

    stream = ab.Stream(device)
    # A process started in the background of a shell ignores the signal, and Python then leaves it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ab.testing.Gate(stream), pytest.raises(KeyboardInterrupt):
            interrupt_and_wait()
    finally:
        signal.signal(signal.SIGINT, before)
    stream.synchronize()
