"""Random numbers of kernels."""

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba

N = 100_000


@ab.kernel
def draw(i, seed, first, y: ab.Out):
    y[i] = ab.random(seed, first + i)


def drawn(seed, first=0, size=N, dtype="float64"):
    y = ab.empty(size, dtype)
    ab.launch(draw, size, seed, first, y)
    return y.numpy()


def test_numbers_are_those_of_python(device):
    for seed, first in (0, 0), (42, 7), (-1, -50), (2**63 - 1, 2**40), (1 << 33, -(2**63)):
        expected = [ab.random(seed, first + index) for index in range(100)]
        assert drawn(seed, first, 100).tolist() == expected


def test_numbers_are_uniform_and_independent(device):
    x, y = drawn(1), drawn(2)
    assert 0 <= x.min() < 1e-4
    assert 1 - 1e-4 < x.max() < 1
    counts = np.histogram(x, 100, (0, 1))[0]
    assert ((counts - N / 100) ** 2).sum() / (N / 100) < 170  # chi-squared of 99 degrees of freedom: p = 1e-5
    for other in y, np.roll(x, 1):
        assert abs(np.corrcoef(x, other)[0, 1]) < 5 / N**0.5
    assert len(set(x.tolist())) == N


def test_integers_of_numpy_draw_what_those_of_python_do():
    for seed, counter in (np.int64(-3), np.int32(5)), (np.uint64(2**63 + 3), np.uint8(200)), (np.int8(-1), np.True_):
        assert ab.random(seed, counter) == ab.random(int(seed), int(counter))


def test_seeds_and_counters_are_integers(device):
    @ab.kernel
    def draw_by_float(i, y: ab.Out):
        y[i] = ab.random(1.5, i)

    with pytest.raises(TypeError, match="float"):
        ab.random(1.5, 2)
    with pytest.raises(ab.CompileError, match=r"ab.random\(1.5, i\)\n  the seed and the counter .* are integers"):
        ab.launch(draw_by_float, 4, ab.zeros(4))


def test_seeds_from_arrays_of_any_integers(device):
    @ab.kernel
    def draw_from(i, seeds: ab.In, y: ab.Out):
        y[i] = ab.random(seeds[i], i)

    for dtype in ("int32", "int64", "uint32", "uint8"):
        seeds, y = np.arange(5, dtype=dtype), ab.empty(5, "float64")
        ab.launch(draw_from, 5, ab.array(seeds), y)
        assert y.numpy().tolist() == [ab.random(index, index) for index in range(5)]
