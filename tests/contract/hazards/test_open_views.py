"""Work that touches an array while the host has a view of it open."""

import threading

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from ..arrays import TIMEOUT
from .test_host_views import host_array, read_by, set_by


def filled(stream, array):
    if stream.device is array.device:
        ab.fill(array, 1, stream=stream)
    else:
        set_by(stream, array)


def assigned(stream, array):
    with ab.Stream(array.device):
        array[...] = 1


def submitted(stream, array):
    stream.submit(int, writes=[array])


def launched(stream, array):
    source = ready(stream.device, array.size)
    with ab.capture(stream) as graph:
        ab.copy(array, source, stream=stream)
    graph.launch(stream)


WRITES = {"a copy": set_by, "a fill": filled, "an assignment": assigned, "a function": submitted, "a graph": launched}
READS = {
    "a copy": read_by,
    "a function": lambda stream, array: stream.submit(int, reads=[array]),
    "a copy to the host": lambda stream, array: ab.to_host(array),
    "a new array": lambda stream, array: array.copy(),
}
each_mode = pytest.mark.parametrize("mode", ["auto", "check"])


@each_mode
@pytest.mark.parametrize(("view", "use"), [(w, u) for u in WRITES.values() for w in (False, True)])
def test_work_that_writes_is_refused_while_the_host_has_a_view(device, mode, view, use, stream):
    array = host_array(device)
    with ab.hazards(mode), array.host(write=view), pytest.raises(ab.RaceError) as caught:
        use(stream, array)
    error = caught.value
    assert error.kind == "HOST"
    assert error.first.stream is None
    assert error.first.file == __file__
    assert error.first.access == ("write" if view else "read")
    assert "with array.host()" in error.fix
    use(stream, array)
    stream.synchronize()


@each_mode
@pytest.mark.parametrize("use", READS.values(), ids=READS)
def test_work_that_reads_is_refused_while_the_host_writes(device, mode, use, stream):
    array = host_array(device)
    with ab.hazards(mode):
        with array.host(write=True), pytest.raises(ab.RaceError) as caught:
            use(stream, array)
        assert caught.value.kind == "HOST"
        with array.host():
            use(stream, array)


@each_mode
def test_nothing_is_enqueued_that_is_refused(device, mode, stream):
    array = host_array(device)
    with ab.hazards(mode), array.host(write=True) as view:
        with pytest.raises(ab.RaceError):
            set_by(stream, array)
        assert stream.query()
        view[:] = 5
    np.testing.assert_array_equal(array.numpy(), np.full(8, 5))


@each_mode
def test_work_on_another_part_goes_on(device, mode, stream):
    array = host_array(device)
    with ab.hazards(mode), array[:4].host(write=True) as view:
        set_by(stream, array[4:])
        with pytest.raises(ab.RaceError):
            set_by(stream, array[3:5])
        view[:] = 5


def test_off_refuses_nothing(device, stream):
    array = host_array(device)
    with ab.hazards("off"), array.host(write=True):
        set_by(stream, array)
        stream.synchronize()


def test_another_thread_is_refused_too(device, in_thread):
    array = host_array(device)

    def write():
        with pytest.raises(ab.RaceError) as caught:
            set_by(ab.Stream(device), array)
        return caught.value.kind

    with array.host(write=True):
        assert in_thread(write).result(TIMEOUT) == "HOST"
    in_thread(set_by, ab.Stream(device), array).result(TIMEOUT)


def test_views_within_each_other_end_one_by_one(device, stream):
    array = host_array(device)
    view = array.host(write=True)
    with view:
        with view, array.host(write=True):
            pass
        with pytest.raises(ab.RaceError):
            set_by(stream, array)
    set_by(stream, array)


def test_an_exception_in_the_block_ends_the_view(device, stream):
    array = host_array(device)
    with pytest.raises(ZeroDivisionError), array.host(write=True):
        raise ZeroDivisionError
    set_by(stream, array)


def test_a_block_that_is_never_left_ends_with_its_view(device, stream):
    array = host_array(device)
    view = array.host(write=True)
    view.__enter__()
    with pytest.raises(ab.RaceError):
        set_by(stream, array)
    del view
    set_by(stream, array)


def test_the_host_reads_its_own_array_in_the_block(device):
    array = host_array(device)
    with array.host(write=True) as view:
        view[:] = 2
        np.testing.assert_array_equal(array.numpy(), np.full(8, 2))


def test_after_a_view_one_stream_needs_no_event(device, stream):
    array = ready(device)
    ab.fill(array, 1, stream=stream)
    host = host_array(device)
    with host.host(write=True):
        pass
    with ab.trace() as trace:
        set_by(stream, host)
        set_by(stream, host)
    assert [operation for operation in trace.operations if operation.kind == "wait"] == []


# -- a view that a host function has open --


class Writer:
    """A function that writes to an array and is still running, its view open or closed."""

    def __init__(self, mode, array, stream, view_open, **declared):
        self._begun, self._end = threading.Event(), threading.Event()
        self._mode, self._array, self._open = mode, array, view_open
        self._future = stream.submit(self._run, **declared)

    def _run(self):
        with ab.hazards(self._mode):
            view = self._array.host(write=True)
            with view as values:
                if self._open:
                    self._wait()
                values[:] = 5
            if not self._open:
                self._wait()

    def _wait(self):
        self._begun.set()
        assert self._end.wait(TIMEOUT)

    def __enter__(self):
        assert self._begun.wait(TIMEOUT)

    def __exit__(self, *_):
        self._end.set()
        self._future.result(TIMEOUT)


each_state = pytest.mark.parametrize("view_open", [True, False], ids=["open", "closed"])


@each_mode
@each_state
def test_what_comes_after_the_function_comes_after_its_view(device, mode, stream, view_open):
    array, other = host_array(device), ab.Stream(device)
    targets = [ready(device) for _ in range(2)]
    with ab.hazards(mode), Writer(mode, array, stream, view_open):
        ab.copy(targets[0], array, stream=stream)
        other.wait_stream(stream)
        ab.copy(targets[1], array, stream=other)
    for target in targets:
        np.testing.assert_array_equal(target.numpy(), np.full(8, 5))


@each_mode
def test_what_does_not_come_after_the_function_is_refused_while_its_view_is_open(device, mode, stream):
    array, other = host_array(device), ab.Stream(device)
    with ab.hazards(mode), Writer(mode, array, stream, True), pytest.raises(ab.RaceError) as caught:
        set_by(other, array)
    assert caught.value.kind == "HOST"


@each_mode
def test_what_the_function_itself_puts_elsewhere_is_refused_while_its_view_is_open(device, mode, stream):
    array, other = host_array(device), ab.Stream(device)

    def run():
        with ab.hazards(mode), array.host(write=True):
            set_by(other, array)

    with pytest.raises(ab.RaceError) as caught:
        stream.submit(run).result(TIMEOUT)
    assert caught.value.kind == "HOST"


@each_state
@pytest.mark.parametrize("use", [*WRITES.values(), *READS.values()], ids=[*WRITES, *READS])
def test_under_auto_work_waits_for_a_function_that_has_declared_its_view(device, stream, view_open, use):
    array, other = host_array(device), ab.Stream(device)
    with Writer("auto", array, stream, view_open, writes=[array]):
        use(other, array)
    ab.synchronize()


def test_under_check_a_declared_view_is_one_race(device, stream):
    array, other = host_array(device), ab.Stream(device)
    with ab.collect_races() as races, Writer("check", array, stream, True, writes=[array]):
        set_by(other, array)
    assert [race.kind for race in races] == ["WAW"]
