"""PyTorch. Its current stream and device belong to the thread; Triton launches on that stream, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anabranch.interop._library import Library

if TYPE_CHECKING:
    from contextlib import ExitStack

    from anabranch._stream.stream import Stream


class Torch(Library):
    """``torch.cuda.ExternalStream`` and ``torch.cuda.stream``, which also restores the device."""

    name = "torch"
    module = "torch"
    package = "torch"
    known_by = ("cuda.is_available", "cuda.current_stream")

    def usable(self, module: Any) -> bool:
        return bool(module.cuda.is_available())

    def current(self, module: Any, index: int) -> int:
        return int(module.cuda.current_stream(index).cuda_stream)

    def enter(self, module: Any, stream: Stream, stack: ExitStack) -> Any:
        index = stream.device.index
        if stream.handle == 1:
            # As an external handle, PyTorch would take it for a stream of its pool.
            wrapped = module.cuda.default_stream(index)
        else:
            wrapped = module.cuda.ExternalStream(stream.handle, device=index)
        stack.enter_context(module.cuda.stream(wrapped))
        return wrapped
