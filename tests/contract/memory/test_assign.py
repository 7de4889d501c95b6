"""Assignment to elements, and copies with NumPy arrays."""

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, TIMEOUT, held, values, zeros

PARTS = [np.s_[:], np.s_[2:4], np.s_[..., 0], np.s_[::-2, 1:], np.s_[1], np.s_[2, 3], np.s_[:0], np.s_[..., None]]
each_part = pytest.mark.parametrize("part", PARTS, ids=str)


@each_part
@pytest.mark.parametrize("value", [2.5, 3, True, np.float32(1.5), np.int8(4), np.array(6.0)], ids=repr)
def test_a_number_is_assigned_to_every_element(device, part, value):
    expected, array = values((5, 6)), ab.array(values((5, 6)), device=device)
    expected[part] = array[part] = value
    np.testing.assert_array_equal(array.numpy(), expected)


@each_part
@pytest.mark.parametrize("dtype", ["float32", "int16", "float16"])
def test_numpy_data_is_assigned_to_elements(device, part, dtype):
    expected, array = values((5, 6)), zeros((5, 6), device=device)
    data = (values((5, 6)) / 2).astype(dtype)[part]
    expected[:] = 0
    expected[part] = data
    array[part] = data
    np.testing.assert_array_equal(array.numpy(), expected)


SHAPES = [((3, 4), (4,)), ((3, 4), (3, 1)), ((3, 4), (1, 1)), ((2, 3, 4), (3, 4)), ((4,), (1, 1, 4)), ((0, 4), (4,))]


@pytest.mark.parametrize(("shape", "given"), SHAPES, ids=str)
@pytest.mark.parametrize("own", [True, False], ids=["an array", "NumPy data"])
def test_what_is_assigned_is_repeated_as_numpy_does(device, shape, given, own):
    expected, array, data = np.zeros(shape, "float32"), zeros(shape, device=device), values(given)
    expected[...] = data
    array[...] = ab.array(data, device=device) if own else data
    np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize(("shape", "given"), [((3, 4), (3,)), ((3,), (2, 3)), ((3,), (0,)), ((2, 1), (2, 3))], ids=str)
@pytest.mark.parametrize("own", [True, False], ids=["an array", "NumPy data"])
def test_shapes_that_do_not_fit_are_refused(device, shape, given, own):
    array, data = zeros(shape, device=device), values(given)
    with pytest.raises(ValueError, match="shape"):
        array[...] = ab.array(data, device=device) if own else data
    assert not array.numpy().any()


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("of", ["bool", "int32", "float64", "complex64"])
@pytest.mark.parametrize("own", [True, False], ids=["an array", "NumPy data"])
def test_what_is_assigned_is_converted_to_the_same_kind(device, of, to, own):
    data = np.array([1, 0, 1], of)
    array = zeros(3, to, device=device)
    source = ab.array(data, device=device) if own else data
    if np.can_cast(of, to, "same_kind"):
        array[...] = source
        np.testing.assert_array_equal(array.numpy(), data.astype(to))
    else:
        with pytest.raises(TypeError, match="astype"):
            array[...] = source


def test_lists_are_assigned(device):
    array = zeros((2, 3), device=device)
    array[1] = [1, 2, 3]
    array[0, 1:] = (4.5, 5.5)
    np.testing.assert_array_equal(array.numpy(), [[0, 4.5, 5.5], [1, 2, 3]])


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (0, "text", TypeError),
        (0, None, TypeError),
        (np.s_[:], object(), TypeError),
        (9, 1, IndexError),
        (np.s_[0, 0], 1, IndexError),
        ("x", 1, TypeError),
        (np.s_[:], 2j, ValueError),
    ],
)
def test_what_cannot_be_assigned_is_refused(device, key, value, error):
    array = zeros(3, device=device)
    with pytest.raises(error):
        array[key] = value
    assert not array.numpy().any()


