"""Which kernels count as having loops, which decides how many indices a thread of a GPU runs."""

import pytest

from anabranch.kernels._kernel import has_loop


def branching(i, x, y):
    y[i] = x[i] if x[i] > 0 else -x[i]


def counting(i, n, x):
    for k in range(n):
        x[i] += k


def waiting(i, x):
    while x[i] > 1.0 and x[i] < 9.0:
        x[i] *= 0.5


@pytest.mark.parametrize(("function", "loops"), [(branching, False), (counting, True), (waiting, True)])
def test_loops_are_found_in_the_code(function, loops):
    assert has_loop(function) is loops
