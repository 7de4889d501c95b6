"""Numbers as arguments of graphed functions: they follow the call, unless the function looks at them."""

import math

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all
from .test_graphed import Counted


@ab.kernel
def put(i, value, x: ab.Out):
    x[i] = value


@ab.kernel
def scale(i, alpha, x: ab.InOut):
    x[i] = alpha * x[i]


def putting(compute):
    return Counted(lambda x, *numbers: ab.launch(put, 8, compute(*numbers), x))


NUMBERS = {
    "int": (1, -5, 2**62),
    "float": (0.5, -0.0, 1e300),
    "bool": (True, False),
    "complex": (1 + 2j, -3j),
    "large int": (2**63, 2**64 - 1),
    "float32": (np.float32(0.5), np.float32(3)),
    "int8": (np.int8(3), np.int8(-128)),
    "uint64": (np.uint64(3), np.uint64(2**64 - 1)),
    "complex64": (np.complex64(1 + 2j), np.complex64(3j)),
    "bool_": (np.bool_(True), np.bool_(False)),
}
DTYPES = {"complex": "complex128", "complex64": "complex64", "large int": "uint64", "uint64": "uint64", "int": "int64"}


@pytest.mark.numba
@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_for_a_kernel_follows_the_call(device, kind):
    work = putting(lambda number: number)
    for number in NUMBERS[kind]:
        x = ab.zeros(8, DTYPES.get(kind, "float64"), device=device)
        work(x, number)
        assert_all(x, number)
    assert (work.calls, work.graphs) == (1, 1)


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_to_fill_with(device, kind):
    work = Counted(ab.fill)
    for number in NUMBERS[kind]:
        x = ab.zeros(8, DTYPES.get(kind, "float64"), device=device)
        work(x, number)
        assert_all(x, number)


def test_arrays_made_of_a_number(device):
    work = Counted(lambda x, value: ab.copy(x, ab.full(8, value, "float32")))
    for value in 2.0, 3.0:
        x = ready(device)
        with device:
            work(x, value)
        assert_all(x, value)


@pytest.mark.numba
def test_types_of_numbers_are_told_apart(device):
    work = putting(lambda number: number)
    x = ab.zeros(8, "float64", device=device)
    for number in 1, 1.0, True, np.float32(1), np.int64(1):
        for _ in range(2):
            work(x, number)
            assert_all(x, 1)
    assert work.calls == 5


COMPUTED = {
    "double": lambda a: a * 2,
    "twice": lambda a: 2 * a,
    "negative": lambda a: -a,
    "positive": lambda a: +a,
    "square": lambda a: a**2,
    "power": lambda a: 2**a,
    "size": lambda a: abs(a - 4),
    "inverse": lambda a: 1 / a,
    "half": lambda a: a / 2,
    "quotient": lambda a: a // 2,
    "dividend": lambda a: 7 // a,
    "rest": lambda a: a % 3,
    "module": lambda a: 7 % a,
    "sum": lambda a: 3 + a + a,
    "difference": lambda a: 3 - a - 1,
    "mixed": lambda a: (2 * a - 1) / (a * a + 0.5) + a,
    "in place": lambda a: sum([a, a, 1]),
}


@pytest.mark.numba
@pytest.mark.parametrize("compute", COMPUTED.values(), ids=COMPUTED)
@pytest.mark.parametrize("values", [(2, 5, 3), (2.5, 1.5), (np.float32(2), np.float32(5)), (np.int16(4), np.int16(9))])
def test_what_is_computed_from_numbers_follows_the_call(device, compute, values):
    work, x = putting(compute), ab.zeros(8, "float64", device=device)
    for value in values:
        work(x, value)
        assert_all(x, compute(value))
    assert work.calls == 1


@pytest.mark.numba
def test_what_is_computed_from_several_numbers(device):
    work, x = putting(lambda a, b: (a - b) * a), ab.zeros(8, "float64", device=device)
    for a, b in (1, 2.0), (3, 4.0), (5, -1.0):
        work(x, a, b)
        assert_all(x, (a - b) * a)
    assert work.calls == 1


BITS = {
    "and": lambda n: n & 6,
    "or": lambda n: n | 6,
    "xor": lambda n: n ^ 6,
    "left": lambda n: n << 1,
    "right": lambda n: n >> 1,
    "not": lambda n: ~n,
    "which": lambda n: 6 & n,
    "divmod": lambda n: divmod(n, 4)[1],
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
}


