"""What a race says of itself: its kind, both source lines, the streams, what mends it; and `collect_races`."""

import sys

import numpy as np
import pytest

import anabranch as ab

from ..accesses import each_order_by_streams, read, ready, streams, write
from ..arrays import TIMEOUT


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


def line():
    """The line of the caller."""
    return sys._getframe(1).f_lineno


@ab.kernel
def scale(i, factor, x: ab.InOut):
    x[i] = factor * x[i]


@ab.kernel
def move(i, source: ab.In, target: ab.Out):
    target[i] = source[i]


@ab.kernel
def moved(i, target: ab.Out, source: ab.In):
    target[i] = source[i]


@ab.kernel
def undeclared(i, x):
    x[i] += 1


# The race of the documents


@pytest.mark.numba
def test_a_kernel_on_a_stream_that_does_not_wait_for_the_array_to_be_made_is_reported(device):
    """The race that Warp's chapter on streams warns of: the current stream makes `a`, and `s` uses it at once."""
    n = 100
    s = ab.Stream(device)
    a = ab.zeros(n, device=device)
    made = line() - 1
    with pytest.raises(ab.RaceError) as caught:
        ab.launch(scale, n, 2.0, a, stream=s)
    used = line() - 1
    error = caught.value
    assert (error.first.file, error.first.line) == (__file__, made)
    assert (error.second.file, error.second.line) == (__file__, used)
    assert (error.first.stream, error.second.stream) == (ab.current_stream(device), s)
    assert error.kind == "RAW"


@pytest.mark.numba
def test_the_kernel_passes_once_its_stream_waits(device, s):
    a = ab.ones(100, device=device)
    s.wait_stream(ab.current_stream(device))
    ab.launch(scale, 100, 2.0, a, stream=s)
    np.testing.assert_array_equal(a.numpy(), np.full(100, 2, "float32"))


@pytest.mark.numba
def test_the_kernel_passes_in_a_scope_that_waits(device):
    a = ab.ones(100, device=device)
    with ab.ScopedStream(ab.Stream(device)):
        ab.launch(scale, 100, 2.0, a)
    np.testing.assert_array_equal(a.numpy(), np.full(100, 2, "float32"))


# What an error says


def race(device, first=write, second=write):
    """Return a race of two streams, with the streams and the array."""
    (a, b), array = streams(device), ready(device)
    first(array, a)
    with pytest.raises(ab.RaceError) as caught:
        second(array, b)
    return caught.value, a, b, array


def test_a_race_is_an_error_of_the_package(device):
    error, *_ = race(device)
    assert isinstance(error, ab.Error)


@pytest.mark.parametrize(
    ("first", "second", "kind", "accesses"),
    [
        (write, read, "RAW", ("write", "read")),
        (read, write, "WAR", ("read", "write")),
        (write, write, "WAW", ("write", "write")),
    ],
)
def test_a_race_says_what_both_did_and_where(device, first, second, kind, accesses):
    error, a, b, _ = race(device, first, second)
    assert error.kind == kind
    assert (error.first.access, error.second.access) == accesses
    assert (error.first.stream, error.second.stream) == (a, b)
    for side, function in (error.first, first), (error.second, second):
        assert side.file == function.__code__.co_filename
        assert function.__code__.co_firstlineno < side.line <= function.__code__.co_firstlineno + 3


def test_a_race_is_told_with_both_lines_the_array_and_what_mends_it(device):
    error, *_ = race(device)
    text = str(error)
    for side in error.first, error.second:
        assert f"{side.file}:{side.line}" in text
    assert str(error.array) in text
    assert error.fix in text
    assert "\n" not in error.fix


def test_streams_are_named_in_the_message(device):
    upload, compute = (ab.Stream(device, name=name) for name in ("upload", "compute"))
    array = ready(device)
    write(array, upload)
    with pytest.raises(ab.RaceError, match=r"upload.*compute") as caught:
        write(array, compute)
    assert (caught.value.first.stream.name, caught.value.second.stream.name) == ("upload", "compute")


def test_the_fix_mends_the_race(a, b, array):
    ab.fill(array, 1, stream=a)
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 2, stream=b)
    assert caught.value.fix == "b.wait_stream(a)"
    exec(caught.value.fix)
    ab.fill(array, 2, stream=b)


def test_the_fix_uses_the_names_of_streams_that_have_no_variable(device, array):
    ab.fill(array, 1, stream=ab.Stream(device, name="upload"))
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 2, stream=ab.Stream(device, name="compute"))
    assert caught.value.fix == "compute.wait_stream(upload)"


