"""`bridge`: the current stream of other libraries is ours for a block. The libraries are stand-ins."""

import copy
import gc
import importlib
import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest

import anabranch as ab

from ..arrays import TIMEOUT, held
from .libraries import MAKE, current, make_current

pytestmark = pytest.mark.thread_unsafe(reason="stand-ins for libraries are of all threads")

WITH_CURRENT = ["torch", "cupy", "warp"]
each_library = pytest.mark.parametrize("name", WITH_CURRENT)


@pytest.fixture
def libraries(monkeypatch):
    """All libraries, as stand-ins, imported."""
    made = {}
    for name, (module, make) in MAKE.items():
        made[name] = make()
        monkeypatch.setitem(sys.modules, module, made[name])
    return SimpleNamespace(**made)


@pytest.fixture
def gpu(device):
    if device.kind == "cpu":
        pytest.skip("the libraries have streams on a GPU only")
    return device


@pytest.fixture
def stream(device):
    """One that every library can use."""
    return ab.Stream(device, non_blocking=False)


def states(libraries, device):
    """Tell what is current in each library, and here."""
    theirs = [current(name, getattr(libraries, name), device) for name in WITH_CURRENT]
    devices = [getattr(libraries, name).state.device for name in MAKE if name != "cuda_core"]
    return theirs, devices, ab.current_stream(device), ab.current_device()


# Which stream is current


@each_library
def test_the_stream_is_current_in_the_library_for_the_block(libraries, gpu, stream, name):
    module = getattr(libraries, name)
    with stream.bridge(name) as bridged:
        assert current(name, module, gpu) == stream.handle
        assert getattr(bridged, name).__cuda_stream__() == (0, stream.handle)
        assert ab.current_stream() is stream
        assert bridged.stream is stream
    assert current(name, module, gpu) == 0


def test_the_stream_is_current_in_several_libraries_and_then_what_was_there_is(libraries, gpu, stream):
    before = states(libraries, gpu)
    with stream.bridge(*MAKE) as bridged:
        assert states(libraries, gpu)[0] == [stream.handle] * 3
        assert {getattr(bridged, name).handle for name in MAKE} == {stream.handle}
        assert libraries.torch.state.device == libraries.numba.state.device == gpu.index
    assert states(libraries, gpu) == before


