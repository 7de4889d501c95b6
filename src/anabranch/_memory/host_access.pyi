from collections.abc import Iterable

from anabranch._hazards.ordering import Touches
from anabranch._memory.array import Array

def touches_of(reads: Array | Iterable[Array], writes: Array | Iterable[Array]) -> Touches: ...
