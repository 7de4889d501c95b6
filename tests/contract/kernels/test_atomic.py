import numpy as np
import pytest

import anabranch as ab

from ..arrays import values

pytestmark = pytest.mark.numba

DTYPES = ["int32", "int64", "uint32", "uint64", "float32", "float64"]
N = 100_000


@ab.kernel
def add(_, value, counter):
    ab.atomic_add(counter, 0, value)


@ab.kernel
def ticket(i, counter: ab.InOut, tickets: ab.Out):
    tickets[i] = ab.atomic_add(counter, 0, 1)


@ab.kernel
def extremes(i, x: ab.In, least: ab.InOut, most: ab.InOut):
    ab.atomic_min(least, 0, x[i])
    ab.atomic_max(most, 0, x[i])


@pytest.mark.parametrize("dtype", DTYPES)
def test_atomic_add_loses_nothing_under_contention(device, dtype):
    counter = ab.zeros(1, dtype, device=device)
    ab.launch(add, N, 1, counter)
    assert counter.numpy()[0] == N


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_atomic_add_takes_negative_values(device, dtype):
    counter = ab.full(1, 5, dtype, device=device)
    ab.launch(add, 1000, -1, counter)
    assert counter.numpy()[0] == 5 - 1000


@pytest.mark.parametrize("dtype", DTYPES)
def test_atomic_add_returns_the_old_value(device, dtype):
    counter, tickets = ab.zeros(1, dtype, device=device), ab.empty(N, dtype, device=device)
    ab.launch(ticket, N, counter, tickets)
    np.testing.assert_array_equal(np.sort(tickets.numpy()), np.arange(N))


