from collections.abc import Callable
from typing import Any

from anabranch._device.device import Device
from anabranch.distributed._engine import Engine

def is_installed() -> bool: ...
def require() -> None: ...

class NcclEngine(Engine):
    def __init__(
        self, control: Any, device: Device, title: str, timeout: float, report: Callable[[str], None]
    ) -> None: ...
