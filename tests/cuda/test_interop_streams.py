"""Streams of other libraries taken, and ours given out: one queue, whoever puts the work in."""

import gc
import weakref
from itertools import pairwise

import numpy as np
import pytest

import anabranch as ab

from .gpu import SIZE, checked, installed


class Library:
    """How one library makes a stream, tells its handle, wraps one of ours, and names the default stream."""

    def __init__(self, make, handle, wrap, default):
        self.make, self.handle, self.wrap, self.default = make, handle, wrap, default


def pytorch(torch):
    return Library(
        torch.cuda.Stream,
        lambda stream: stream.cuda_stream,
        lambda ours: torch.cuda.ExternalStream(ours.handle, device=ours.device.index),
        torch.cuda.default_stream,
    )


def of_cupy(cupy):
    return Library(
        lambda: cupy.cuda.Stream(non_blocking=True),
        lambda stream: stream.ptr,
        cupy.cuda.Stream.from_external,
        lambda: cupy.cuda.Stream.null,
    )


def of_cuda_core(core):
    device = core.Device(0)
    return Library(
        device.create_stream,
        lambda stream: int(stream.handle),
        device.create_stream,
        lambda: device.default_stream,
    )


def of_numba(numba):
    return Library(
        numba.stream,
        int,
        lambda ours: numba.external_stream(ours.handle),
        numba.default_stream,
    )


LIBRARIES = {"torch": pytorch, "cupy": of_cupy, "cuda_core": of_cuda_core, "numba": of_numba}


@pytest.fixture(params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param](request.getfixturevalue(request.param))


@pytest.fixture
def theirs(library):
    """A stream of the library, and its handle."""
    stream = library.make()
    return stream, library.handle(stream)


@pytest.fixture(params=["object", "handle"])
def wrap(request, cuda):
    """Wrap a stream of another library, as an object or by its handle."""

    def by_object(stream, handle):
        if not hasattr(type(stream), "__cuda_stream__"):
            pytest.skip(f"this version's {type(stream).__name__} does not speak __cuda_stream__")
        return ab.Stream.from_external(stream)

    return {"object": by_object, "handle": lambda _, handle: ab.Stream.from_external(handle, cuda)}[request.param]


def test_a_wrapper_has_the_handle_and_says_what_the_driver_says(theirs, wrap, cuda, driver):
    handle = theirs[1]
    wrapper = wrap(*theirs)
    assert wrapper.handle == handle
    assert wrapper.__cuda_stream__() == (0, handle)
    assert wrapper.device is cuda
    assert wrapper.priority == checked(driver.cuStreamGetPriority(handle))
    assert wrapper.non_blocking == bool(checked(driver.cuStreamGetFlags(handle)) & 1)


def test_wrappers_of_one_handle_are_equal_and_one_queue(theirs, wrap, delay):
    first, second = wrap(*theirs), wrap(*theirs)
    assert first == second
    assert hash(first) == hash(second)
    delay(first)
    assert not second.query()
    second.synchronize()
    assert first.query()


@pytest.mark.parametrize("end", [ab.Stream.close, lambda _: None], ids=["closed", "dropped"])
def test_the_end_of_a_wrapper_leaves_the_stream_and_other_wrappers(theirs, wrap, end, delay, foreign):
    first, second = wrap(*theirs), wrap(*theirs)
    delay(first)
    end(first)
    del first
    gc.collect()
    assert not second.closed
    assert not second.query()
    delay(second, 1)
    foreign.delay(theirs[1], 1)
    foreign.synchronize(theirs[1])
    end(second)
    del second
    gc.collect()
    foreign.delay(theirs[1], 1)
    foreign.synchronize(theirs[1])


def test_a_wrapper_keeps_the_object(theirs, cuda):
    if not hasattr(type(theirs[0]), "__cuda_stream__"):
        pytest.skip(f"this version's {type(theirs[0]).__name__} does not speak __cuda_stream__")

    class Speaks:
        def __cuda_stream__(self):
            return theirs[0].__cuda_stream__()

    stream = Speaks()
    alive = weakref.ref(stream)
    wrapper = ab.Stream.from_external(stream)
    del stream
    gc.collect()
    assert alive() is not None
    wrapper.synchronize()


