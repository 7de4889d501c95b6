from typing import Literal, final

from anabranch._device.device import Device

@final
class Node:
    @property
    def kind(
        self,
    ) -> Literal["kernel", "copy", "fill", "alloc", "free", "external", "host", "if", "while", "graph"]: ...
    @property
    def name(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def device(self) -> Device: ...
