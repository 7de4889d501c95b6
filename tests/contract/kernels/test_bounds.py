"""Kernels whose indices are checked: what is out of bounds is refused, told of, and touches nothing."""

import subprocess
import sys

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba


@ab.kernel
def saxpy(i, alpha, x: ab.In, y: ab.InOut):
    y[i] = alpha * x[i] + y[i]


@ab.kernel
def put_at(i, at: ab.In, y: ab.Out):
    y[at[i]] = 1


@ab.kernel
def shift(ij, u: ab.In, v: ab.Out):
    i, j = ij
    v[i, j] = u[i - 1, j + 1]


@ab.kernel
def through_a_row(ij, u: ab.In, v: ab.Out):
    i, j = ij
    row = u[i]
    v[i, j] = row[j + 1]


def increase(a, i):
    a[i] += 1


@ab.kernel
def through_a_helper(i, y: ab.InOut):
    increase(y, i)


@ab.kernel
def histogram(i, at: ab.In, counts: ab.InOut):
    ab.atomic_add(counts, at[i], 1)


@ab.kernel
def through_an_unnamed_row(i, u):
    u[i][7] = 1


@ab.kernel
def through_a_slice(i, y: ab.InOut):
    part = y[2:6]
    part[i] = 1


@ab.kernel
def through_ends_of_slices(i, low, high, y: ab.InOut):
    part = y[low:high]
    y[i] = part.shape[0]


@ab.kernel
def add_across(ij, x: ab.In, y: ab.InOut):
    i, j = ij
    ab.atomic_add(y, (i, j), x[j])


def failure_of(device, kernel, dim, *args, mode="auto"):
    s = ab.Stream(device)
    s.wait_stream(ab.current_stream(device))
    with ab.hazards(mode, bounds=None if mode == "check" else True):
        ab.launch(kernel, dim, *args, stream=s)
    with pytest.raises(ab.KernelError) as caught:
        s.synchronize()
    return str(caught.value)


@pytest.mark.parametrize("mode", ["auto", "check", "off"])
def test_the_error_says_what_is_out_of_bounds(device, mode):
    x, y = ab.ones(8, device=device), ab.ones(8, device=device)
    ab.current_stream(device).synchronize()
    message = failure_of(device, saxpy, 80, 1.0, x, y, mode=mode)
    assert message.splitlines()[0] == (
        "kernel 'saxpy' failed at index 8: index 8 is out of bounds for axis 0, of size 8, of 'x', whose shape is (8,)"
    )
    assert f'File "{__file__}"' in message
    assert "y[i] = alpha * x[i] + y[i]" in message
    assert f'launched at File "{__file__}"' in message


@pytest.mark.parametrize("size", [9, 5_000, 3_000_000])
def test_the_first_of_many_indices_is_named(device, size):
    x, y = ab.ones(8, device=device), ab.ones(8, device=device)
    assert "failed at index 8: index 8 " in failure_of(device, saxpy, size, 1.0, x, y)


@pytest.mark.parametrize("at", [4, -5, 2**40, -(2**40), 2**63 - 1, -(2**63)], ids=str)
def test_an_index_from_memory_is_checked_on_both_ends(device, at):
    y = ab.zeros(4, device=device)
    message = failure_of(device, put_at, 3, ab.array(np.array([0, -4, at]), device=device), y)
    assert "failed at index 2: index " in message
    assert "is out of bounds for axis 0, of size 4, of 'y', whose shape is (4,)" in message


@pytest.mark.parametrize("at", [4, -5, -9, 2**40, 2**63 - 1, -(2**63)], ids=str)
def test_an_index_is_named_as_the_program_has_it(device, at):
    y = ab.zeros(4, device=device)
    message = failure_of(device, put_at, 1, ab.array(np.array([at]), device=device), y)
    assert f"index {at} is out of bounds for axis 0, of size 4" in message


def test_indices_that_are_in_bounds_pass_negative_ones_too(device):
    y = ab.zeros(4, device=device)
    with ab.hazards("auto", bounds=True):
        ab.launch(put_at, 2, ab.array(np.array([3, -4]), device=device), y)
    np.testing.assert_array_equal(y.numpy(), [1, 0, 0, 1])