@pytest.mark.numba
def test_a_kernel_that_reads_and_writes_reads_first(a, b, array):
    ab.fill(array, 1, stream=a)
    for kernel, arguments in (scale, (2.0, array)), (undeclared, (array,)):
        with pytest.raises(ab.RaceError) as caught:
            ab.launch(kernel, 8, *arguments, stream=b)
        assert (caught.value.kind, caught.value.second.access) == ("RAW", "write")


@pytest.mark.numba
@pytest.mark.parametrize(("second", "kind"), [(read, "RAW"), (write, "WAW")])
def test_a_kernel_that_reads_and_writes_has_written_for_whoever_comes_next(second, kind, a, b, array):
    ab.launch(undeclared, 8, array, stream=a)
    with pytest.raises(ab.RaceError) as caught:
        second(array, b)
    assert (caught.value.kind, caught.value.first.access) == (kind, "write")


@pytest.mark.numba
@pytest.mark.parametrize("kernel", [move, moved])
@pytest.mark.parametrize(("second", "kind"), [(read, "RAW"), (write, "WAW")])
def test_an_array_given_twice_is_read_and_written(kernel, second, kind, a, b, array):
    ab.launch(kernel, 8, array, array, stream=a)
    with pytest.raises(ab.RaceError) as caught:
        second(array, b)
    assert caught.value.kind == kind


@pytest.mark.numba
@pytest.mark.parametrize(
    "kernel",
    [
        move,
        moved,
    ],
)
def test_an_array_given_twice_counts_as_read_first(kernel, a, b, array):
    write(array, a)
    with pytest.raises(ab.RaceError) as caught:
        ab.launch(kernel, 8, array, array, stream=b)
    assert caught.value.kind == "RAW"


def test_a_stream_stays_known_however_many_accesses_came_after(device, in_thread):
    (a, b), array = streams(device), ready(device, 64)
    for part in range(32):
        write(array[part : part + 1], a)
    in_thread(a.synchronize).result(TIMEOUT)
    for part in range(32, 64):
        write(array[part : part + 1], a)
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 1, stream=b)
    assert (caught.value.kind, caught.value.first.stream, caught.value.fix) == ("WAW", a, "b.wait_stream(a)")


# What is left of an operation that raced


@each_order_by_streams
def test_an_operation_that_raced_was_not_enqueued_and_may_be_made_again(order, a, b, array):
    with ab.testing.Gate(a):
        ab.fill(array, 1, stream=a)
        with pytest.raises(ab.RaceError):
            ab.fill(array, 2, stream=b)
        assert b.query()
        order(a, b)
        ab.fill(array, 3, stream=b)
    np.testing.assert_array_equal(array.numpy(), np.full(8, 3))


def test_a_function_that_raced_is_not_called(device):
    (a, b), array, called = streams(device), ready(device), []
    ab.fill(array, 1, stream=a)
    with pytest.raises(ab.RaceError):
        b.submit(called.append, 1, writes=[array])
    b.synchronize()
    assert called == []


def test_an_operation_that_raced_has_accessed_nothing(device):
    """The array that it would have read may be written by others, and the other way round."""
    (a, b, c), x, y = streams(device, 3), ready(device), ready(device)
    write(x, a)
    with pytest.raises(ab.RaceError):
        ab.copy(y, x, stream=b)
    write(y, c)
    with pytest.raises(ab.RaceError):
        ab.copy(x, ab.zeros(8, stream=b), stream=b)
    write(x, a)


def test_one_argument_that_races_keeps_all_of_an_operation_back(a, b, x, y):
    ab.fill(x, 1, stream=a)
    with pytest.raises(ab.RaceError):
        b.submit(int, reads=[y], writes=[x])
    ab.fill(y, 2, stream=a)
    np.testing.assert_array_equal(y.numpy(), np.full(8, 2))


def test_a_copy_within_an_array_that_raced_has_accessed_nothing(a, b, c, array):
    write(array[7:], a)
    with pytest.raises(ab.RaceError):
        ab.copy(array[1:], array[:7], stream=b)
    write(array[:7], c)


def test_a_race_that_is_caught_changes_no_order(a, b, array):
    write(array, a)
    for _ in range(3):
        with pytest.raises(ab.RaceError):
            write(array, b)
    write(array, a)


def test_a_race_names_the_bytes_that_both_access(device):
    a, b = streams(device, 2)
    x = ready(device, 100)
    ab.fill(x[90:], 1, stream=a)
    with pytest.raises(ab.RaceError, match="bytes 360 to 380 of an array of 400 bytes"):
        ab.fill(x[5:95], 2, stream=b)
