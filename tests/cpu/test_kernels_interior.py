"""Kernels that ask where in the array they are compute what Python does, whichever loops they are compiled into.

Where arrays do not overlap and have the launch's shape, the inner part has a loop of its own, with no questions. Every
kernel is also run on arrays and over parts of launches where that loop does not apply, or to a part of a row.
"""

import itertools
import math
import re

import pytest

import anabranch as ab

from .test_kernels_compute import _cache, code_of, prepare  # noqa: F401

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.numba


@ab.kernel
def inner(ij, u: ab.In, v: ab.Out):
    i, j = ij
    n, m = u.shape
    if 0 < i < n - 1 and 0 < j < m - 1:
        v[i, j] = u[i - 1, j] + 2 * u[i + 1, j] + 4 * u[i, j - 1] + 8 * u[i, j + 1]


@ab.kernel
def deep_inner(ij, u: ab.In, v: ab.Out):
    i, j = ij
    if 2 <= j < u.shape[1] - 3:
        v[i, j] = u[i, j - 2] + 2 * u[i, j + 3]


@ab.kernel
def wrapped(ij, u: ab.In, v: ab.Out):
    i, j = ij
    v[i, j] = u[i - 1, j] + 2 * u[i, j - 1]


@ab.kernel
def edges(ij, u: ab.In, v: ab.Out):
    i, j = ij
    if j == 0:
        v[i, j] = 1
    elif v.shape[1] - 1 == j:
        v[i, j] = 2
    else:
        v[i, j] = u[i, j] - u[i, j + 1]


@ab.kernel
def guarded(ij, u: ab.In, v: ab.Out):
    i, j = ij
    if i < u.shape[0] and j < u.shape[1]:
        v[i, j] = 3 * u[i, j]


@ab.kernel
def from_the_other_side(ij, u: ab.In, v: ab.Out):
    i, j = ij
    m = u.shape[1]
    if m > j + 1 and j >= 1:
        v[i, j] = u[i, j + 1] - 2 * u[i, j - 1]


@ab.kernel
def far(ij, u: ab.In, v: ab.Out):
    i, j = ij
    v[i, j] = u[i, j] if j < 30 else -u[i, j]


@ab.kernel
def plain(ij, u: ab.In, v: ab.Out):
    i, j = ij
    v[i, j] = 5 * u[i, j]


@ab.kernel
def counted(ij, u: ab.In, v: ab.Out):
    i, j = ij
    ab.atomic_add(v, (i, 0), u[i, j])


# How far from the ends a kernel's questions are answered, and how many lengths they ask for. None: it has one version.
PLANES = {
    inner: (1, 1),
    deep_inner: (3, 1),
    wrapped: (1, 0),
    edges: (1, 1),
    guarded: (0, 1),
    from_the_other_side: (1, 1),
    far: None,
    plain: None,
    counted: None,
}
SHAPES = [(1, 1), (1, 2), (3, 1), (2, 3), (3, 4), (4, 5), (5, 6), (6, 70)]


@ab.kernel
def inner_line(i, n, u: ab.In, v: ab.Out):
    if 0 < i < n - 1:
        v[i] = u[i - 1] + 2 * u[i + 1]


@ab.kernel
def inner_box(ijk, u: ab.In, v: ab.Out):
    i, j, k = ijk
    n, m, p = u.shape
    if 0 < i < n - 1 and 0 < j < m - 1 and 0 < k < p - 1:
        v[i, j, k] = u[i - 1, j, k] + 2 * u[i, j + 1, k] + 4 * u[i, j, k - 1] + 8 * u[i, j, k + 1]


@ab.kernel
def inner_of_four(ijkl, u: ab.In, v: ab.Out):
    i, j, k, last = ijkl
    if 0 < last < u.shape[3] - 1 and j > 0:
        v[i, j, k, last] = u[i, j - 1, k, last - 1] + 2 * u[i, j, k, last + 1]


def contiguous(shape):
    return np.zeros(shape)


def part_of_rows(shape):
    return np.zeros((*shape[:-1], shape[-1] + 5))[..., 2:-3]


def with_step(shape):
    return np.zeros((*shape[:-1], 2 * shape[-1]))[..., ::2]


def backwards(shape):
    return np.zeros(shape)[::-1, ..., ::-1]


def with_other_axis_last(shape):
    return np.zeros(shape[::-1]).T


