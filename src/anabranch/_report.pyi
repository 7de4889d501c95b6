from anabranch._errors import RaceError
from anabranch._hazard import Found

def report(found: list[Found], races: list[RaceError] | None) -> None: ...
