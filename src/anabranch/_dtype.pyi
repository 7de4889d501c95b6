names: tuple[str, ...]
