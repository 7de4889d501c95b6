"""Kernels that access what they do not declare: exploration names the kernel, the parameter and the line."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba


@ab.kernel
def double(i, source: ab.In, target: ab.Out):
    target[i] = 2 * source[i]


@ab.kernel
def shift(i, source: ab.In, target: ab.Out):
    target[i] = source[i + 1]


@ab.kernel
def read_first(i, source: ab.In, target: ab.Out):
    target[i] = target[i] + source[i]


@ab.kernel
def read_after(i, source: ab.In, target: ab.Out):
    target[i] = source[i]
    target[i] = 2 * target[i]


@ab.kernel
def every_second(i, source: ab.In, target: ab.Out):
    if i % 2:
        target[i] = source[i]


@ab.kernel
def look_only(i, source: ab.In, found: ab.InOut):
    ab.atomic_add(found, 0, source[i])


N = 8


def launched(kernel, *arrays):
    """Explore one launch; return the report and the line of the launch."""

    def program():
        made = [ab.array(np.arange(float(N)), device="cpu") for _ in range(2)]
        given = [made[array][part] for array, part in arrays]
        stream = ab.Stream("cpu")
        ab.launch(kernel, N, *given, stream=stream)
        stream.synchronize()

    first = inspect.getsourcelines(program)[1]
    return ab.testing.explore(program), first + 4


def assert_named(report, kernel, parameter, *lines):
    assert not report.ok
    told = str(report.error)
    assert kernel in told
    assert f"'{parameter}'" in told
    assert __file__ in told
    assert any(f"line {line}" in told or f":{line}" in told for line in lines), told
    assert told in str(report)


ALL, FIRST, REST = slice(None), slice(0, 4), slice(4, None)


def lines_of(kernel_name):
    """Return the lines of a kernel of this file."""
    lines = Path(__file__).read_text().splitlines()
    begin = next(number for number, line in enumerate(lines, 1) if line.startswith(f"def {kernel_name}("))
    return range(begin, begin + 4)


def test_what_keeps_to_its_declaration_is_right():
    for kernel in (double, read_after, every_second):
        report, _ = launched(kernel, (0, ALL), (1, ALL))
        assert report.ok, report
        assert (report.classes, report.runs) == (1, 1)


def test_an_array_that_is_handed_in_twice_counts_as_both_accesses():
    report, _ = launched(double, (0, ALL), (0, ALL))
    assert report.ok, str(report)


def test_parts_of_one_array_that_share_nothing_are_right():
    @ab.kernel
    def copy(i, source: ab.In, target: ab.Out):
        target[i] = source[i]

    def program():
        array = ab.array(np.arange(float(N)), device="cpu")
        ab.launch(copy, 4, array[FIRST], array[REST])
        assert array.numpy().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]

    report = ab.testing.explore(program)
    assert report.ok, str(report)


def test_an_array_declared_out_that_is_read_before_it_is_written():
    report, line = launched(read_first, (0, ALL), (1, ALL))
    assert_named(report, "read_first", "target", line, *lines_of("read_first"))


@ab.kernel
def copy_out(i, source: ab.Out, target: ab.Out):
    target[i] = source[i]


@ab.kernel
def scale_out(i, source: ab.Out, target: ab.Out):
    target[i] = 2 * source[i]


@ab.kernel
def size_of_out(i, source: ab.Out, target: ab.Out):
    target[i] = abs(source[i])


@ab.kernel
def sign_of_out(i, target: ab.Out, source: ab.Out):
    target[i] = 1 if source[i] < 0 else 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64"])
@pytest.mark.parametrize("kernel", [copy_out, scale_out, size_of_out, sign_of_out])
def test_the_parameter_that_is_read_is_named_not_the_one_that_its_values_go_to(kernel, dtype):
    def program():
        given = [ab.zeros(N, dtype, device="cpu") for _ in range(2)]
        ab.launch(kernel, N, *given)
        ab.synchronize("cpu")
        assert all((array.numpy() == 0).all() for array in given)

    report = ab.testing.explore(program)
    assert "reads parameter 'source' before it has written it" in str(report.error), report


@ab.kernel
def sum_to(i, source: ab.In, total: ab.Out):
    ab.atomic_add(total, 0, source[i])


@ab.kernel
def largest_of(i, source: ab.In, total: ab.Out):
    ab.atomic_max(total, 0, source[i])


@ab.kernel
def smallest_of(i, source: ab.In, total: ab.Out):
    ab.atomic_min(total, 0, source[i])


@ab.kernel
def accumulate(i, source: ab.In, total: ab.Out):
    if i == 0:
        total[i] += source[i]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("kernel", [sum_to, largest_of, smallest_of, accumulate])
def test_a_sum_and_an_extreme_in_one_element_that_is_declared_out(kernel, dtype):
    """Also of values that a large one absorbs."""

    def program():
        total = ab.zeros(1, dtype, device="cpu")
        ab.launch(kernel, 1000, ab.ones(1000, dtype, device="cpu"), total)

    report = ab.testing.explore(program)
    assert "reads parameter 'total' before it has written it" in str(report.error), report


@ab.kernel
def is_zero(i, flag: ab.Out, target: ab.Out):
    target[i] = 1 if flag[0] == 0 else 2


@ab.kernel
def is_one(i, flag: ab.Out, target: ab.Out):
    target[i] = 1 if flag[0] == 1 else 2


@ab.kernel
def is_set(i, flag: ab.Out, target: ab.Out):
    if flag[0]:
        target[i] = 1
    else:
        target[i] = 2


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("kernel", [is_zero, is_one, is_set])
def test_a_branch_on_what_is_usual_in_an_array_declared_out(kernel, dtype):
    def explored(begin):
        def program():
            flag = begin(1, dtype, device="cpu")
            ab.launch(kernel, N, flag, ab.zeros(N, device="cpu"))

        return ab.testing.explore(program)

    for begin in (ab.ones,) if kernel is is_one else (ab.zeros, ab.ones):
        report = explored(begin)
        assert "reads parameter 'flag' before it has written it" in str(report.error), report


def test_a_lock_declared_out():
    @ab.kernel
    def lock(i, flag: ab.Out, target: ab.Out):
        target[i] = ab.atomic_cas(flag, 0, 0, 1)

    def program():
        ab.launch(lock, 1, ab.zeros(1, "int32", device="cpu"), ab.zeros(1, "int32", device="cpu"))

    report = ab.testing.explore(program)
    assert "reads parameter 'flag'" in str(report.error), report


@ab.kernel
def write_all(i, target: ab.Out, other: ab.Out):
    target[i] = 0
    other[i] = 1


@ab.kernel
def write_half(i, target: ab.Out, other: ab.Out):
    if i % 2:
        target[i] = 0
    else:
        other[i] = 1


@ab.kernel
def write_first(i, target: ab.Out, other: ab.Out):
    if i == 0:
        target[i] = 0
        target[i] += 1
        other[i] = target[i]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float32", "float64"])
@pytest.mark.parametrize("begin", [ab.zeros, ab.ones])
@pytest.mark.parametrize("kernel", [write_all, write_half, write_first])
def test_a_kernel_that_writes_usual_values_reads_nothing(kernel, begin, dtype):
    def program():
        given = [begin(N, dtype, device="cpu") for _ in range(2)]
        ab.launch(kernel, N, *given)

    report = ab.testing.explore(program)
    assert report.ok, str(report)


def test_an_array_declared_out_that_is_moved_within_itself():
    @ab.kernel
    def move(i, target: ab.Out):
        target[i] = target[i + 1]

    def program():
        ab.launch(move, N - 1, ab.zeros(N, device="cpu"))

    report = ab.testing.explore(program)
    assert "reads parameter 'target'" in str(report.error), report


def test_a_part_declared_out_that_is_copied_to_another_part_of_the_array():
    def program():
        array = ab.zeros(N, device="cpu")
        ab.launch(copy_out, 4, array[FIRST], array[REST])

    report = ab.testing.explore(program)
    assert "reads parameter 'source'" in str(report.error), report


def test_the_trials_leave_memory_as_it_was():
    def program():
        source, target = (ab.array(np.arange(float(N)), device="cpu") for _ in range(2))
        ab.launch(every_second, N, source, target)
        ab.launch(scale_out, N, source, target)
        np.testing.assert_array_equal(source.numpy(), np.arange(N))
        np.testing.assert_array_equal(target.numpy(), 2 * np.arange(N))
        seen.append(True)

    seen = []
    report = ab.testing.explore(program)
    assert "scale_out" in str(report.error)
    assert seen


def test_what_a_kernel_leaves_of_an_array_declared_out_stays():
    def program():
        source, target = (ab.array(np.arange(float(N)), device="cpu") for _ in range(2))
        ab.launch(every_second, N, source, target)
        assert target.numpy().tolist() == list(range(N))

    report = ab.testing.explore(program)
    assert report.ok, str(report)


@pytest.mark.parametrize("mode", ["auto", "check", "off"])
def test_an_index_past_the_end(mode):
    with ab.hazards(mode):
        report, line = launched(shift, (0, ALL), (1, ALL))
    assert isinstance(report.error, ab.KernelError)
    assert_named(report, "shift", "source", line, *lines_of("shift"))
    assert "out of bounds" in str(report.error)


def test_a_wrong_declaration_hides_no_race():
    """`check` believes what is declared; exploration sees what is done."""

    @ab.kernel
    def reads_out(i, source: ab.In, total: ab.Out):
        total[i] = total[i] + source[i]

    def program():
        one, other = ab.Stream("cpu"), ab.Stream("cpu")
        source, total = (ab.array(np.ones(N), device="cpu") for _ in range(2))
        with ab.hazards("check"):
            ab.launch(reads_out, N, source, total, stream=one)
            other.wait_stream(one)
            ab.launch(reads_out, N, source, total, stream=other)
        other.synchronize()

    report = ab.testing.explore(program)
    assert not report.ok
    assert "reads_out" in str(report.error)
    assert "'total'" in str(report.error)
