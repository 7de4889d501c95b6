import itertools

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, TIMEOUT, held, values, zeros

# Whole arrays


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0), (2, 3, 4), (2, 1, 3, 2)], ids=str)
def test_copy_of_equal_shapes_copies_everything(device, shape, dtype):
    data = values(shape, dtype)
    dst = ab.zeros(shape, dtype, device=device)
    ab.copy(dst, ab.array(data, device=device))
    np.testing.assert_array_equal(dst.numpy(), data)


def test_copy_leaves_the_source_as_it_was(device):
    src = ab.array(values(5), device=device)
    ab.copy(ab.zeros(5, device=device), src)
    np.testing.assert_array_equal(src.numpy(), values(5))


def test_copy_moves_more_than_one_worker_s_share(device):
    data = np.arange(1 << 22, dtype="int32")
    dst = ab.empty(data.shape, "int32", device=device)
    ab.copy(dst, ab.array(data, device=device))
    np.testing.assert_array_equal(dst.numpy(), data)


@pytest.mark.parametrize("to", [np.s_[::2, 1:4], np.s_[::-2, ::2], np.s_[:3, 4:1:-1]], ids=str)
@pytest.mark.parametrize("of", [np.s_[:3, :3], np.s_[2::-1, ::2], np.s_[::2, ::-2]], ids=str)
def test_copy_between_strided_views_touches_only_their_elements(device, to, of):
    data, expected = values((5, 6)), np.zeros((5, 6), "float32")
    expected[to] = data[of]
    dst = ab.zeros((5, 6), device=device)
    ab.copy(dst[to], ab.array(data, device=device)[of])
    np.testing.assert_array_equal(dst.numpy(), expected)


def test_copies_of_one_stream_run_in_order(stream):
    arrays = [ab.array(values(100), stream=stream)] + [ab.zeros(100, stream=stream) for _ in range(50)]
    with ab.testing.Gate(stream):
        for src, dst in itertools.pairwise(arrays):
            ab.copy(dst, src, stream=stream)
        ab.fill(arrays[0], 0, stream=stream)
    np.testing.assert_array_equal(arrays[-1].numpy(), values(100))


# Parts


@pytest.mark.parametrize(
    ("dst_offset", "src_offset", "count"),
    [(0, 0, 0), (0, 0, 5), (0, 0, 12), (3, 0, 5), (0, 3, 5), (7, 2, 5), (11, 11, 1), (1, 0, 11), (0, 1, 11)],
)
def test_offsets_and_count_are_in_elements(device, dst_offset, src_offset, count):
    data, expected = values(12), np.zeros(12, "float32")
    expected[dst_offset : dst_offset + count] = data[src_offset : src_offset + count]
    dst = ab.zeros(12, device=device)
    ab.copy(dst, ab.array(data, device=device), dst_offset=dst_offset, src_offset=src_offset, count=count)
    np.testing.assert_array_equal(dst.numpy(), expected)


def test_offsets_and_count_are_of_flattened_arrays(device):
    data, expected = values((4, 5), "int64"), np.zeros((2, 3, 3), "int64")
    expected.flat[4:11] = data.flat[6:13]
    dst = ab.zeros((2, 3, 3), "int64", device=device)
    ab.copy(dst, ab.array(data, device=device), dst_offset=4, src_offset=6, count=7)
    np.testing.assert_array_equal(dst.numpy(), expected)


def test_offsets_and_count_are_of_flattened_views(device):
    data, expected = values((6, 8)), np.zeros((5, 6), "float32")
    part = expected[::-2, 1::2]
    part.flat[2:8] = data[1::2, ::-3].flat[3:9]
    dst = ab.zeros((5, 6), device=device)
    ab.copy(dst[::-2, 1::2], ab.array(data, device=device)[1::2, ::-3], dst_offset=2, src_offset=3, count=6)
    np.testing.assert_array_equal(dst.numpy(), expected)


def test_a_count_needs_no_equal_shapes(device):
    dst = ab.zeros((2, 3), device=device)
    ab.copy(dst, ab.array(values(6), device=device), count=6)
    np.testing.assert_array_equal(dst.numpy(), values((2, 3)))


