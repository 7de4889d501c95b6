"""How values are written, and tables set."""

from __future__ import annotations

from collections.abc import Sequence

TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
SIZES = ((2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def in_words(value: float, unit: str) -> str:
    """Write a value with three digits and the unit that suits it."""
    scales = {"ns": TIMES, "B": SIZES, "times": ((1, "times"),)}[unit]
    factor, name = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    return f"{value / factor:.3g} {name}" if abs(value / factor) < 1000 else f"{value / factor:.0f} {name}"


def table(rows: list[tuple[str, ...]], headings: tuple[str, ...], *, markdown: bool = False) -> str:
    """Set rows of text in columns."""
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    lines = [headings, *rows]
    if markdown:
        lines.insert(1, ("---",) * len(headings))
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n".join(line_of(line, widths) for line in lines)


def line_of(cells: tuple[str, ...], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
