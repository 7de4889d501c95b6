"""Numba for CUDA, in both packages. It has no current stream: launches without a stream use the legacy one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anabranch.interop._library import Library

if TYPE_CHECKING:
    from contextlib import ExitStack

    from anabranch._stream.stream import Stream


class Numba(Library):
    """``cuda.external_stream``, to be given to each launch: ``kernel[grid, block, bridged.numba](...)``."""

    name = "numba"
    module = "numba.cuda"
    package = "numba-cuda"
    known_by = ("is_available", "external_stream")
    has_current_stream = False

    def usable(self, module: Any) -> bool:
        return bool(module.is_available())

    def current(self, module: Any, index: int) -> int:
        return 0

    def enter(self, module: Any, stream: Stream, stack: ExitStack) -> Any:
        stack.enter_context(module.gpus[stream.device.index])
        return module.external_stream(stream.handle)


class NumbaMlir(Numba):
    """The same for the package that compiles through MLIR."""

    name = "numba_cuda_mlir"
    module = "numba_cuda_mlir.cuda"
    package = "numba-cuda-mlir"
