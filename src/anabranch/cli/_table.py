"""Tables of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TextIO


def show(headings: Sequence[str], rows: Sequence[Sequence[str]], file: TextIO) -> None:
    """Print a table: plain text, for searching and pasting, unless `file` is a terminal and rich is installed."""
    if file.isatty() and find_spec("rich") is not None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*headings, box=None, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*(Text(cell, overflow="fold") for cell in row))
        Console(file=file).print(table, end="\n\n")
        return
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), file=file)
    print(file=file)
