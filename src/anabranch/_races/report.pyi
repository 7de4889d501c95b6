from anabranch._core.errors import RaceError
from anabranch._hazards.ordering import Found

def report(found: list[Found], races: list[RaceError] | None) -> None: ...
