"""Memory of another library that is returned to it while a stream may still use it."""

import inspect

import numpy as np
import pytest

import anabranch as ab

from ..accesses import each_order_by_the_host, read, streams, write


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


@pytest.fixture
def borrowed(device):
    """Make an array of memory that another library has on the device."""
    if device.kind == "cpu" and device.index == 0:
        return lambda: ab.asarray(np.zeros(8, "float32"))
    if device.kind == "cpu":
        pytest.skip("memory that others have on the host is cpu:0's")
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed, the only other library with such memory here")

    def make():
        with cupy.cuda.Device(device.index):
            array = ab.asarray(cupy.zeros(8, "float32"))
        device.synchronize()  # CuPy's fill is a use of the memory, too
        return array

    return make


@pytest.mark.parametrize("use", [read, write])
def test_memory_in_use_is_not_returned(device, borrowed, use):
    (stream, _), array = streams(device), borrowed()
    use(array, stream)
    with pytest.raises(ab.RaceError) as raised:
        array.close()
    line = inspect.currentframe().f_lineno - 1
    error = raised.value
    assert (error.kind, error.first.stream, error.second.stream) == ("FREE", stream, None)
    assert (error.second.file, error.second.line) == (__file__, line)
    assert error.fix == "stream.synchronize()"
    assert f"returned to their owner at {__file__}:{line}" in str(error)
    # Nothing is lost: it can still be used, and returned later.
    stream.synchronize()
    assert array.numpy().shape == (8,)
    array.close()


@each_order_by_the_host
def test_memory_that_the_host_knows_to_be_free_is_returned(device, borrowed, order):
    (stream, other), array = streams(device), borrowed()
    write(array, stream)
    order(stream, other)
    array.close()


def test_memory_that_views_keep_is_not_returned(device, borrowed):
    (stream, _), array = streams(device), borrowed()
    view = array[2:]
    write(array, stream)
    array.close()
    with pytest.raises(ab.RaceError):
        view.close()
    stream.synchronize()


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_nothing_is_reported_in_other_modes(device, borrowed, mode):
    (stream, _), array = streams(device), borrowed()
    with ab.hazards(mode):
        write(array, stream)
        array.close()
    stream.synchronize()


def test_returns_are_collected(device, borrowed):
    (stream, _), array = streams(device), borrowed()
    with ab.collect_races() as races:
        write(array, stream)
        array.close()
    assert [race.kind for race in races] == ["FREE"]
    assert array.closed
    stream.synchronize()