def test_the_axis_of_several_is_named(device):
    u, v = ab.zeros((3, 5), device=device), ab.zeros((3, 5), device=device)
    message = failure_of(device, shift, (3, 5), u, v)
    assert (
        "failed at index (0, 4): index 5 is out of bounds for axis 1, of size 5, of 'u', whose shape is (3, 5)"
        in message
    )


def test_views_are_checked_by_their_own_size(device):
    u, v = ab.zeros((3, 5), device=device), ab.zeros((3, 5), device=device)
    assert "index 5 is out of bounds for axis 0, of size 5, of 'row', a view of 'u'" in failure_of(
        device, through_a_row, (3, 5), u, v
    )
    assert "index 7 is out of bounds for axis 0, of size 5, of 'u[...]', a view of 'u'\n" in failure_of(
        device, through_an_unnamed_row, 3, u
    )
    assert "failed at index 4: index 4 is out of bounds for axis 0, of size 4" in failure_of(
        device, through_a_slice, 8, ab.zeros(8, device=device)
    )


def test_helpers_are_checked(device):
    message = failure_of(device, through_a_helper, 9, ab.zeros(8, device=device))
    assert "failed at index 8: " in message
    assert "a[i] += 1" in message


def test_atomics_are_checked(device):
    counts = ab.zeros(4, "int64", device=device)
    message = failure_of(device, histogram, 3, ab.array(np.array([0, 3, 4]), device=device), counts)
    assert "failed at index 2: index 4 is out of bounds for axis 0, of size 4, of 'counts'" in message
    message = failure_of(device, add_across, (3, 4), ab.zeros(4, device=device), ab.zeros((2, 4), device=device))
    assert "failed at index (2, 0): index 2 is out of bounds for axis 0, of size 2" in message


@pytest.mark.parametrize(
    ("low", "high", "length"), [(2, 6, 4), (-3, 99, 3), (-99, 2, 2), (6, 2, 0), (99, 100, 0)], ids=str
)
def test_slices_are_cut_off_at_the_ends_of_the_axis(device, low, high, length):
    y = ab.zeros(8, device=device)
    with ab.hazards("auto", bounds=True):
        ab.launch(through_ends_of_slices, 8, low, high, y)
    np.testing.assert_array_equal(y.numpy(), np.full(8, length))


def test_nothing_outside_is_touched(device):
    memory = ab.zeros(24, device=device)
    middle = memory[8:16]
    ab.current_stream(device).synchronize()
    failure_of(device, saxpy, 80, 1.0, ab.ones(80, device=device), middle)
    np.testing.assert_array_equal(memory[:8].numpy(), np.zeros(8))
    np.testing.assert_array_equal(memory[16:].numpy(), np.zeros(8))


def test_graphs_check_their_kernels(device):
    x, y = ab.ones(8, device=device), ab.ones(8, device=device)
    with ab.hazards("auto", bounds=True), ab.capture() as graph:
        ab.launch(saxpy, 9, 1.0, x, y)
    s = ab.Stream(device)
    graph.launch(s)
    with pytest.raises(ab.KernelError, match="failed at index 8: index 8 is out of bounds"):
        s.synchronize()


def test_the_mode_is_of_the_block(device):
    x, y = ab.ones(8, device=device), ab.ones(8, device=device)
    with ab.hazards("auto", bounds=True) as chosen:
        assert repr(chosen) == "hazards('auto', bounds=True)"
        with ab.hazards("off"):
            pass
    ab.launch(saxpy, 8, 1.0, x, y)
    np.testing.assert_array_equal(y.numpy(), np.full(8, 2.0))


@pytest.mark.parametrize("bounds", [1, "yes"])
def test_bounds_are_true_or_false(device, bounds):
    with pytest.raises(TypeError, match="bounds is True, False or None"):
        ab.hazards("auto", bounds=bounds)


@pytest.mark.parametrize(("value", "outcome"), [("1", "index 8 is out of bounds"), ("2", "ANABRANCH_BOUNDS is '2'")])
def test_the_variable_switches_it_on(device, value, outcome, monkeypatch):
    monkeypatch.setenv("ANABRANCH_BOUNDS", value)
    program = f"""
import anabranch as ab

@ab.kernel
def ones(i, y: ab.Out):
    y[i] = 1

y = ab.zeros(8, device={device.alias!r})
ab.launch(ones, 9, y)
y.numpy()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert ran.returncode == 1
    assert outcome in ran.stderr
