"""A line on a terminal while a kernel compiles for long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE: Final = 1.0
"""Seconds that a compilation takes before the terminal shows it."""

_CLEAR: Final = "\r\x1b[K"


@contextmanager
def told(name: str, patience: float = PATIENCE) -> Iterator[None]:
    """Show on stderr, if it is a terminal, that a kernel is compiling; the line disappears when the block ends.

    A block that takes less than `patience` seconds shows nothing.
    """
    terminal = sys.stderr
    if terminal is None or not terminal.isatty():
        yield
        return
    shown = threading.Event()
    lock, over = threading.Lock(), threading.Event()

    def show() -> None:
        with lock:
            if not over.is_set():
                terminal.write(f"compiling kernel {name!r} ...")
                terminal.flush()
                shown.set()

    timer = threading.Timer(patience, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over.set()
        if shown.is_set():
            terminal.write(_CLEAR)
            terminal.flush()
