"""NumPy in graphed functions: what it is given counts as looked at, and is what it would be elsewhere."""

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all
from .test_graphed import Counted

COMPUTED = {
    "of one": np.sqrt,
    "of two": lambda n: np.multiply(n, 2.0),
    "the other way": lambda n: np.multiply(2.0, n),
    "of it twice": lambda n: np.multiply(n, n),
    "of what is computed": lambda n: np.sqrt(n * 2 + 1),
    "largest": lambda n: np.maximum(n, 3),
    "truth": lambda n: 1 if np.isnan(n) else 2,
    "compared": lambda n: np.greater(n, 3),
    "constant": lambda n: np.float64(2) * n + n * np.float32(2) - np.int64(1),
    "into": lambda n: np.add(np.ones(2), n, out=np.empty(2))[1],
    "where": lambda n: np.add(1, 2, out=np.array(5), where=n > 3),
    "method": lambda n: np.add.reduce([1, n]),
    "outer": lambda n: np.multiply.outer(n, np.arange(3))[2],
    "sum": lambda n: np.sum([n, n]),
    "clip": lambda n: np.clip(n, 3, 5),
    "round": np.round,
    "array": lambda n: np.array([1, n])[1],
    "full": lambda n: np.full(2, n)[1],
    "range": lambda n: np.linspace(0, n, 3)[1],
    "times": lambda n: (np.arange(3) * n)[2],
    "times an array": lambda n: (n * np.arange(3))[2],
    "less": lambda n: (np.arange(3) - n)[2],
    "equal": lambda n: np.count_nonzero(np.arange(6) == n),
    "order": lambda n: np.count_nonzero(n <= np.arange(6)),
}
NUMBERS = {"int": (4, 2), "float": (2.5, 4.0), "float32": (np.float32(2.5), np.float32(4)), "bool": (True, False)}


@pytest.mark.parametrize("compute", COMPUTED.values(), ids=COMPUTED)
@pytest.mark.parametrize("kind", NUMBERS)
def test_what_numpy_computes_of_a_number_is_right_for_each(device, compute, kind):
    results = []

    def work(x, number):
        results.append(compute(number))
        ab.fill(x, results[-1])

    working = Counted(work)
    for number in NUMBERS[kind] * 2:
        x = ready(device)
        working(x, number)
        assert_all(x, np.float32(compute(number)))
    assert (working.calls, working.graphs) == (2, 2)
    for number, result in zip(NUMBERS[kind], results, strict=True):
        assert getattr(result, "dtype", None) == getattr(compute(number), "dtype", None)


@pytest.mark.parametrize("kind", NUMBERS)
def test_an_array_of_the_host_is_changed_in_place(device, kind):
    def work(x, number):
        values = kept = np.ones(3)
        values += number
        values *= number
        assert values is kept
        ab.fill(x, values[2])

    working = Counted(work)
    for number in NUMBERS[kind] * 2:
        x = ready(device)
        working(x, number)
        assert_all(x, np.float32((1 + number) * number))
    assert working.calls == 2


def test_what_numpy_refuses_it_refuses_in_a_captured_function_too(device):
    working = Counted(lambda x, number: ab.fill(x, np.bitwise_and(number, 1)))
    with pytest.raises(TypeError, match="bitwise_and"):
        working(ready(device), 1.5)
    x = ready(device)
    working(x, 3)
    assert_all(x, 1)
