"""Objects that are not counted, so that threads which use them at the same time do not write to the same memory."""


def keep(objects):
    """Keep objects for as long as the process lives. For the thread that made them."""
    for each in objects:
        keep_forever(each)
