"""`bridge`: one stream for several libraries, for the length of a block."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from anabranch._core.errors import DeviceError
from anabranch._memory.external_use import ExternalUse
from anabranch._stream.current import current_stream, legacy_stream
from anabranch._stream.stream import Stream
from anabranch.interop._cuda_core import CudaCore
from anabranch.interop._cupy import CuPy
from anabranch.interop._numba import Numba, NumbaMlir
from anabranch.interop._torch import Torch
from anabranch.interop._warp import Warp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from anabranch.interop._library import Library

LIBRARIES: dict[str, Library] = {
    library.name: library for library in (Torch(), CuPy(), Warp(), Numba(), NumbaMlir(), CudaCore())
}


class Bridged:
    """The streams that a bridge binds: `stream`, and under each library's name that library's own stream object.

    With a CPU stream the libraries' objects are None.
    """

    __slots__ = ("_objects", "_stream")

    def __init__(self, stream: Stream, objects: dict[str, Any]) -> None:
        self._stream = stream
        self._objects = objects

    @property
    def stream(self) -> Stream:
        """The stream of the block."""
        return self._stream

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_objects")[name]  # a copy under construction has none yet
        except KeyError:
            there = ", ".join(self._objects) or "none"
            raise AttributeError(f"{name!r} is no library of this bridge, whose libraries are: {there}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._objects]

    def __repr__(self) -> str:
        return f"<Bridged {self.stream!r}: {', '.join(self._objects)}>"


class _Block(NamedTuple):
    """An open block: the stack that restores the current streams, and the streams that wait at the end."""

    stack: ExitStack
    use: ExternalUse | None
    stream: Stream
    replaced: list[Stream]  # these wait for the stream at the end


class _Open(threading.local):
    """The open blocks of a thread."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []


class Bridge:
    """Returned by `bridge`. May be entered again, also while it is open, and by several threads."""

    __slots__ = ("_libraries", "_open", "_stream", "_sync_enter", "_sync_exit")

    def __init__(self, stream: Stream | None, libraries: list[Library], sync_enter: bool, sync_exit: bool) -> None:
        self._stream = stream
        self._libraries = libraries
        self._sync_enter = sync_enter
        self._sync_exit = sync_exit
        self._open = _Open()

    def __enter__(self) -> Bridged:
        stream = current_stream() if self._stream is None else self._stream
        # A private wrapper: the stream is joined even if the user closes it in the block.
        own = Stream.from_external(stream)
        own.__cuda_stream__()  # raises during a capture
        with ExitStack() as stack:
            stack.enter_context(stream)
            if stream.device.kind == "cuda":
                modules = dict(self._modules(own))
                replaced = list(self._replaced(own, modules))
                if self._sync_enter:
                    for other in replaced:
                        own.wait_stream(other)
                objects = {library.name: library.enter(module, own, stack) for library, module in modules.items()}
                use = ExternalUse(own)
            else:
                # Work of the libraries on a CPU is done when they return, so it is already in order with later work.
                objects, replaced, use = dict.fromkeys([library.name for library in self._libraries]), [], None
                if self._sync_enter:
                    own.synchronize()
            self._open.blocks.append(_Block(stack.pop_all(), use, own, replaced if self._sync_exit else []))
        return Bridged(stream, objects)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._open.blocks:
            raise RuntimeError(f"{self!r} is left, but this thread has not entered it")
        block = self._open.blocks.pop()
        try:
            if block.use is not None:
                block.use.end()
        finally:
            block.stack.__exit__(kind, value, traceback)
        for other in block.replaced:
            other.wait_stream(block.stream)

    def _modules(self, stream: Stream) -> Iterator[tuple[Library, Any]]:
        """Yield the block's libraries, imported and verified to be usable before anything changes."""
        for library in self._libraries:
            module = library.load(f"a bridge to {library.name!r}")
            if not library.usable(module):
                raise DeviceError(f"this {library.module} cannot use GPUs, so no bridge leads to it from {stream!r}")
            yield library, module
        if not self._libraries:
            for library in LIBRARIES.values():
                # Not imported here: that would wait for another thread's unfinished import.
                module = sys.modules.get(library.module)
                if library.has_current_stream and library.recognizes(module) and library.usable(module):
                    yield library, module

    def _replaced(self, stream: Stream, modules: dict[Library, Any]) -> Iterator[Stream]:
        """Yield each stream, other than this one, that is current in one of the libraries, once."""
        handles = [library.current(module, stream.device.index) for library, module in modules.items()]
        for handle in dict.fromkeys(1 if handle == 0 else handle for handle in handles if handle is not None):
            if handle == 1:
                replaced = legacy_stream(stream.device)
            else:
                replaced = Stream.from_external(handle, stream.device)
            if replaced != stream:
                yield replaced

    def __repr__(self) -> str:
        parts = [repr(self._stream), *(repr(library.name) for library in self._libraries)]
        return f"bridge({', '.join(parts)})"


