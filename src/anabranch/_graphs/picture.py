"""Graphs as pictures: the operations in rows, each below what it comes after."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from anabranch._core.errors import Error

if TYPE_CHECKING:
    from anabranch._graphs.graph import Graph
    from anabranch._graphs.nodes import Node

_WIDTH, _HEIGHT, _GAP, _MOST = 150, 30, 24, 200
_COLOURS = {"kernel": "#cfe8cf", "copy": "#cfdcf0", "fill": "#f0e6c8", "external": "#f3d4c4", "host": "#ecd3ec"}


def _corners(nodes: list[Node], edges: list[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return where the box of each operation begins."""
    before: dict[int, list[int]] = {node.index: [] for node in nodes}
    for first, second in edges:
        before[second].append(first)
    rows: dict[int, int] = {}
    waiting = list(before)
    while waiting:
        ready = [node for node in waiting if all(each in rows for each in before[node])]
        rows |= {node: 1 + max((rows[each] for each in before[node]), default=-1) for node in ready}
        waiting = [node for node in waiting if node not in rows]
    columns = dict.fromkeys(rows.values(), 0)
    corners: dict[int, tuple[int, int]] = {}
    for node in before:
        row = rows[node]
        corners[node] = _GAP + columns[row] * (_WIDTH + _GAP), _GAP + row * (_HEIGHT + _GAP)
        columns[row] += 1
    return corners


def _svg(nodes: list[Node], edges: list[tuple[int, int]]) -> str:
    corners = _corners(nodes, edges)
    width = max((x for x, _ in corners.values()), default=0) + _WIDTH + _GAP
    height = max((y for _, y in corners.values()), default=0) + _HEIGHT + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12" text-anchor="middle">'
    ]
    for first, second in edges:
        (x1, y1), (x2, y2) = corners[first], corners[second]
        parts.append(
            f'<line x1="{x1 + _WIDTH // 2}" y1="{y1 + _HEIGHT}" x2="{x2 + _WIDTH // 2}" y2="{y2}" stroke="#666"/>'
        )
    for node in nodes:
        x, y = corners[node.index]
        label = node.name if len(node.name) < _WIDTH // 8 else node.name[: _WIDTH // 8] + "…"
        parts.append(
            f"<g><title>{escape(f'{node.kind} {node.name} on {node.device.alias}')}</title>"
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" stroke="#666" '
            f'fill="{_COLOURS.get(node.kind, "#eeeeee")}"/>'
            f'<text x="{x + _WIDTH // 2}" y="{y + _HEIGHT // 2 + 4}">{escape(label or node.kind)}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def html(graph: Graph) -> str:
    """Return a graph as HTML, for notebooks; a large one without its picture."""
    described = f"<code>{escape(repr(graph).strip('<>'))}</code>"
    try:
        nodes, edges = graph.nodes, [(first.index, second.index) for first, second in graph.edges]
    except Error:
        return f"<div>{described}</div>"  # closed, or its capture failed
    return f"<div>{described}{'<br>' + _svg(nodes, edges) if len(nodes) <= _MOST else ''}</div>"
