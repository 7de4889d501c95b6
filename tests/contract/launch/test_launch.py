"""Where a launch goes, when it returns, and what it refuses. The kernels' results are in `kernels`."""

import numpy as np
import pytest

import anabranch as ab

from ..arrays import TIMEOUT, held, values

pytestmark = pytest.mark.numba


@ab.kernel
def add(i, amount, source: ab.In, target: ab.InOut):
    target[i] = source[i] + amount


@ab.kernel
def put(i, value, target: ab.Out):
    target[i] = value


@ab.kernel
def count(index, target):
    target[index] += 1


@ab.kernel
def look(i, source: ab.In):
    source[i]


@ab.kernel
def scalars(i, first, second):
    first + second + i


def ready(device, size=4):
    """Make an array of zeros that is ready, so that any stream may use it."""
    return ab.array(np.zeros(size, "float32"), device=device)


# When


def test_a_launch_returns_none_before_the_kernel_has_run(device, in_thread):
    stream, target = ab.Stream(device), ready(device)
    with ab.testing.Gate(stream):
        assert ab.launch(put, 4, 3, target, stream=stream) is None
        reading = in_thread(target.numpy)
        assert held(reading)
    np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(4, 3))


def test_many_launches_wait_in_a_stream(device):
    stream, target = ab.Stream(device), ready(device)
    with ab.testing.Gate(stream):
        for _ in range(5000):
            ab.launch(count, 4, target, stream=stream)
    np.testing.assert_array_equal(target.numpy(), np.full(4, 5000))


def test_arrays_may_be_dropped_once_they_are_passed(device):
    stream, target = ab.Stream(device), ready(device, 1000)
    with ab.testing.Gate(stream):
        ab.launch(add, 1000, 1, ab.array(values(1000), device=device), target, stream=stream)
        others = [ab.ones(1000, stream=ab.Stream(device)) for _ in range(10)]
    np.testing.assert_array_equal(target.numpy(), values(1000) + 1)
    assert all((other.numpy() == 1).all() for other in others)


def test_kernels_may_be_dropped_once_they_are_launched(device):
    def launch_one():
        @ab.kernel
        def own(i, target):
            target[i] = 7

        ab.launch(own, 4, target, stream=stream)

    stream, target = ab.Stream(device), ready(device)
    with ab.testing.Gate(stream):
        launch_one()
    np.testing.assert_array_equal(target.numpy(), np.full(4, 7))


def test_many_threads_may_launch_a_new_kernel_at_once(device, in_thread):
    @ab.kernel
    def new(i, value, target: ab.Out):
        target[i] = value * i

    def use(value):
        stream = ab.Stream(device)
        target = ab.zeros(100, "int64", stream=stream)
        ab.launch(new, 100, value, target, stream=stream)
        return target.numpy()

    for value, result in enumerate([in_thread(use, value) for value in range(8)]):
        np.testing.assert_array_equal(result.result(TIMEOUT), value * np.arange(100))


# Where


@pytest.fixture
def assert_launched_on(in_thread):
    """Check that `launch` puts 3 into an array by a kernel that the stream runs."""

    def check(stream, target, launch):
        with ab.testing.Gate(stream):
            launch()
            reading = in_thread(target.numpy)
            assert held(reading)
        np.testing.assert_array_equal(reading.result(TIMEOUT), np.full(4, 3))

    return check


def test_a_launch_goes_to_the_given_stream(device, assert_launched_on):
    stream, target = ab.Stream(device), ready(device)
    with ab.Stream(device):
        assert_launched_on(stream, target, lambda: ab.launch(put, 4, 3, target, stream=stream))


def test_a_launch_goes_to_the_current_stream(device, assert_launched_on):
    target = ready(device)
    with ab.Stream(device) as stream:
        assert_launched_on(stream, target, lambda: ab.launch(put, 4, 3, target))


def test_a_launch_goes_to_the_current_stream_of_the_given_device(device, assert_launched_on):
    target = ready(device)
    with ab.Stream(device) as stream, ab.Device("cpu"):
        assert_launched_on(stream, target, lambda: ab.launch(put, 4, 3, target, device=device))
        assert_launched_on(stream, target, lambda: ab.launch(put, 4, 3, target, device=device.alias))


def test_a_launch_goes_to_the_current_stream_of_the_device_of_its_arrays(device, other_device, assert_launched_on):
    target = ready(device)
    with ab.Stream(device) as stream, other_device:
        assert_launched_on(stream, target, lambda: ab.launch(put, 4, 3, target))


