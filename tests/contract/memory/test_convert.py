"""New arrays with the elements of others: `copy`, `astype`, `contiguous`, `to`, and arrays like others."""

import copy
import itertools
import warnings

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, TIMEOUT, held, values, zeros

REAL = [dtype for dtype in DTYPES if not dtype.startswith("complex")]
PAIRS = [
    pair for pair in itertools.product(DTYPES, DTYPES) if pair[1] == "bool" or pair[1] not in REAL or pair[0] in REAL
]


def examples(dtype):
    """Return numbers that every pair of dtypes can convert, and those at which rounding shows."""
    if dtype == "bool":
        return np.array([True, False, True])
    kind = np.dtype(dtype).kind
    if kind == "u":
        return np.array([0, 1, 2, 100, 200 if dtype == "uint8" else 2049], dtype)
    if kind == "i":
        return np.array([0, 1, -1, 100, -128, 127], dtype)
    numbers = [0, 1.5, -1.5, 0.1, 1e-7, 2049.0, -0.0, 100.75, 3.4e-5]
    return np.array(numbers, dtype) * (1 - 0.5j if kind == "c" else 1)


@pytest.mark.parametrize(("of", "to"), PAIRS)
def test_elements_are_converted_as_numpy_does(device, of, to):
    numbers = examples(of)
    if np.dtype(to).kind == "u" and np.dtype(of).kind in "fi":
        numbers = np.abs(numbers)  # what becomes of others is not specified
    if np.dtype(to).itemsize == 1 and of not in ("bool", "int8", "uint8"):
        numbers = numbers[np.abs(numbers) < 127]
    converted = ab.array(numbers, device=device).astype(to)
    assert converted.dtype == to
    np.testing.assert_array_equal(converted.numpy(), numbers.astype(to))


@pytest.mark.parametrize(("of", "to"), PAIRS)
def test_many_elements_are_converted_as_one_is(device, of, to):
    numbers = np.resize(examples(of), 1031)  # a prime: a rest remains of steps of any size
    array = ab.array(numbers, device=device)
    ones = [ab.array(one.reshape(1), device=device).astype(to).numpy() for one in examples(of)]
    expected = np.resize(np.concatenate(ones), 1031)
    for part in np.s_[:], np.s_[1:18], np.s_[::3], np.s_[::-1]:
        np.testing.assert_array_equal(array[part].astype(to).numpy(), expected[part])
    if np.can_cast(of, to, "same_kind"):
        columns = ab.zeros((1031, 2), to, device=device)
        columns[:, 1] = array
        np.testing.assert_array_equal(columns.numpy(), np.stack([np.zeros_like(expected), expected], 1))


@pytest.mark.parametrize("of", ["float32", "float64"])
@pytest.mark.parametrize("to", [dtype for dtype in REAL if np.dtype(dtype).kind in "iu"])
@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf, 2.0**31, -(2.0**40), 1e30])
def test_numbers_beside_one_that_is_too_large_are_converted(device, of, to, beyond):
    numbers = (np.arange(3000) % 128 + 0.75).astype(of)
    if np.dtype(to).kind == "i":
        numbers[1::2] *= -1
    expected = numbers.astype(to)
    for place in 0, 600, 2999:
        with_one = numbers.copy()
        with_one[place] = beyond
        converted = ab.array(with_one, device=device).astype(to).numpy()
        np.testing.assert_array_equal(np.delete(converted, place), np.delete(expected, place))


@pytest.mark.parametrize("of", ["float32", "float64"])
@pytest.mark.parametrize("to", ["int32", "uint32", "int64", "uint64"])
def test_numbers_about_the_largest_of_32_bits_are_exact(device, of, to):
    edges = [2.0**31, 2.0**31 - 256, 2.0**31 + 256, 2.0**32 - 256, -(2.0**31), -(2.0**31) - 256, 2.0**32, 2.0**62]
    limits = np.iinfo(to)
    numbers = np.resize(np.array([edge for edge in edges if limits.min <= edge <= limits.max], of), 600)
    np.testing.assert_array_equal(ab.array(numbers, device=device).astype(to).numpy(), numbers.astype(to))


