"""What the kernels of reductions read, by calling their functions in Python."""

import pytest

from anabranch._math import reduction_kernels

np = pytest.importorskip("numpy")


class Counted:
    """A matrix that counts the elements read."""

    def __init__(self, elements):
        self.elements = elements
        self.shape = elements.shape
        self.count = 0

    def __getitem__(self, key):
        self.count += 1
        return self.elements[tuple(map(int, key))]


@pytest.mark.parametrize(("name", "value"), [("any", True), ("all", False), ("max", True), ("min", False)])
def test_truth_values_are_read_until_one_decides(name, value):
    x, out = Counted(np.full((1, 5000), value)), np.empty((1, 1), "bool")
    reduction_kernels.rows(name, "bool", "bool").__wrapped__((0, 0), x, 5000, 1.0, out)
    assert out[0, 0] == value
    assert x.count <= 512


@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_truth_values_are_read_until_the_first_is_found(name):
    elements = np.full((1, 5000), name == "argmin")
    elements[0, 700:] = name == "argmax"
    x, out = Counted(elements), np.empty((1, 1), "int64")
    reduction_kernels.truths(name).__wrapped__((0, 0), x, 5000, 0, out)
    assert out[0, 0] == 700
    assert x.count <= 1024 + 512


@pytest.mark.parametrize("name", ["sum", "min", "any", "argmax"])
def test_one_element_for_each_result_is_read_at_most_once(name):
    dtype = {"any": "bool", "argmax": "int64"}.get(name, "float32")
    x, out = Counted(np.ones((3, 1), "float32")), np.empty((3, 1), dtype)
    for row in range(3):
        reduction_kernels.ones(name, dtype, "float32").__wrapped__((row, 0), x, out)
    assert x.count == (0 if name == "argmax" else 3)
    assert out.tolist() == [[name != "argmax"]] * 3
