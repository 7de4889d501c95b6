import contextlib

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, TIMEOUT, held, values, zeros

# numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)], ids=str)
def test_numpy_returns_an_ndarray_of_the_same_shape_and_dtype(device, shape, dtype):
    result = ab.array(values(shape, dtype), device=device).numpy()
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == (shape, dtype)
    np.testing.assert_array_equal(result, values(shape, dtype))


def test_numpy_returns_a_fresh_array_each_time(device):
    array = ab.array(values(5), device=device)
    first, second = np.array(array), array.numpy()
    assert first.flags.writeable
    first[:] = 0
    np.testing.assert_array_equal(second, values(5))
    np.testing.assert_array_equal(array.numpy(), values(5))


@pytest.mark.parametrize("shape", [(), (0,), (5,)], ids=str)
def test_what_numpy_returns_is_read_only(device, shape):
    result = ab.zeros(shape, device=device).numpy()
    with pytest.raises(ValueError, match="read-only"):
        result[...] = 1


def test_numpy_of_a_view_keeps_nothing_of_its_base(device):
    array = ab.array(values(5), device=device)
    result = array[1:3].numpy()
    ab.fill(array, 0)
    ab.synchronize(device)
    np.testing.assert_array_equal(result, values(5)[1:3])


@pytest.mark.parametrize(("written", "read"), [(np.s_[:], np.s_[:]), (np.s_[:], np.s_[1:]), (np.s_[1:], np.s_[:])])
def test_numpy_waits_for_the_work_that_writes_the_array_its_view_or_its_base(device, in_thread, stream, written, read):
    array, expected = zeros(4, device=device), np.zeros(4)
    expected[written] = 3
    with ab.testing.Gate(stream):
        ab.fill(array[written], 3, stream=stream)
        reading = in_thread(array[read].numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), expected[read])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
def test_numpy_waits_for_every_stream_that_writes_the_array(device, order, in_thread):
    array, streams = zeros(6, device=device), [ab.Stream(device) for _ in range(3)]
    gates = [ab.testing.Gate(stream) for stream in streams]
    for k, stream in enumerate(streams):
        ab.fill(array[2 * k : 2 * k + 2], k + 1, stream=stream)
    reading = in_thread(array.numpy)
    for k in order:
        assert held(reading)
        gates[k].open()
    np.testing.assert_array_equal(reading.result(TIMEOUT), [1, 1, 2, 2, 3, 3])


def test_numpy_waits_for_what_the_writing_stream_waited_for(device, in_thread):
    first, second, array = ab.Stream(device), ab.Stream(device), zeros(4, device=device)
    with ab.testing.Gate(first):
        ab.fill(array, 1, stream=first)
        second.wait_stream(first)
        ab.fill(array, 2, stream=second)
        reading = in_thread(array.numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(4, 2))


UNRELATED = {
    "a non-blocking stream": ab.Stream,
    "a blocking stream": lambda device: ab.Stream(device, non_blocking=False),
    "the default stream": ab.default_stream,
    "the legacy stream": ab.legacy_stream,
    "the per-thread stream": ab.per_thread_stream,
}


@pytest.mark.parametrize("unrelated", UNRELATED.values(), ids=UNRELATED)
def test_numpy_waits_for_no_unrelated_stream(device, unrelated, in_thread, stream):
    with ab.testing.Gate(unrelated(device)):
        array = ab.full(4, 3, "float32", stream=stream)
        np.testing.assert_array_equal(in_thread(array.numpy).result(TIMEOUT), np.full(4, 3))


def test_numpy_waits_for_no_current_stream(device, in_thread):
    array = ab.full(4, 3, "float32", stream=ab.Stream(device))
    with ab.Stream(device) as current, ab.testing.Gate(current):
        np.testing.assert_array_equal(in_thread(array.numpy).result(TIMEOUT), np.full(4, 3))


def test_numpy_waits_for_no_stream_that_reads_the_array(device, in_thread):
    array, result = ab.array(values(4), device=device), zeros(4, device=device)
    reader = ab.Stream(device)
    with ab.testing.Gate(reader):
        ab.copy(result, array, stream=reader)
        np.testing.assert_array_equal(in_thread(array.numpy).result(TIMEOUT), values(4))
    np.testing.assert_array_equal(result.numpy(), values(4))


def test_numpy_waits_for_no_stream_of_another_device(device, other_device, in_thread):
    array = ab.full(4, 3, "float32", stream=ab.Stream(device))
    with ab.testing.Gate(ab.Stream(other_device)):
        np.testing.assert_array_equal(in_thread(array.numpy).result(TIMEOUT), np.full(4, 3))


