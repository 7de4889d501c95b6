"""Stand-ins for other libraries: each keeps a current stream as the real one does, and has what a bridge calls."""

import contextlib
import threading
from types import ModuleType, SimpleNamespace


class ForeignStream:
    """A stream of theirs: a handle that they were given."""

    def __init__(self, handle, index=None):
        self.handle = self.cuda_stream = self.ptr = handle
        self.index = index

    def __cuda_stream__(self):
        return 0, self.handle

    def __eq__(self, other):
        return isinstance(other, ForeignStream) and self.handle == other.handle

    __hash__ = None


class PerThread(threading.local):
    """What each thread has of its own: a device, and a current stream for each."""

    def __init__(self):
        self.device, self.streams, self.stacks = 0, {}, {}

    def current(self, index):
        return self.streams.get(index, ForeignStream(0, index))


def torch():
    """PyTorch: `cuda.stream` puts back what it found, the device too."""
    state = PerThread()

    @contextlib.contextmanager
    def stream(chosen):
        before = state.device, dict(state.streams)
        state.device, state.streams[chosen.index] = chosen.index, chosen
        try:
            yield
        finally:
            state.device, state.streams = before

    def external(handle, device):
        assert handle != 1, "PyTorch takes it for a number of its own"
        return ForeignStream(handle, device)

    module = ModuleType("torch")
    module.state = state
    module.cuda = SimpleNamespace(
        is_available=lambda: True, current_stream=state.current, stream=stream, ExternalStream=external,
        default_stream=lambda index: ForeignStream(0, index),
    )  # fmt: skip
    return module


def cupy():
    """CuPy: the end of a scope makes current what the scope around it had; a stream that goes destroys its handle."""
    state = PerThread()
    destroyed = []

    class Stream(ForeignStream):
        owned = False

        @classmethod
        def from_external(cls, obj):
            return cls(obj.__cuda_stream__()[1], state.device)

        def __del__(self):
            destroyed.append(self.handle)

        def __enter__(self):
            state.stacks.setdefault(self.index, []).append(self)
            return self.use()

        def __exit__(self, *_):
            stack = state.stacks[self.index]
            stack.pop()
            state.streams[self.index] = stack[-1] if stack else ForeignStream(0, self.index)

        def use(self):
            assert state.device == self.index
            state.streams[self.index] = self
            return self

    null = {}

    def current(index):
        return state.streams.get(index) or null.setdefault(index, Stream(0, index))

    @contextlib.contextmanager
    def device(index):
        before, state.device = state.device, index
        try:
            yield
        finally:
            state.device = before

    module = ModuleType("cupy")
    module.state, module.destroyed = state, destroyed
    module.cuda = SimpleNamespace(is_available=lambda: True, get_current_stream=current, Stream=Stream, Device=device)
    return module


def warp():
    """Warp: one current stream per GPU, for all threads; a second object for a handle ends what the first one has."""
    state = SimpleNamespace(device="cpu", streams={}, registered=set())

    class Stream(ForeignStream):
        def __init__(self, device, cuda_stream):
            super().__init__(cuda_stream, device)
            assert cuda_stream not in state.registered
            state.registered.add(cuda_stream)

    @contextlib.contextmanager
    def scoped(stream, sync_enter=True, sync_exit=False):
        assert not sync_enter
        before = state.device, dict(state.streams)
        state.device, state.streams[stream.index] = stream.index, stream
        try:
            yield stream
        finally:
            state.device, state.streams = before

    module = ModuleType("warp")
    module.state = state
    module.is_cuda_available = lambda: True
    module.get_stream = lambda device: state.streams.get(device, ForeignStream(None, device))
    module.Stream, module.ScopedStream = Stream, scoped
    return module


def numba(name):
    """Numba for CUDA: no current stream, but a current device."""
    state = PerThread()

    @contextlib.contextmanager
    def gpu(index):
        before, state.device = state.device, index
        try:
            yield
        finally:
            state.device = before

    class Gpus:
        def __getitem__(self, index):
            return gpu(index)

    module = ModuleType(name)
    module.state = state
    module.is_available = lambda: True
    module.gpus = Gpus()
    module.external_stream = ForeignStream
    return module


def cuda_core():
    """The cuda.core package: every call names its stream."""
    module = ModuleType("cuda.core")
    module.Stream = SimpleNamespace(from_handle=ForeignStream)
    return module


# By the names that bridges know, and how each is imported.
MAKE = {
    "torch": ("torch", torch),
    "cupy": ("cupy", cupy),
    "warp": ("warp", warp),
    "numba": ("numba.cuda", lambda: numba("numba.cuda")),
    "numba_cuda_mlir": ("numba_cuda_mlir.cuda", lambda: numba("numba_cuda_mlir.cuda")),
    "cuda_core": ("cuda.core", cuda_core),
}


def current(name, module, device):
    """Return the handle of a library's current stream; 0 for the legacy one."""
    if name == "warp":
        return module.get_stream(device.alias).handle or 0
    if name == "cupy":
        return module.cuda.get_current_stream(device.index).ptr
    return module.cuda.current_stream(device.index).cuda_stream


def make_current(name, module, stream):
    """Make a stream the current one of a library, for good."""
    device = stream.device
    if name == "warp":
        module.state.streams[device.alias] = ForeignStream(stream.handle, device.alias)
    elif name == "cupy":
        with module.cuda.Device(device.index):
            module.cuda.Stream(stream.handle, device.index).use()
    else:
        module.state.streams[device.index] = ForeignStream(stream.handle, device.index)
