"""Arrays and streams as Dask sends them. Whole clusters: tests/distributed/test_dask.py."""

import pickle

import numpy as np
import pytest

import anabranch as ab
from anabranch.interop import _dask_stream

from ..accesses import read, ready, streams, write

protocol = pytest.importorskip("distributed.protocol", reason="Dask's distributed is not installed")


def sent(thing, *others):
    """What comes out where a message of Dask arrives, whose bytes are all another's."""
    frames = [bytearray(frame) for frame in protocol.dumps({"data": protocol.to_serialize((thing, *others))})]
    return protocol.loads(frames, deserialize=True)["data"]


def numbers(shape, dtype="float32"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


VALUES = {
    "one dimension": lambda x: x[0, 0],
    "row-major": lambda x: x,
    "column-major": lambda x: x.transpose(2, 1, 0),
    "with gaps": lambda x: x[:, ::2, 1:],
    "backwards": lambda x: x[::-1],
    "one element": lambda x: x[1, 2, 3],
    "empty": lambda x: x[:, 5:],
}


@pytest.mark.parametrize("view", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128"])
def test_an_array_arrives_on_the_current_device(device, other_device, dtype, view):
    values = numbers((3, 5, 7), dtype)
    array = view(ab.array(values, device=device))
    with other_device:
        arrived, text = sent(array, "beside it")
    assert (arrived.device, arrived.dtype, arrived.shape) == (other_device, np.dtype(dtype), array.shape)
    np.testing.assert_array_equal(arrived.numpy(), view(values))
    assert text == "beside it"


@pytest.mark.parametrize("view", VALUES.values(), ids=VALUES)
def test_pinned_memory_arrives_too(view):
    values = numbers((3, 5, 7))
    (arrived,) = sent(view(ab.array(values, device="cpu", pinned=True)))
    np.testing.assert_array_equal(arrived.numpy(), view(values))


def test_an_array_within_an_object_arrives(device):
    class Box:
        pass

    box = Box()
    box.arrays = {"x": ab.array(numbers((4, 4)), device=device)}
    # A class that nobody can import is pickled with what belongs to it, and by another pickler.
    (arrived,) = sent(box)
    np.testing.assert_array_equal(arrived.arrays["x"].numpy(), numbers((4, 4)))


def test_what_arrives_may_be_written_to(device):
    values = numbers(100)
    values.flags.writeable = False
    array = ab.asarray(values)
    assert array.read_only
    with device:
        for arrived in (*sent(array), *sent(ab.array(values, device=device))):
            assert not arrived.read_only
            ab.fill(arrived, 7)
            assert (arrived.numpy() == 7).all()
    np.testing.assert_array_equal(values, numbers(100))


def test_memory_of_the_host_is_sent_without_a_copy(device):
    for array in (ab.zeros(1000, device=device), ab.zeros(1000, device="cpu", pinned=True)):
        if array.device.kind == "cpu":
            _, (frame,) = protocol.serialize(array)
            assert np.asarray(memoryview(frame)).ctypes.data == array.ptr


def test_an_array_may_be_closed_before_it_is_sent(device):
    array = ab.array(numbers(100_000), device=device)
    header, frames = protocol.serialize(array)
    array.close()
    ab.synchronize(device)
    others = [ab.full(100_000, -1.0, "float32", device=device) for _ in range(4)]  # who gets the memory that is free
    ab.synchronize(device)
    np.testing.assert_array_equal(protocol.deserialize(header, frames).numpy(), numbers(100_000))
    with pytest.raises(TypeError, match="is closed"):
        sent(array)
    del others


def test_what_arrives_on_the_first_cpu_device_is_not_copied():
    header, (frame,) = protocol.serialize(ab.array(numbers(1000)))
    arrived = bytearray(frame)
    with ab.Device("cpu:0"):
        array = protocol.deserialize(header, [arrived])
        assert array.ptr == np.asarray(memoryview(arrived)).ctypes.data
        # A frame may begin anywhere in a message, and be one that cannot be written to.
        for frame in (memoryview(bytearray(1) + arrived)[1:], bytes(arrived)):
            array = protocol.deserialize(header, [frame])
            np.testing.assert_array_equal(array.numpy(), numbers(1000))
            assert not array.read_only


def test_sending_waits_for_what_writes_to_the_array_alone(device, in_thread):
    (a, b), array, other = streams(device), ready(device), ready(device)
    write(array, a)
    gate = ab.testing.Gate(b)
    read(array, b)
    write(other, b)
    (arrived,) = sent(array)
    assert (arrived.numpy() == 1).all()
    waiting = in_thread(sent, other)
    assert not waiting.done()
    gate.open()
    (arrived,) = waiting.result(30)
    assert (arrived.numpy() == 1).all()


def test_a_failure_is_told_to_the_receiver(device, failures_forgotten):
    stream, array = ab.Stream(device), ready(device)
    ab.testing.fail(stream, "the one that fails")
    write(array, stream)
    with pytest.raises(TypeError, match="the one that fails"):
        sent(array)


def test_other_picklers_still_refuse(device):
    array = ready(device)
    sent(array)
    with pytest.raises(TypeError, match="lives in this process"):
        pickle.dumps(array)


@pytest.mark.numba
@pytest.mark.parametrize("module", ["__main__", "of_nobody", __name__])
def test_a_kernel_that_cannot_be_imported_goes_by_value(device, module):
    cloudpickle = pytest.importorskip("cloudpickle")
    scope = {"__name__": module, "ab": ab}
    exec("@ab.kernel\ndef put(i, x):\n    x[i] = i + 0.5", scope)
    # As in a function that is sent whole.
    (again,) = pickle.loads(cloudpickle.dumps([scope["put"]]))
    assert again is not scope["put"]
    array = ab.zeros(4, device=device)
    ab.launch(again, 4, array)
    assert array.tolist() == [0.5, 1.5, 2.5, 3.5]


def test_dask_knows_how_large_an_array_is(device):
    sizeof = pytest.importorskip("dask.sizeof").sizeof
    assert sizeof(ab.zeros((10, 10), device=device)) == 400
    assert sizeof([ab.zeros(1000, device=device)]) >= 4000


# Streams


def elsewhere(stream):
    """What a stream is in another process."""
    header, frames = _dask_stream.serialize(stream)
    process, number = header["key"]
    return _dask_stream.deserialize({**header, "key": [f"not {process}", number]}, frames)


def test_a_stream_comes_home_as_itself(device):
    stream = ab.Stream(device)
    (arrived, again) = sent(stream, {"it": stream})
    assert arrived is stream
    assert again["it"] is stream


def test_elsewhere_a_stream_is_one_of_the_current_device_with_its_options(device, other_device):
    stream = ab.Stream(device, priority=device.priority_range[1], non_blocking=False, name="up")
    with other_device:
        arrived = elsewhere(stream)
        assert arrived is elsewhere(stream)
    assert (arrived.device, arrived.name, arrived.non_blocking) == (other_device, "up", False)
    assert arrived.priority == other_device.priority_range[1]
    assert arrived != stream
    other = elsewhere(ab.Stream(device, name="down"))
    assert (other.name, other.device) == ("down", ab.current_device())


@pytest.mark.parametrize("default", [ab.legacy_stream, ab.per_thread_stream])
def test_elsewhere_a_default_stream_is_that_of_the_current_device(device, other_device, default):
    with other_device:
        assert elsewhere(default(device)) == default(other_device)


def test_a_stream_that_arrived_and_was_dropped_or_closed_is_made_anew(device):
    stream = ab.Stream(device, name="again")
    first = elsewhere(stream)
    first.close()
    second = elsewhere(stream)
    assert second is not first
    assert second.name == "again"
    stream.close()
    with pytest.raises(TypeError, match="is closed"):
        sent(stream)


def test_a_stream_s_work_is_not_waited_for(device):
    stream = ab.Stream(device)
    with ab.testing.Gate(stream):
        assert sent(stream)[0] is stream
