place_names: tuple[str, ...]
