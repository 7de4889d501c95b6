"""Immortal objects: no reference-count contention on free-threaded builds."""


def keep(objects):
    """Make objects immortal. To be called by the thread that made them."""
    for each in objects:
        make_immortal(each)