@pytest.mark.parametrize("of", ["float32", "float64", "int64", "uint64", "int32"])
@pytest.mark.parametrize("to", ["float16", "float32", "float64"])
def test_numbers_are_rounded_once_to_the_nearest(device, of, to):
    generator = np.random.default_rng(5)
    if np.dtype(of).kind == "f":
        numbers = np.concatenate(
            [
                np.ldexp(generator.uniform(-1, 1, 4000), generator.integers(-30, 18, 4000)).astype(of),
                np.array(
                    [65504, 65519.996, 65520, 1e30, -1e30, np.inf, -np.inf, np.nan, 2**-25, 2**-24, 6e-8, 2**-14], of
                ),
                (np.arange(4000) / 8 + 2**-12).astype(of),
            ]
        )
    else:
        numbers = generator.integers(0, np.iinfo(of).max, 4000, of) >> generator.integers(0, 60, 4000).astype(of) % 31
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy tells of overflow
        expected = numbers.astype(to)
    np.testing.assert_array_equal(ab.array(numbers, device=device).astype(to).numpy(), expected)


@pytest.mark.parametrize("of", ["float32", "float64"])
def test_numbers_that_fit_64_bits_keep_the_low_ones(device, of):
    numbers = np.array([-1.0, -1.9, 255.5, 256.0, 70000.0], of)
    converted = ab.array(numbers, device=device).astype("uint8").numpy()
    np.testing.assert_array_equal(converted, [255, 255, 255, 0, 112])


@pytest.mark.parametrize("of", ["complex64", "complex128"])
@pytest.mark.parametrize("to", ["float32", "int8", "float16", "uint64"])
def test_an_imaginary_part_is_not_dropped(device, of, to):
    with pytest.raises(TypeError, match=r"imaginary parts; .*view\('float32'\)"):
        ab.zeros(3, of, device=device).astype(to)


def test_real_parts_are_had_by_a_view(device):
    array = ab.array(np.array([1 + 2j, 3 + 4j], "complex64"), device=device)
    np.testing.assert_array_equal(array.view("float32")[..., ::2].numpy(), [1, 3])


STRIDED = [np.s_[:], np.s_[::2, ::-1], np.s_[1:, 3], np.s_[:, None, 1:3], np.s_[:0], np.s_[2, 3]]


@pytest.mark.parametrize("part", STRIDED, ids=str)
@pytest.mark.parametrize("make", [lambda a: a.copy(), lambda a: a.astype("float64"), lambda a: a.astype(a.dtype)])
def test_what_is_made_of_a_view_is_contiguous(device, part, make):
    base, array = values((5, 6)), ab.array(values((5, 6)), device=device)
    made = make(array[part])
    np.testing.assert_array_equal(made.numpy(), base[part])
    assert made.size == 0 or made.strides == np.empty(base[part].shape, made.dtype).strides
    ab.fill(made, 0)
    np.testing.assert_array_equal(array.numpy(), base)


def test_a_large_conversion_is_right_everywhere(device):
    numbers = np.arange(1 << 20, dtype="int32").reshape(1024, 1024)
    array = ab.array(numbers, device=device)
    np.testing.assert_array_equal(array.astype("float32").numpy(), numbers)
    np.testing.assert_array_equal(array.T.astype("int64").numpy(), numbers.T)


def test_contiguous_is_the_array_itself_where_it_is(device):
    array = ab.array(values((3, 4)), device=device)
    assert array.contiguous() is array
    made = array.T.contiguous()
    assert made.strides == (12, 4)
    np.testing.assert_array_equal(made.numpy(), values((3, 4)).T)


MAKES = {
    "copy": lambda a, s: a.copy(stream=s),
    "astype": lambda a, s: a.astype("int32", stream=s),
    "contiguous": lambda a, s: a[::-1].contiguous(stream=s),
    "to": lambda a, s: a.to(a.device, stream=s),
}
each_make = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)


@each_make
def test_it_is_made_in_the_order_of_the_stream(device, make, stream, in_thread):
    array = zeros(4, device=device)
    with ab.testing.Gate(stream):
        ab.fill(array, 3, stream=stream)
        made = make(array, stream)
        reading = in_thread(made.numpy)
        assert held(reading)
    ab.fill(array, 4, stream=stream)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(4, 3))


@each_make
def test_it_is_made_on_the_current_stream(device, make, stream):
    array = zeros(4, device=device)
    with stream, ab.testing.Gate(stream):
        made = make(array, None)
        assert not stream.query()
    np.testing.assert_array_equal(made.numpy(), np.zeros(4))


