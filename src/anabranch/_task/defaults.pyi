modes: dict[str, int]
