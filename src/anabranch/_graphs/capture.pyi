from types import TracebackType

from anabranch._device.device import Device
from anabranch._graphs.graph import Graph
from anabranch._stream.stream import Stream

class capture:  # noqa: N801
    def __init__(self, stream: Stream | None = None, device: Device | str | None = None) -> None: ...
    def __enter__(self) -> Graph: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
