"""`ab.hazards`: which mode is in force, from when on, until when, and where."""

import contextvars
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import anabranch as ab

from ..accesses import ready, streams, write
from ..arrays import TIMEOUT

pytestmark = pytest.mark.races

MODES = ["auto", "check", "off"]
DEFAULT = os.environ.get("ANABRANCH_HAZARDS", "auto")
each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(autouse=True)
def _as_it_was(on_device):
    """A test that calls `hazards` leaves its mode to the next test, which must not see it."""
    with ab.hazards(DEFAULT):
        yield


def assert_mode(device, mode):
    """Check which mode is in force by what becomes of a race."""
    (a, b), array, done = streams(device), ready(device), threading.Event()
    with ab.testing.Gate(a):
        write(array, a)
        if mode == "check":
            with pytest.raises(ab.RaceError):
                write(array, b)
            return
        write(array, b)
        b.submit(done.set)
        # A moment in which one that does not wait would most often be done.
        assert done.wait(0.02 if mode == "auto" else TIMEOUT) == (mode == "off")


# Calls and blocks


@pytest.mark.parametrize("as_block", [False, True])
@each_mode
def test_a_mode_does_what_it_says(device, mode, as_block):
    if as_block:
        with ab.hazards(mode):
            assert_mode(device, mode)
    else:
        ab.hazards(mode)
        assert_mode(device, mode)


@each_mode
def test_after_a_block_the_mode_is_what_it_was_before(device, mode):
    ab.hazards(mode)
    with ab.hazards("check"):
        pass
    assert_mode(device, mode)


def test_blocks_nest(device):
    with ab.hazards("check"):
        with ab.hazards("off"):
            with ab.hazards("auto"):
                assert_mode(device, "auto")
            assert_mode(device, "off")
        assert_mode(device, "check")


def test_a_call_inside_a_block_holds_until_its_end(device):
    ab.hazards("off")
    with ab.hazards("check"):
        ab.hazards("auto")
        assert_mode(device, "auto")
    assert_mode(device, "off")


def test_the_last_call_counts(device):
    for mode in "off", "auto", "check":
        ab.hazards(mode)
    assert_mode(device, "check")


@each_mode
def test_an_exception_leaves_a_block_as_its_end_does(device, mode):
    ab.hazards(mode)
    with pytest.raises(ZeroDivisionError), ab.hazards("check"):
        1 / 0  # noqa: B018
    assert_mode(device, mode)


def test_a_race_leaves_a_block_as_its_end_does(device, a, b, array):
    ab.hazards("off")
    write(array, a)
    with ab.hazards("check"):
        write(array[:1], a)
    with pytest.raises(ab.RaceError), ab.hazards("check"):
        write(array, b)
    assert_mode(device, "off")


def test_a_generator_that_is_left_early_gives_the_mode_back(device):
    def work():
        with ab.hazards("check"):
            yield
            yield

    ab.hazards("off")
    working = work()
    next(working)
    assert_mode(device, "check")
    working.close()
    assert_mode(device, "off")


def test_one_object_may_be_entered_twice(device):
    checked = ab.hazards("check")
    for _ in range(2):
        with checked:
            assert_mode(device, "check")


@pytest.mark.parametrize("mode", ["", "on", "AUTO", "Check", "none", None, 1, True, []], ids=repr)
def test_another_mode_is_refused_and_nothing_changes(device, mode):
    ab.hazards("check")
    with pytest.raises(ValueError, match=r"auto.*check.*off"):
        ab.hazards(mode)
    assert_mode(device, "check")


def test_a_mode_tells_what_it_is():
    assert "check" in repr(ab.hazards("check"))


# Scopes of streams and devices

SCOPES = {
    "stream": ab.Stream,
    "device": lambda: ab.current_device(),
    "ScopedStream": lambda: ab.ScopedStream(ab.Stream()),
    "ScopedDevice": lambda: ab.ScopedDevice(ab.current_device()),
    "fork": lambda: ab.fork(2),
}
each_scope = pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)


def current():
    return ab.current_device(), ab.current_stream()


@each_scope
def test_a_call_inside_a_scope_outlives_it(device, scope):
    with scope():
        ab.hazards("check")
    assert_mode(device, "check")


