"""Kernels whose threads run several indices: large launches, on a GPU."""

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba

# From about half a million and a million indices on, an H200's threads run two and four.
SHAPES = [
    (1 << 19,),
    (700_001,),
    (1_200_007,),
    (3_000_000,),
    (1, 1_300_001),
    (1_300_001, 1),
    (1201, 1003),
    (101, 103, 131),
    (1, 1153, 1031),
    (3, 1153, 401),
    (7, 11, 127, 131),
]


@ab.kernel
def count(index, times: ab.InOut):
    times[index] += 1


@ab.kernel
def around(ij, u: ab.In, v: ab.Out):
    i, j = ij
    n, m = u.shape
    if 0 < i < n - 1 and 0 < j < m - 1:
        v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@ab.kernel
def shifted(i, x: ab.In, y: ab.Out):
    y[i] = x[i - 3]  # wraps around


@pytest.mark.parametrize("block", [None, 32, 96, 1024])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_index_runs_once(cuda, shape, block):
    times = ab.zeros(shape, "int32", device=cuda)
    ab.launch(count, shape, times, block=block)
    found = times.numpy()
    assert found.min() == found.max() == 1


@ab.kernel
def count_in_turns(index, turns, times: ab.InOut):
    for _ in range(turns):
        times[index] += 1


@pytest.mark.parametrize(("size", "coarse"), [(1 << 19, False), (700_001, False), (1_200_007, True)])
def test_kernels_with_loops_run_several_indices_later(cuda, size, coarse):
    # With so many indices for each of an H200's threads: 1.9, 2.6, and 4.4.
    kernel = ab.kernel(count_in_turns.__wrapped__)
    times = ab.zeros(size, "int32", device=cuda)
    ab.launch(kernel, size, 3, times)
    found = times.numpy()
    assert found.min() == found.max() == 3
    assert [target.coarse for _, target in kernel.compiled_cuda] == [coarse]


@pytest.mark.parametrize("part", [np.s_[:, :], np.s_[3:, ::2], np.s_[::-1, 5:]], ids=str)
def test_stencils_compute_what_numpy_does(cuda, part):
    values = np.random.default_rng(1).integers(0, 64, (2050, 2055)).astype("float32")
    whole, u = ab.array(values, device=cuda), values[part]
    v = ab.zeros(u.shape, device=cuda)
    ab.launch(around, u.shape, whole[part], v)
    expected = np.zeros_like(u)
    expected[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    np.testing.assert_array_equal(v.numpy(), expected)


def test_negative_indices_wrap_around(cuda):
    values = np.arange(1_500_001, dtype="float32")
    y = ab.zeros(values.size, device=cuda)
    ab.launch(shifted, values.size, ab.array(values, device=cuda), y)
    np.testing.assert_array_equal(y.numpy(), np.roll(values, 3))


def test_replays_run_each_index_once(cuda):
    times = ab.zeros((1201, 1003), "int32", device=cuda)
    stream = ab.Stream(cuda)
    with ab.capture(stream) as graph:
        ab.launch(count, times.shape, times)
    graph.launch(stream)
    graph.launch(stream)
    found = times.numpy()
    assert found.min() == found.max() == 2
