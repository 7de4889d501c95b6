"""Which kernels of several dimensions run in one loop over contiguous arrays of the launch's shape."""

import pytest

import anabranch as ab

from .test_kernels_compute import code_of

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.numba

TABLE = np.arange(4.0)


def by_whole(ij, x, y):
    y[ij] = 2 * x[ij] + y[ij]


def by_parts(ij, x, y):
    i, j = ij
    y[i, j] += x[i, j] if x[i, j] > 0 else y[i, j] // 3


def by_part_of_tuple(ij, x, y):
    y[ij[0], ij[1]] = x[ij[0], ij[-1]]


def renamed(ij, x, y):
    here, source = ij, x
    for k in range(3):
        y[here] += source[ij] * k


def with_a_table(ij, x, y):
    y[ij] = TABLE[int(x[ij]) % 4] + x[0, 0]


def of_a_part(ij, x, y):
    i, j = ij
    y[i, j] = x[i, 0]


def computes(ij, x, y):
    i, j = ij
    y[i, j] = x[i, j] + j


def compares(ij, x, y):
    i, j = ij
    if j > 0:
        y[i, j] = x[i, j]


def transposes(ij, x, y):
    i, j = ij
    y[j, i] = x[i, j]


def shifts(ij, x, y):
    i, j = ij
    y[i, j] = x[i, j - 1]


def changes(ij, x, y):
    i, j = ij
    if x[i, j] > 0.5:
        j = 0
    y[i, j] = x[i, j]


def counts(ij, x, y):
    i, j = ij
    while x[i, j] > j:
        j += 1
    y[ij] = x[ij]


def chooses(ij, x, y):
    target = x if x[ij] > 0 else y
    target[ij] = 1


def calls(ij, x, y):
    ab.atomic_add(y, ij, x[ij])


def stores(ij, x, y):
    i, j = ij
    y[i, j] = i


def of_a_row(ij, x, y):
    i, j = ij
    row = x[i]
    y[i, j] = row[j]


FLAT = {by_whole: {1, 2}, by_parts: {1, 2}, by_part_of_tuple: {1, 2}, renamed: {1, 2}, with_a_table: {1, 2}}
OTHERS = [of_a_part, computes, compares, transposes, shifts, changes, counts, chooses, calls, stores, of_a_row]


def arrays_at_index(function, *args):
    from anabranch.kernels._cpu import codegen

    parameters = ab.kernel(function).parameters
    signature = (2, tuple(map(code_of, args)))
    return codegen._compile(function, parameters, signature, codegen._flags())[0].at_index


@pytest.mark.parametrize("function", [*FLAT, *OTHERS], ids=lambda function: function.__name__)
def test_which_kernels_only_subscript_by_their_index(function):
    assert arrays_at_index(function, np.zeros((4, 4)), np.zeros((4, 4))) == FLAT.get(function, set())


def test_an_array_that_is_not_contiguous_is_no_line():
    assert not arrays_at_index(by_whole, np.zeros((4, 8))[:, ::2], np.zeros((4, 4)))


def test_one_of_other_dimensions_is_no_line():
    def of_vector(ij, x, y):
        y[ij] = x[0]

    assert arrays_at_index(of_vector, np.zeros(4), np.zeros((4, 4))) == {2}
