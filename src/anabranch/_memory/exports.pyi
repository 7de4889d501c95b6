from typing import Any

from anabranch._memory.array import Array

def device_of(array: Array) -> tuple[int, int]: ...
def export(
    array: Array,
    stream: int | None,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any: ...
def cuda_interface(array: Array) -> dict[str, Any]: ...