def test_numpy_waits_for_no_write_beside_its_view(device, in_thread):
    array, other = ab.array(values(8), device=device), ab.Stream(device)
    with ab.testing.Gate(other):
        ab.fill(array[4:], 0, stream=other)
        np.testing.assert_array_equal(in_thread(array[:4].numpy).result(TIMEOUT), values(8)[:4])


def test_numpy_waits_for_no_later_work_of_the_same_stream(device, in_thread):
    if device.kind == "cuda":
        pytest.skip("on a GPU a readback may follow its whole stream, so that work on one stream needs no events")
    stream = ab.Stream(device)
    array = ab.full(4, 3, "float32", stream=stream)
    with ab.testing.Gate(stream):
        np.testing.assert_array_equal(in_thread(array.numpy).result(TIMEOUT), np.full(4, 3))


def test_numpy_does_not_see_work_enqueued_after_it(stream):
    array = ab.full(1000, 1, "float32", stream=stream)
    before = array.numpy()
    ab.fill(array, 2, stream=stream)
    np.testing.assert_array_equal(before, np.full(1000, 1))
    np.testing.assert_array_equal(array.numpy(), np.full(1000, 2))


def test_numpy_works_on_many_threads_at_once(in_thread, stream):
    with ab.testing.Gate(stream):
        array = ab.full(1000, 3, "float32", stream=stream)
        readings = [in_thread(array.numpy) for _ in range(8)]
    for reading in readings:
        np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(1000, 3))


# host()


@pytest.fixture(params=["pageable", "pinned"])
def host_memory(device, request):
    """Where the arrays are that host() shows: every CPU, and pinned memory whatever the device is."""
    if device.kind == "cuda" and request.param == "pageable":
        pytest.skip("the memory of a GPU has no view on the host")
    return {"device": device if device.kind == "cpu" else "cpu", "pinned": request.param == "pinned"}


def see(array, write=False):
    with array.host(write=write) as view:
        return view.copy()


def test_host_shows_the_memory_itself(host_memory):
    array = ab.array(values((3, 4)), **host_memory)
    with array.host() as view:
        assert type(view) is np.ndarray
        assert view.ctypes.data == array.ptr
        assert (view.shape, view.strides, view.dtype) == (array.shape, array.strides, array.dtype)
        np.testing.assert_array_equal(view, values((3, 4)))


@pytest.mark.parametrize("index", [np.s_[1:], np.s_[::-1, ::2], np.s_[..., 0], np.s_[1, 2], np.s_[3:]], ids=str)
def test_host_of_a_view_shows_its_elements(host_memory, index):
    array = ab.array(values((3, 4)), **host_memory)
    np.testing.assert_array_equal(see(array[index]), values((3, 4))[index])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)], ids=str)
def test_host_shows_arrays_of_no_dimensions_and_no_elements(host_memory, shape):
    assert see(ab.zeros(shape, **host_memory)).shape == shape


def test_host_is_read_only_unless_asked_to_write(host_memory):
    array = ab.array(values(4), **host_memory)
    with array.host() as view, pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    with array.host(write=False) as view:
        assert not view.flags.writeable
    np.testing.assert_array_equal(array.numpy(), values(4))


def test_what_is_written_to_host_is_in_the_array(host_memory):
    array = ab.array(values(4), **host_memory)
    with array.host(write=True) as view:
        view[1:3] = 0
    np.testing.assert_array_equal(array.numpy(), [values(4)[0], 0, 0, values(4)[3]])


def test_work_enqueued_after_host_sees_what_was_written(device, host_memory):
    array, stream = zeros(4, **host_memory), ab.Stream(device)
    with array.host(write=True) as view:
        view[:] = values(4)
    result = ab.zeros(4, stream=stream)
    ab.copy(result, array, stream=stream)
    np.testing.assert_array_equal(result.numpy(), values(4))


@pytest.mark.parametrize("write", [False, True])
def test_host_waits_for_the_work_that_writes_the_array(device, host_memory, write, in_thread):
    array, stream = zeros(4, **host_memory), ab.Stream(device)
    src = ab.array(values(4), device=device)
    with ab.testing.Gate(stream):
        ab.copy(array, src, stream=stream)
        seeing = in_thread(see, array, write)
        assert held(seeing)
    np.testing.assert_array_equal(seeing.result(TIMEOUT), values(4))