def test_without_names_those_that_are_imported_and_usable_take_part(libraries, gpu, stream, monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy")
    libraries.warp.is_cuda_available = lambda: False
    with ab.bridge(stream) as bridged:
        assert states(libraries, gpu)[0] == [stream.handle, 0, 0]
        assert bridged.torch.handle == stream.handle
        for name in ("cupy", "warp", "numba"):
            with pytest.raises(AttributeError, match=f"{name}.*torch"):
                getattr(bridged, name)


@pytest.mark.parametrize("module", [None, ModuleType("theirs"), SimpleNamespace(cuda=SimpleNamespace())])
@each_library
def test_without_names_what_is_no_library_is_left_out(libraries, gpu, stream, monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, name, module)
    with ab.bridge(stream) as bridged:
        assert [hasattr(bridged, other) for other in WITH_CURRENT] == [other != name for other in WITH_CURRENT]


def test_without_names_one_that_another_thread_is_importing_is_left_out(
    libraries, gpu, stream, monkeypatch, tmp_path, in_thread
):
    (tmp_path / "warp.py").write_text("import sys\nsys.begun.set()\nassert sys.go_on.wait(20)\n")
    monkeypatch.delitem(sys.modules, "warp")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("begun", "go_on"):
        monkeypatch.setattr(sys, name, threading.Event(), raising=False)
    importing = in_thread(importlib.import_module, "warp")
    try:
        assert sys.begun.wait(TIMEOUT)
        with ab.bridge(stream) as bridged:
            assert not hasattr(bridged, "warp")
            assert bridged.torch.handle == stream.handle
    finally:
        sys.go_on.set()
        importing.result(TIMEOUT)


def test_without_a_stream_the_current_one_is_taken(libraries, gpu, stream):
    block = ab.bridge(None, "torch")
    with stream, block:
        assert current("torch", libraries.torch, gpu) == stream.handle


def test_the_legacy_stream_can_be_bridged(libraries, gpu):
    theirs = ab.Stream(gpu)
    make_current("torch", libraries.torch, theirs)
    with ab.legacy_stream(gpu).bridge("torch"):
        assert current("torch", libraries.torch, gpu) == 0
    assert current("torch", libraries.torch, gpu) == theirs.handle


def test_libraries_have_no_streams_on_a_cpu(libraries, device, stream):
    if device.kind != "cpu":
        pytest.skip("that is said of CPU devices")
    for name in WITH_CURRENT:
        getattr(libraries, name).is_available = None  # must not be asked
    before = states(libraries, device)[:2]
    with stream.bridge(*MAKE) as bridged:
        assert states(libraries, device)[:2] == before
        assert [getattr(bridged, name) for name in MAKE] == [None] * len(MAKE)
        assert ab.current_stream() is stream


@each_library
def test_an_error_in_the_block_puts_everything_back(libraries, device, stream, name):
    before = states(libraries, device) if device.kind == "cuda" else None
    with pytest.raises(KeyError), stream.bridge(name):
        raise KeyError
    assert before is None or states(libraries, device) == before
    assert ab.current_stream(device) != stream


@each_library
def test_blocks_nest(libraries, gpu, name):
    module, (a, b) = getattr(libraries, name), (ab.Stream(gpu, non_blocking=False) for _ in range(2))
    block = a.bridge(name)
    with block:
        with b.bridge(name):
            with block:
                assert current(name, module, gpu) == a.handle
            assert current(name, module, gpu) == b.handle
            assert ab.current_stream() is b
        assert current(name, module, gpu) == a.handle
    with block:
        assert current(name, module, gpu) == a.handle
    assert current(name, module, gpu) == 0


@each_library
def test_what_the_library_was_told_to_use_comes_back(libraries, gpu, stream, name):
    module, theirs = getattr(libraries, name), ab.Stream(gpu)
    make_current(name, module, theirs)
    with stream.bridge(name):
        assert current(name, module, gpu) == stream.handle
    assert current(name, module, gpu) == theirs.handle


def test_a_scope_of_cupy_in_the_block_comes_back_to_the_stream(libraries, gpu, stream):
    with stream.bridge("cupy"):
        with libraries.cupy.cuda.Stream(12345678, gpu.index):
            assert current("cupy", libraries.cupy, gpu) == 12345678
        assert current("cupy", libraries.cupy, gpu) == stream.handle


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_other_threads_have_their_own(libraries, gpu, stream, name, in_thread):
    module, other = getattr(libraries, name), ab.Stream(gpu)

    def elsewhere():
        before = current(name, module, gpu)
        with other.bridge(name):
            return before, current(name, module, gpu)

    with stream.bridge(name):
        assert in_thread(elsewhere).result(TIMEOUT) == (0, other.handle)
        assert current(name, module, gpu) == stream.handle


def test_one_bridge_serves_several_threads(libraries, gpu, stream, in_threads):
    block = stream.bridge("torch", "cupy")

    def body(_):
        for _ in range(20):
            with block:
                assert current("torch", libraries.torch, gpu) == stream.handle
        return current("torch", libraries.torch, gpu)

    assert in_threads(4, body) == [0] * 4


def test_a_stream_closed_in_the_block_ends_it_all_the_same(libraries, gpu, stream):
    before = states(libraries, gpu)
    with stream.bridge("torch", "cupy"):
        stream.close()
    assert states(libraries, gpu) == before


def test_no_stream_of_ours_is_destroyed_by_cupy(libraries, gpu):
    handles = set()
    for _ in range(3):
        stream = ab.Stream(gpu)
        handles.add(stream.handle)
        with stream.bridge("cupy"):
            pass
        del stream
    gc.collect()
    assert not handles & set(libraries.cupy.destroyed)


# What is refused


def test_an_unknown_library_is_refused(stream):
    with pytest.raises(ValueError, match=r"'jax'.*'torch', 'cupy'"):
        stream.bridge("torch", "jax")


def test_a_library_that_is_not_installed_is_refused(stream, monkeypatch):
    monkeypatch.setitem(sys.modules, "warp", None)
    monkeypatch.delitem(sys.modules, "warp")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install warp-lang"):
        stream.bridge("warp")


def test_what_is_no_stream_is_refused():
    with pytest.raises(TypeError, match=r"bridge\(None, 'torch'\)"):
        ab.bridge("torch")


@pytest.mark.parametrize("named", [["torch"], ("torch",), None])
def test_libraries_are_named_one_by_one(stream, named):
    with pytest.raises(TypeError, match=r"bridge\(stream, 'torch', 'cupy'\)"):
        ab.bridge(stream, named)
    if named:
        with pytest.raises(TypeError, match=r"bridge\(None, 'torch'\)"):
            ab.bridge(named)


@pytest.mark.parametrize("name", MAKE)
def test_a_module_of_the_same_name_is_refused(libraries, gpu, stream, monkeypatch, name):
    before = states(libraries, gpu)
    monkeypatch.setitem(sys.modules, MAKE[name][0], ModuleType("theirs"))
    with pytest.raises(ModuleNotFoundError, match=f"a bridge to '{name}' needs .*'theirs'"), stream.bridge(name):
        raise AssertionError
    assert states(libraries, gpu) == before


@pytest.mark.parametrize("elsewhere", [False, True])
def test_who_has_not_entered_a_bridge_does_not_leave_it(device, stream, in_thread, elsewhere):
    block = stream.bridge()

    def leave():
        with pytest.raises(RuntimeError, match="not entered"):
            block.__exit__(None, None, None)

    if elsewhere:
        with block:
            in_thread(leave).result(TIMEOUT)
            assert ab.current_stream() is stream
    else:
        leave()


def test_the_stream_of_a_block_is_not_replaced(stream):
    with stream.bridge() as bridged, pytest.raises(AttributeError):
        bridged.stream = ab.Stream(stream.device)
    assert bridged.stream is stream


def test_what_a_bridge_binds_may_be_copied(libraries, stream):
    with stream.bridge("torch") as bridged:
        copied = copy.copy(bridged)
        assert (copied.stream, copied.torch) == (stream, bridged.torch)


@pytest.mark.parametrize("name", ["torch", "cupy", "numba"])
def test_a_library_that_cannot_use_gpus_is_refused_on_one(libraries, gpu, stream, name):
    module, before = getattr(libraries, name), states(libraries, gpu)
    (module if name == "numba" else module.cuda).is_available = lambda: False
    with pytest.raises(ab.DeviceError, match=name), stream.bridge("torch", "cupy", name):
        raise AssertionError
    assert states(libraries, gpu) == before


@pytest.mark.parametrize("failing", ["cupy", "numba", "warp"])
def test_a_library_that_fails_on_entry_leaves_no_other_entered(libraries, gpu, stream, failing):
    def fail(*_, **__):
        raise LookupError

    module, before = getattr(libraries, failing), states(libraries, gpu)
    target = {"cupy": (module, "cuda", "Device"), "numba": (module, "external_stream"), "warp": (module, "Stream")}
    *path, last = target[failing]
    setattr(path[0] if len(path) == 1 else getattr(*path), last, fail)
    with pytest.raises(LookupError), stream.bridge("torch", failing):
        raise AssertionError
    assert states(libraries, gpu) == before
    assert not stream.closed


def test_warp_needs_a_stream_in_order_with_the_legacy_one(libraries, gpu):
    before = states(libraries, gpu)
    with pytest.raises(ValueError, match="non_blocking=False"), ab.Stream(gpu).bridge("torch", "warp"):
        raise AssertionError
    assert states(libraries, gpu) == before


def test_a_captured_stream_is_refused(libraries, device, stream):
    with pytest.raises(ab.CaptureError, match="another library"), ab.capture(stream), stream.bridge("torch"):
        raise AssertionError
    assert ab.current_stream(device) != stream
    with stream.bridge("torch"):
        pass


# Order with what the libraries did before, and do after


@each_library
@pytest.mark.parametrize("sync", [True, False])
def test_the_stream_waits_for_the_one_it_replaces(libraries, gpu, name, sync):
    stream, theirs = (ab.Stream(gpu, non_blocking=False) for _ in range(2))
    make_current(name, getattr(libraries, name), theirs)
    with ab.testing.Gate(theirs), stream.bridge(name, sync_enter=sync, sync_exit=False):
        assert stream.query() is not sync
    stream.synchronize()


@each_library
@pytest.mark.parametrize("sync", [True, False])
def test_the_one_replaced_waits_for_the_stream(libraries, gpu, name, sync):
    stream, theirs = (ab.Stream(gpu, non_blocking=False) for _ in range(2))
    make_current(name, getattr(libraries, name), theirs)
    with ab.testing.Gate(stream):
        with stream.bridge(name, sync_exit=sync):
            assert theirs.query()
        assert theirs.query() is not sync
    theirs.synchronize()


def test_numba_uses_the_legacy_stream_before_and_after(libraries, gpu):
    stream = ab.Stream(gpu)
    with ab.testing.Gate(ab.legacy_stream(gpu)), stream.bridge("numba", sync_exit=False):
        assert not stream.query()
    with ab.testing.Gate(stream):
        with stream.bridge("numba"):
            pass
        assert not ab.legacy_stream(gpu).query()
    ab.synchronize(gpu)


@pytest.mark.parametrize("sync", [True, False])
def test_a_cpu_stream_is_waited_for_on_entry(libraries, device, stream, in_thread, sync):
    if device.kind != "cpu":
        pytest.skip("what libraries do on a GPU is asynchronous")

    def enter():
        with stream.bridge("torch", sync_enter=sync):
            return stream.query()

    with ab.testing.Gate(stream):
        entering = in_thread(enter)
        if not sync:
            assert entering.result(TIMEOUT) is False
            return
        assert held(entering)
    assert entering.result(TIMEOUT)
