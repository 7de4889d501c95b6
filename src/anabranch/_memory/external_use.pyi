from typing import final

from anabranch._stream.stream import Stream

@final
class ExternalUse:
    def __init__(self, stream: Stream) -> None: ...
    def end(self) -> None: ...