def numbered(array):
    array[...] = np.arange(array.size, dtype=float).reshape(array.shape) ** 2
    return array


def in_python(kernel, dim, *args):
    """What Python computes, as the kernel's last argument."""
    *rest, written = args
    result = written.copy()
    for index in np.ndindex(dim):
        kernel.__wrapped__(index if len(dim) > 1 else index[0], *rest, result)
    return result


def in_parts(kernel, dim, *args):
    """Run a launch in parts that end anywhere in a row, some of them empty."""
    part, size = prepare(kernel, dim, *args), math.prod(dim)
    cuts = {0, 1, dim[-1] - 1, dim[-1], dim[-1] + 1, 2 * dim[-1] + 2, size // 2, size - 1, size}
    ends = sorted(cut for cut in cuts if 0 <= cut <= size)
    for begin, end in itertools.pairwise([0, *ends, size]):
        part(begin, end)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [contiguous, part_of_rows, with_step, backwards, with_other_axis_last])
@pytest.mark.parametrize(
    "kernel", [kernel for kernel in PLANES if kernel is not counted], ids=lambda kernel: kernel.name
)
def test_planes(kernel, make, shape):
    u, v = numbered(make(shape)), make(shape)
    if kernel is wrapped or kernel is edges:
        u = numbered(make((shape[0], shape[1] + 1)))[:, : shape[1] + 1]
    for dim in shape, (shape[0], max(1, shape[1] - 2)):
        v[...] = -1
        expected = in_python(kernel, dim, u, v)
        in_parts(kernel, dim, u, v)
        assert np.array_equal(v, expected)
        v[...] = -1
        prepare(kernel, dim, u, v)()
        assert np.array_equal(v, expected)


@pytest.mark.parametrize("dim", [40, 7, 2, 1])
@pytest.mark.parametrize("length", [40, 7, 2, 1])
def test_lines(length, dim):
    u, v = numbered(np.zeros(41)), np.zeros(41)
    expected = in_python(inner_line, (dim,), length, u, v)
    in_parts(inner_line, (dim,), length, u, v)
    assert np.array_equal(v, expected)


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [(inner_box, (3, 4, 5)), (inner_box, (2, 1, 40)), (inner_of_four, (2, 3, 2, 5)), (inner_of_four, (3, 2, 4, 33))],
)
def test_more_dimensions(kernel, shape):
    u, v = numbered(np.zeros(shape)), np.zeros(shape)
    expected = in_python(kernel, shape, u, v)
    in_parts(kernel, shape, u, v)
    assert np.array_equal(v, expected)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("at", [0, 1, 2, 4, 7, 8, 9, 13, 19, 23])
def test_the_first_index_that_fails_is_the_last_that_runs(depth, at):
    @ab.kernel
    def steps(ij, step: ab.In, v: ab.Out):
        i, j = ij
        for _ in range(0, 1, step[i, j]):  # no range has steps of 0
            v[i, j] = 1 if depth <= j < v.shape[1] - depth else 2

    step, v = np.ones((3, 8), "int64"), np.zeros((3, 8))
    step.flat[[at, 21]] = 0
    assert prepare(steps, v.shape, step, v)() == min(at, 21)
    assert np.count_nonzero(v) == min(at, 21)


def test_one_array():
    @ab.kernel
    def ends(ij, v: ab.InOut):
        i, j = ij
        if j == 0 or j == v.shape[1] - 1:
            v[i, j] += v[i, 1] + v[i - 1, 2]

    v = numbered(np.zeros((3, 6)))
    expected = in_python(ends, v.shape, v)
    in_parts(ends, v.shape, v)
    assert np.array_equal(v, expected)

    @ab.kernel
    def shifted(i, v: ab.InOut):
        v[i - 1] = i

    line = np.zeros(5)
    in_parts(shifted, (5,), line)
    assert line.tolist() == [1, 2, 3, 4, 0]


def test_arrays_that_overlap():
    u = numbered(np.zeros((6, 70)))
    expected = 5 * u
    prepare(plain, u.shape, u, u)()
    assert np.array_equal(u, expected)
    # Each row of one lies between two of the other; and one begins where the other has its second element.
    base = numbered(np.zeros((6, 140)))
    expected = 5 * base[:, :70]
    prepare(plain, (6, 70), base[:, :70], base[:, 70:])()
    assert np.array_equal(base[:, 70:], expected)
    line = np.arange(71.0)
    prepare(plain, (1, 70), line[None, :-1], line[None, 1:])()
    assert np.array_equal(line, [0.0] * 71)


