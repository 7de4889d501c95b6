"""Kernels in blocks on the CPU: indices of a block that come to different barriers, and code that cannot fail so."""

import numpy as np
import pytest

import anabranch as ab

from ..contract import blocks

pytestmark = pytest.mark.numba


@ab.kernel
def some_wait(n, y: ab.Out):
    place = ab.block(4)
    if place < 3:
        ab.barrier()
    y[n] = place


@ab.kernel
def some_wait_longer(n, y: ab.Out):
    place = ab.block(4)
    turns = 1
    if place > 1:
        turns = 2
    for _ in range(turns):
        ab.barrier()
    y[n] = turns


@ab.kernel
def some_wait_elsewhere(n, x: ab.In, y: ab.Out):
    ab.block(4)
    if x[n] > 0:
        ab.barrier()
        y[n] = 1
    else:
        ab.barrier()
        y[n] = 2


@ab.kernel
def keep_much(n, x: ab.In, y: ab.Out):
    ab.block(1024)
    v = x[n]
    a = (v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7)
    b = a + a + a + a + a + a + a + a
    c = b + b + b + b + b + b + b + b
    d = c + c
    ab.barrier()
    y[n] = d[(7 * n) % 1024]


@ab.kernel
def skip_turns(n, y: ab.Out):
    place = ab.block(4)
    total = 0
    for turn in range(5):
        if turn == place:
            continue
        ab.barrier()
        total += 10**turn
    y[n] = total


def failure_of(kernel, *args):
    with ab.Stream("cpu") as stream:
        ab.launch(kernel, 8, *(ab.array(arg) for arg in args), ab.zeros(8))
        with pytest.raises(ab.KernelError) as caught:
            stream.synchronize()
    return str(caught.value)


@pytest.mark.usefixtures("failures_forgotten")
@pytest.mark.parametrize(
    ("kernel", "args", "index"),
    [
        (some_wait, (), 3),
        (some_wait_longer, (), 2),
        (some_wait_elsewhere, (np.array([1, 1, 1, 1, 1, 1, 0, 1.0]),), 6),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_indices_of_a_block_that_come_to_different_barriers_fail(kernel, args, index):
    message = failure_of(kernel, *args)
    text = "some indices of its block come to this barrier, and others do not"
    assert f"kernel '{kernel.name}' failed at index {index}: {text}" in message
    assert "ab.barrier()" in message


def test_more_is_kept_across_a_barrier_than_the_stack_has_room_for():
    x = np.arange(2048.0)
    y = ab.empty(2048, "float64", device="cpu")
    ab.launch(keep_much, 2048, ab.array(x, device="cpu"), y)
    np.testing.assert_array_equal(y.numpy(), x + 7 * np.arange(2048) % 8)


def test_a_turn_of_a_loop_belongs_to_its_index():
    y = ab.empty(4, "int64", device="cpu")
    ab.launch(skip_turns, 4, y)
    assert y.tolist() == [11110, 11101, 11011, 10111]


def test_where_all_come_to_the_same_barriers_nothing_can_fail():
    x, y = ab.zeros(64, "float64", device="cpu"), ab.empty(1, "float64", device="cpu")
    ab.launch(blocks.sums, 64, x, y)
    y.numpy()
    compiled = [code for (_, checked), code in blocks.sums.compiled_cpu.items() if not checked]
    assert [code.places for code in compiled] == [()]


def test_a_kernel_in_blocks_is_kept_on_disk(run_python, tmp_path):
    program = """
        import sys
        import anabranch as ab

        @ab.kernel
        def reverse(n, y: ab.InOut):
            place = ab.block(8)
            part = ab.shared(8, "float32")
            part[place] = y[n]
            ab.barrier()
            y[n] = part[7 - place]

        y = ab.array(range(8), "float32", device="cpu")
        ab.launch(reverse, 8, y)
        print(y.tolist()[0], "numba" in sys.modules)
        try:
            ab.launch(reverse, 12, y)
        except ValueError as error:
            print("over 16," in str(error))
        """
    env = {"ANABRANCH_CACHE_DIR": str(tmp_path)}
    first, second = (run_python(program, env=env).split() for _ in range(2))
    assert (first, second) == (["7.0", "True", "True"], ["7.0", "False", "True"])