def test_an_offset_into_the_destination_without_count_copies_the_whole_source(device):
    dst = ab.zeros(8, device=device)
    ab.copy(dst, ab.array(values(5), device=device), dst_offset=3)
    np.testing.assert_array_equal(dst.numpy(), [0, 0, 0, *values(5)])


def test_an_offset_into_the_source_without_count_copies_the_rest_of_it(device):
    dst = ab.zeros(5, device=device)
    ab.copy(dst, ab.array(values(8), device=device), src_offset=3)
    np.testing.assert_array_equal(dst.numpy(), values(8)[3:])


# Within one array


@pytest.mark.parametrize(
    ("to", "of"),
    [
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-1], np.s_[1:]),
        (np.s_[:], np.s_[::-1]),
        (np.s_[:500], np.s_[::2]),
        (np.s_[::2], np.s_[499::-1]),
        (np.s_[:], np.s_[:]),
        (np.s_[::-1], np.s_[::-1]),
    ],
    ids=str,
)
def test_overlapping_copies_within_one_array_do_as_numpy_does(device, to, of):
    data = values(1000)
    array = ab.array(data, device=device)
    ab.copy(array[to], array[of])
    data[to] = data[of].copy()
    np.testing.assert_array_equal(array.numpy(), data)


@pytest.mark.parametrize(("dst_offset", "src_offset"), [(0, 1), (1, 0), (100, 3), (3, 100), (5, 5)])
def test_overlapping_copies_of_large_parts_do_as_numpy_does(device, dst_offset, src_offset):
    data = np.arange(1 << 20, dtype="int32")
    array = ab.array(data, device=device)
    count = data.size - 100
    ab.copy(array, array, dst_offset=dst_offset, src_offset=src_offset, count=count)
    data[dst_offset : dst_offset + count] = data[src_offset : src_offset + count].copy()
    np.testing.assert_array_equal(array.numpy(), data)


def test_overlapping_copies_of_rows_and_columns_do_as_numpy_does(device):
    data = values((30, 30))
    array = ab.array(data, device=device)
    ab.copy(array[:, 0], array[0])
    data[:, 0] = data[0].copy()
    ab.copy(array[1:, 1:], array[:-1, :-1])
    data[1:, 1:] = data[:-1, :-1].copy()
    np.testing.assert_array_equal(array.numpy(), data)


def test_copying_an_array_onto_itself_changes_nothing(device):
    array = ab.array(values(100), device=device)
    ab.copy(array, array)
    np.testing.assert_array_equal(array.numpy(), values(100))


# When, and on which stream


def test_copy_returns_before_its_stream_has_run_it(device, in_thread, stream):
    dst, src = zeros(4, device=device), ab.array(values(4), device=device)
    with ab.testing.Gate(stream):
        ab.copy(dst, src, stream=stream)
        reading = in_thread(dst.numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), values(4))


def test_copy_runs_on_the_current_stream_where_none_is_given(device, in_thread):
    dst, src = zeros(4, device=device), ab.array(values(4), device=device)
    with ab.Stream(device) as stream, ab.testing.Gate(stream):
        ab.copy(dst, src)
        reading = in_thread(dst.numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), values(4))


def test_copy_to_a_closed_stream_is_an_error(device):
    dst, src = ab.zeros(4, device=device), ab.ones(4, device=device)
    stream = ab.Stream(device)
    stream.close()
    with pytest.raises(ab.ClosedError):
        ab.copy(dst, src, stream=stream)


def test_copy_follows_what_its_stream_waited_for(device):
    producer, consumer = ab.Stream(device), ab.Stream(device)
    with ab.testing.Gate(producer):
        src = ab.full(100, 3, "float32", stream=producer)
        consumer.wait_stream(producer)
        dst = ab.zeros(100, stream=consumer)
        ab.copy(dst, src, stream=consumer)
    np.testing.assert_array_equal(dst.numpy(), np.full(100, 3))


