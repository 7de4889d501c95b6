"""Arguments of graphed functions that are closed while the call is under way."""

import gc

import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all
from .test_graphed import Counted


class Closing:
    """An argument that closes an array when it is hashed or compared."""

    when, array = None, None

    def happens(self, what):
        if self.array is not None and self.when == what:
            self.array.close()

    def __hash__(self):
        self.happens("hash")
        return 1

    def __eq__(self, other):
        self.happens("compared")
        other.happens("compared")
        return True


@pytest.fixture
def filling():
    return Counted(lambda x, other=None: ab.fill(x, 3))


def assert_refused(working, x, *others):
    """Call a function whose array is closed meanwhile, and see that it did nothing and works as before."""
    kept = x[:]
    with pytest.raises(ab.ClosedError):
        working(x, *others)
    assert x.closed
    assert_all(kept, 0)
    again = ready(x.device)
    working(again, *[Closing() for _ in others])
    assert_all(again, 3)
    assert (working.calls, working.graphs) == (1, 1)


def test_an_argument_closed_by_the_function_in_its_first_call_is_an_error(x):
    def close_and_fill(given):
        x.close()
        ab.fill(given, 3)

    assert_refused(Counted(close_and_fill), x)


@pytest.mark.parametrize(("when", "first"), [("hash", True), ("hash", False), ("compared", False)])
def test_an_argument_closed_by_what_tells_calls_apart_is_an_error(device, filling, when, first):
    if not first:
        filling(ready(device), Closing())
    closing = Closing()
    closing.when, closing.array = when, ready(device)
    assert_refused(filling, closing.array, closing)


def test_an_argument_closed_by_one_before_it_is_an_error(device):
    working, closing = Counted(lambda other, x: ab.fill(x, 3)), Closing()
    working(closing, ready(device))
    closing.when, closing.array = "hash", ready(device)
    with pytest.raises(ab.ClosedError):
        working(closing, closing.array)


@pytest.mark.thread_unsafe(reason="the collector's threshold is the process's")
def test_a_finalizer_may_close_an_argument(device):
    class Holder:
        def __init__(self, array):
            self.array, self.itself = array, self

        def __del__(self):
            self.array.close()

    def work(x):
        ab.fill(x, 3)
        ab.current_stream(device).submit(int)
        return x[1:], {"rest": x[2:]}

    working = Counted(work)
    working(ready(device))
    before = gc.get_threshold()
    try:
        for objects in range(1, 30):
            x, result = ready(device), None
            kept = x[:]
            gc.collect()
            Holder(x)
            gc.set_threshold(objects)
            try:
                result = working(x)
            except ab.ClosedError:
                assert x.closed
            finally:
                gc.set_threshold(0)
            assert_all(kept, 0 if result is None else 3)
            if result is not None:
                assert_all(result[0], 3)
                assert result[1]["rest"].shape == (6,)
    finally:
        gc.set_threshold(*before)
    assert working.calls == 1