def test_host_to_write_waits_for_the_work_that_reads_the_array(device, host_memory, in_thread):
    array, stream = ab.array(values(4), **host_memory), ab.Stream(device)
    result = zeros(4, device=device)
    with ab.testing.Gate(stream):
        ab.copy(result, array, stream=stream)
        seeing = in_thread(see, array, True)
        assert held(seeing)
    np.testing.assert_array_equal(seeing.result(TIMEOUT), values(4))


@pytest.mark.parametrize("write", [False, True])
def test_host_waits_for_no_unrelated_stream(device, host_memory, write, in_thread):
    array = ab.array(values(4), **host_memory)
    with ab.testing.Gate(ab.Stream(device)):
        np.testing.assert_array_equal(in_thread(see, array, write).result(TIMEOUT), values(4))


def test_an_error_inside_host_comes_out(host_memory):
    array = ab.zeros(4, **host_memory)
    with pytest.raises(ZeroDivisionError), array.host():
        raise ZeroDivisionError
    np.testing.assert_array_equal(see(array), np.zeros(4))


def test_host_may_be_entered_again(host_memory):
    array = ab.array(values(4), **host_memory)
    with array.host() as first, array.host() as second:
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(see(array), values(4))


@pytest.mark.parametrize("end", [ab.Array.close, lambda array: None], ids=["closed", "dropped"])
def test_the_memory_outlives_an_array_that_ends_inside_host(host_memory, end):
    array = ab.array(values(1000), **host_memory)
    with array.host() as view:
        end(array)
        del array
        others = [ab.zeros(1000, **host_memory) for _ in range(10)]
        np.testing.assert_array_equal(view, values(1000))
    assert not any(other.numpy().any() for other in others)


def test_host_of_read_only_memory_cannot_be_written():
    data = values(4)
    data.flags.writeable = False
    array = ab.asarray(data)
    np.testing.assert_array_equal(see(array), data)
    with pytest.raises(ValueError, match="read-only"), array.host(write=True):
        pass


def test_host_of_a_gpu_s_memory_is_refused(device):
    if device.kind == "cpu":
        pytest.skip("the host sees the memory of a CPU")
    with pytest.raises((ab.Error, TypeError, ValueError)), ab.zeros(4, device=device).host():
        pass


# __array__, of CPU arrays


@pytest.fixture
def cpu(device):
    if device.kind != "cpu":
        pytest.skip("only CPU arrays speak __array__")
    return device


def test_numpy_takes_arrays(cpu):
    array = ab.array(values((3, 4)), device=cpu)
    np.testing.assert_array_equal(np.asarray(array), values((3, 4)))
    np.testing.assert_array_equal(np.asarray(array[::-1, ::2]), values((3, 4))[::-1, ::2])
    np.testing.assert_array_equal(np.negative(array), -values((3, 4)))


def test_numpy_takes_arrays_as_another_dtype(cpu):
    result = np.asarray(ab.array(values(4), device=cpu), dtype="float64")
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, values(4))


def test_a_copy_that_numpy_asks_for_is_one(cpu):
    array = ab.array(values(4), device=cpu)
    np.array(array, copy=True)[:] = 0
    np.testing.assert_array_equal(array.numpy(), values(4))


def test_no_copy_is_made_where_numpy_allows_none(cpu):
    array = ab.array(values(4), device=cpu)
    with contextlib.suppress(ValueError):
        assert np.asarray(array, copy=False).ctypes.data == array.ptr
    with pytest.raises(ValueError, match="copy"):
        np.asarray(array, dtype="float64", copy=False)


def test_what_numpy_took_outlives_the_array(cpu):
    array = ab.array(values(1000), device=cpu)
    view = np.asarray(array)
    array.close()
    del array
    other = ab.zeros(1000, device=cpu)
    ab.synchronize(cpu)
    np.testing.assert_array_equal(view, values(1000))
    assert not other.numpy().any()


def test_array_protocol_waits_for_the_work_that_writes_the_array(cpu, in_thread):
    stream, array = ab.Stream(cpu), zeros(4, device=cpu)
    with ab.testing.Gate(stream):
        ab.fill(array, 3, stream=stream)
        reading = in_thread(np.array, array)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(4, 3))


def test_array_protocol_waits_for_no_other_stream(cpu, in_thread):
    array, result, reader = ab.array(values(4), device=cpu), zeros(4, device=cpu), ab.Stream(cpu)
    with ab.testing.Gate(reader):
        ab.copy(result, array, stream=reader)
        np.testing.assert_array_equal(in_thread(np.array, array).result(TIMEOUT), values(4))
