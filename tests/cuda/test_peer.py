"""Several GPUs: copies between them, order across them, forks over them."""

from itertools import permutations

import numpy as np
import pytest

import anabranch as ab

from .gpu import SIZE, CudaInterface, values


@pytest.fixture(params=[False, True], ids=["there", "back"])
def way(request, pair):
    """The two GPUs in either order."""
    return pair[::-1] if request.param else pair


@pytest.fixture(params=["destination", "source", "none"])
def copier(request):
    """Which side's stream copies."""
    streams = {"destination": lambda dst, src: ab.Stream(dst.device), "source": lambda dst, src: ab.Stream(src.device)}

    def copy(dst, src):
        make = streams.get(request.param)
        if make is None:
            return ab.copy(dst, src)
        stream = make(dst, src)
        for array in (dst, src):
            stream.wait_stream(ab.current_stream(array.device))
        return ab.copy(dst, src, stream=stream)

    return copy


WHOLE = np.s_[...]
STRIDED = np.s_[::-1, 1::3]
VIEWS = {"contiguous": WHOLE, "strided": STRIDED}


@pytest.mark.parametrize("from_view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("to_view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_copies_between_gpus(way, copier, dtype, to_view, from_view):
    here, there = way
    data = values((40, 60), dtype)
    source = ab.array(data, device=here)[from_view]
    wanted = data[from_view]
    whole = np.zeros(wanted.shape if to_view is WHOLE else (wanted.shape[0], 3 * wanted.shape[1] + 1), dtype)
    target = ab.array(whole, device=there)
    view = target[to_view]
    assert view.shape == wanted.shape
    ab.synchronize()
    copier(view, source)
    whole[to_view] = wanted
    np.testing.assert_array_equal(target.numpy(), whole)


def test_copies_with_offsets_and_counts(way):
    here, there = way
    data = values(1000, "int32")
    source, target = ab.array(data, device=here), ab.zeros(1000, "int32", device=there)
    ab.copy(target, source, dst_offset=100, src_offset=300, count=500)
    np.testing.assert_array_equal(target.numpy()[100:600], data[300:800])


def test_copies_through_every_device(pair):
    data = values(SIZE, "int32")
    for first, second, third in permutations([*pair, ab.Device("cpu")]):
        arrays = [ab.array(data, device=first)]
        for device in (second, third, first):
            arrays.append(ab.empty(SIZE, "int32", device=device))
            ab.synchronize()
            ab.copy(arrays[-1], arrays[-2])
        np.testing.assert_array_equal(arrays[-1].numpy(), data)


@pytest.mark.parametrize("by", ["stream", "event"])
def test_a_stream_waits_for_work_on_the_other_gpu(way, delay, by):
    here, there = way
    source, target = ab.Stream(here), ab.Stream(there)
    a = ab.zeros(SIZE, "int32", device=here, stream=source)
    b = ab.zeros(SIZE, "int32", device=there, stream=target)
    delay(source, 100)
    ab.fill(a, 3, stream=source)
    target.wait_stream(source) if by == "stream" else target.wait_event(source.record_event())
    ab.copy(b, a, stream=target)
    np.testing.assert_array_equal(b.numpy(), 3)


def test_a_chain_of_waits_goes_to_and_fro(pair, delay):
    streams = [ab.Stream(device) for device in pair]
    arrays = [ab.zeros(SIZE, "int32", device=s.device, stream=s) for s in streams]
    for number in range(10):
        source, target = number % 2, 1 - number % 2
        delay(streams[source], 5)
        ab.fill(arrays[source], number, stream=streams[source])
        streams[target].wait_stream(streams[source])
        ab.copy(arrays[target], arrays[source], stream=streams[target])
        streams[source].wait_stream(streams[target])
    np.testing.assert_array_equal(arrays[0].numpy(), 9)
    np.testing.assert_array_equal(arrays[1].numpy(), 9)


def test_a_gate_holds_what_waits_on_the_other_gpu(way):
    here, there = way
    source, target = ab.Stream(here), ab.Stream(there)
    with ab.testing.Gate(source):
        target.wait_stream(source)
        array = ab.full(16, 3, "int32", stream=target)
        assert not target.query()
    np.testing.assert_array_equal(array.numpy(), 3)


def test_a_fork_over_gpus_starts_after_and_is_joined(way, delay):
    parent = ab.Stream(way[0])
    source = ab.zeros(SIZE, "int32", stream=parent)
    delay(parent, 50)
    ab.fill(source, 3, stream=parent)
    parts = []
    with ab.fork(stream=parent, devices=way) as branches:
        assert [branch.device for branch in branches] == list(way)
        for branch in branches:
            part = ab.zeros(SIZE, "int32", device=branch.device, stream=branch)
            ab.copy(part, source, stream=branch)
            delay(branch, 50)
            ab.fill(part[: SIZE // 2], 4, stream=branch)
            parts.append(part)
    sums = [ab.empty(SIZE, "int32", stream=parent) for _ in parts]
    for total, part in zip(sums, parts, strict=True):
        ab.copy(total, part, stream=parent)
    for total in sums:
        np.testing.assert_array_equal(total.numpy(), np.repeat([4, 3], SIZE // 2))


def test_memory_is_freed_after_the_other_gpu_has_read_it(way, delay):
    here, there = way
    mine, theirs = ab.Stream(here), ab.Stream(there)
    source = ab.full(SIZE, 3, "int32", stream=mine)
    target = ab.zeros(SIZE, "int32", stream=theirs)
    theirs.wait_stream(mine)
    delay(theirs, 100)
    ab.copy(target, source, stream=theirs)
    source.close()
    others = [ab.full(SIZE, 7, "int32", stream=mine) for _ in range(8)]
    mine.synchronize()
    np.testing.assert_array_equal(target.numpy(), 3)
    assert all((other.numpy() == 7).all() for other in others)


def test_kernels_take_arrays_of_their_own_gpu(way, kernels):
    here, there = way
    config = ab.LaunchConfig(1, 4)
    x, y = ab.ones(4, "int32", device=here), ab.zeros(4, "int32", device=here)
    ab.launch(kernels.add, config, x, y, 1, 4)
    np.testing.assert_array_equal(y.numpy(), 2)
    with pytest.raises(ab.DeviceError, match="'y'"):
        ab.launch(kernels.add, config, x, ab.zeros(4, "int32", device=there), 1, 4)


def test_an_event_is_recorded_on_its_own_gpu_only(way):
    here, there = way
    event = ab.Event(device=here)
    with pytest.raises(ab.DeviceError, match=there.alias):
        event.record(ab.Stream(there))
    event.record(ab.Stream(here))
    event.wait(ab.Stream(there))
    event.synchronize()


def test_times_of_two_gpus_have_no_clock_in_common(way):
    events = [ab.Event(enable_timing=True, device=device) for device in way]
    for event in events:
        event.record(ab.Stream(event.device))
    with pytest.raises(ab.EventError, match="clock"):
        events[0].elapsed_time(events[1])


def test_memory_and_streams_are_found_to_be_of_the_other_gpu(pair):
    here, there = pair
    array = ab.full(16, 3, "int32", device=there)
    ab.synchronize(there)
    assert ab.asarray(CudaInterface(array)).device is there

    class Foreign:
        def __init__(self, stream):
            self.stream = stream

        def __cuda_stream__(self):
            return 0, self.stream.handle

    stream = ab.Stream(there)
    assert ab.Stream.from_external(Foreign(stream)) == stream
    assert ab.Stream.from_external(stream.handle, there) == stream
    with pytest.raises(ValueError, match="handle"):
        ab.Stream.from_external(stream.handle, here)


def test_a_tensor_of_the_other_gpu_is_taken_there(pair, torch, delay):
    there = pair[1]
    with torch.cuda.device(there.index):
        tensor = torch.zeros(SIZE, dtype=torch.int32, device=there.alias)
        delay(ab.legacy_stream(there))  # the one that is current in PyTorch
        tensor.fill_(3)
        array = ab.asarray(tensor)
    assert (array.device, array.ptr) == (there, tensor.data_ptr())
    np.testing.assert_array_equal(array.numpy(), 3)


def test_the_other_gpu_is_current_while_its_memory_is_exported(pair, current_gpu):
    array = ab.full(16, 3, "int32", device=pair[1])

    class Producer:
        """Exports, as PyTorch does, memory of the current GPU only."""

        def __dlpack_device__(self):
            return array.__dlpack_device__()

        def __dlpack__(self, **options):
            exported_by.append(current_gpu())
            return array.__dlpack__(**options)

    exported_by, before = [], current_gpu()
    taken = ab.from_dlpack(Producer())
    assert (exported_by, current_gpu()) == ([pair[1].index], before)
    assert taken.ptr == array.ptr


def test_every_gpu_is_synchronized(pair, delay):
    streams = [ab.Stream(device) for device in pair]
    for stream in streams:
        delay(stream, 100)
    pair[0].synchronize()
    assert streams[0].query()
    ab.synchronize()
    assert streams[1].query()


@pytest.mark.parametrize("racing", ["source", "destination"])
def test_a_copy_that_is_refused_has_done_nothing_and_names_the_program_s_stream(way, racing):
    here, there = way
    arrays = {name: ab.zeros((8, 8), device=gpu)[:, ::2] for name, gpu in (("source", here), ("destination", there))}
    ab.synchronize()
    writer, copier = ab.Stream(arrays[racing].device, name="writer"), ab.Stream(there, name="copier")
    with ab.hazards("check"):
        ab.fill(arrays[racing], 1, stream=writer)
        with pytest.raises(ab.RaceError) as caught:
            ab.copy(arrays["destination"], arrays["source"], stream=copier)
        assert caught.value.second.stream == copier
        assert caught.value.fix == "copier.wait_stream(writer)"
        for array in arrays.values():  # nobody but the writer has used them
            stream = ab.Stream(array.device)
            stream.wait_stream(writer)
            ab.fill(array, 2, stream=stream)
