"""Devices: their names, what they tell, being current, synchronization."""

import pytest

import anabranch as ab


def test_there_is_one_object_per_device(device):
    assert ab.Device(device.alias) is device


def test_the_first_device_of_a_kind_needs_no_index(device):
    assert ab.Device(device.kind) is ab.Device(f"{device.kind}:0")


def test_an_alias_is_kind_and_index(device):
    assert device.alias == f"{device.kind}:{device.index}"


def test_devices_lists_every_device_once():
    devices = ab.devices()
    assert isinstance(devices, list)
    assert len({device.alias for device in devices}) == len(devices)
    assert ab.Device("cpu") in devices


def test_devices_of_a_kind(device):
    assert ab.devices(device.kind) == [d for d in ab.devices() if d.kind == device.kind]
    assert [d.index for d in ab.devices(device.kind)] == list(range(len(ab.devices(device.kind))))


def test_devices_lists_known_kinds():
    assert {device.kind for device in ab.devices()} <= {"cpu", "cuda"}


def test_a_changed_list_of_devices_changes_no_device():
    ab.devices().clear()
    assert ab.devices()


@pytest.mark.parametrize("name", ["cpu:99", "cuda:99", "cpu:-1", "cpu:x", "cpu:", "cpu:1.0", "tpu", "tpu:0", "", ":0"])
@pytest.mark.parametrize("use", [ab.Device, ab.Stream, ab.current_stream, ab.synchronize])
def test_an_unknown_device_is_an_error_that_names_those_that_exist(use, name):
    with pytest.raises(ab.DeviceError) as caught:
        use(name)
    assert name in str(caught.value)
    assert all(device.alias in str(caught.value) for device in ab.devices())


def test_a_device_has_a_name(device):
    assert isinstance(device.name, str)
    assert device.name
    assert device.alias in repr(device)


def test_memory_is_in_bytes(device):
    assert isinstance(device.total_memory, int)
    assert isinstance(device.free_memory, int)
    assert 0 < device.free_memory <= device.total_memory


def test_the_priority_range_is_lowest_and_highest(device):
    lowest, highest = device.priority_range
    assert lowest >= highest  # as in CUDA, a smaller number is a higher priority
    if device.kind == "cpu":
        assert device.priority_range == (0, -1)


# -- the current device --


def test_with_makes_a_device_current_and_restores_the_one_before(device, other_device):
    with other_device:
        assert ab.current_device() is other_device
        with device:
            assert ab.current_device() is device
            with device:
                assert ab.current_device() is device
            assert ab.current_device() is device
        assert ab.current_device() is other_device
    assert ab.current_device() is device


def test_with_restores_the_device_after_an_error(device, other_device):
    with pytest.raises(ZeroDivisionError), other_device:
        1 / 0  # noqa: B018
    assert ab.current_device() is device


def test_one_device_object_may_be_entered_again_while_it_is_current(device, other_device):
    with other_device, device, other_device:
        assert ab.current_device() is other_device
    assert ab.current_device() is device


def test_with_restores_the_device_that_was_current_whatever_the_block_did(device, other_device):
    with device:
        with ab.Stream(other_device):
            pass
        assert ab.current_device() is device
    assert ab.current_device() is device


def test_a_device_that_is_not_given_is_the_current_one(device, other_device):
    assert ab.Stream().device is device
    assert ab.current_stream().device is device
    assert ab.Event().device is device
    with other_device:
        assert ab.Stream().device is other_device
        assert ab.current_stream().device is other_device
        assert ab.Event().device is other_device


@pytest.mark.parametrize(
    "stream_of", [ab.Stream, ab.current_stream, ab.default_stream, ab.legacy_stream, ab.per_thread_stream]
)
def test_a_device_may_be_given_as_object_or_alias(stream_of, other_device):
    assert stream_of(other_device).device is other_device
    assert stream_of(other_device.alias).device is other_device


@pytest.mark.parametrize(
    "scope", [ab.ScopedDevice, lambda device: ab.ScopedDevice(device.alias)], ids=["object", "alias"]
)
def test_scoped_device_makes_it_current(scope, device, other_device):
    with scope(other_device):
        assert ab.current_device() is other_device
    assert ab.current_device() is device


def test_scoped_device_restores_after_an_error(device, other_device):
    with pytest.raises(ZeroDivisionError), ab.ScopedDevice(other_device):
        1 / 0  # noqa: B018
    assert ab.current_device() is device


def test_scoped_device_none_does_nothing(device):
    with ab.ScopedDevice(None):
        assert ab.current_device() is device
    assert ab.current_device() is device


# -- synchronize --

SYNCHRONIZE = {
    "method": lambda device: device.synchronize(),
    "function": ab.synchronize,
    "alias": lambda device: ab.synchronize(device.alias),
    "every device": lambda _: ab.synchronize(),
}


@pytest.mark.parametrize("synchronize", SYNCHRONIZE.values(), ids=SYNCHRONIZE)
@pytest.mark.parametrize(
    "new_stream",
    [
        pytest.param(ab.Stream, id="non-blocking"),
        pytest.param(lambda: ab.Stream(non_blocking=False), id="blocking"),
        pytest.param(
            ab.legacy_stream,
            id="legacy",
            marks=pytest.mark.thread_unsafe(reason="the legacy stream is the same one for all threads"),
        ),
        pytest.param(ab.per_thread_stream, id="per-thread"),
    ],
)
def test_synchronize_waits_for_every_kind_of_stream(synchronize, new_stream, device):
    stream = new_stream()
    gate = ab.testing.Gate(stream)
    work = stream.submit(int)
    ab.Stream().submit(gate.open)  # needs the interpreter, which this thread gives up once it waits
    assert synchronize(device) is None
    assert work.done()
    assert stream.query()


def test_synchronize_waits_for_the_per_thread_streams_of_other_threads(device, in_thread):
    def hold():
        stream = ab.per_thread_stream(device)
        return ab.testing.Gate(stream), stream.record_event()

    gate, event = in_thread(hold).result(10)
    ab.Stream().submit(gate.open)
    device.synchronize()
    assert event.query()


def test_synchronize_waits_for_closed_streams(device):
    stream = ab.Stream()
    gate = ab.testing.Gate(stream)
    work = stream.submit(int)
    stream.close()
    ab.Stream().submit(gate.open)
    device.synchronize()
    assert work.done()


@pytest.mark.parametrize("synchronize", [SYNCHRONIZE["method"], SYNCHRONIZE["function"]], ids=["method", "function"])
def test_synchronizing_a_device_waits_for_no_other(synchronize, device, other_device):
    other = ab.Stream(other_device)
    with ab.testing.Gate(other):
        synchronize(device)
        assert not other.query()


def test_synchronize_without_a_device_waits_for_every_device_used():
    streams = [ab.Stream(device) for device in ab.devices()]
    gates = [ab.testing.Gate(stream) for stream in streams]
    ab.Stream().submit(lambda: [gate.open() for gate in gates])
    ab.synchronize()
    assert all(stream.query() for stream in streams)
