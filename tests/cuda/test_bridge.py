"""Bridges to the libraries that are installed: their work is in our stream, and in order with other streams' work."""

import contextlib
import gc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import anabranch as ab

from .gpu import SIZE, installed

TIMEOUT = 30


def of_torch(torch, device):
    return SimpleNamespace(
        name="torch",
        current=lambda: torch.cuda.current_stream(device.index).cuda_stream,
        take=torch.from_dlpack,
        make=lambda: torch.zeros(SIZE, dtype=torch.uint8, device="cuda"),
        fill=lambda data, value: data.fill_(value),
        copy=lambda data: data.clone(),
        read=lambda data: data.cpu().numpy(),
    )


def of_cupy(cupy, device):
    def copy(data):
        made = cupy.empty(SIZE, "uint8")
        made.data.copy_from_device_async(data.data, data.nbytes)
        return made

    def make():
        made = cupy.empty(SIZE, "uint8")
        made.data.memset_async(0, made.nbytes)
        return made

    return SimpleNamespace(
        name="cupy",
        current=lambda: cupy.cuda.get_current_stream(device.index).ptr,
        take=cupy.from_dlpack,
        make=make,
        fill=lambda data, value: data.data.memset_async(value, data.nbytes),
        copy=copy,
        read=lambda data: data.get(),
    )


def of_warp(warp, device):
    return SimpleNamespace(
        name="warp",
        current=lambda: warp.get_stream(device.alias).cuda_stream or 0,
        take=warp.from_dlpack,
        make=lambda: warp.zeros(SIZE, dtype=warp.uint8, device=device.alias),
        fill=lambda data, value: data.fill_(value),
        copy=warp.clone,
        read=lambda data: data.numpy(),
    )


LIBRARIES = {"torch": of_torch, "cupy": of_cupy, "warp": of_warp}


@pytest.fixture(params=LIBRARIES)
def library(request, cuda):
    return LIBRARIES[request.param](request.getfixturevalue(request.param), cuda)


@pytest.fixture
def stream(cuda):
    """One that every library can use."""
    return ab.Stream(cuda, non_blocking=False)


# Which stream it is


def test_the_stream_is_current_for_the_block(library, stream):
    before = library.current()
    with stream.bridge(library.name) as bridged:
        assert library.current() == stream.handle
        assert getattr(bridged, library.name) is not None
        with ab.Stream(stream.device, non_blocking=False).bridge(library.name) as inner:
            assert library.current() == inner.stream.handle
        assert library.current() == stream.handle
    assert library.current() == before


def test_an_error_puts_everything_back(library, stream):
    before = library.current()
    with pytest.raises(KeyError), stream.bridge(library.name):
        raise KeyError
    assert library.current() == before
    assert ab.current_stream() != stream


@pytest.mark.parametrize("of", [ab.legacy_stream, ab.per_thread_stream])
def test_default_streams_can_be_bridged(library, cuda, of):
    before = library.current()
    with of(cuda).bridge(library.name):
        assert library.current() in ((0, 1) if of is ab.legacy_stream else (2,))
        data = library.make()
        library.fill(data, 3)
        np.testing.assert_array_equal(library.read(data), 3)
    assert library.current() == before


def test_a_stream_of_theirs_can_be_bridged(torch, cuda):
    theirs = torch.cuda.Stream()
    with ab.Stream.from_external(theirs.cuda_stream, cuda).bridge("torch"):
        assert torch.cuda.current_stream().cuda_stream == theirs.cuda_stream
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_every_library_at_once(stream, cuda, request):
    there, numba = [], {"numba_cuda_mlir" if installed("numba_cuda_mlir") else "numba": "numba"}
    for name, fixture in {**dict.fromkeys(LIBRARIES), "cuda_core": None, **numba}.items():
        with contextlib.suppress(pytest.skip.Exception):
            request.getfixturevalue(fixture or name)
            there.append(name)
    if not there:
        pytest.skip("no other library can use the GPU")
    with stream.bridge(*there) as bridged:
        for name in there:
            theirs = getattr(bridged, name)
            handle = theirs.__cuda_stream__()[1] if hasattr(type(theirs), "__cuda_stream__") else None
            assert handle in (stream.handle, None)
    with stream.bridge(*there):
        pass