@pytest.mark.parametrize("choose", [lambda d, _: {"device": d}, lambda _, s: {"stream": s}, lambda *_: {}])
def test_a_launch_without_arrays_goes_where_it_is_told_else_to_the_current_device(device, choose):
    with ab.Stream(device) as stream, ab.testing.Gate(stream):
        ab.launch(scalars, 4, 1, 2, **choose(device, stream))
        done = stream.record_event()
        assert not done.query()
    done.synchronize()


def test_a_stream_and_its_own_device_may_both_be_given(device, assert_launched_on):
    stream, target = ab.Stream(device), ready(device)
    assert_launched_on(stream, target, lambda: ab.launch(put, 4, 3, target, stream=stream, device=device))


def test_a_stream_and_another_device_are_refused(device, other_device):
    target = ready(device)
    with pytest.raises(ValueError, match=other_device.alias):
        ab.launch(put, 4, 3, target, stream=ab.Stream(device), device=other_device)
    with pytest.raises(ValueError, match=other_device.alias):
        ab.launch(scalars, 4, 3, 3, stream=ab.Stream(device), device=other_device)
    assert not target.numpy().any()


def test_a_launch_on_a_closed_stream_is_an_error(device, stream):
    stream.close()
    with pytest.raises(ab.ClosedError):
        ab.launch(put, 4, 3, ready(device), stream=stream)


@pytest.mark.parametrize("block", [32, 128, 256])
def test_a_block_changes_no_result(device, block):
    target = ab.zeros(1000, device=device)
    ab.launch(count, 1000, target, block=block)
    np.testing.assert_array_equal(target.numpy(), np.ones(1000))


# Dimensions


@pytest.mark.parametrize("dim", [0, (0,), (0, 3), (3, 0), (2, 0, 2, 2)], ids=str)
def test_a_launch_of_no_indices_does_nothing(device, dim):
    target = ab.array(np.zeros((3,) * np.size(dim), "float32"), device=device)
    assert ab.launch(count, dim, target) is None
    assert not target.numpy().any()


def test_a_launch_of_no_indices_checks_its_arguments(device):
    with pytest.raises(TypeError, match="target"):
        ab.launch(put, 0, 3, None)
    with pytest.raises(TypeError, match="target"):
        ab.launch(put, 0, 3, device=device)


@pytest.mark.parametrize("dim", [-1, (-1,), (3, -1), (0, -1)], ids=str)
def test_a_negative_dimension_is_refused_by_name(device, dim):
    with pytest.raises(ValueError, match="-1"):
        ab.launch(put, dim, 3, ready(device))


@pytest.mark.parametrize("dim", [2**62, 2**70, (2**31, 2**31), (0, 2**70), (2**70, 0), (2**31, 0, 2**31)], ids=str)
def test_dimensions_that_are_too_large_are_refused_whatever_their_order(device, dim):
    with pytest.raises(ValueError, match="too large"):
        ab.launch(put, dim, 3, ready(device))


def test_more_than_four_dimensions_are_refused(device):
    with pytest.raises(ValueError, match=r"5|4|four"):
        ab.launch(count, (1, 1, 1, 1, 1), ab.zeros((1, 1, 1, 1, 1), device=device))


@pytest.mark.parametrize("dim", [1.5, "4", None, (2, 1.5), ("4",)], ids=repr)
def test_dimensions_that_are_no_integers_are_a_type_error(device, dim):
    with pytest.raises(TypeError):
        ab.launch(put, dim, 3, ready(device))


def test_an_array_in_place_of_the_size_is_named(device):
    x = ready(device)
    with pytest.raises(TypeError, match="the second argument is dim"):
        ab.launch(put, x, x)


# Arguments


@pytest.mark.parametrize(("given", "name"), [(0, "amount"), (1, "source"), (2, "target")])
def test_too_few_arguments_are_a_type_error_that_names_the_missing(device, given, name):
    arguments = 1, ready(device), ready(device)
    with pytest.raises(TypeError, match=name):
        ab.launch(add, 4, *arguments[:given], device=device)


def test_too_many_arguments_are_a_type_error_that_names_the_kernel(x, y):
    with pytest.raises(TypeError, match="add"):
        ab.launch(add, 4, 1, x, y, 5)
    assert not y.numpy().any()


@pytest.mark.parametrize(
    "thing", [1, 2.5, None, "text", [1, 2, 3, 4], np.zeros(4), np.float32(1), object()],
    ids=["int", "float", "None", "text", "list", "ndarray", "numpy scalar", "object"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["source", "target"])
def test_what_is_no_array_is_refused_by_the_name_of_the_array_parameter(device, thing, name):
    arrays = {"source": ready(device), "target": ready(device)}
    with pytest.raises(TypeError, match=name):
        ab.launch(add, 4, 1, *(arrays | {name: thing}).values(), device=device)
    assert not arrays["target"].numpy().any()


@pytest.mark.parametrize(
    "thing", [None, "text", [1], {}, np.zeros(4), object()], ids=lambda thing: type(thing).__name__
)
def test_what_is_neither_number_nor_array_is_refused_by_the_name_of_the_parameter(device, thing):
    target = ready(device)
    with pytest.raises(TypeError, match="value"):
        ab.launch(put, 4, thing, target)
    assert not target.numpy().any()


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1], ids=str)
def test_an_integer_that_no_parameter_can_hold_is_refused_by_name(device, value):
    with pytest.raises((TypeError, ValueError, OverflowError), match="value"):
        ab.launch(put, 4, value, ready(device))