@pytest.mark.numba
@pytest.mark.parametrize("compute", BITS.values(), ids=BITS)
def test_what_is_computed_from_whole_numbers(device, compute):
    work, x = putting(compute), ab.zeros(8, "int64", device=device)
    for value in 5, 2**61 + 1, 5:
        work(x, value)
        assert_all(x, compute(value))


@pytest.mark.numba
def test_a_computed_number_may_become_one_of_another_kind(device):
    work, x = putting(lambda n: n * 2), ab.zeros(8, "float64", device=device)
    for value in 1, 2**62, 3, 2**62 + 1:
        work(x, value)
        assert_all(x, float(2 * value))
    assert work.graphs == 1


@pytest.mark.numba
def test_a_computation_that_raises_does_so_and_the_next_call_is_right(device):
    work, x = putting(lambda a: 1 / a), ab.zeros(8, "float64", device=device)
    work(x, 2.0)
    with pytest.raises(ZeroDivisionError):
        work(x, 0.0)
    assert_all(x, 0.5)
    work(x, 4.0)
    assert_all(x, 0.25)
    assert work.calls == 1


@pytest.mark.numba
def test_a_number_that_does_not_fit_is_refused_as_by_the_launch(device):
    work, x = putting(lambda a: a * 2), ab.zeros(8, "float64", device=device)
    with pytest.raises(ValueError, match="64 bits"):
        work(x, 2**63)
    work(x, 1)
    assert_all(x, 2)


@pytest.mark.numba
def test_queued_replays_keep_their_numbers(device):
    work, stream = putting(lambda a: a + 1), ab.Stream(device)
    arrays = [ab.zeros(8, "float64", device=device) for _ in range(5)]
    with ab.testing.Gate(stream), stream:
        for number, x in enumerate(arrays):
            work(x, number)
    for number, x in enumerate(arrays):
        assert_all(x, number + 1)
    assert work.calls == 1


@pytest.mark.numba
def test_numbers_of_several_launches(device):
    def work(x, a, b):
        ab.launch(put, 8, a, x)
        ab.launch(scale, 8, b, x)
        ab.launch(scale, 8, a, x)

    working, x = Counted(work), ab.zeros(8, "float64", device=device)
    for a, b in (2.0, 3.0), (5.0, 7.0):
        working(x, a, b)
        assert_all(x, a * a * b)
    assert working.calls == 1


@pytest.mark.numba
def test_launches_with_other_arrays_and_the_same_numbers(device):
    def work(x, y, a):
        ab.launch(put, 8, a, x)
        ab.launch(put, 4, 2.0, y[2:6])

    working = Counted(work)
    for _ in range(3):
        x, y = ready(device), ready(device)
        working(x, y, 5.0)
        assert_all(x, 5)
        assert y.numpy().tolist() == [0, 0, 2, 2, 2, 2, 0, 0]
    assert working.calls == 1


# Numbers that are looked at


def fill_with_sign(x, a):
    ab.fill(x, 1 if a > 0 else -1)