# Between devices. On a GPU, host memory has to be pinned for a copy to be asynchronous.


def pinned_on_host(device):
    return {"device": device, "pinned": device.kind == "cpu"}


@pytest.mark.parametrize("which", ["stream of the source", "stream of the destination", "no stream"])
@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
def test_copies_between_two_devices_work_both_ways(device, other_device, which, pinned):
    for of, to in [(device, other_device), (other_device, device)]:
        src = ab.array(values((3, 4)), device=of, pinned=pinned and of.kind == "cpu")
        dst = zeros((3, 4), device=to, pinned=pinned and to.kind == "cpu")
        stream = {"stream of the source": ab.Stream(of), "stream of the destination": ab.Stream(to)}.get(which)
        ab.copy(dst, src, stream=stream)
        np.testing.assert_array_equal(dst.numpy(), values((3, 4)))


@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
def test_copies_between_a_device_and_the_host_work_both_ways(device, pinned, stream):
    src = ab.array(values((3, 4)), device="cpu", pinned=pinned)
    middle, dst = zeros((3, 4), device=device), zeros((3, 4), device="cpu", pinned=pinned)
    ab.copy(middle, src, stream=stream)
    ab.copy(dst, middle, stream=stream)
    np.testing.assert_array_equal(dst.numpy(), values((3, 4)))


def test_copies_between_two_devices_take_views_offsets_and_counts(device, other_device):
    data, expected = values((6, 8)), np.zeros((5, 6), "float32")
    expected[::2, ::-2].flat[2:7] = data[1::2, ::3].flat[3:8]
    src, dst = ab.array(data, device=device), zeros((5, 6), device=other_device)
    ab.copy(dst[::2, ::-2], src[1::2, ::3], dst_offset=2, src_offset=3, count=5)
    np.testing.assert_array_equal(dst.numpy(), expected)


def test_between_devices_the_current_stream_is_a_gpu_destination_s_else_the_source_s(device, other_device, in_thread):
    src = ab.array(values(4), **pinned_on_host(device))
    dst = zeros(4, **pinned_on_host(other_device))
    chosen = other_device if other_device.kind == "cuda" else device
    with ab.Stream(other_device), ab.Stream(device), ab.testing.Gate(ab.current_stream(chosen)):
        ab.copy(dst, src)
        reading = in_thread(dst.numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), values(4))


@pytest.mark.parametrize("side", ["source", "destination"])
def test_between_devices_copy_returns_before_its_stream_has_run_it(device, other_device, side, in_thread):
    src = ab.array(values(4), **pinned_on_host(device))
    dst = zeros(4, **pinned_on_host(other_device))
    stream = ab.Stream(device if side == "source" else other_device)
    with ab.testing.Gate(stream):
        ab.copy(dst, src, stream=stream)
        reading = in_thread(dst.numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), values(4))


def test_between_a_gpu_and_pageable_memory_copy_returns_when_it_is_done(device):
    if device.kind == "cpu":
        pytest.skip("copies from CPU memory to CPU memory are asynchronous")
    stream, host = ab.Stream(device), ab.array(values(1 << 20), device="cpu")
    array = ab.empty(1 << 20, stream=stream)
    ab.copy(array, host, stream=stream)
    assert stream.query()
    ab.copy(host, array, stream=stream)
    assert stream.query()


def test_a_stream_of_neither_side_is_refused(device, other_device):
    dst, src = ab.zeros(4, device=device), ab.ones(4, device=device)
    with pytest.raises(ab.DeviceError):
        ab.copy(dst, src, stream=ab.Stream(other_device))
    assert not dst.numpy().any()


def test_a_stream_of_a_third_device_is_refused(device, other_device):
    third = next((d for d in ab.devices() if d not in (device, other_device)), None)
    if third is None:
        pytest.skip("needs three devices")
    dst, src = ab.zeros(4, device=device), ab.ones(4, device=other_device)
    with pytest.raises(ab.DeviceError):
        ab.copy(dst, src, stream=ab.Stream(third))
    assert not dst.numpy().any()
