from anabranch._device import DeviceLike
from anabranch._stream import Stream

class KernelBase:
    def _bind(self, codes: tuple[int, ...]) -> None: ...

def launch(
    kernel: KernelBase,
    dim: int | tuple[int, ...],
    *args: object,
    stream: Stream | None = None,
    device: DeviceLike = None,
    block: int | None = None,
) -> None: ...