@each_make
def test_it_waits_for_what_other_streams_write(device, make, a, b):
    array = zeros(4, device=device)
    with ab.testing.Gate(a):
        ab.fill(array, 3, stream=a)
        made = make(array, b)
        assert not b.query()
    np.testing.assert_array_equal(made.numpy(), np.full(4, 3))


@each_make
def test_check_finds_that_nobody_waited(device, make, a, b):
    array = zeros(4, device=device)
    with ab.hazards("check"):
        ab.fill(array, 3, stream=a)
        with pytest.raises(ab.RaceError) as caught:
            make(array, b)
    assert caught.value.kind == "RAW"


@pytest.mark.uninitialized
@each_make
def test_it_is_captured(device, make, stream):
    array, result = zeros(4, device=device), zeros(4, "float32", device=device)
    with ab.capture(stream) as graph:
        made = make(array, None)
        ab.copy(result, made if made.dtype == result.dtype else made.astype("float32"))
    for number in 1, 2:
        ab.fill(array, number, stream=stream)
        graph.launch(stream)
        np.testing.assert_array_equal(result.numpy(), np.full(4, number))


@each_make
def test_a_stream_of_another_device_is_refused(device, make, other_device):
    array = zeros(4, device=device)
    with pytest.raises(ab.DeviceError):
        make(array, ab.Stream(other_device))


@each_make
def test_a_closed_array_is_refused(device, make):
    array = zeros(4, device=device)
    array.close()
    with pytest.raises(ab.ClosedError):
        make(array, None)


def test_a_copy_of_pinned_memory_is_pinned():
    array = ab.array(values(4), device="cpu", pinned=True)
    assert array.copy().pinned
    assert array.astype("int32").pinned
    assert not array.to("cpu").pinned


def test_an_array_goes_to_another_device_and_back(device, other_device):
    array = ab.array(values((3, 4)), device=device)
    there = array[::-1].to(other_device)
    assert there.device is other_device
    back = there.to(device.alias)
    assert back.device is device
    np.testing.assert_array_equal(back.numpy(), values((3, 4))[::-1])
    on_mine = array.to(other_device, stream=ab.Stream(device))
    on_theirs = array.to(other_device, stream=ab.Stream(other_device))
    np.testing.assert_array_equal(on_mine.numpy(), on_theirs.numpy())


def test_to_the_same_device_is_a_copy(device):
    array = ab.array(values(4), device=device)
    made = array.to(device)
    ab.fill(made, 0)
    np.testing.assert_array_equal(array.numpy(), values(4))


@pytest.mark.parametrize("dtype", [None, "int16"])
def test_arrays_like_another(device, dtype):
    array = ab.array(values((3, 4)), device=device).T
    empty, zero, full = ab.empty_like(array, dtype), ab.zeros_like(array, dtype), ab.full_like(array, 7, dtype)
    for made in empty, zero, full:
        assert (made.shape, made.dtype, made.device) == ((4, 3), dtype or "float32", device)
        assert made.strides == np.empty((4, 3), made.dtype).strides
    assert not zero.numpy().any()
    np.testing.assert_array_equal(full.numpy(), np.full((4, 3), 7))


def test_an_array_like_another_goes_where_it_is_told(device, other_device):
    array, stream = zeros(3, device=device), ab.Stream(other_device)
    assert ab.zeros_like(array, device=other_device).device is other_device
    assert ab.zeros_like(array, stream=stream).device is other_device
    assert ab.empty_like(array, device="cpu", pinned=True).pinned
    assert ab.full_like(np.zeros((2, 1), "int8"), 3).dtype == "int8"
    with pytest.raises(ValueError, match="stream"):
        ab.zeros_like(array, device=device, stream=stream)


def test_a_list_is_no_prototype(device):
    with pytest.raises(TypeError, match="list"):
        ab.zeros_like([1, 2])


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_the_copies_of_the_copy_module_are_the_method_s(device, make):
    array = ab.array(values((2, 3)), device=device)
    state = make([array.T]) if make is copy.deepcopy else [make(array.T)]
    ab.fill(array, 0)
    assert state[0].shape == (3, 2)
    np.testing.assert_array_equal(state[0].numpy(), values((2, 3)).T)