def test_streams_outlive_their_bridges_to_cupy(cupy, cuda):
    for _ in range(50):
        stream = ab.Stream(cuda)
        with stream.bridge("cupy"):
            data = cupy.empty(1000, "uint8")
            data.data.memset_async(3, 1000)
        del stream, data
        gc.collect()
    streams = [ab.Stream(cuda) for _ in range(60)]
    arrays = [ab.full(1000, 5, stream=stream) for stream in streams]
    assert all((array.numpy() == 5).all() for array in arrays)


def test_threads_have_a_bridge_each(torch, cuda, in_threads):
    def body(number):
        stream = ab.Stream(cuda)
        for _ in range(20):
            with stream.bridge("torch"):
                tensor = torch.full((1000,), float(number), device="cuda")
                assert torch.cuda.current_stream().cuda_stream == stream.handle
                total = ab.from_dlpack(tensor * 2)
            assert torch.cuda.current_stream() == torch.cuda.default_stream()
        return float(total.numpy().sum())

    assert in_threads(4, body) == [2000.0 * number for number in range(4)]


def test_the_device_is_theirs_too(torch, pair):
    with ab.Stream(pair[1]).bridge("torch"):
        assert torch.cuda.current_device() == pair[1].index
        tensor = torch.ones(10, device="cuda")
        assert tensor.device.index == pair[1].index
        assert ab.from_dlpack(tensor).device is pair[1]
    assert torch.cuda.current_device() == pair[0].index
    assert torch.cuda.current_stream(pair[1].index) == torch.cuda.default_stream(pair[1].index)


# Order with what the library does outside


def test_what_they_did_before_comes_before(library, stream, foreign):
    data = library.make()
    foreign.delay(library.current() or 1)
    library.fill(data, 3)
    with stream.bridge(library.name):
        copy = library.copy(data)
        seen = library.read(copy)
    np.testing.assert_array_equal(seen, 3)


def test_what_they_do_after_comes_after(library, stream, foreign):
    data = library.make()
    with stream.bridge(library.name):
        foreign.delay(stream.handle)
        library.fill(data, 3)
    copy = library.copy(data)
    np.testing.assert_array_equal(library.read(copy), 3)


def test_memory_that_they_drop_in_the_block_is_not_given_out_too_early(torch, cuda, foreign):
    stream, data = ab.Stream(cuda), torch.full((SIZE,), 3, dtype=torch.uint8, device="cuda")
    with stream.bridge("torch"):
        foreign.delay(stream.handle)
        copy = data.clone()
        del data
    again = [torch.full((SIZE,), 7, dtype=torch.uint8, device="cuda") for _ in range(4)]
    np.testing.assert_array_equal(copy.cpu().numpy(), 3)
    assert all(bool((each == 7).all()) for each in again)


def test_blocks_may_overlap_where_asked(torch, cuda, foreign):
    a, b = ab.Stream(cuda), ab.Stream(cuda)
    for each in (a, b):  # so that no memory has to be had later, which might wait
        with each.bridge("torch"):
            torch.zeros(10, device="cuda")
    ab.synchronize(cuda)
    with a.bridge("torch", sync_exit=False):
        foreign.delay(a.handle)
        torch.zeros(10, device="cuda")
    with b.bridge("torch", sync_exit=False):
        torch.zeros(10, device="cuda")
        b.synchronize()
    assert not a.query()
    a.synchronize()


# Order with other streams of ours, which see nothing of what the library puts in


@pytest.fixture
def written(library, cuda, stream, foreign):
    """In a bridge: an array that the library writes late, after another stream has come to know of its hand-over."""
    other = ab.Stream(cuda)
    array = ab.zeros(SIZE, "uint8", stream=stream)

    def write():
        data = library.take(array)
        other.wait_stream(stream)
        stream.synchronize()
        foreign.delay(stream.handle)
        library.fill(data, 3)
        return data

    return SimpleNamespace(array=array, other=other, write=write)


def test_another_stream_comes_after_the_block(library, stream, written):
    with stream.bridge(library.name):
        data = written.write()
    copy = ab.empty(SIZE, "uint8", stream=written.other)
    ab.copy(copy, written.array, stream=written.other)
    np.testing.assert_array_equal(copy.numpy(), 3)
    del data


def test_another_stream_comes_after_what_was_put_in_by_then(library, stream, written):
    with stream.bridge(library.name):
        data = written.write()
        copy = ab.empty(SIZE, "uint8", stream=written.other)
        ab.copy(copy, written.array, stream=written.other)
        np.testing.assert_array_equal(copy.numpy(), 3)
        del data


