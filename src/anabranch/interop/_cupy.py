"""CuPy. Its current stream belongs to the thread, one per GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anabranch.interop._library import Library

if TYPE_CHECKING:
    from contextlib import ExitStack

    from anabranch._stream.stream import Stream


class Handle:
    """A stream's handle; keeps nothing alive."""

    __slots__ = ("_handle",)

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


class CuPy(Library):
    """``cupy.cuda.Stream.from_external``, or ``ExternalStream`` before CuPy 14."""

    name = "cupy"
    module = "cupy"
    package = "cupy-cuda12x or cupy-cuda13x"
    known_by = ("cuda.is_available", "cuda.get_current_stream")

    def __init__(self) -> None:
        # Kept: CuPy's destructor of a Stream may destroy the handle, even one that it does not own.
        self._wrapped: dict[tuple[Any, int, int], Any] = {}

    def usable(self, module: Any) -> bool:
        return bool(module.cuda.is_available())

    def current(self, module: Any, index: int) -> int:
        return int(module.cuda.get_current_stream(index).ptr)

    def enter(self, module: Any, stream: Stream, stack: ExitStack) -> Any:
        index = stream.device.index
        stack.enter_context(module.cuda.Device(index))
        wrapped = self._wrap(module, index, stream.handle)
        # CuPy's scope restores the enclosing scope's stream, not the one that `use()` has made current since.
        stack.callback(module.cuda.get_current_stream(index).use)
        stack.enter_context(wrapped)
        return wrapped

    def _wrap(self, module: Any, index: int, handle: int) -> Any:
        key = module, index, handle
        wrapped = self._wrapped.get(key)
        if wrapped is None:
            make = getattr(module.cuda.Stream, "from_external", None)
            wrapped = make(Handle(handle)) if make else module.cuda.ExternalStream(handle, index)
            wrapped = self._wrapped.setdefault(key, wrapped)
        return wrapped
