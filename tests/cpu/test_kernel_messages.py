"""What the compilers say in words of their own, or not at all, is said of the user's line, with what to write."""

import math
import re
from pathlib import Path

import pytest

import anabranch as ab

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.numba

PLANE = ("array", "float32", 2, True, False)
LINE = ("array", "float32", 1, True, False)
UNSIGNED = ("array", "uint64", 1, True, False)
HALVES = ("array", "float16", 1, True, False)
WEIGHTS = (4 / 9, 1 / 9, 0)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path / "cache"))


def compile_for_cpu(kernel, *codes):
    return kernel.compile_cpu((1, codes))


def compile_for_cuda(kernel, *codes):
    pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
    from anabranch._launch.target import Target

    return kernel.compile_cuda((1, codes), Target((9, 0)))


each_compiler = pytest.mark.parametrize("compile_it", [compile_for_cpu, compile_for_cuda], ids=["cpu", "cuda"])


def check(function, compile_it, code, line, reason):
    """Check that the message has the line and then the reason."""
    with pytest.raises(ab.CompileError) as caught:
        compile_it(ab.kernel(function), code, code)
    message = str(caught.value)
    place = rf'File "{re.escape(__file__)}", line \d+\n    {re.escape(line)}\n  {re.escape(reason)}'
    assert re.search(place, message), message


# Tuples


def indexed(i, x, y):
    parts = (x[i], 0.0, 1.0)
    for j in range(3):
        y[i] += parts[j]


def looped(i, x, y):
    for part in (0.25, x[i], 1):
        y[i] += part


def weighted(i, x, y):
    y[i] = WEIGHTS[i % 3] * x[i]


def of_array(i, x, y):
    parts = (x, 1.0)
    y[i] = parts[i % 2]


@each_compiler
@pytest.mark.parametrize(
    ("function", "line", "reason"),
    [
        (indexed, "y[i] += parts[j]", "float32, float64 and float64: convert them, as in (np.float64(x[i]), 0.0, 1.0)"),
        (looped, "for part in (0.25, x[i], 1):", "float64, float32 and int64: convert them"),
        (weighted, "y[i] = WEIGHTS[i % 3] * x[i]", "float64, float64 and int64: convert them"),
        (of_array, "y[i] = parts[i % 2]", "array(float32, 1d, C) and float64: write its indices as numbers"),
    ],
)
def test_parts_of_a_tuple_have_one_type(function, line, reason, compile_it):
    known = "a tuple is indexed by a variable, or looped over, only if its parts have one type; these have "
    check(function, compile_it, LINE, line, known + reason)


def test_what_is_said_of_tuples_helps():
    @ab.kernel
    def converted(i, x: ab.In, y: ab.InOut):
        parts = (np.float64(x[i]), 0.0, 1.0)
        for j in range(3):
            y[i] += parts[j]
        for part in parts:
            y[i] += part

    y = ab.zeros(2, device="cpu")
    ab.launch(converted, 2, ab.ones(2, device="cpu"), y)
    assert y.tolist() == [4, 4]


# Forms of Python that kernels lack


def assigns_in_condition(i, x, y):
    if (square := x[i] * x[i]) > 9:
        y[i] = square


def assigns_in_product(i, x, y):
    y[i] = (t := x[i] + 1) * t


def sums(i, x, y):
    y[i] = sum(j * j for j in range(i))


def stars(i, x, y):
    first, *_ = (1, 2, 3)
    y[i] = first


def deletes(i, x, y):
    value = x[i]
    y[i] = value
    del value


def multiplies(i, x, y):
    y[i] = x @ x


@each_compiler
@pytest.mark.parametrize(
    ("function", "line", "reason"),
    [
        (
            assigns_in_condition,
            "if (square := x[i] * x[i]) > 9:",
            "a kernel cannot assign within this expression (:=): assign before",
        ),
        (assigns_in_product, "y[i] = (t := x[i] + 1) * t", "a kernel cannot assign within this expression (:=)"),
        (sums, "y[i] = sum(j * j for j in range(i))", "a kernel cannot use a generator expression"),
        (stars, "first, *_ = (1, 2, 3)", "a kernel cannot unpack into a name with a star: index the tuple"),
        (deletes, "del value", "a kernel cannot delete a name: leave out del value"),
        (multiplies, "y[i] = x @ x", "@ works on whole arrays, and a kernel is called for one index: write the loop"),
    ],
)
def test_forms_that_kernels_lack(function, line, reason, compile_it):
    check(function, compile_it, LINE, line, reason)


def test_an_assignment_to_several_names_is_none_within_an_expression():
    @ab.kernel
    def chained(i, y: ab.Out):
        a = y[i] = b = i + 1  # not a :=
        y[i] += a + b

    y = ab.zeros(2, device="cpu")
    ab.launch(chained, 2, y)
    assert y.tolist() == [3, 6]


def test_an_error_beside_an_assignment_within_an_expression_keeps_its_reason():
    def k(i, x, y):
        if (square := absent(x[i])) > 9:  # noqa: F821
            y[i] = square

    with pytest.raises(ab.CompileError, match="name 'absent' is not defined"):
        compile_for_cpu(ab.kernel(k), LINE, LINE)