@pytest.fixture
def compiled(monkeypatch):
    """Compile a kernel for float64 arrays; what its second version relies on, and its code."""
    from anabranch.kernels._cpu import codegen, loop_versioning

    def compile_for(kernel, launch_ndim, *args):
        found, emit = [], codegen._ObjectLibrary.emit_object
        of = loop_versioning.Better.of.__func__
        with monkeypatch.context() as patched:
            keep = classmethod(lambda *given: found.append(of(*given)) or found[-1])
            patched.setattr(loop_versioning.Better, "of", keep)

            def emit_and_keep(library, entry):
                code = emit(library, entry)
                found.append(str(library._final_module))
                return code

            patched.setattr(codegen._ObjectLibrary, "emit_object", emit_and_keep)
            signature = (launch_ndim, tuple(map(code_of, args)))
            ab.kernel(kernel.__wrapped__).compile_cpu(signature)
        return found

    return compile_for


def second_version(code):
    (found,) = re.findall(r"^define internal [^\n]*[.]better\(.*?^}", code, re.MULTILINE | re.DOTALL)
    return found


@pytest.mark.parametrize("kernel", PLANES, ids=lambda kernel: kernel.name)
def test_what_the_second_version_relies_on(compiled, kernel):
    better, _ = compiled(kernel, 2, np.zeros((4, 4)), np.zeros((4, 4)))
    assert PLANES[kernel] == (better and (better.interior.halo, len(better.interior.lengths)))


def test_a_kernel_that_asks_nothing_has_one_version(compiled):
    line = np.zeros(4)

    @ab.kernel
    def add(i, x: ab.In, y: ab.InOut):
        y[i] += x[i]

    assert compiled(add, 1, line, line)[0] is None


@pytest.mark.parametrize("kernel", [inner, wrapped, edges, guarded], ids=lambda kernel: kernel.name)
def test_the_inner_loop_is_vectorised_and_asks_nothing(compiled, kernel):
    _, code = compiled(kernel, 2, np.zeros((4, 4)), np.zeros((4, 4)))
    better = second_version(code)
    assert re.search(r"load <\d+ x double>", better)
    assert "masked" not in better
    assert "memcheck" not in better


def test_indices_from_an_array_are_expected_not_to_be_negative(compiled):
    @ab.kernel
    def gather(i, x: ab.In, index: ab.In, y: ab.Out):
        y[i] = x[index[i]]

    x, index, y = np.arange(6.0), np.array([5, -1, 0, -6, 2], "int32"), np.zeros(5)
    assert re.search(r"br i1 %.*, !prof", compiled(gather, 1, x, index, y)[1])
    prepare(gather, 5, x, index, y)()
    assert y.tolist() == [5, 5, 0, 0, 2]


def test_rows_of_a_larger_array_are_vectorised(compiled):
    _, code = compiled(inner, 2, part_of_rows((4, 4)), part_of_rows((4, 4)))
    better = second_version(code)
    assert re.search(r"load <\d+ x double>", better)


@ab.kernel
def flattened(i, n: int, u: ab.In, v: ab.Out):
    row, column = i // n, i % n
    if row > 0:
        v[row * n + column] = u[(row - 1) * n + column]


@ab.kernel
def hashed(i, n: int, u: ab.In, v: ab.Out):
    v[i] = u[(i * 6364136223846793005 + n) % n]


@pytest.mark.parametrize(("kernel", "products"), [(flattened, True), (hashed, False)], ids=["positions", "hashes"])
def test_products_of_indices_and_sizes_are_taken_not_to_overflow(monkeypatch, kernel, products):
    from anabranch.kernels._cpu import codegen

    kept, allow = [], codegen.allow_wraparound

    def allow_and_count(module, *names):
        allow(module, *names)
        blocks = [block for function in module.functions for block in function.blocks]
        code = [instruction for block in blocks for instruction in block.instructions]
        kept.extend(each for each in code if each.opname == "mul" and "nsw" in each.flags)

    monkeypatch.setattr(codegen, "allow_wraparound", allow_and_count)
    line = np.zeros(4)
    ab.kernel(kernel.__wrapped__).compile_cpu((1, tuple(map(code_of, (2, line, line)))))
    assert bool(kept) is products
