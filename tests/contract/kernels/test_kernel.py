"""What Python kernels compute. The checks of a launch are in `launch`, atomics in `test_atomic.py`."""

import math

import numpy as np
import pytest

import anabranch as ab

from ..arrays import values

pytestmark = pytest.mark.numba

# float16 is a dtype for storage: the compilers of kernels differ in what they compute with it.
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
]


@ab.kernel
def saxpy(i, alpha, x: ab.In, y: ab.InOut):
    y[i] = alpha * x[i] + y[i]


@ab.kernel
def assign(index, x: ab.In, y: ab.Out):
    y[index] = x[index]


@ab.kernel
def count(index, y):
    y[index] += 1


@ab.kernel
def put(i, value, y: ab.Out):
    y[i] = value


# Indices


def test_saxpy(device):
    x, y = ab.array(values(1000), device=device), ab.ones(1000, device=device)
    ab.launch(saxpy, 1000, 2.0, x, y)
    np.testing.assert_array_equal(y.numpy(), 2 * values(1000) + 1)
    np.testing.assert_array_equal(x.numpy(), values(1000))


@ab.kernel
def number(i, y: ab.Out):
    y[i] = i


@ab.kernel
def number_by_two(index, y: ab.Out):
    row, column = index
    y[row, column] = 10 * row + column


@ab.kernel
def number_by_three(index, y: ab.Out):
    y[index] = 100 * index[0] + 10 * index[1] + index[2]


@ab.kernel
def number_by_four(index, y: ab.Out):
    a, b, c, d = index
    y[a, b, c, d] = 1000 * a + 100 * b + 10 * c + d


@pytest.mark.parametrize(
    ("dim", "kernel"),
    [
        (10, number),
        ((10,), number),
        ((3, 7), number_by_two),
        ((2, 3, 4), number_by_three),
        ((2, 3, 4, 5), number_by_four),
    ],
    ids=str,
)
def test_the_index_is_an_int_in_one_dimension_and_a_tuple_in_several(device, dim, kernel):
    y = ab.empty(dim, "int64", device=device)
    ab.launch(kernel, dim, y)
    expected = 0
    for along in np.indices(y.shape):
        expected = 10 * expected + along
    np.testing.assert_array_equal(y.numpy(), expected)


def test_a_launch_may_be_smaller_than_its_arrays(device):
    y = ab.zeros((4, 6), "int32", device=device)
    ab.launch(count, (2, 3), y)
    expected = np.zeros((4, 6))
    expected[:2, :3] = 1
    np.testing.assert_array_equal(y.numpy(), expected)


@pytest.mark.parametrize("shape", [1_000_003, (1013, 1009), (3, 700_001), (700_001, 3)], ids=str)
def test_a_large_launch_computes_what_a_small_one_does(device, shape):
    y = ab.zeros(shape, "int32", device=device)
    ab.launch(count, shape, y)
    assert (y.numpy() == 1).all()


def test_a_large_launch_computes_what_numpy_does(device):
    x, y = values(1_000_003), np.ones(1_000_003, "float32")
    result = ab.array(y, device=device)
    ab.launch(saxpy, y.size, 3.0, ab.array(x, device=device), result)
    np.testing.assert_array_equal(result.numpy(), 3 * x + y)


# Arrays


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_read_and_write_every_dtype(device, dtype):
    y = ab.empty(100, dtype, device=device)
    ab.launch(assign, 100, ab.array(values(100, dtype), device=device), y)
    np.testing.assert_array_equal(y.numpy(), values(100, dtype))


@pytest.mark.parametrize("to", [np.s_[:, :], np.s_[::-1, ::2], np.s_[:, 1::3]], ids=str)
@pytest.mark.parametrize("of", [np.s_[:, :], np.s_[::2, ::-1], np.s_[2:, 3:]], ids=str)
def test_kernels_read_and_write_strided_views(device, to, of):
    data, expected = values((9, 12)), np.zeros((9, 12), "float32")
    rows, columns = np.minimum(expected[to].shape, data[of].shape)
    expected[to][:rows, :columns] = data[of][:rows, :columns]
    y = ab.zeros((9, 12), device=device)
    ab.launch(assign, (int(rows), int(columns)), ab.array(data, device=device)[of], y[to])
    np.testing.assert_array_equal(y.numpy(), expected)