def test_a_readback_comes_after_what_was_put_in_by_then(library, stream, written):
    with stream.bridge(library.name):
        data = written.write()
        np.testing.assert_array_equal(written.array.numpy(), 3)
        del data


def test_memory_dropped_in_the_block_is_freed_after_their_work(cupy, cuda, stream, foreign):
    with stream.bridge("cupy"):
        array = ab.full(SIZE, 3, "uint8")
        data, copy = cupy.asarray(array), cupy.empty(SIZE, "uint8")
        stream.synchronize()
        foreign.delay(stream.handle)
        copy.data.copy_from_device_async(data.data, data.nbytes)
        del array, data
        gc.collect()
        others = [ab.full(SIZE, 7, "uint8", stream=ab.Stream(cuda)) for _ in range(8)]
        ab.synchronize(cuda)
    np.testing.assert_array_equal(copy.get(), 3)
    assert all((other.numpy() == 7).all() for other in others)


def test_under_check_the_end_of_a_block_is_reported(library, stream, written):
    with ab.hazards("check"):
        with stream.bridge(library.name):
            data = written.write()
        with pytest.raises(ab.RaceError) as caught:
            ab.fill(written.array, 1, stream=written.other)
        assert caught.value.first.stream == stream
        written.other.wait_stream(stream)
        ab.fill(written.array, 1, stream=written.other)
        written.other.synchronize()
    del data


def test_memory_goes_to_and_fro_in_one_stream(library, stream):
    array, total = ab.zeros(SIZE, "uint8", stream=stream), 0
    with stream.bridge(library.name):
        data = library.take(array)
        for value in range(1, 6):
            library.fill(data, value)
            copy = ab.empty(SIZE, "uint8")
            ab.copy(copy, array)
            ab.fill(array, 0)
            total += int(copy.numpy()[-1])
        np.testing.assert_array_equal(library.read(data), 0)
    assert total == 15


# Libraries with no current stream


@pytest.fixture
def name(numba):
    """What a bridge calls the package that `numba` is. It warns of small grids and of what it is to lose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "numba_cuda_mlir" if installed("numba_cuda_mlir") else "numba"


def test_numba_copies_in_the_stream(numba, name, cuda, foreign):
    stream = ab.Stream(cuda)
    array = ab.zeros(SIZE, "uint8", stream=stream)
    with stream.bridge(name) as bridged:
        theirs = numba.as_cuda_array(array)
        foreign.delay(stream.handle)
        theirs.copy_to_device(np.full(SIZE, 3, "uint8"), stream=getattr(bridged, name))
        copy = ab.empty(SIZE, "uint8")
        ab.copy(copy, array)
    np.testing.assert_array_equal(copy.numpy(), 3)


def test_a_kernel_of_numba_runs_in_the_stream(numba, name, cuda, foreign):
    stream = ab.Stream(cuda)

    @numba.jit
    def put(data):
        i = numba.grid(1)
        if i < data.size:
            data[i] = 3

    array = ab.zeros(1024, stream=stream)
    with stream.bridge(name) as bridged:
        foreign.delay(stream.handle)
        put[4, 256, getattr(bridged, name)](numba.as_cuda_array(array))
        ab.fill(array[0], 5)
    seen = array.numpy()
    assert seen[0] == 5
    np.testing.assert_array_equal(seen[1:], 3)


def test_cuda_core_has_an_object_for_the_stream(cuda_core, cuda):
    stream = ab.Stream(cuda)
    with stream.bridge("cuda_core") as bridged:
        assert int(bridged.cuda_core.handle) == stream.handle
        bridged.cuda_core.sync()


def test_warp_frees_in_order_with_the_stream(warp, cuda, foreign):
    with pytest.raises(ValueError, match="non_blocking=False"), ab.Stream(cuda).bridge("warp"):
        raise AssertionError
    stream = ab.Stream(cuda, non_blocking=False)
    with stream.bridge("warp"):
        data = warp.full(SIZE, 3, dtype=warp.uint8, device=cuda.alias)
        foreign.delay(stream.handle)
        copy = warp.clone(data)
        del data
        gc.collect()
        again = [warp.full(SIZE, 7, dtype=warp.uint8, device=cuda.alias) for _ in range(4)]
        np.testing.assert_array_equal(copy.numpy(), 3)
    assert all((each.numpy() == 7).all() for each in again)
