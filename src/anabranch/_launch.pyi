from typing import SupportsIndex

from anabranch._device import DeviceLike
from anabranch._grid import GridKernel
from anabranch._indices import KernelBase
from anabranch._launch_config import LaunchConfig
from anabranch._stream import Stream

def launch(
    kernel: KernelBase | GridKernel,
    dim: SupportsIndex | tuple[SupportsIndex, ...] | LaunchConfig,
    /,
    *args: object,
    stream: Stream | None = None,
    device: DeviceLike = None,
    block: int | None = None,
) -> None: ...