def test_a_kernel_takes_other_dtypes_and_layouts_on_every_launch(device):
    for dtype in ["float32", "float64", "int32", "float32", "complex64"]:
        for step in [1, -1, 2, 1]:
            data = values(40, dtype)[::step]
            y = ab.zeros(data.size, dtype, device=device)
            ab.launch(assign, data.size, ab.array(values(40, dtype), device=device)[::step], y)
            np.testing.assert_array_equal(y.numpy(), data)


def test_a_kernel_takes_other_numbers_of_dimensions_on_every_launch(device):
    for shape in [(6,), (2, 3), (6,), (1, 2, 3), (2, 1, 3, 1), (2, 3)]:
        y = ab.zeros(shape, device=device)
        ab.launch(assign, shape, ab.array(values(shape), device=device), y)
        np.testing.assert_array_equal(y.numpy(), values(shape))


def test_a_kernel_knows_the_shape_of_its_arrays(device):
    @ab.kernel
    def blur(index, x: ab.In, y: ab.Out):
        row, column = index
        total = 0.0
        for r in range(max(row - 1, 0), min(row + 2, x.shape[0])):
            for c in range(max(column - 1, 0), min(column + 2, x.shape[1])):
                total += x[r, c]
        y[row, column] = total

    data = values((20, 30), "float64")
    y = ab.empty((20, 30), "float64", device=device)
    ab.launch(blur, (20, 30), ab.array(data, device=device), y)
    padded = np.pad(data, 1)
    np.testing.assert_array_equal(y.numpy(), sum(padded[r : r + 20, c : c + 30] for r in range(3) for c in range(3)))


def test_an_array_passed_twice_is_one_array(device):
    x = ab.array(values(100), device=device)
    ab.launch(saxpy, 100, 2.0, x, x)
    np.testing.assert_array_equal(x.numpy(), 3 * values(100))


def test_kernels_of_one_stream_run_in_order(stream):
    y = ab.zeros(100, "int32", stream=stream)
    with ab.testing.Gate(stream):
        for _ in range(200):
            ab.launch(count, 100, y, stream=stream)
    np.testing.assert_array_equal(y.numpy(), np.full(100, 200))


# Scalars


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *[
            ("bool", True),
            ("bool", False),
            ("int64", -5),
            ("int64", 2**62),
            ("float64", 0.1),
            ("float64", float("-inf")),
        ],
        *[("complex128", 1.5 - 2j), ("bool", np.bool_(True)), ("int8", np.int8(-128)), ("int16", np.int16(-5))],
        *[
            ("int32", np.int32(-5)),
            ("int64", np.int64(-(2**63))),
            ("uint8", np.uint8(255)),
            ("uint16", np.uint16(65535)),
        ],
        *[("uint32", np.uint32(2**32 - 1)), ("uint64", np.uint64(2**64 - 1)), ("float32", np.float32(0.1))],
        *[("float64", np.float64(0.1)), ("complex64", np.complex64(1 - 2j)), ("complex128", np.complex128(0.1 + 0.2j))],
    ],
    ids=repr,
)
def test_scalars_of_every_kind_arrive(device, dtype, value):
    y = ab.zeros(5, dtype, device=device)
    ab.launch(put, 5, value, y)
    np.testing.assert_array_equal(y.numpy(), np.full(5, value, dtype))


def test_every_launch_has_its_own_scalars(stream):
    y = ab.zeros(100, "int64", stream=stream)
    with ab.testing.Gate(stream):
        for k in range(100):
            ab.launch(put, 1, k, y[k:], stream=stream)
    np.testing.assert_array_equal(y.numpy(), np.arange(100))


def test_a_bool_is_true_or_false_in_a_kernel(device):
    @ab.kernel
    def choose(i, flag, y: ab.Out):
        y[i] = 1 if flag else 2

    for flag, expected in [(True, 1), (False, 2), (np.bool_(True), 1)]:
        y = ab.zeros(3, "int32", device=device)
        ab.launch(choose, 3, flag, y)
        np.testing.assert_array_equal(y.numpy(), np.full(3, expected))


