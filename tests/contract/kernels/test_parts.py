"""Arrays and tuples are stored in parts of arrays, and rows are unpacked, as by NumPy."""

import numpy as np
import pytest

import anabranch as ab

from .. import parts

pytestmark = pytest.mark.numba


def test_stores_are_those_of_numpy(device):
    x, points, result = parts.arrays()
    found = ab.array(result, device=device)
    ab.launch(parts.stores, 5, ab.array(x, device=device), ab.array(points, device=device), found)
    np.testing.assert_array_equal(found.numpy(), parts.of_stores(x, points, result))


@pytest.mark.parametrize("dtype", ["float16", "uint8", "bool", "complex64"])
def test_what_is_stored_is_converted(device, dtype):
    @ab.kernel
    def convert(i, x: ab.In, same: ab.In, y: ab.Out):
        y[0, i] = x[i]
        y[1, i] = same[i]
        y[2, i] = (x[i, 0], 1, x[i, 1])

    x = np.array([[0, 3, 7], [1, 200, 2]], "int32")
    y = ab.zeros((3, 2, 3), dtype, device=device)
    ab.launch(convert, 2, ab.array(x, device=device), ab.array(x.astype(dtype), device=device), y)
    expected = np.array([x, x, np.stack([x[:, 0], [1, 1], x[:, 1]], 1)]).astype(dtype)
    np.testing.assert_array_equal(y.numpy(), expected)


def test_each_number_of_a_tuple_is_converted_by_itself(device):
    @ab.kernel
    def store(i, u: ab.In, n: ab.In, y: ab.Out):
        y[i] = (u[i], n[i], 1.5)

    u, n = np.array([2**63 + 1], "uint64"), np.array([-(2**62) - 1])
    y = ab.zeros((1, 3), "uint64", device=device)
    ab.launch(store, 1, ab.array(u, device=device), ab.array(n, device=device), y)
    assert y.numpy().tolist() == [[2**63 + 1, 2**64 - 2**62 - 1, 1]]


def copies(i, x, y):
    y[i] = x


def copies_at_once(i, x, y):
    y[:, i : i + 1] = x


def unpacks(i, x, y):
    y[i, 0], y[i, 1] = x


def fills(i, x, y):
    y[i] = (1.0, 2.0)


@pytest.mark.parametrize("function", [copies, copies_at_once, fills])
@pytest.mark.usefixtures("failures_forgotten")
def test_another_shape_fails_the_stream(device, function):
    stream = ab.Stream(device)
    y = ab.zeros((4, 3), stream=stream)
    ab.launch(ab.kernel(function), 2, ab.zeros(2, stream=stream), y, stream=stream)
    with pytest.raises(ab.KernelError, match="ValueError: could not broadcast the value to the shape"):
        stream.synchronize()


def reverses(i, y):
    y[i] = y[i, ::-1]


def spreads(i, y):
    y[i, 1:] += y[i, :-1]


def scales_by_itself(i, y):
    y[i] *= y[i, :1]


@pytest.mark.parametrize("function", [reverses, spreads, scales_by_itself])
@pytest.mark.usefixtures("failures_forgotten")
def test_what_only_a_copy_could_do_fails_the_stream(device, function):
    stream = ab.Stream(device)
    ab.launch(ab.kernel(function), 2, ab.ones((4, 3), stream=stream), stream=stream)
    with pytest.raises(ab.KernelError, match="ValueError: the value shares elements with what it changes"):
        stream.synchronize()


@pytest.mark.usefixtures("failures_forgotten")
def test_an_array_of_another_length_does_not_unpack(device):
    stream = ab.Stream(device)
    y = ab.zeros((4, 3), stream=stream)
    ab.launch(ab.kernel(unpacks), 2, ab.zeros(3, stream=stream), y, stream=stream)
    with pytest.raises(ab.KernelError, match="failed at index 0: ValueError"):
        stream.synchronize()


@pytest.mark.usefixtures("failures_forgotten")
def test_the_row_of_a_store_is_checked(device):
    with ab.hazards("auto", bounds=True):
        stream = ab.Stream(device)
        x = ab.zeros((4, 3), stream=stream)
        ab.launch(ab.kernel(lambda i, x: copies(i, x[0], x)), 5, x, stream=stream)
        with pytest.raises(ab.KernelError, match="index 4"):
            stream.synchronize()


def stores_complex(i, z, x):
    x[i] = z[i]


def stores_too_many_axes(i, z, x):
    x[0] = x


def stores_in_element(i, z, x):
    x[0, 0] = (1.0, 2.0)


@pytest.mark.parametrize("function", [stores_complex, stores_too_many_axes, stores_in_element])
def test_what_does_not_fit_is_refused(device, function):
    z = ab.zeros((4, 3), "complex64", device=device)
    with pytest.raises(ab.CompileError, match="cannot be compiled"):
        ab.launch(ab.kernel(function), 4, z, ab.zeros((4, 3), device=device))
