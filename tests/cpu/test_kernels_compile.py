"""What a Python kernel may declare and do, what is said of one that may not, and how often one is compiled."""

from pathlib import Path
from typing import NamedTuple

import pytest

import anabranch as ab
from anabranch.kernels import Parameter
from anabranch.kernels._cpu import compiler

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.numba

ARRAY = ("array", "float32", 1, True, False)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path / "cache"))


@ab.kernel
def saxpy(i, alpha, x: ab.In, y: ab.InOut):
    y[i] = alpha * x[i] + y[i]


# What a kernel declares


def test_parameters():
    @ab.kernel
    def kernel(i, a, x: ab.In, y: "ab.Out['f4']", z: ab.InOut[np.float64, 2], s: float, t: "np.int8", u: "float32"):  # noqa: F821
        pass

    assert kernel.name == "kernel"
    assert kernel.parameters == (
        Parameter("a", None, None, None, None, 0),
        Parameter("x", "in", None, None, None, 1),
        Parameter("y", "out", "float32", None, None, 2),
        Parameter("z", "inout", "float64", 2, None, 0),
        Parameter("s", None, None, None, "float64", 0),
        Parameter("t", None, None, None, "int8", 0),
        Parameter("u", None, None, None, "float32", 0),
    )
    assert repr(kernel).endswith("kernel(i, a, x, y, z, s, t, u)>")


def test_annotations_see_the_names_around_the_decorator():
    matrix = ab.In["float32", 2]

    @ab.kernel
    def kernel(i, x: matrix, y: "matrix"):
        pass

    assert [parameter.ndim for parameter in kernel.parameters] == [2, 2]


def test_repr_of_an_access():
    assert repr(ab.In) == "ab.In"
    assert repr(ab.Out["f4"]) == "ab.Out['float32']"
    assert repr(ab.InOut[complex, 3]) == "ab.InOut['complex128', 3]"


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ("colour", TypeError),
        (("f4", "2"), TypeError),
        (("f4", -1), ValueError),
        (("f4", 1, 2), TypeError),
        (2, TypeError),
    ],
)
def test_nonsense_in_an_access(item, error):
    with pytest.raises(error, match=r"ab\.In"):
        ab.In[item]


async def _async(i):
    pass


def _generator(i):
    yield


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: None, "no parameters"),
        (lambda i, *args: None, r"\*args"),
        (lambda i, **more: None, r"\*\*kwargs"),
        (lambda i, *, x: None, "keyword-only"),
        (lambda i, x=1: None, "default"),
        (_async, "async"),
        (_generator, "generator"),
        (len, "plain Python function"),
        (3, "plain Python function"),
    ],
)
def test_functions_that_cannot_be_kernels(function, message):
    with pytest.raises(TypeError, match=message):
        ab.kernel(function)


def test_annotations_that_mean_nothing():
    with pytest.raises(TypeError, match=r"annotation of 'x' .*ab\.In"):

        @ab.kernel
        def unknown(i, x: list):
            pass

    with pytest.raises(TypeError, match=r"'x'.*cannot be evaluated: NameError"):

        @ab.kernel
        def undefined(i, x: "nowhere"):  # noqa: F821
            pass


def test_call():
    with pytest.raises(TypeError, match=r"ab\.launch\(saxpy"):
        saxpy(0, 1.0, None, None)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([("scalar", "float64")], "takes 2 arguments"),
        ([("scalar", "float64"), ("scalar", "float64")], "'x'.*scalar of float64"),
        ([("array", "float32", 1, True, False), ("scalar", "int64")], "'x'.*dtype float64"),
        ([("array", "float64", 1, True, False), ("scalar", "int64")], "'x'.*2 dimensions"),
        ([("array", "float64", 2, True, False), ("array", "int64", 1, True, False)], "'n'.*an array"),
        ([("array", "float64", 2, True, False), ("scalar", "float64")], "'n'.*a float was given"),
        ([("array", "datetime64", 2, True, False), ("scalar", "int64")], "'x'.*datetime64"),
    ],
)
def test_arguments_that_do_not_fit(codes, message):
    @ab.kernel
    def kernel(i, x: ab.InOut["float64", 2], n: int):  # noqa: F821
        x[i, 0] = n

    with pytest.raises(TypeError, match=message):
        kernel.compile_cpu((1, tuple(codes)))


# What cannot be compiled


def fails(value):
    if value > 1:
        raise ValueError(value)
    return value


def adds_to(array, i):
    array[i] += 1


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)


def raises(i, x, y):
    if x[i] > 0:
        raise ValueError  # here: cannot raise


def asserts(i, x, y):
    assert x[i] > 0  # here: cannot assert


def raises_in_helper(i, x, y):
    y[i] = fails(x[i])  # cannot raise


def undefined(i, x, y):
    y[i] = nowhere  # here: 'nowhere' is not defined # noqa: F821


def unsupported(i, x, y):
    import os  # here: unsupported opcode # noqa: F401


def mistyped(i, x, y):
    y[i] = "text"  # here: no setitem


def too_many_indices(i, x, y):
    y[i] = x[i, 0, 0]  # here: cannot index array.*with 3 indices


def writes(i, x: ab.In, y):
    x[i] = 1  # here: writes 'x', declared ab.In