def test_a_kernel_of_scalars_only_may_be_launched(device):
    @ab.kernel
    def nothing(i, a, b):
        a + b + i

    assert ab.launch(nothing, 100, 1, 2.5, device=device) is None
    device.synchronize()


# The language


def twice(value):
    return 2 * value


def quadruple(value):
    return twice(twice(value))


def add_at(array, i, value):
    array[i] += value


def test_kernels_call_functions(device):
    @ab.kernel
    def scale(i, x: ab.In, y: ab.Out):
        y[i] = quadruple(x[i]) + math.sqrt(4.0)

    y = ab.empty(10, device=device)
    ab.launch(scale, 10, ab.array(values(10), device=device), y)
    np.testing.assert_array_equal(y.numpy(), 4 * values(10) + 2)


def test_functions_that_kernels_call_may_write(device):
    @ab.kernel
    def bump(i, y: ab.InOut):
        add_at(y, i, 3)

    y = ab.ones(10, device=device)
    ab.launch(bump, 10, y)
    np.testing.assert_array_equal(y.numpy(), np.full(10, 4))


def test_kernels_are_closures(device):
    def multiplier(factor, function):
        @ab.kernel
        def multiply(i, y: ab.InOut):
            y[i] = function(factor * y[i])

        return multiply

    y = ab.ones(4, device=device)
    for multiply in multiplier(2, twice), multiplier(3, twice), multiplier(2, quadruple):
        ab.launch(multiply, 4, y)
    np.testing.assert_array_equal(y.numpy(), np.full(4, 4 * 6 * 8))


def test_kernels_branch_loop_and_return_early(device):
    @ab.kernel
    def collatz(i, y: ab.Out):
        if i == 0:
            y[i] = 0
            return
        steps, number = 0, i
        while number != 1:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            steps += 1
        y[i] = steps

    y = ab.empty(8, "int64", device=device)
    ab.launch(collatz, 8, y)
    np.testing.assert_array_equal(y.numpy(), [0, 0, 1, 7, 2, 5, 8, 16])


@ab.kernel
def divide(i, x: ab.In, z: ab.In, quotient: ab.Out, floor: ab.Out, rest: ab.Out):
    quotient[i] = x[i] / z[i]
    floor[i] = x[i] // z[i]
    rest[i] = x[i] % z[i]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "float32", "float64"])
def test_division_follows_numpy(device, dtype):
    numbers = np.array([-7, -1, 0, 1, 7] if np.dtype(dtype).kind != "u" else [0, 1, 3, 7, 200], dtype)
    x, z = (np.ascontiguousarray(part).ravel() for part in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        expected = x / z, x // z, x % z
    results = [ab.empty(x.size, result.dtype, device=device) for result in expected]
    ab.launch(divide, x.size, ab.array(x, device=device), ab.array(z, device=device), *results)
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result.numpy(), right)


def test_division_of_scalars_follows_numpy(device):
    @ab.kernel
    def divide_scalars(i, a, b, y: ab.Out):
        y[i] = a / b

    y = ab.empty(1, "float64", device=device)
    ab.launch(divide_scalars, 1, 1.0, 0.0, y)
    assert y.numpy()[0] == np.inf
    ab.launch(divide_scalars, 1, 1, 0, y)
    assert y.numpy()[0] == np.inf


@ab.kernel
def narrow(i, x: ab.In, y: ab.Out):
    y[i, 0] = x[i] + x[i]
    y[i, 1] = -x[i]
    y[i, 2] = ~x[i]
    y[i, 3] = abs(x[i])
    y[i, 4] = np.add(x[i], x[i])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_operators_widen_integers_and_functions_do_not(device, dtype):
    x = np.array([np.iinfo(dtype).min, 0, 5, np.iinfo(dtype).max], dtype)
    y = ab.empty((4, 5), "int64", device=device)
    ab.launch(narrow, 4, ab.array(x, device=device), y)
    wide = x.astype("int64")
    np.testing.assert_array_equal(y.numpy().T[:3], [wide + wide, -wide, ~wide])
    # On a GPU, what a function makes of signed integers wraps only when it is stored.
    fits = slice(1, 3) if device.kind == "cuda" and dtype.startswith("int") else slice(None)
    np.testing.assert_array_equal(y.numpy().T[3:, fits], [np.abs(x)[fits], np.add(x, x)[fits]])
