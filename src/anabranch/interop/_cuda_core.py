"""cuda.core. It has no current stream: every call names one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anabranch.interop._library import Library

if TYPE_CHECKING:
    from contextlib import ExitStack

    from anabranch._stream.stream import Stream


class CudaCore(Library):
    """``cuda.core.Stream.from_handle``."""

    name = "cuda_core"
    module = "cuda.core"
    package = "cuda-core"
    known_by = ("Stream.from_handle",)
    has_current_stream = False

    def usable(self, module: Any) -> bool:
        return True

    def current(self, module: Any, index: int) -> None:
        return None

    def enter(self, module: Any, stream: Stream, stack: ExitStack) -> Any:
        return module.Stream.from_handle(stream.handle)
