"""Accesses that the host makes itself: views of memory that it reaches, and `numpy()`."""

import threading

import numpy as np
import pytest

import anabranch as ab

from ..accesses import complete, each_order_by_the_host, read, ready, streams, write
from ..arrays import TIMEOUT, held


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


def host_array(device):
    """Make an array that both the host and the streams of a device reach."""
    if device.kind == "cpu":
        return ready(device)
    return ab.array(np.zeros(8, "float32"), device="cpu", pinned=True)


def set_by(stream, array):
    ab.copy(array, ready(stream.device, array.size), stream=stream)


def read_by(stream, array):
    ab.copy(ready(stream.device, array.size), array, stream=stream)


HOST = pytest.mark.parametrize(
    ("use", "writes", "races"),
    [(set_by, False, True), (set_by, True, True), (read_by, True, True), (read_by, False, False)],
)


@HOST
def test_a_view_of_the_host_races_with_what_a_stream_has_to_do(device, use, writes, races):
    stream, array = ab.Stream(device), host_array(device)
    use(stream, array)
    if not races:
        with array.host(write=writes):
            return
    with pytest.raises(ab.RaceError) as caught, array.host(write=writes):
        pytest.fail("the block is not entered")
    error = caught.value
    assert error.kind == "HOST"
    assert error.first.stream == stream
    assert error.second.stream is None
    assert error.second.access == ("write" if writes else "read")
    assert error.fix == "stream.synchronize()"


@HOST
@each_order_by_the_host
def test_a_view_of_the_host_passes_after_any_wait_of_the_host(device, use, writes, races, order):
    stream, array = ab.Stream(device), host_array(device)
    use(stream, array)
    order(stream, None)
    with array.host(write=writes) as view:
        np.testing.assert_array_equal(view, np.zeros(8))


def test_a_view_of_the_host_needs_more_than_order_between_streams(device):
    (a, b), array = streams(device), host_array(device)
    set_by(a, array)
    b.wait_stream(a)
    with pytest.raises(ab.RaceError), array.host():
        pytest.fail("the block is not entered")


def test_a_view_of_one_part_does_not_race_with_work_on_another(device):
    stream, array = ab.Stream(device), host_array(device)
    with ab.testing.Gate(stream):
        set_by(stream, array[4:])
        with array[:4].host(write=True) as view:
            view[:] = 3
        with pytest.raises(ab.RaceError), array[3:5].host():
            pytest.fail("the block is not entered")
    np.testing.assert_array_equal(array.numpy(), [3, 3, 3, 3, 0, 0, 0, 0])


def test_streams_come_after_what_the_host_did_in_this_task(device):
    array = host_array(device)
    for stream in streams(device):
        with array.host(write=True) as view:
            view[:] = 1
        set_by(stream, array)
        stream.synchronize()


@pytest.mark.parametrize("writes", [False, True])
def test_views_of_one_task_within_each_other_do_not_race(device, writes):
    array = host_array(device)
    with array.host(write=True) as outer, array[2:4].host(writes) as inner:
        outer[:] = 1
        assert inner.tolist() == [1, 1]


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_in_the_other_modes_a_view_waits(device, mode, in_thread):
    stream, array = ab.Stream(device), host_array(device)

    def view():
        with ab.hazards(mode), array.host(write=True) as view:
            return view.copy()

    with ab.hazards(mode), ab.testing.Gate(stream):
        set_by(stream, array)
        viewing = in_thread(view)
        assert held(viewing)
    np.testing.assert_array_equal(viewing.result(TIMEOUT), np.zeros(8))


def test_numpy_waits_for_writers_and_is_no_race(a, b, array):
    write(array, a)
    np.testing.assert_array_equal(array.numpy(), np.ones(8))
    write(array, b)


def test_a_stream_races_with_numpy_in_a_thread_that_it_does_not_come_after(device, in_thread):
    array, through = ready(device), threading.Event()

    def overwrite():
        assert through.wait(TIMEOUT)
        with ab.hazards("check"), pytest.raises(ab.RaceError) as caught:
            ab.fill(array, 1, stream=ab.Stream(device))
        return caught.value.kind

    kind = in_thread(overwrite)
    array.numpy()
    through.set()
    assert kind.result(TIMEOUT) == "HOST"


def test_numpy_does_not_wait_for_readers(a, b, array):
    with ab.testing.Gate(a):
        read(array, a)
        array.numpy()
        with pytest.raises(ab.RaceError) as caught:
            write(array, b)
    assert (caught.value.kind, caught.value.first.stream) == ("WAR", a)


def test_readers_that_are_through_are_still_told_of_after_numpy(a, b, array):
    read(array, a)
    complete(a)
    array.numpy()
    with pytest.raises(ab.RaceError) as caught:
        write(array, b)
    assert (caught.value.kind, caught.value.first.stream) == ("WAR", a)


def test_readers_that_are_through_are_still_told_of_after_a_copy_to_the_host(device):
    (a, b), array, target = streams(device), ready(device), ready("cpu")
    read(array, a)
    complete(a)
    ab.copy(target, array, stream=ab.Stream(device))
    with pytest.raises(ab.RaceError) as caught:
        write(array, b)
    assert caught.value.kind == "WAR"


def test_numpy_tells_of_all_that_came_before_the_writer(a, b, x, y, z):
    write(x, a)
    write(y, a)
    write(z, a)
    y.numpy()
    write(x, b)
    with pytest.raises(ab.RaceError):
        write(z, b)


def test_the_host_may_look_at_what_a_finished_function_wrote(device):
    stream, array = ab.Stream(device), host_array(device)
    stream.submit(int, writes=[array]).result(TIMEOUT)
    with array.host() as view:
        np.testing.assert_array_equal(view, np.zeros(8))


def test_a_view_is_read_only_after_its_block(device):
    array = host_array(device)
    host = array.host(write=True)
    with host as outer:
        with host as inner:
            inner[:] = 1
        outer[:] = 2
        with pytest.raises(ValueError, match="read-only"):
            inner[:] = 3
    with pytest.raises(ValueError, match="read-only"):
        outer[:] = 3
    assert array.tolist() == [2] * 8
    with array.host(write=True) as again:
        again[:] = 4
    assert array.tolist() == [4] * 8