@each_scope
def test_a_call_before_a_scope_holds_inside_and_after(device, scope):
    ab.hazards("check")
    with scope():
        assert_mode(device, "check")
    assert_mode(device, "check")


@each_scope
def test_a_block_inside_a_scope_leaves_what_is_current(device, scope):
    ab.hazards("off")
    before = current()
    with scope():
        inside = current()
        with ab.hazards("check"):
            assert current() == inside
        assert current() == inside
        assert_mode(device, "off")
    assert current() == before


@each_scope
def test_a_scope_inside_a_block_leaves_the_mode(device, scope):
    before = current()
    with ab.hazards("check"):
        with scope():
            pass
        assert_mode(device, "check")
        assert current() == before


@each_scope
def test_a_block_may_end_before_a_scope_that_began_in_it(device, scope):
    ab.hazards("off")
    before = current()
    block, scope = ab.hazards("check"), scope()
    block.__enter__()
    scope.__enter__()
    inside = current()
    block.__exit__(None, None, None)
    assert_mode(device, "off")
    assert current() == inside
    scope.__exit__(None, None, None)
    assert_mode(device, "off")
    assert current() == before


@each_scope
def test_a_scope_may_end_before_a_block_that_began_in_it(device, scope):
    ab.hazards("off")
    before, scope = current(), scope()
    scope.__enter__()
    block = ab.hazards("check")
    block.__enter__()
    scope.__exit__(None, None, None)
    assert_mode(device, "check")
    assert current() == before
    block.__exit__(None, None, None)
    assert_mode(device, "off")
    assert current() == before


def test_a_stream_made_current_inside_a_block_stays_so(device):
    before, stream = ab.current_stream(), ab.Stream()
    with ab.hazards("check"):
        stream.use()
    assert ab.current_stream() == stream
    before.use()


def test_calls_inside_nested_scopes_outlive_them_all(device, other_device):
    before = current()
    with ab.Stream(device), ab.Stream(other_device):
        ab.hazards("check")
        with device, ab.Stream(other_device):
            ab.hazards("off")
        assert_mode(device, "off")
    assert_mode(device, "off")
    assert current() == before


# Threads

THREADS = {
    "thread": lambda function: _in_thread(function),
    "pool": lambda function: ThreadPoolExecutor(1).submit(function).result(TIMEOUT),
    "submit": lambda function: ab.Stream().submit(function).result(TIMEOUT),
    "copied context": lambda function: _in_thread(contextvars.copy_context().run, function),
}
each_thread = pytest.mark.parametrize("start", THREADS.values(), ids=THREADS)


def _in_thread(function, *args):
    future = Future()

    def run():
        try:
            future.set_result(function(*args))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run).start()
    return future.result(TIMEOUT)


@each_thread
@each_mode
def test_another_thread_starts_with_the_default(device, mode, start):
    with ab.hazards(mode):
        start(lambda: assert_mode(device, DEFAULT))


@each_thread
def test_a_mode_that_another_thread_sets_stays_there(device, start):
    ab.hazards("check")
    start(lambda: ab.hazards("off"))
    assert_mode(device, "check")


def test_one_function_of_a_stream_leaves_no_mode_to_the_next(device, stream):
    stream.submit(ab.hazards, "off").result(TIMEOUT)
    stream.submit(assert_mode, device, DEFAULT).result(TIMEOUT)


def test_threads_have_modes_of_their_own_at_the_same_time(device, in_threads):
    def use(number):
        with ab.hazards(MODES[number]):
            assert_mode(device, MODES[number])

    in_threads(3, use)


def test_a_thread_run_in_a_copied_context_collects_nothing_here(device):
    def race():
        with ab.hazards("check"):
            assert_mode(device, "check")

    with ab.collect_races() as races:
        _in_thread(contextvars.copy_context().run, race)
    assert races == []


def test_an_object_may_be_entered_again_within_its_own_block(device):
    ab.hazards("off")
    mode = ab.hazards("check")
    with mode:
        with mode:
            assert_mode(device, "check")
        assert_mode(device, "check")
    assert_mode(device, "off")


def test_an_object_made_earlier_sets_its_mode_in_its_first_block(device):
    mode = ab.hazards("check")
    ab.hazards("off")
    with mode:
        assert_mode(device, "check")
    assert_mode(device, "off")