def test_a_place_that_the_compiler_does_not_know_is_no_file():
    from anabranch.kernels._compile_error import definition, find_place

    error = ValueError("typing of x at unknown location (0)")
    assert find_place(stars, error) == definition(stars)


# Calls


def keyword_only(a, *, b=3):
    return a + b


def calls_with_keyword(i, x, y):
    y[i] = keyword_only(x[i], b=1)


def rounds(i, x, y):
    y[i] = round(x[i], ndigits=1)


def of_four(i, x, y):
    y[i] = math.hypot(x[i], 1.0, 2.0, 3.0)


def chosen(i, x, y):
    y[i] = x[i > 1]


@pytest.mark.parametrize(
    ("function", "line", "reason"),
    [
        (rounds, "y[i] = round(x[i], ndigits=1)", "this function takes its arguments by position in kernels"),
        (of_four, "y[i] = math.hypot(x[i], 1.0, 2.0, 3.0)", "math.hypot takes two or three numbers in kernels: for"),
        (chosen, "y[i] = x[i > 1]", "arrays are indexed by integers, not by bool: convert with int(...)"),
    ],
)
@each_compiler
def test_calls_that_kernels_lack(function, line, reason, compile_it):
    check(function, compile_it, LINE, line, reason)


def test_a_helper_on_a_cpu_has_no_keyword_only_parameter():
    reason = "on a CPU, a function that a kernel calls has no keyword-only parameters: leave out the * before them"
    with pytest.raises(ab.CompileError, match=re.escape(reason)):
        compile_for_cpu(ab.kernel(calls_with_keyword), LINE, LINE)


@each_compiler
@pytest.mark.parametrize("module", ["numba", "numba_cuda_mlir"])
def test_a_kernel_knows_no_threads(module, compile_it):
    cuda = pytest.importorskip(f"{module}.cuda")

    def asks(i, x, y):
        y[i] = x[cuda.grid(1)]

    def waits(i, x, y):
        cuda.syncthreads()

    first = "cuda.grid is not supported in kernels: their first parameter is the index"
    check(asks, compile_it, LINE, "y[i] = x[cuda.grid(1)]", first)
    check(waits, compile_it, LINE, "cuda.syncthreads()", "cuda.syncthreads is not supported in kernels: ab.block")


# Memory


def adds_rows(i, x, y):
    y[i] = x[i] + x[0]


def test_a_sum_of_rows_needs_memory():
    check(adds_rows, compile_for_cpu, PLANE, "y[i] = x[i] + x[0]", "a kernel cannot allocate memory")


# Numbers of several kinds


def least(i, x, y):
    y[min(x[i], i)] = 1


def masks(i, x, y):
    y[i] = min(x[i], i) ^ 3


def counts(i, x, y):
    ab.atomic_add(y, min(x[i], i), 1)


@pytest.mark.parametrize(
    ("function", "line", "reason"),
    [
        (least, "y[min(x[i], i)] = 1", "arrays are indexed by integers, not by float64: divide with //"),
        (masks, "y[i] = min(x[i], i) ^ 3", "Numba has no xor(float64"),
        (
            counts,
            "ab.atomic_add(y, min(x[i], i), 1)",
            "atomic_add: the index is an int or a tuple of ints, not float64",
        ),
    ],
)
def test_a_mix_of_integers_is_named(function, line, reason):
    mix = "; a uint64 with a signed integer can make a float64: convert one, as in np.int64(u)"
    check(function, compile_for_cpu, UNSIGNED, line, reason)
    with pytest.raises(ab.CompileError, match=re.escape(mix)):
        ab.kernel(function).compile_cpu((1, (UNSIGNED, UNSIGNED)))


def test_no_mix_is_named_where_none_can_be():
    def halves(i, x, y):
        y[i / 2] = 1

    with pytest.raises(ab.CompileError) as caught:
        ab.kernel(halves).compile_cpu((1, (LINE, LINE)))
    assert "uint64" not in str(caught.value)


# Constants of float16


def test_constants_of_float16():
    half, pair, table = np.float16(0.1), (np.float16(0.5), np.float16(2)), np.array([1, 2.5, 3], "float16")
    large = np.arange(20000).astype("float16")

    @ab.kernel
    def kernel(i, x: ab.In, y: ab.Out):
        y[i] = x[i] * half + pair[i % 2] + table[i] + large[2 * i] + np.sqrt(half)

    x, y = np.float16([1, 2, 3]), ab.zeros(3, device="cpu")
    ab.launch(kernel, 3, ab.array(x, device="cpu"), y)
    as_read = np.float32(half)
    expected = [x[i] * as_read + pair[i % 2] + table[i] + large[2 * i] + np.sqrt(as_read) for i in range(3)]
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)


def narrows(i, x, y):
    y[i] = np.float16(x[i])


def test_no_number_of_float16_is_made():
    reason = "a kernel computes with float32 instead of float16: leave out np.float16"
    check(narrows, compile_for_cpu, HALVES, "y[i] = np.float16(x[i])", reason)
