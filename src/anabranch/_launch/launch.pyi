from typing import SupportsIndex

from anabranch._device.device import DeviceLike
from anabranch._launch.configuration import LaunchConfig
from anabranch._launch.grid import GridKernel
from anabranch._launch.indices import KernelBase
from anabranch._stream.stream import Stream

def launch(
    kernel: KernelBase | GridKernel,
    dim: SupportsIndex | tuple[SupportsIndex, ...] | LaunchConfig,
    /,
    *args: object,
    stream: Stream | None = None,
    device: DeviceLike = None,
    block: int | None = None,
) -> None: ...
