from collections.abc import Iterable

from anabranch._array import Array
from anabranch._hazard import Touches

def touches_of(reads: Array | Iterable[Array], writes: Array | Iterable[Array]) -> Touches: ...
