"""What the declarations of a kernel's parameters enforce, and what is said of a kernel that does not compile."""

import numpy as np
import pytest

import anabranch as ab

from ..arrays import values

pytestmark = pytest.mark.numba


@ab.kernel
def count(index, y):
    y[index] += 1


def add_at(array, i, value):
    array[i] += value


# Declarations


@ab.kernel
def typed(index, x: ab.In["float32", 2], y: ab.Out["float64", 1]):  # noqa: F821
    y[index] = x[index, 0]


def test_a_declaration_may_fix_dtype_and_number_of_dimensions(device):
    y = ab.empty(3, "float64", device=device)
    ab.launch(typed, 3, ab.array(values((3, 4)), device=device), y)
    np.testing.assert_array_equal(y.numpy(), values((3, 4))[:, 0])


def test_another_dtype_than_the_declared_is_refused_by_name(device):
    y = ab.empty(3, "float64", device=device)
    with pytest.raises(TypeError, match=r"\bx\b(.|\n)*float32"):
        ab.launch(typed, 3, ab.zeros((3, 4), "float64", device=device), y)
    with pytest.raises(TypeError, match=r"\by\b(.|\n)*float64"):
        ab.launch(typed, 3, ab.zeros((3, 4), device=device), ab.empty(3, device=device))


@pytest.mark.parametrize("shape", [(3,), (3, 4, 5)], ids=str)
def test_another_number_of_dimensions_than_declared_is_refused_by_name(device, shape):
    with pytest.raises((TypeError, ValueError), match=r"\bx\b"):
        ab.launch(typed, 3, ab.zeros(shape, device=device), ab.empty(3, "float64", device=device))


def test_declarations_may_be_strings(device):
    @ab.kernel
    def annotated(i, x: "ab.In", y: "ab.Out"):
        y[i] = x[i]

    @ab.kernel
    def wrong(i, x: "ab.In"):
        x[i] = 0

    y = ab.empty(5, device=device)
    ab.launch(annotated, 5, ab.array(values(5), device=device), y)
    np.testing.assert_array_equal(y.numpy(), values(5))
    with pytest.raises(ab.CompileError):
        ab.launch(wrong, 5, y)


def assigns(i, x: ab.In):
    x[i] = 0


def adds(i, x: ab.In):
    x[i] += 1


def calls(i, x: ab.In):
    add_at(x, i, 1)


def renames(i, x: ab.In):
    other = x
    other[i] = 0


def slices(i, x: ab.In):
    x[i:][0] = 0


def counts(i, x: ab.In):
    ab.atomic_add(x, i, 1)


@pytest.mark.parametrize("function", [assigns, adds, calls, renames, slices, counts])
def test_a_write_to_an_array_declared_in_is_a_compile_error(device, function):
    x = ab.array(values(5), device=device)
    with pytest.raises(ab.CompileError):
        ab.launch(ab.kernel(function), 5, x)
    np.testing.assert_array_equal(x.numpy(), values(5))


# Kernels that do not compile


def raises(i, y):
    if i > 10:
        raise ValueError("too large")
    y[i] = 0


def raises_in_a_function(i, y):
    y[i] = fails(i)


def fails(i):
    if i > 10:
        raise ValueError("too large")
    return i


def unknown(i, y):
    y[i] = no_such_name  # noqa: F821


def unsupported(i, y):
    y[i] = open("file")  # noqa: SIM115


def misuses(i, y):
    y[i] = y + "text"


@pytest.mark.parametrize("function", [raises, raises_in_a_function, unknown, unsupported, misuses])
def test_what_cannot_be_compiled_is_a_compile_error_each_time(device, function):
    stream, y = ab.Stream(device), ab.array(values(5), device=device)
    for _ in range(2):
        with pytest.raises(ab.CompileError, match=function.__name__):
            ab.launch(ab.kernel(function), 5, y, stream=stream)
    assert stream.query()
    np.testing.assert_array_equal(y.numpy(), values(5))


@pytest.mark.parametrize("function", [raises, unknown, misuses])
def test_a_compile_error_shows_the_file_and_line_of_the_user(device, function):
    code = function.__code__
    with pytest.raises(ab.CompileError, match=r"test_declaration\.py") as error:
        ab.launch(ab.kernel(function), 5, ab.zeros(5, device=device))
    lines = range(code.co_firstlineno, code.co_firstlineno + 4)
    assert any(str(line) in str(error.value) for line in lines)


def test_a_kernel_that_did_not_compile_spoils_no_other(device):
    y = ab.zeros(5, "int32", device=device)
    with pytest.raises(ab.CompileError):
        ab.launch(ab.kernel(unknown), 5, y)
    ab.launch(count, 5, y)
    np.testing.assert_array_equal(y.numpy(), np.ones(5))


def test_a_kernel_that_does_not_compile_for_one_dtype_compiles_for_another(device):
    @ab.kernel
    def shift(i, y):
        y[i] = y[i] << 1

    with pytest.raises(ab.CompileError):
        ab.launch(shift, 3, ab.ones(3, device=device))
    y = ab.ones(3, "int32", device=device)
    ab.launch(shift, 3, y)
    np.testing.assert_array_equal(y.numpy(), [2, 2, 2])


def test_only_functions_are_kernels():
    for thing in 1, "text", None:
        with pytest.raises(TypeError):
            ab.kernel(thing)


def test_a_kernel_keeps_the_name_and_the_documentation_of_its_function():
    @ab.kernel
    def documented(i, y):
        """Do nothing."""

    assert documented.__name__ == "documented"
    assert documented.__doc__ == "Do nothing."


def test_a_declaration_has_as_many_dimensions_as_arrays_may_have():
    assert ab.In["float32", 16].ndim == 16
    with pytest.raises(ValueError, match="arrays have 0 to 16 dimensions, not 17"):
        ab.In["float32", 17]


def test_an_annotation_that_means_nothing_lists_each_dtype_once():
    with pytest.raises(TypeError, match=r"for a scalar one of (.*)") as caught:

        @ab.kernel
        def kernel(i, x: 3):
            pass

    names = str(caught.value).partition("for a scalar one of ")[2].split(", ")
    assert len(names) == len(set(names))
