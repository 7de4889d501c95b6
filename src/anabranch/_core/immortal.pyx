"""Immortal objects: no reference-count contention on free-threaded builds."""


def keep(objects):
    """Make objects immortal. Only the thread that created them may call this."""
    for each in objects:
        make_immortal(each)
