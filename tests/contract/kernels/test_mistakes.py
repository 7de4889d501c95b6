"""What the first kernels get wrong, and what the errors say."""

import math
import random
import re

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba

WORDS = {1: "one"}
NUMBERS = [1, 2, 3]
SIZES = (2, 3)
CALLS = 0


class Settings:
    scale = 2.0


SETTINGS = Settings()


def told(error, launch, *args):
    """Return the text of the error that a launch raises, without what names the kernel and the line."""
    with pytest.raises(error) as caught:
        launch(*args)
    return str(caught.value)


@ab.kernel
def add_one(i, x):
    x[i] += 1


# The index


@ab.kernel
def by_two(i, j, x):
    x[i, j] = 1


@ab.kernel
def by_three(i, j, k, x: ab.Out):
    x[i, j, k] = 1


def test_an_index_is_one_parameter(device):
    message = told(TypeError, ab.launch, by_two, (4, 4), ab.zeros((4, 4)))
    assert "the index is one tuple: def by_two(ij, x), and then i, j = ij" in message
    message = told(TypeError, ab.launch, by_three, (4, 4, 4), ab.zeros((4, 4, 4)))
    assert "def by_three(ijk, x), and then i, j, k = ijk" in message


@ab.kernel
def scaled(i, x):
    x[i] = 2 * i


@ab.kernel
def of_vector(n, x):
    x[n] = 1


@ab.kernel
def three_of_two(ij, x):
    i, j, k = ij
    x[i, j] = k


@ab.kernel
def to_float(i, x):
    x[0, 0] = float(i)


@ab.kernel
def to_complex(i, x):
    x[0, 0] = complex(i).real


@ab.kernel
def root_of_index(i, x):
    x[0, 0] = np.sqrt(i)


@ab.kernel
def smaller(i, x):
    x[0, 0] = min(i, 3)


@ab.kernel
def drawn_for_index(i, x):
    x[0, 0] = ab.random(1, i)


def twice(number):
    return number * 2


@ab.kernel
def twice_the_index(i, x):
    x[0, 0] = twice(i)


@ab.kernel
def third_of_two(i, x):
    x[0, 0] = i[2]


@pytest.mark.parametrize(
    "kernel", [to_float, to_complex, root_of_index, smaller, drawn_for_index, twice_the_index, third_of_two]
)
def test_a_tuple_is_no_number(device, kernel):
    message = told(ab.CompileError, ab.launch, kernel, (4, 4), ab.zeros((4, 4)))
    assert "the launch is over 2 dimensions, so the index 'i' is one tuple of 2 ints: i, j = ij" in message


def test_an_index_of_several_dimensions_is_a_tuple(device):
    message = told(ab.CompileError, ab.launch, scaled, (4, 4), ab.zeros((4, 4)))
    assert "the launch is over 2 dimensions, so the index 'i' is one tuple of 2 ints: i, j = ij" in message
    message = told(ab.CompileError, ab.launch, of_vector, (2, 2, 2), ab.zeros(8))
    assert "the index 'n' is one tuple of 3 ints: i, j, k = n" in message
    assert "Numba" not in message
    assert "UniTuple" not in message
    message = told(ab.CompileError, ab.launch, three_of_two, (4, 4), ab.zeros((4, 4)))
    assert "the index 'ij' is one tuple of 2 ints: i, j = ij" in message


@ab.kernel
def unpacks(ij, x):
    i, j = ij
    x[i, j] = 1


@ab.kernel
def subscripts(ij, x):
    x[ij[0]] = 1


@pytest.mark.parametrize("kernel", [unpacks, subscripts])
def test_an_index_of_one_dimension_is_an_int(device, kernel):
    message = told(ab.CompileError, ab.launch, kernel, 4, ab.zeros((4, 4) if kernel is unpacks else 4))
    assert "the launch is over 1 dimension, so the index 'ij' is an int" in message
    assert f"ab.launch({kernel.name}, (rows, columns), ...)" in message
    assert "int64" not in message


# The launch


def test_a_kernel_has_no_brackets(device):
    message = told(TypeError, lambda: add_one[8](ab.zeros(8)))
    assert "kernel 'add_one' has no [8]: ab.launch(add_one, dim, ...)" in message
    assert "has no [8, 32]" in told(TypeError, lambda: add_one[8, 32])
    with pytest.raises(TypeError, match="not iterable"):
        iter(add_one)


def test_a_kernel_is_not_called(device):
    assert "ab.launch(add_one, dim, ...) runs it once per index" in told(TypeError, add_one, ab.zeros(8))


@pytest.mark.parametrize("named", [{"dim": 4, "inputs": []}, {"dim": 4}, {"inputs": []}, {"outputs": []}])
def test_arguments_of_a_launch_have_positions(device, named):
    for args in (), (4,):
        with pytest.raises(TypeError) as caught:
            ab.launch(add_one, *args, **named)
        assert "by position: ab.launch(kernel, dim, *inputs, *outputs)" in str(caught.value)


def test_a_function_that_is_no_kernel_needs_its_decorator(device):
    def plain(i, x):
        x[i] = 1

    assert "decorate plain with @ab.kernel" in told(TypeError, ab.launch, plain, 4, ab.zeros(4))


@pytest.mark.parametrize("argument", [[1.0, 2.0], (1, 2)])
def test_a_list_is_no_argument(device, argument):
    message = told(TypeError, ab.launch, add_one, 2, argument)
    assert f"parameter 'x': kernels take arrays and numbers, not {type(argument).__name__}; make an array" in message


