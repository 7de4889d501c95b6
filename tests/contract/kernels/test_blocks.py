"""Kernels that run in blocks: shared arrays, barriers, and what is refused."""

import numpy as np
import pytest

import anabranch as ab

from .. import blocks

pytestmark = pytest.mark.numba


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_tile_is_transposed(device, rng):
    x = rng.random((48, 80), "float32")
    y = ab.empty((80, 48), device=device)
    ab.launch(blocks.transposed, x.shape, ab.array(x, device=device), y)
    np.testing.assert_array_equal(y.numpy(), x.T)


@pytest.mark.parametrize("size", [1, 63, 64, 1000, 100_000])
def test_a_block_adds_up(device, rng, size):
    x = rng.random(size)
    count = -(-size // 64)
    y = ab.empty(count, "float64", device=device)
    ab.launch(blocks.sums, 64 * count, ab.array(x, device=device), y)
    padded = np.concatenate([x, np.zeros(64 * count - size)])
    np.testing.assert_allclose(y.numpy(), padded.reshape(-1, 64).sum(axis=1), rtol=1e-12)


def test_barriers_in_a_loop(device, rng):
    a, b = rng.random((40, 24)), rng.random((24, 16))
    c = ab.empty((40, 16), "float64", device=device)
    ab.launch(blocks.product, c.shape, ab.array(a, device=device), ab.array(b, device=device), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-12)


def test_the_place_in_a_block_is_the_index_modulo_its_sizes(device):
    y = ab.empty((4, 6, 8), "int32", device=device)
    ab.launch(blocks.places, y.shape, y)
    i, j, k = np.indices(y.shape)
    np.testing.assert_array_equal(y.numpy(), 100 * (i % 2) + 10 * (j % 3) + k % 4)


def test_atomics_work_on_shared_arrays(device, rng):
    x = rng.integers(0, 4, 32 * 50)
    y = ab.zeros(4, "int32", device=device)
    ab.launch(blocks.counted, x.size, ab.array(x, device=device), y)
    np.testing.assert_array_equal(y.numpy(), np.bincount(x, minlength=4))


def test_a_shared_array_is_passed_to_a_helper(device):
    y = ab.empty(16, "int64", device=device)
    ab.launch(blocks.through_a_helper, 16, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(16) % 8 + 10 * (np.arange(16) // 8 * 8))


def test_variables_live_across_barriers(device, rng):
    x = rng.random(64)
    y = ab.array(x, device=device)
    ab.launch(blocks.many_live_values, 64, y)
    np.testing.assert_allclose(y.numpy(), blocks.after_many_live_values(x), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float32", "float64"])
def test_shared_arrays_of_each_dtype(device, rng, dtype):
    @ab.kernel
    def reverse(n, x: ab.In, y: ab.Out):
        place = ab.block(32)
        part = ab.shared(32, dtype)
        part[place] = x[n]
        ab.barrier()
        y[n] = part[31 - place]

    x = rng.integers(0, 2 if dtype == "bool" else 100, 64).astype(dtype)
    y = ab.empty(64, dtype, device=device)
    ab.launch(reverse, 64, ab.array(x, device=device), y)
    np.testing.assert_array_equal(y.numpy(), x.reshape(2, 32)[:, ::-1].ravel())


SIXTEEN = np.int64(16)


@pytest.mark.parametrize("dtype", [float, np.float64])
def test_sizes_follow_from_other_constants(device, dtype):
    sizes = (4, 2 * 8)

    @ab.kernel
    def reverse(index, y: ab.InOut):
        i, j = index
        row, column = ab.block(sizes)
        part = ab.shared((-(-7 // 2), SIXTEEN % 20), dtype)
        part[row, column] = y[i, j]
        ab.barrier()
        y[i, j] = part[3 - row, 15 - column]

    y = ab.array(np.arange(64.0).reshape(4, 16), device=device)
    ab.launch(reverse, (4, 16), y)
    np.testing.assert_array_equal(y.numpy().ravel(), np.arange(64.0)[::-1])


def test_shared_arrays_take_all_that_is_allowed(device):
    @ab.kernel
    def fill(n, y: ab.Out):
        place = ab.block(32)
        large = ab.shared(12268, "float32")
        small = ab.shared(1, "float64")
        large[place * 300] = n
        small[0] = 0.5
        ab.barrier()
        y[n] = large[place * 300] + small[0]

    y = ab.empty(32, "float64", device=device)
    ab.launch(fill, 32, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(32) + 0.5)


def test_views_and_checks_give_the_same(device, rng):
    x = rng.random((32, 64), "float32")
    y = ab.empty((64, 32), device=device)
    with ab.hazards("auto", bounds=True):
        ab.launch(blocks.transposed, (32, 32), ab.array(x, device=device)[:, ::2], y[::2])
    np.testing.assert_array_equal(y[::2].numpy(), x[:, ::2].T)


def test_a_graph_launches_blocks(device, rng):
    x = rng.random(256)
    source, y = ab.zeros(256, "float64", device=device), ab.empty(4, "float64", device=device)
    s = ab.Stream(device)
    with ab.capture(s) as graph:
        ab.launch(blocks.sums, 256, source, y, stream=s)
    ab.copy(source, x, stream=s)
    graph.launch(stream=s)
    s.synchronize()
    np.testing.assert_allclose(y.numpy(), x.reshape(4, 64).sum(axis=1), rtol=1e-12)


def test_no_blocks_at_all(device):
    y = ab.empty(4, "float64", device=device)
    ab.launch(blocks.sums, 0, ab.zeros(4, "float64", device=device), y)


def failure_of(device, kernel, dim, *args):
    s = ab.Stream(device)
    s.wait_stream(ab.current_stream(device))
    with ab.hazards("auto", bounds=True):
        ab.launch(kernel, dim, *args, stream=s)
    with pytest.raises(ab.KernelError) as caught:
        s.synchronize()
    return str(caught.value)


@ab.kernel
def beyond(n, y: ab.Out):
    place = ab.block(8)
    part = ab.shared(8, "int32")
    if n == 11:
        part[place + 5] = 1
    ab.barrier()
    y[n] = part[place]


@pytest.mark.usefixtures("failures_forgotten")
def test_an_index_beyond_a_shared_array_is_reported(device):
    message = failure_of(device, beyond, 16, ab.zeros(16, "int32", device=device))
    assert "kernel 'beyond' failed at index 11: index 8 is out of bounds for axis 0, of size 8, of 'part'" in message
    assert "part[place + 5] = 1" in message


@ab.kernel
def beyond_a_parameter(index, y: ab.Out):
    i, j = index
    ab.block(2, 4)
    ab.barrier()
    y[i, j + 1] = 1


@pytest.mark.usefixtures("failures_forgotten")
def test_the_index_of_a_failure_is_that_of_the_launch(device):
    message = failure_of(device, beyond_a_parameter, (4, 8), ab.zeros((4, 8), "int32", device=device))
    assert "kernel 'beyond_a_parameter' failed at index (0, 7): index 8 is out of bounds for axis 1" in message


def refusal_of(device, function, dim=32):
    with pytest.raises(ab.CompileError) as caught:
        ab.launch(ab.kernel(function), dim, ab.zeros(32, device=device))
    return str(caught.value)


def test_a_launch_consists_of_whole_blocks(device):
    y = ab.zeros(100, "float64", device=device)
    with pytest.raises(ValueError, match=r"blocks of 64 indices, and dim 100 is no whole number .* over 128"):
        ab.launch(blocks.sums, 100, y, y)
    with pytest.raises(ValueError, match=r"blocks of \(16, 16\) indices, and dim \(16, 10\).* over \(16, 16\)"):
        ab.launch(blocks.transposed, (16, 10), ab.zeros((16, 16), device=device), ab.zeros((16, 16), device=device))


def test_the_kernel_sets_the_blocks(device):
    y = ab.zeros(64, "float64", device=device)
    with pytest.raises(ValueError, match="kernel 'sums' sets its own blocks, of 64 indices; launch it without block="):
        ab.launch(blocks.sums, 64, y, y, block=32)


def too_many(n, y: ab.Out):
    ab.block(1025)


def of_no_sizes(n, y: ab.Out):
    y[n] = ab.block()


def of_no_constant(n, y: ab.Out):
    ab.block(y.shape[0])


def of_two_shapes(n, y: ab.Out):
    y[n] = ab.block(16) + ab.block(32)


def of_two_axes(n, y: ab.Out):
    ab.block(4, 8)


def too_much(n, y: ab.Out):
    part = ab.shared((80, 80), "float64")
    part[0, ab.block(32)] = n
    y[n] = part[0, 0]


def of_complex(n, y: ab.Out):
    part = ab.shared(8, "complex64")
    y[n] = part[ab.block(8)].real


def of_no_size(n, y: ab.Out):
    part = ab.shared(n, "float32")
    y[n] = part[ab.block(8)]


def without_blocks(n, y: ab.Out):
    ab.barrier()


def wait():
    ab.barrier()


def in_a_helper(n, y: ab.Out):
    ab.block(8)
    wait()


def of_a_result(n, y: ab.Out):
    ab.barrier()
    return ab.block(8)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (too_many, "blocks have 1 to 1024 indices"),
        (of_no_sizes, "ab.block takes the indices per block along each axis of the launch"),
        (of_no_constant, "the sizes of blocks are constants"),
        (of_two_shapes, "have one shape"),
        (of_two_axes, "blocks of 2 axes in a launch over 1 axis"),
        (too_much, "have 51200 bytes in all; at most 49088 fit"),
        (of_complex, "the dtype is a literal or a global"),
        (of_no_size, "the sizes of a shared array are constants"),
        (without_blocks, "ab.barrier works in a kernel that calls ab.block"),
        (in_a_helper, "not in a function that it calls"),
        (of_a_result, "a kernel returns nothing"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_no_block_is_refused(device, function, reason):
    assert reason in refusal_of(device, function)


@pytest.mark.parametrize("call", [lambda: ab.block(8), lambda: ab.shared(8, "int32"), lambda: ab.barrier()])
def test_outside_of_kernels_there_are_no_blocks(call):
    with pytest.raises(RuntimeError, match="inside a function decorated with"):
        call()