@pytest.mark.parametrize("kernel", [None, 1, len, "name"], ids=["None", "int", "function", "str"])
def test_only_kernels_are_launched(device, kernel):
    with pytest.raises(TypeError):
        ab.launch(kernel, 4, ready(device))


def test_an_array_of_another_device_is_refused_by_name(device, other_device):
    if device.kind == other_device.kind == "cuda":
        pytest.skip("two GPUs may read each other's memory")
    source, target = ready(other_device), ready(device)
    with pytest.raises(ab.DeviceError, match="source"):
        ab.launch(add, 4, 1, source, target, stream=ab.Stream(device))
    with pytest.raises(ab.DeviceError, match="source"):
        ab.launch(add, 4, 1, source, target, device=device)
    with pytest.raises(ab.DeviceError, match="target"):
        ab.launch(add, 4, 1, source, target, device=other_device)
    assert not target.numpy().any()


def test_arrays_of_two_devices_are_refused_where_no_device_is_given(device, other_device):
    if device.kind == other_device.kind == "cuda":
        pytest.skip("two GPUs may read each other's memory")
    with pytest.raises(ab.DeviceError, match=r"source|target"):
        ab.launch(add, 4, 1, ready(device), ready(other_device))


def test_a_closed_array_is_an_error(device):
    source, target = ready(device), ready(device)
    source.close()
    with pytest.raises(ab.ClosedError):
        ab.launch(add, 4, 1, source, target)
    assert not target.numpy().any()


def test_read_only_memory_is_refused_for_a_parameter_that_writes():
    data = values(4)
    data.flags.writeable = False
    array = ab.asarray(data)
    for kernel, *scalar in (put, 3), (count,):
        with pytest.raises(ValueError, match="target"):
            ab.launch(kernel, 4, *scalar, array)
        with pytest.raises(ValueError, match="target"):
            ab.launch(kernel, 4, *scalar, array[::-1])
    np.testing.assert_array_equal(data, values(4))


def test_read_only_memory_is_fine_for_a_parameter_that_reads():
    data = values(4)
    data.flags.writeable = False
    target = ready("cpu")
    ab.launch(add, 4, 1, ab.asarray(data), target)
    np.testing.assert_array_equal(target.numpy(), values(4) + 1)


def test_a_kernel_writes_memory_of_numpy():
    data = np.zeros(4, "float32")
    ab.launch(put, 4, 3, ab.asarray(data))
    ab.synchronize("cpu")
    np.testing.assert_array_equal(data, np.full(4, 3))


REFUSED = {
    "count": lambda x: (add, 4, 1, x),
    "kind": lambda x: (add, 4, 1, 2, x),
    "dimension": lambda x: (count, -1, x),
    "index dimensions": lambda x: (count, (1, 1, 1, 1, 1), x),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_a_refused_launch_enqueues_nothing(call, stream, array):
    with pytest.raises((TypeError, ValueError)):
        ab.launch(*call(array), stream=stream)
    assert stream.query()
    assert not array.numpy().any()


def test_a_launch_reads_no_more_than_it_declares(device):
    """A kernel whose arrays are all `In` needs no order with other readers of them."""
    first, second = ab.Stream(device), ab.Stream(device)
    source = ready(device)
    with ab.testing.Gate(first):
        ab.launch(look, 4, source, stream=first)
        ab.launch(look, 4, source, stream=second)
        second.synchronize()
        np.testing.assert_array_equal(source.numpy(), np.zeros(4))


@pytest.mark.parametrize("args", [(), (put,)], ids=["nothing", "no dimensions"])
def test_a_launch_needs_a_kernel_and_dimensions(args):
    with pytest.raises(TypeError, match=f"a kernel and its dimensions.* {len(args)} were given"):
        ab.launch(*args)


def test_an_unknown_name_is_refused_and_nothing_enqueued(device):
    stream, target = ab.Stream(device), ready(device)
    with pytest.raises(TypeError, match="not 'strem'"):
        ab.launch(count, 4, target, strem=stream)
    np.testing.assert_array_equal(target.numpy(), np.zeros(4))