def test_read_only_memory_is_not_assigned_to():
    data = np.zeros(3, "float32")
    data.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ab.asarray(data)[:] = 1


def test_a_closed_array_is_neither_assigned_nor_assigned_to(device):
    array, closed = zeros(3, device=device), zeros(3, device=device)
    closed.close()
    with pytest.raises(ab.ClosedError):
        closed[...] = 1
    with pytest.raises(ab.ClosedError):
        array[...] = closed


def test_overlapping_elements_are_assigned_as_if_through_a_copy(device):
    expected, array = values(8), ab.array(values(8), device=device)
    expected[1:] = expected[:-1].copy()
    array[1:] = array[:-1]
    expected[:] = expected[::-1].copy()
    array[:] = array[::-1]
    np.testing.assert_array_equal(array.numpy(), expected)


def test_an_array_of_another_device_is_assigned(device, other_device):
    array, other = zeros((2, 3), device=device), ab.array(values(3), device=other_device)
    array[1] = other
    array[0, :2] = ab.array(np.array([7, 8], "int8"), device=other_device)
    np.testing.assert_array_equal(array.numpy(), [[7, 8, 0], values(3)])


VALUES = {
    "a number": lambda device: 3,
    "an array": lambda device: ab.array(np.full(4, 3, "float32"), device=device),
    "an array of another dtype": lambda device: ab.array(np.full(4, 3, "int16"), device=device),
    "NumPy data": lambda device: np.full(4, 3, "int8"),
}
each_value = pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)


@each_value
def test_it_happens_in_the_order_of_the_current_stream(device, value, stream, in_thread):
    array, value = zeros(4, device=device), value(device)
    with ab.testing.Gate(stream):
        with stream:
            array[...] = value
        if isinstance(value, np.ndarray):
            value[:] = 9  # what was assigned is taken along
        reading = in_thread(array.numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(4, 3))


@each_value
def test_it_waits_for_what_other_streams_read(device, value, a, b):
    array, result, value = ab.array(values(4), device=device), zeros(4, device=device), value(device)
    with ab.testing.Gate(a):
        ab.copy(result, array, stream=a)
        with b:
            array[...] = value
        assert not b.query()
    np.testing.assert_array_equal(result.numpy(), values(4))
    np.testing.assert_array_equal(array.numpy(), np.full(4, 3))


@each_value
def test_check_finds_that_nobody_waited(device, value, a, b):
    array, value = zeros(4, device=device), value(device)
    with ab.hazards("check"):
        ab.fill(array, 1, stream=a)
        with pytest.raises(ab.RaceError) as caught, b:
            array[1:3] = value if isinstance(value, int) else value[:2]
    assert caught.value.kind == "WAW"
    assert caught.value.second.file == __file__


# The copy of a graph after the kernel that writes its source: docs/internals/tools.md.
@pytest.mark.uninitialized
@each_value
def test_it_is_captured(device, value, stream):
    array, value = zeros(4, device=device), value(device)
    with ab.capture(stream) as graph:
        array[...] = value
    del value
    assert not array.numpy().any()
    for _ in range(2):
        ab.fill(array, 1, stream=stream)
        graph.launch(stream)
        np.testing.assert_array_equal(array.numpy(), np.full(4, 3))


# Copies with NumPy arrays


@pytest.mark.parametrize("part", [np.s_[:], np.s_[::-1, ::2], np.s_[1], np.s_[:0]], ids=str)
def test_a_copy_from_numpy_is_over_when_it_returns(device, part, stream):
    array, data = zeros((4, 6), device=device), values((4, 6))
    expected = np.zeros((4, 6))
    expected[part] = data[part]
    ab.copy(array[part], data[part], stream=stream)
    data[:] = 0
    assert stream.query()
    np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize("part", [np.s_[:], np.s_[::-1, ::2], np.s_[1], np.s_[:0]], ids=str)