# The body


@ab.kernel
def product(i, x, y):
    x[i] = np.dot(x, y)


@ab.kernel
def norm(i, x, y):
    x[i] = np.linalg.norm(y)


@ab.kernel
def labelled(i, x, y):
    label = f"{i}"
    x[i] = len(label)


@ab.kernel
def drawn(i, x, y):
    x[i] = np.random.random() + y[i]


@ab.kernel
def drawn_whole(i, x, y):
    x[i] = np.random.integers(3) + y[i]


@ab.kernel
def drawn_anew(i, x, y):
    x[i] = np.random.default_rng(0).random() + y[i]


@ab.kernel
def drawn_by_python(i, x, y):
    x[i] = math.sqrt(random.random())


@ab.kernel
def from_object(i, x, y):
    x[i] = SETTINGS.scale


@ab.kernel
def from_list(i, x, y):
    x[i] = NUMBERS[i % 3]


@ab.kernel
def from_dict(i, x, y):
    x[i] = len(WORDS[1])


@ab.kernel
def importing(i, x, y):
    import math

    x[i] = math.sin(y[i])


@ab.kernel
def counted(i, x, y):
    global CALLS
    CALLS = i


@ab.kernel
def halved(i, x, y):
    x[i / 2] = 1


@ab.kernel
def named(i, x, y):
    x[i] = "one"


@ab.kernel
def emptied(i, x, y):
    x[i] = None


@ab.kernel
def turned(i, x, y):
    x[i] = y[i] * 1j


@ab.kernel
def assigned(i, x, y):
    x[i] = y


@ab.kernel
def paired(i, x, y):
    x[i] = (1, 2.5)


@ab.kernel
def plane(i, x, y):
    x[i, 0] = 1


@ab.kernel
def parted(i, x, y):
    a, b, c = SIZES
    x[i] = a + b + c


@pytest.mark.parametrize(
    ("kernel", "line", "reason"),
    [
        (importing, "import math", "a kernel cannot import: import the module outside of it"),
        (counted, "CALLS = i", "a kernel cannot assign to the global name 'CALLS'"),
        (halved, "x[i / 2] = 1", "arrays are indexed by integers, not by float64: divide with //"),
        (named, 'x[i] = "one"', "an element of float32 cannot be set to a string"),
        (emptied, "x[i] = None", "an element of float32 cannot be set to None"),
        (turned, "x[i] = y[i] * 1j", "an element of float32 cannot be set to complex"),
        (assigned, "x[i] = y", "an element of float32 cannot be set to a whole array: index it"),
        (paired, "x[i] = (1, 2.5)", "an element of float32 cannot be set to a tuple"),
        (plane, "x[i, 0] = 1", "an array of 1 dimension takes no 2 indices"),
        (parted, "a, b, c = SIZES", "a tuple of 2 does not unpack into 3 names"),
        (product, "x[i] = np.dot(x, y)", "np.dot works on whole arrays, and a kernel is called for one index"),
        (norm, "x[i] = np.linalg.norm(y)", "np.linalg.norm works on whole arrays"),
        (labelled, 'label = f"{i}"', "a kernel cannot make text, as an f-string does"),
        (drawn, "x[i] = np.random.random() + y[i]", "np.random.random draws from a generator with a state"),
        (
            drawn_whole,
            "x[i] = np.random.integers(3) + y[i]",
            "there is no np.random.integers; a kernel calls ab.random",
        ),
        (drawn_anew, "x[i] = np.random.default_rng(0).random() + y[i]", "np.random.default_rng draws from a generator"),
        (drawn_by_python, "x[i] = math.sqrt(random.random())", "random.random draws from a generator with a state"),
        (from_object, "x[i] = SETTINGS.scale", "'SETTINGS', of type Settings, comes from outside the kernel"),
        (from_list, "x[i] = NUMBERS[i % 3]", "'NUMBERS', of type list, comes from outside the kernel"),
        (from_dict, "x[i] = len(WORDS[1])", "'WORDS', of type dict, comes from outside the kernel"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_a_kernel_cannot_do_is_said_with_its_line(device, kernel, line, reason):
    message = told(ab.CompileError, ab.launch, kernel, 4, ab.zeros(4), ab.zeros(4))
    assert re.search(rf'File "{re.escape(__file__)}", line \d+\n    {re.escape(line)}\n  {re.escape(reason)}', message)
    assert "numba" not in message.lower()


def test_an_array_from_outside_is_to_be_a_parameter(device):
    outside = ab.zeros(4)

    @ab.kernel
    def captures(i, x):
        x[i] = outside[i]

    message = told(ab.CompileError, ab.launch, captures, 4, ab.zeros(4))
    assert "x[i] = outside[i]\n  'outside' is an array from outside the kernel; make it a parameter" in message


@ab.kernel
def identity(i, x):
    x[i] = id(i)


@ab.kernel
def exact_sum(i, x):
    x[i] = math.fsum(x)


@ab.kernel
def last_place(i, x):
    x[i] = math.ulp(x[i])


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (identity, "id is not supported in kernels"),
        (exact_sum, "math.fsum is not supported in kernels; write the loop"),
        (last_place, "math.ulp is not supported in kernels; call np.spacing, on the CPU"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_functions_that_kernels_lack_are_named(device, kernel, reason):
    message = told(ab.CompileError, ab.launch, kernel, 4, ab.zeros(4))
    assert f"\n  {reason}\n  with x: " in message