def test_our_work_lands_on_their_stream(theirs, wrap, delay, foreign):
    wrapper = wrap(*theirs)
    delay(wrapper)
    assert not foreign.idle(theirs[1])
    wrapper.synchronize()
    assert foreign.idle(theirs[1])


def test_their_work_is_seen_by_us(theirs, wrap, foreign):
    wrapper = wrap(*theirs)
    foreign.delay(theirs[1])
    event = wrapper.record_event()
    assert not wrapper.query()
    assert not event.query()
    event.synchronize()
    assert foreign.idle(theirs[1])
    assert wrapper.query()


def test_their_work_comes_after_ours(theirs, wrap, cuda, delay, foreign):
    wrapper = wrap(*theirs)
    a, b = ab.zeros(SIZE, "uint8", stream=wrapper), ab.zeros(SIZE, "uint8", stream=wrapper)
    delay(wrapper)
    ab.fill(a, 3, stream=wrapper)
    foreign.copy(theirs[1], b, a)
    foreign.synchronize(theirs[1])
    np.testing.assert_array_equal(b.numpy(), 3)


def test_our_work_comes_after_theirs(theirs, wrap, cuda, foreign):
    wrapper = wrap(*theirs)
    a, b = ab.zeros(SIZE, "uint8", stream=wrapper), ab.zeros(SIZE, "uint8", stream=wrapper)
    foreign.delay(theirs[1])
    foreign.fill(theirs[1], a, 3)
    ab.copy(b, a, stream=wrapper)
    np.testing.assert_array_equal(b.numpy(), 3)


@pytest.mark.parametrize("by", ["wait_stream", "wait_event"])
def test_our_stream_waits_for_theirs(theirs, wrap, by, cuda, foreign):
    wrapper, ours = wrap(*theirs), ab.Stream(cuda)
    a, b = ab.zeros(SIZE, "uint8", stream=ours), ab.zeros(SIZE, "uint8", stream=ours)
    ours.synchronize()
    foreign.delay(theirs[1])
    foreign.fill(theirs[1], a, 3)
    ours.wait_stream(wrapper) if by == "wait_stream" else ours.wait_event(wrapper.record_event())
    ab.copy(b, a, stream=ours)
    np.testing.assert_array_equal(b.numpy(), 3)


@pytest.mark.parametrize("by", ["wait_stream", "wait_event"])
def test_their_stream_waits_for_ours(theirs, wrap, by, cuda, delay, foreign):
    wrapper, ours = wrap(*theirs), ab.Stream(cuda)
    a, b = ab.zeros(SIZE, "uint8", stream=ours), ab.zeros(SIZE, "uint8", stream=ours)
    delay(ours)
    ab.fill(a, 3, stream=ours)
    wrapper.wait_stream(ours) if by == "wait_stream" else wrapper.wait_event(ours.record_event())
    foreign.copy(theirs[1], b, a)
    foreign.synchronize(theirs[1])
    np.testing.assert_array_equal(b.numpy(), 3)


def test_their_stream_as_the_current_one(theirs, wrap, cuda, delay, foreign):
    with wrap(*theirs) as wrapper:
        delay(None)
        a = ab.full(SIZE, 3, "uint8")
        assert ab.current_stream(cuda) == wrapper
        b = ab.empty(SIZE, "uint8")
    foreign.copy(theirs[1], b, a)
    foreign.synchronize(theirs[1])
    np.testing.assert_array_equal(b.numpy(), 3)


def test_their_default_stream_is_the_legacy_one(library, cuda):
    stream = library.default()
    if not hasattr(type(stream), "__cuda_stream__"):
        pytest.skip(f"this version's {type(stream).__name__} does not speak __cuda_stream__")
    if stream.__cuda_stream__()[1] not in (0, 1):
        pytest.skip("this library was told to use the per-thread default stream")
    assert ab.Stream.from_external(stream) == ab.legacy_stream(cuda)


def test_other_libraries_wrap_our_stream(library, cuda, delay):
    ours = ab.Stream(cuda)
    wrapped = library.wrap(ours)
    assert library.handle(wrapped) == ours.handle
    assert ab.Stream.from_external(library.handle(wrapped), cuda) == ours
    delay(ours)
    del wrapped
    gc.collect()
    assert not ours.query()
    ours.synchronize()