def writes_in_helper(i, x: ab.In, y):
    adds_to(x, i)  # writes 'x', declared ab.In


def counts(i, x: ab.In, y):
    ab.atomic_add(x, i, 1)  # here: writes 'x', declared ab.In


def misses(i, x, y):
    ab.atomic_add(y, (i, i), 1)  # here: takes 1 indices, not 2


def allocates(i, x, y):
    part = np.zeros(3)  # here: cannot allocate
    y[i] = part[i]


def prints(i, x, y):  # here: cannot print
    print(i)


def returns(i, x, y):  # here: returns float32
    return x[i]


def recurses(i, x, y):
    y[i] = recursive(i)  # calls itself


def catches(i, x, y):
    try:
        y[i] = 1
    except ValueError:
        y[i] = 2  # cannot use try


def calls_a_kernel(i, x, y):
    saxpy(i, 1.0, x, y)  # 'saxpy' is a kernel


REFUSED = [
    *(raises, asserts, raises_in_helper, undefined, unsupported, mistyped, too_many_indices, writes, writes_in_helper),
    *(counts, misses, allocates, prints, returns, recurses, catches, calls_a_kernel),
]


def compile_for_cpu(kernel, *codes):
    return kernel.compile_cpu((1, codes))


def compile_for_cuda(kernel, *codes):
    pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
    from anabranch._launch.target import Target

    return kernel.compile_cuda((1, codes), Target((9, 0)))


@pytest.mark.parametrize("compile_it", [compile_for_cpu, compile_for_cuda], ids=["cpu", "cuda"])
@pytest.mark.parametrize("function", REFUSED)
def test_compile_error(function, compile_it):
    """The comment beside a line says what the message has in it, and "here" that it shows this line."""
    first = function.__code__.co_firstlineno
    source = Path(__file__).read_text().splitlines()
    number, line = next((n, line) for n, line in enumerate(source[first - 1 :], first) if "  # " in line)
    code, _, comment = line.partition("  # ")
    with pytest.raises(ab.CompileError, match=comment.partition(" # noqa")[0].removeprefix("here: ")) as error:
        compile_it(ab.kernel(function), ARRAY, ARRAY)
    message = str(error.value)
    assert function.__name__ in message
    if comment.startswith("here: "):
        assert f'File "{__file__}", line {number}\n    {code.strip()}' in message


def test_compile_error_shows_a_statement_without_code():
    @ab.kernel
    def kernel(i, x: ab.In, y: ab.Out):
        y[i] = 0
        for value in x:
            y[i] += np.exp(value)  # has types for the elements of float16, and no code

    with pytest.raises(ab.CompileError, match=r"y\[i\] \+= np\.exp\(value\)"):
        kernel.compile_cpu((1, (("array", "float16", 1, True, True), ("array", "float32", 1, True, False))))


def test_compile_error_shows_the_arguments():
    @ab.kernel
    def kernel(i, a, x: ab.In, b: int):
        x[i] = a

    with pytest.raises(ab.CompileError, match=r"with a: float64, x: readonly array\(float32, 1d, A\), b: int64"):
        kernel.compile_cpu((1, (("scalar", "float64"), ("array", "float32", 1, False, True), ("scalar", "bool"))))


# How often it is compiled

SCRIPT = """
import sys
import anabranch as ab
from anabranch.kernels._cpu import compiler

def helper(value):
    return value {operation} 2

def make(constant):
    @ab.kernel
    def kernel(i, x: ab.In, y: ab.Out):
        y[i] = helper(x[i]) + constant
    return kernel

array = ("array", "float32", 1, True, False)
kernel = make({constant})
kernel.compile_cpu((1, (array, array)))
kernel.compile_cpu((1, (array, array)))
print(compiler.compilations, "numba" in sys.modules)
"""


def test_a_process_uses_what_another_compiled(run_python, tmp_path):
    def compilations(operation="*", constant="1"):
        return run_python(SCRIPT.format(operation=operation, constant=constant))

    assert compilations() == "1 True\n"
    assert compilations() == "0 False\n"
    assert compilations(operation="+") == "1 True\n"
    assert compilations(constant="1.0") == "1 True\n"
    assert compilations() == "0 False\n"
    for file in (tmp_path / "cache").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-1])
    assert compilations() == "1 True\n"
    assert compilations() == "0 False\n"


def test_a_constant_that_cannot_be_pinned_down_is_not_cached():
    class Constants(NamedTuple):
        a: int

    constants = Constants(1)

    def kernel(i, x):
        x[i] = constants.a

    before = compiler.compilations
    for _ in range(2):
        ab.kernel(kernel).compile_cpu((1, (ARRAY,)))
    assert compiler.compilations - before == 2


def test_a_cache_that_cannot_be_used_is_none(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path / "file"))
    before = compiler.compilations
    for _ in range(2):
        assert ab.kernel(saxpy.__wrapped__).compile_cpu((1, (("scalar", "float32"), ARRAY, ARRAY))).address
    assert compiler.compilations - before == 2


def test_threads_compile_a_kernel_once(in_threads):
    @ab.kernel
    def kernel(i, x):
        x[i] += 1

    before = compiler.compilations
    addresses = {compiled.address for compiled in in_threads(4, lambda _: kernel.compile_cpu((1, (ARRAY,))))}
    assert (len(addresses), compiler.compilations - before) == (1, 1)
