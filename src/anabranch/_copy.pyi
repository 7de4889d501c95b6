from anabranch._array import Array
from anabranch._stream import Stream

def fill(dst: Array, value: bool | complex, *, stream: Stream | None = None) -> None: ...
def copy(
    dst: Array,
    src: Array,
    *,
    stream: Stream | None = None,
    dst_offset: int = 0,
    src_offset: int = 0,
    count: int | None = None,
) -> None: ...