def test_work_of_pytorch_lands_on_our_stream(torch, cuda, delay):
    ours = ab.Stream(cuda)
    torch.full((SIZE,), 1, dtype=torch.uint8, device="cuda")  # whose first call takes longer than the delay
    delay(ours)
    with torch.cuda.stream(torch.cuda.ExternalStream(ours.handle, device=cuda.index)):
        tensor = torch.full((SIZE,), 3, dtype=torch.uint8, device="cuda")
    assert not ours.query()
    with ours:
        np.testing.assert_array_equal(ab.asarray(tensor).numpy(), 3)


def test_work_of_cupy_lands_on_our_stream(cupy, cuda, delay):
    ours = ab.Stream(cuda)
    delay(ours)
    with cupy.cuda.Stream.from_external(ours):
        data = cupy.empty(SIZE, "uint8")
        data.data.memset_async(3, data.nbytes)
    assert not ours.query()
    with ours:
        np.testing.assert_array_equal(ab.asarray(data).numpy(), 3)


def test_a_stream_of_cuda_core_waits_for_our_event(cuda_core, cuda, delay, foreign):
    ours, theirs = ab.Stream(cuda), cuda_core.Device(cuda.index).create_stream()
    a, b = ab.zeros(SIZE, "uint8", stream=ours), ab.zeros(SIZE, "uint8", stream=ours)
    delay(ours)
    ab.fill(a, 3, stream=ours)
    theirs.wait(cuda_core.Device(cuda.index).create_stream(ours))
    foreign.copy(int(theirs.handle), b, a)
    foreign.synchronize(int(theirs.handle))
    np.testing.assert_array_equal(b.numpy(), 3)


# In one process, whoever came first

USES = {
    "anabranch": """
        import anabranch as ab
        before = current_context()
        stream = ab.Stream("cuda:0")
        array = ab.full(1000, 2.0, stream=stream)
        event = stream.record_event()
        other = ab.array(array.numpy(), device="cuda:0")
        ab.copy(other, array, stream=stream)
        assert other.numpy().sum() == 2000
        event.synchronize()
        del array, other, stream, event
        ab.synchronize()
        # What was current is; where none was, the primary one stays, as CUDA's runtime does.
        assert current_context() == (before or primary)
        """,
    "torch": """
        import torch
        assert torch.full((1000,), 2.0, device="cuda").sum().item() == 2000
        """,
    "cupy": """
        import cupy
        assert cupy.asarray(numpy.full(1000, 2.0)).get().sum() == 2000
        """,
    "cuda.core": """
        from cuda.core import Device
        Device(0).set_current()
        stream = Device(0).create_stream()
        stream.sync()
        stream.close()
        """,
}

SCRIPT = """
import threading
import warnings

import numpy

warnings.simplefilter("ignore")
from cuda.bindings import driver

driver.cuInit(0)

def current_context():
    status, context = driver.cuCtxGetCurrent()
    assert int(status) == 0, status
    return int(context)

def primary_context():
    status, device = driver.cuDeviceGet(0)
    assert int(status) == 0, status
    status, context = driver.cuDevicePrimaryCtxRetain(device)
    assert int(status) == 0, status
    return int(context)

primary = primary_context()

def use(name):
    exec(USES[name], dict(globals()))

for name in ORDER:
    use(name)
for name in ORDER:
    use(name)

failed = []
def on_a_fresh_thread():
    try:
        assert current_context() == 0
        use("anabranch")
        assert current_context() == primary
    except BaseException as error:
        failed.append(error)

thread = threading.Thread(target=on_a_fresh_thread)
thread.start()
thread.join()
assert not failed, failed
print("done")
"""

NAMES = list(USES)
ORDERS = [NAMES[i:] + NAMES[:i] for i in range(len(NAMES))] + [NAMES[::-1]]


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_libraries_share_the_gpu_in_any_order(order, run_python):
    if not installed("cuda.bindings"):
        pytest.skip("cuda-bindings is not installed")
    there = [name for name in order if installed(name)]
    if len(there) == 1:
        pytest.skip("no other library for GPUs is installed")
    uses = {name: "\n".join(line[8:] for line in USES[name].splitlines()) for name in there}
    assert run_python(f"USES = {uses!r}\nORDER = {there!r}\n{SCRIPT}", timeout=150) == "done\n"


def test_the_orders_cover_who_comes_before_whom():
    assert {pair for order in ORDERS for pair in pairwise(order)} >= {("anabranch", "torch"), ("torch", "anabranch")}