def bridge(stream: Stream | None = None, /, *libraries: str, sync_enter: bool = True, sync_exit: bool = True) -> Bridge:
    """Make a stream the current one of other libraries as well, for the length of a ``with`` block.

    In the block the stream is this task's current one, and what the libraries do on this thread goes into it, so it is
    in order with ours, in either direction. Arrays that are handed over in the block, either way, count as used by the
    stream until the block ends, so work of other streams is put in order with what the libraries did to them, or
    reported. At the end, also after an error, every library gets back the stream and the device that it had.

    Parameters
    ----------
    stream : Stream, optional
        None: the current stream when the block is entered.
    *libraries : {"torch", "cupy", "warp", "numba", "numba_cuda_mlir", "cuda_core"}
        None named: those of the first three that the program has imported and that can use GPUs.
    sync_enter : bool
        The stream waits for the streams that it replaces in the libraries; a CPU stream is synchronized.
    sync_exit : bool
        At the end, the streams that it replaced wait for it. Without that, the libraries' later work is not in order
        with what they did in the block, and blocks of several streams may overlap.

    Returns
    -------
    context manager of Bridged
        ``bridged.stream``, and by the name of each library its own object for the stream, such as ``bridged.numba``,
        which has no current stream: its launches have to be given it, as ``kernel[grid, block, bridged.numba](...)``.
        On a CPU stream those are None.

    Raises
    ------
    ValueError
        For a library that is not known; on entry, for ``"warp"`` with a non-blocking stream.
    ModuleNotFoundError
        If a library is not installed; on entry with a stream of a GPU, if a module of the program's own has its name.
    DeviceError
        On entry with a stream of a GPU, if a library cannot use GPUs.
    CaptureError
        On entry, if the stream is captured: what other libraries put in would run at once.

    Notes
    -----
    What is put into a CPU stream in the block is asynchronous, and the libraries know nothing of it: hand the array
    over again, or synchronize the stream, before they use what it writes. The same holds on a GPU for what other
    streams write in the block. The current streams of other libraries belong to the thread (Warp's: to all threads),
    so do not ``await`` in the block.

    Examples
    --------
    >>> import anabranch as ab
    >>> s = ab.Stream("cpu")
    >>> with ab.bridge(s) as bridged:
    ...     x = ab.zeros(3)
    >>> bridged.stream is s
    True
    """
    if stream is not None and not isinstance(stream, Stream):
        named = isinstance(stream, (str, list, tuple))
        hint = "; name libraries after it, as bridge(None, 'torch')" if named else ""
        raise TypeError(f"stream is a Stream or None, not {type(stream).__name__}{hint}")
    for name in libraries:
        if not isinstance(name, str):
            raise TypeError(f"libraries are named one by one, as bridge(stream, 'torch', 'cupy'), not by {name!r}")
        if name not in LIBRARIES:
            raise ValueError(f"no bridge leads to {name!r}; the libraries are {', '.join(map(repr, LIBRARIES))}")
    for name in libraries:
        LIBRARIES[name].require(f"a bridge to {name!r}")
    return Bridge(stream, [LIBRARIES[name] for name in dict.fromkeys(libraries)], sync_enter, sync_exit)