@pytest.mark.parametrize("dtype", DTYPES)
def test_atomic_min_and_max_find_the_extremes(device, dtype):
    data = np.random.default_rng(0).permutation(N).astype(dtype) + np.asarray(3, dtype)
    if np.dtype(dtype).kind != "u":
        data -= N // 2
    least, most = ab.full(1, data[0], dtype, device=device), ab.full(1, data[0], dtype, device=device)
    ab.launch(extremes, N, ab.array(data, device=device), least, most)
    assert (least.numpy()[0], most.numpy()[0]) == (data.min(), data.max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_atomic_min_and_max_return_the_old_value(device, dtype):
    @ab.kernel
    def exchange(_, y: ab.InOut, old: ab.Out):
        old[0] = ab.atomic_min(y, 0, 3)
        old[1] = ab.atomic_min(y, 0, 7)
        old[2] = ab.atomic_max(y, 0, 9)
        old[3] = ab.atomic_max(y, 0, 1)

    y, old = ab.full(1, 5, dtype, device=device), ab.zeros(4, dtype, device=device)
    ab.launch(exchange, 1, y, old)
    np.testing.assert_array_equal(old.numpy(), [5, 3, 3, 9])
    assert y.numpy()[0] == 9


def test_the_index_of_an_atomic_of_one_axis_may_be_a_tuple(device):
    @ab.kernel
    def count(i, y: ab.InOut):
        ab.atomic_add(y, (i % 4,), 1)

    y = ab.zeros(4, "int64", device=device)
    ab.launch(count, 8, y)
    np.testing.assert_array_equal(y.numpy(), 2)


def test_the_index_of_an_atomic_may_be_a_tuple(device):
    @ab.kernel
    def histogram(i, x: ab.In, y: ab.InOut):
        ab.atomic_add(y, (x[i] // 10, x[i] % 10), 1)

    data = values(10_000, "int64")
    y = ab.zeros((10, 10), "int32", device=device)
    ab.launch(histogram, data.size, ab.array(data, device=device), y)
    np.testing.assert_array_equal(y.numpy().ravel(), np.bincount(data, minlength=100))


def test_the_index_of_the_launch_may_be_that_of_an_atomic(device):
    @ab.kernel
    def bump(index, y: ab.InOut):
        ab.atomic_add(y, index, 2)

    y = ab.zeros((3, 4), "int32", device=device)
    ab.launch(bump, (3, 4), y)
    np.testing.assert_array_equal(y.numpy(), np.full((3, 4), 2))


def test_atomics_work_on_strided_views(device):
    @ab.kernel
    def bins(i, y: ab.InOut):
        ab.atomic_add(y, i % 3, 1)

    y = ab.zeros((3, 6), "int32", device=device)
    ab.launch(bins, 3000, y[1, ::-2])
    np.testing.assert_array_equal(y.numpy(), [[0] * 6, [0, 1000] * 3, [0] * 6])


def test_atomics_work_in_functions_that_kernels_call(device):
    def bump(y, i):
        return ab.atomic_add(y, i, 1)

    @ab.kernel
    def call(i, y: ab.InOut):
        bump(y, i % 2)

    y = ab.zeros(2, "int32", device=device)
    ab.launch(call, 1000, y)
    np.testing.assert_array_equal(y.numpy(), [500, 500])


def test_atomics_of_two_streams_lose_nothing(device):
    counter = ab.array(np.zeros(1, "int64"), device=device)
    streams = [ab.Stream(device) for _ in range(4)]
    for stream in streams:
        ab.launch(add, N, 1, counter, stream=stream)
    assert counter.numpy()[0] == 4 * N


NARROW = ["int8", "uint8", "int16", "uint16"]


@pytest.mark.parametrize("dtype", [*NARROW, "float16"])
def test_atomic_add_on_narrow_elements(device, dtype):
    @ab.kernel
    def bump(i, y: ab.InOut):
        ab.atomic_add(y, i % 4, 1)

    y = ab.array(np.array([0, 1, 2, 3, 100], dtype), device=device)
    ab.launch(bump, 80, y)
    assert y.numpy().tolist() == [20, 21, 22, 23, 100]


def test_atomic_add_of_halves_loses_nothing_and_returns_the_old_value(device):
    counter, tickets = ab.zeros(1, "float16", device=device), ab.empty(2000, "float16", device=device)
    ab.launch(ticket, 2000, counter, tickets)
    assert counter.numpy()[0] == 2000
    np.testing.assert_array_equal(np.sort(tickets.numpy()), np.arange(2000))


# An atomic of fewer than 32 bits takes the whole word around it; an array of whole words has been set as a whole.
@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW, "float16"])
def test_atomic_exchange_and_cas_return_the_old_value(device, dtype):
    @ab.kernel
    def swap(_, y: ab.InOut, old: ab.Out):
        old[0] = ab.atomic_exchange(y, 1, 7)
        old[1] = ab.atomic_cas(y, 1, 7, 9)
        old[2] = ab.atomic_cas(y, 1, 7, 11)
        old[3] = ab.atomic_exchange(y, -3, 13)

    y, old = ab.full(4, 5, dtype, device=device), ab.zeros(4, dtype, device=device)
    ab.launch(swap, 1, y, old)
    assert old.numpy().tolist() == [5, 7, 9, 9]
    assert y.numpy().tolist() == [5, 13, 5, 5]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_atomic_cas_of_negative_values(device, dtype):
    @ab.kernel
    def swap(_, y: ab.InOut, old: ab.Out):
        old[0] = ab.atomic_cas(y, 0, -3, -4)
        old[1] = ab.atomic_exchange(y, 0, -5)

    y, old = ab.full(4, -3, dtype, device=device), ab.zeros(2, dtype, device=device)
    ab.launch(swap, 1, y, old)
    assert (y.numpy().tolist(), old.numpy().tolist()) == ([-5, -3, -3, -3], [-3, -4])


@pytest.mark.parametrize("dtype", [*DTYPES, "int16"])
def test_a_loop_around_atomic_cas_loses_nothing(device, dtype):
    @ab.kernel
    def double_step(_, y: ab.InOut):
        seen = y[0]
        while True:
            found = ab.atomic_cas(y, 0, seen, seen + 2)
            if found == seen:
                break
            seen = found

    y = ab.zeros(2, dtype, device=device)
    ab.launch(double_step, 10_000, y)
    assert y.numpy()[0] == 20_000


def test_atomic_exchange_hands_each_value_on(device):
    @ab.kernel
    def hand_on(i, last: ab.InOut, seen: ab.Out):
        seen[i] = ab.atomic_exchange(last, 0, i)

    last, seen = ab.full(1, -1, "int32", device=device), ab.empty(1000, "int32", device=device)
    ab.launch(hand_on, 1000, last, seen)
    assert sorted([*seen.numpy().tolist(), int(last.numpy()[0])]) == list(range(-1, 1000))


def test_what_an_atomic_does_not_take_is_said(device):
    @ab.kernel
    def least(_, y):
        ab.atomic_min(y, 0, 1)

    @ab.kernel
    def too_few(_, y):
        ab.atomic_cas(y, 0, 1)

    with pytest.raises(ab.CompileError, match=r"atomic_min works on integers, .* not on an array of float16\n  with y"):
        ab.launch(least, 1, ab.zeros(1, "float16"))
    with pytest.raises(ab.CompileError, match="atomic_cas takes four arguments: array, index, expected, value"):
        ab.launch(too_few, 1, ab.zeros(1))
    for function in (ab.atomic_add, ab.atomic_min, ab.atomic_max, ab.atomic_exchange):
        with pytest.raises(RuntimeError, match=f"{function.__name__} works inside.*ab\\.kernel only"):
            function(ab.zeros(1), 0, 1)
