"""Warp. Its current stream belongs to the GPU and is the same in all threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anabranch.interop._library import Library

if TYPE_CHECKING:
    from contextlib import ExitStack

    from anabranch._stream.stream import Stream


class Warp(Library):
    """``warp.Stream(device, cuda_stream=...)`` and ``warp.ScopedStream``, which also restores the device."""

    name = "warp"
    module = "warp"
    package = "warp-lang"
    known_by = ("is_cuda_available", "get_stream", "ScopedStream")

    def __init__(self) -> None:
        # Kept: when one of two objects for a handle is destroyed, Warp forgets the handle.
        self._wrapped: dict[tuple[Any, int, int], Any] = {}

    def usable(self, module: Any) -> bool:
        return bool(module.is_cuda_available())

    def current(self, module: Any, index: int) -> int:
        return int(module.get_stream(f"cuda:{index}").cuda_stream or 0)

    def enter(self, module: Any, stream: Stream, stack: ExitStack) -> Any:
        if stream.non_blocking:
            raise ValueError(
                f"Warp frees memory on the legacy stream, with which {stream!r} has no order: for a bridge to 'warp' "
                "make the stream with non_blocking=False, else name the other libraries"
            )
        key = module, stream.device.index, stream.handle
        wrapped = self._wrapped.get(key)
        if wrapped is None:
            wrapped = module.Stream(stream.device.alias, cuda_stream=stream.handle)
            wrapped = self._wrapped.setdefault(key, wrapped)
        stack.enter_context(module.ScopedStream(wrapped, sync_enter=False))
        return wrapped