def test_a_copy_to_numpy_is_over_when_it_returns(device, part, stream):
    array, data = ab.array(values((4, 6)), device=device), np.zeros((4, 6), "float32")
    ab.copy(data[part], array[part], stream=stream)
    expected = np.zeros((4, 6))
    expected[part] = values((4, 6))[part]
    np.testing.assert_array_equal(data, expected)


def test_parts_are_copied_with_numpy(device):
    array, data = zeros(6, device=device), values((2, 3))
    ab.copy(array, data, dst_offset=1, src_offset=2, count=3)
    np.testing.assert_array_equal(array.numpy(), [0, *values(6)[2:5], 0, 0])
    ab.copy(data, array, count=2)
    np.testing.assert_array_equal(data.ravel()[:3], [0, values(6)[2], values(6)[2]])


def test_a_copy_to_numpy_waits_for_the_work_before_it(device, a, b, in_thread):
    array, data = zeros(4, device=device), np.zeros(4, "float32")
    with ab.testing.Gate(a):
        ab.fill(array, 3, stream=a)
        copying = in_thread(lambda: ab.copy(data, array, stream=b))
        assert held(copying)
    copying.result(TIMEOUT)
    np.testing.assert_array_equal(data, np.full(4, 3))


def test_a_copy_with_numpy_is_of_the_current_stream_of_the_arrays_device(device, in_thread, stream):
    array, data = zeros(4, device=device), values(4)

    def copy():
        with stream:
            ab.copy(array, data)

    with ab.testing.Gate(stream):
        copying = in_thread(copy)
        assert held(copying)
    copying.result(TIMEOUT)
    np.testing.assert_array_equal(array.numpy(), values(4))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (np.zeros(4), ValueError),
        (np.zeros(3, "float32"), ValueError),
        (np.zeros(4, "U3"), TypeError),
        ([0.0] * 4, TypeError),
    ],
    ids=["another dtype", "another shape", "text", "a list"],
)
def test_what_does_not_fit_is_refused(device, data, error):
    array = zeros(4, device=device)
    with pytest.raises(error):
        ab.copy(array, data)
    with pytest.raises(error):
        ab.copy(data, array)


def test_no_copy_is_from_numpy_to_numpy():
    with pytest.raises(TypeError, match="Array"):
        ab.copy(np.zeros(3, "float32"), np.zeros(3, "float32"))


def test_read_only_numpy_data_is_no_destination(device):
    data = np.zeros(4, "float32")
    data.flags.writeable = False
    ab.copy(zeros(4, device=device), data)
    with pytest.raises(ValueError, match="read-only"):
        ab.copy(data, zeros(4, device=device))


def test_a_stream_of_another_device_is_refused(device, other_device):
    with pytest.raises(ab.DeviceError):
        ab.copy(zeros(4, device=device), values(4), stream=ab.Stream(other_device))


@pytest.mark.parametrize("to_numpy", [False, True])
def test_a_copy_with_numpy_is_not_captured(device, stream, to_numpy):
    array, data = zeros(4, device=device), values(4)
    instead = "after the graph's launch" if to_numpy else r"write a\[\.\.\.\] = data"
    with pytest.raises(ab.CaptureError, match=instead), ab.capture(stream):
        ab.copy(*((data, array) if to_numpy else (array, data)))


def test_numbers_of_a_list_have_to_fit(device):
    x = ab.zeros(3, "int8", device=device)
    with pytest.raises(OverflowError, match="300"):
        x[:] = [300, 1, 2]
    assert x.tolist() == [0, 0, 0]


def test_integers_of_a_list_go_to_unsigned_ones(device):
    x = ab.zeros((2, 3), "uint8", device=device)
    x[0] = [1, 2, 255]
    assert x.tolist() == [[1, 2, 255], [0, 0, 0]]
    with pytest.raises(OverflowError, match="-1"):
        x[1] = [-1, 2, 3]
    with pytest.raises(TypeError, match="astype"):
        x[1] = np.array([1, 2, 3])
    assert x.tolist() == [[1, 2, 255], [0, 0, 0]]
