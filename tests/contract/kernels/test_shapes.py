"""Each index of a launch runs once, and elements are found, whatever the shapes, strides and dtypes."""

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba


@ab.kernel
def count(index, y: ab.InOut):
    y[index] += 1


@ab.kernel
def add(index, x: ab.In, y: ab.In, out: ab.Out):
    out[index] = x[index] + y[index]


@ab.kernel
def transpose(ij, u: ab.In, v: ab.Out):
    i, j = ij
    v[j, i] = u[i, j]


@ab.kernel
def smooth(ij, u: ab.In, v: ab.Out):
    i, j = ij
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        v[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]


SHAPES = [
    *[(1,), (17,)],
    *[(1, 1), (1, 1000), (1000, 1), (3, 70_000), (70_000, 3), (300_000, 2), (63, 65), (2, 128)],
    *[(1, 1, 1), (5, 3, 7), (200, 1, 3), (3, 200, 1), (1, 3, 200), (70_000, 1, 2), (64, 64, 3)],
    *[(1, 1, 1, 1), (3, 5, 2, 7), (300, 300, 1, 2), (2, 1, 300, 3), (70_000, 2, 1, 1)],
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("block", [None, 1, 32, 96, 1024])
def test_each_index_runs_once(device, shape, block):
    y = ab.zeros(shape, "int32", device=device)
    ab.launch(count, shape, y, block=block)
    np.testing.assert_array_equal(y.numpy(), np.ones(shape, "int32"))


@ab.kernel
def moved_where_positive(index, x: ab.In, y: ab.InOut, z: ab.Out):
    if x[index] > 0:
        z[index] = y[index]
        y[index] = x[index]


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("shape", [(9, 7), (70, 3), (5, 4, 3), (40, 3, 3), (2, 3, 4, 5)], ids=str)
def test_a_launch_over_a_part_of_its_arrays(device, shape, checked):
    rng = np.random.default_rng(0)
    for less in np.ndindex((2,) * len(shape)):
        # Another size of one array, and of its rows, is no obstacle to the launch.
        larger = tuple(size + extra for size, extra in zip(shape, reversed(less), strict=True))
        dim = tuple(size - fewer for size, fewer in zip(shape, less, strict=True))
        x, y, z = rng.normal(size=shape), rng.normal(size=larger), np.zeros(shape)
        arrays = [ab.array(array, device=device) for array in (x, y, z)]
        with ab.hazards("auto", bounds=checked):
            ab.launch(moved_where_positive, dim, *arrays)
        part = tuple(slice(size) for size in dim)
        moved = x[part] > 0
        z[part][moved] = y[part][moved]
        y[part][moved] = x[part][moved]
        for array, expected in zip(arrays, (x, y, z), strict=True):
            np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_elements_of_views_are_found(device, dtype, ndim, checked):
    rng = np.random.default_rng(ndim)
    for _ in range(4):
        shape = tuple(rng.integers(1, 9, ndim).tolist())
        arrays, views = [], []
        for _ in range(2):
            host = rng.integers(0, 50, [3 * size + 2 for size in shape]).astype(dtype)
            cut = tuple(slice(1, 1 + 2 * size, 2) if rng.random() < 0.5 else slice(size, 0, -1) for size in shape)
            arrays.append(host[cut])
            views.append(ab.array(host, device=device)[cut])
        out = ab.zeros(shape, dtype, device=device)
        with ab.hazards("auto", bounds=checked):
            ab.launch(add, shape if ndim > 1 else shape[0], *views, out)
        np.testing.assert_array_equal(out.numpy(), arrays[0] + arrays[1])


@pytest.mark.parametrize("shape", [(1, 7), (40, 3), (129, 257), (5, 3000)], ids=str)
def test_a_transposition(device, shape):
    u = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    v = ab.zeros(shape[::-1], device=device)
    ab.launch(transpose, shape, ab.array(u, device=device), v)
    np.testing.assert_array_equal(v.numpy(), u.T)


@pytest.mark.parametrize("shape", [(3, 3), (100, 33), (33, 100), (2, 9)], ids=str)
def test_a_stencil(device, shape):
    u = np.random.default_rng(0).normal(size=shape).astype("float32")
    v = ab.zeros(shape, device=device)
    ab.launch(smooth, shape, ab.array(u, device=device), v)
    expected = np.zeros_like(u)
    expected[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    np.testing.assert_array_equal(v.numpy(), expected)


@pytest.mark.memory
def test_indices_above_32_bits(device):
    if device.kind == "cpu" or device.free_memory < 12 << 30:
        pytest.skip("needs a GPU with 12 GiB free")
    n = 2**31 + 5000
    y = ab.zeros(n, "int8", device=device)
    ab.launch(count, n, y)
    ab.launch(count, (n // 2, 2), y.reshape(n // 2, 2))
    tail = y[2**31 - 8 :].numpy()
    assert tail.tolist() == [2] * len(tail)
    far = y[:: 2**30]
    ab.launch(count, 3, far)
    np.testing.assert_array_equal(far.numpy(), y[:: 2**30].numpy())