LOOKED = {
    "greater": (fill_with_sign, lambda a: 1 if a > 0 else -1),
    "truth": (lambda x, a: ab.fill(x, 1 if a else 2), lambda a: 1 if a else 2),
    "equal": (lambda x, a: ab.fill(x, 1 if a == 3 else 2), lambda a: 1 if a == 3 else 2),
    "float": (lambda x, a: ab.fill(x, float(a)), float),
    "int": (lambda x, a: ab.fill(x, int(a)), int),
    "a function": (lambda x, a: ab.fill(x, math.hypot(a, a) // 1), lambda a: math.hypot(a, a) // 1),
    "text": (lambda x, a: ab.fill(x, len(f"{a:+.3f}")), lambda a: len(f"{a:+.3f}")),
    "computed": (lambda x, a: ab.fill(x, 1 if a * 2 - 1 > 4 else 2), lambda a: 1 if a * 2 - 1 > 4 else 2),
    "hash": (lambda x, a: ab.fill(x, {3: 1}.get(a, 2)), lambda a: {3: 1}.get(a, 2)),
    "NumPy": (lambda x, a: ab.fill(x, np.array([1.0, 2.0])[1] * a), lambda a: 2 * a),
    "attribute": (lambda x, a: ab.fill(x, a.real), lambda a: a.real),
    "largest": (lambda x, a: ab.fill(x, float(max(a, 2))), lambda a: max(a, 2)),
    "type": (lambda x, a: ab.fill(x, 1 if isinstance(a, int) else 2), lambda a: 1 if isinstance(a, int) else 2),
}


@pytest.mark.parametrize(("work", "expected"), LOOKED.values(), ids=LOOKED)
@pytest.mark.parametrize("values", [(3, -2, 5), (3.0, 0.0, -1.5), (np.float32(3), np.float32(0))])
def test_what_depends_on_a_number_is_right_for_each(device, work, expected, values):
    working = Counted(work)
    for value in values * 2:
        x = ready(device)
        working(x, value)
        assert_all(x, np.float32(expected(value)))
    assert working.calls <= len(values)


def test_numbers_that_are_looked_at_are_captured_apart(device):
    def work(x, count):
        for i in range(count):
            ab.fill(x[i : i + 1], i + 1)

    working = Counted(work)
    for count in 3, 5, 3, 5:
        x = ready(device)
        working(x, count)
        np.testing.assert_array_equal(x.numpy(), [i + 1 if i < count else 0 for i in range(8)])
    assert (working.calls, working.graphs) == (2, 2)


def test_numbers_as_sizes_and_places(device):
    def work(x, count):
        ab.copy(x[count:], ab.zeros(8 - count, stream=ab.current_stream(x.device)))
        ab.copy(x, x[:count], count=count, dst_offset=8 - count)

    working = Counted(work)
    for count in 2, 3, 2:
        x = ab.array(np.arange(1, 9, dtype="float32"), device=device)
        working(x, count)
        assert x.numpy().tolist() == [*range(1, count + 1), *[0] * (8 - 2 * count), *range(1, count + 1)]
    assert working.calls == 2


@pytest.mark.numba
def test_a_number_may_be_looked_at_in_one_branch_alone(device):
    def work(x, a, b):
        if a > 0 and b > 10:
            ab.launch(put, 8, 1.0, x)
        else:
            ab.launch(put, 8, b, x)

    working, x = Counted(work), ab.zeros(8, "float64", device=device)
    for a, b in (-1, 3), (-1, 4), (1, 5), (1, 12), (1, 6), (-1, 7), (-1, 12):
        working(x, a, b)
        assert_all(x, 1 if a > 0 and b > 10 else b)


def test_zeros_of_both_signs_are_told_apart(device):
    work = Counted(lambda x, a: ab.fill(x, math.copysign(1, a)))
    for value in 0.0, -0.0, 0.0:
        x = ready(device)
        work(x, value)
        assert_all(x, math.copysign(1, value))


@pytest.mark.numba
def test_a_number_that_closes_an_argument_of_its_call_is_an_error(device):
    class Closing(np.float32):
        closes = None

        def __float__(self):
            if self.closes is not None:
                self.closes.close()
            return 3.0

    work = putting(lambda number: number)
    x, number = ready(device), Closing(3)
    for _ in range(2):
        work(x, number)
    number.closes = x
    with pytest.raises(ab.ClosedError):
        work(x, number)
    assert work.graphs == 1


LEFT = {
    "times": lambda x, number: number * x,
    "plus": lambda x, number: number + x,
    "minus": lambda x, number: number - x,
    "over": lambda x, number: number / x,
    "to the power of": lambda x, number: number**x,
    "negative": lambda x, number: -number * x,
    "below": lambda x, number: number < x,
    "equal": lambda x, number: number == x,
}


@pytest.mark.numba
@pytest.mark.uninitialized
@pytest.mark.parametrize("compute", LEFT.values(), ids=LEFT)
def test_a_number_on_the_left_of_an_array_follows_the_call(device, compute):
    def function(x, y, number):
        y[...] = compute(x, number)

    work = Counted(function)
    values = np.arange(1.0, 9.0)
    x = ab.array(values, device=device)
    for number in (0.5, 2.0, 3.25):
        y = ab.zeros(8, device=device)
        work(x, y, number)
        np.testing.assert_allclose(y.numpy(), compute(values, number), rtol=1e-6)
    assert (work.calls, work.graphs) == (1, 1)


def test_the_text_of_a_number_is_its_own(device):
    assert ab.graphed(lambda x, number: str(number))(ab.zeros(1, device=device), np.float32(1.25)) == "1.25"
