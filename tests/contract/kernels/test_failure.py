"""Python kernels that fail at an index: no index ends without a word, and nothing that comes later runs.

What checked indices refuse is in `test_bounds.py`.
"""

import inspect
import re

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba


@ab.kernel
def look_up(i, y: ab.Out):
    table = (1, 2, 3)
    y[i] = table[i]


@ab.kernel
def step(i, by, y: ab.InOut):
    part = y[::by]
    y[i] = part.shape[0]


@ab.kernel
def count(i, by, y: ab.InOut):
    for j in range(0, 4, by):
        y[i] += j


@ab.kernel
def largest(i, x: ab.In, y: ab.Out):
    y[i] = np.argmax(x)


def from_table(table, i):
    return table[i]


@ab.kernel
def look_up_through_a_helper(i, y: ab.Out):
    y[i] = from_table((1, 2, 3), i)


@ab.kernel
def look_up_in_a_plane(ij, y: ab.Out):
    i, j = ij
    table = (1, 2, 3)
    y[i, j] = table[2 * i + j]


@ab.kernel
def put(i, value, y: ab.Out):
    y[i] = value


def failure_of(stream):
    with pytest.raises(ab.KernelError) as caught:
        stream.synchronize()
    return str(caught.value)


def line_of(kernel, text):
    lines, first = inspect.getsourcelines(kernel)
    return next(first + number for number, line in enumerate(lines) if text in line)


def line_here():
    return inspect.currentframe().f_back.f_lineno


def test_the_error_names_the_kernel_the_line_the_index_and_the_launch(device):
    y = ab.zeros(8, device=device)
    with ab.Stream(device) as s:
        ab.launch(look_up, 8, y)
        launched = line_here() - 1
    message = failure_of(s)
    assert re.match(r"kernel 'look_up' failed at index 3: IndexError", message)
    assert f'{__file__}", line {line_of(look_up._function, "table[i]")}, in look_up\n    y[i] = table[i]' in message
    assert f'launched at File "{__file__}", line {launched}' in message


@pytest.mark.parametrize(
    ("kernel", "arguments", "error", "at"),
    [
        (look_up, (), "IndexError", 3),
        (look_up_through_a_helper, (), "IndexError", 3),
        (step, (0,), "ValueError: slice step cannot be zero", 0),
        (count, (0,), "ValueError|ZeroDivisionError", 0),
    ],
    ids=["tuple", "helper", "slice", "range"],
)
@pytest.mark.parametrize("size", [5, 1_000, 1_000_000])
def test_the_lowest_index_that_fails_is_named(device, kernel, arguments, error, at, size):
    y = ab.zeros(size, device=device)
    s = ab.Stream(device)
    ab.launch(kernel, size, *arguments, y, stream=s)
    message = failure_of(s)
    assert re.match(rf"kernel '{kernel.name}' failed at index {at}: ({error})", message)


def test_the_line_of_a_helper_is_named(device, s):
    ab.launch(look_up_through_a_helper, 5, ab.zeros(5, device=device), stream=s)
    assert f"line {line_of(from_table, 'return')}, in from_table" in failure_of(s)


def test_an_index_of_several_dimensions_is_a_tuple(device, s):
    ab.launch(look_up_in_a_plane, (4, 2), ab.zeros((4, 2), device=device), stream=s)
    assert "failed at index (1, 1): " in failure_of(s)


def test_a_function_of_the_compiler_that_fails_is_named_by_its_error(device, s):
    ab.launch(largest, 4, ab.zeros(0, device=device), ab.zeros(4, device=device), stream=s)
    assert "failed at index 0: ValueError" in failure_of(s)


def test_what_does_not_fail_runs_as_ever(device):
    y, z = ab.zeros(3, device=device), ab.zeros(3, device=device)
    ab.launch(look_up, 3, y)
    ab.launch(step, 1, 2, z)
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3])
    np.testing.assert_array_equal(z.numpy(), [2, 0, 0])


def test_later_work_does_not_run_and_whoever_waits_meets_the_failure(device):
    failing, other = ab.Stream(device), ab.Stream(device)
    y, later = ab.zeros(8, device=device), ab.zeros(4, device=device)
    ab.current_stream(device).synchronize()
    with ab.testing.Gate(failing):
        ab.launch(look_up, 8, y, stream=failing)
        ab.fill(later, 5, stream=failing)
        ab.launch(put, 4, 6.0, later, stream=failing)
        other.wait_stream(failing)
        ab.launch(put, 4, 7.0, later, stream=other)
    assert "look_up" in failure_of(failing)
    assert "look_up" in failure_of(other)
    with pytest.raises(ab.KernelError, match="look_up"):
        y.numpy()


def test_the_device_goes_on(device, s):
    ab.launch(look_up, 8, ab.zeros(8, device=device), stream=s)
    failure_of(s)
    y = ab.zeros(4, device=device)
    ab.launch(put, 4, 2.0, y)
    np.testing.assert_array_equal(y.numpy(), np.full(4, 2.0))


def test_a_kernel_in_a_graph_fails_its_replay(device):
    y, later = ab.zeros(8, device=device), ab.zeros(4, device=device)
    with ab.capture() as graph:
        ab.launch(look_up, 8, y)
        ab.launch(put, 4, 6.0, later)
    s = ab.Stream(device)
    graph.launch(s)
    message = failure_of(s)
    assert message.startswith("kernel 'look_up' failed at index 3: ")
    assert f'launched at File "{__file__}"' in message


def test_many_launches_of_a_kernel_that_may_fail(device, s):
    y = ab.zeros(3, device=device, stream=s)
    for _ in range(300):
        ab.launch(look_up, 3, y, stream=s)
    s.synchronize()
    ab.launch(look_up, 4, ab.zeros(4, device=device, stream=s), stream=s)
    assert "index 3" in failure_of(s)
