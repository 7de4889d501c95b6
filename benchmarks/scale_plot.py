"""The picture of what is predicted: the hidden share of the exchange against the number of ranks, as SVG."""

from __future__ import annotations

from math import log2

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 20, 50
LINES = (("as much spread as measured", "#c4511c"), ("times alike", "#1b6ca8"))


def plot(found: dict[int, list[float]]) -> str:
    """Return a picture of the shares of each line, by the number of ranks."""
    shares = {ranks: each for ranks, each in found.items() if ranks > 1}
    first, last = log2(min(shares)), log2(max(shares))

    def x(ranks: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (log2(ranks) - first) / (last - first)

    def y(share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" fill="#333">',
        "<title>Hidden share of the exchange against the number of ranks, predicted</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        lines.append(f'<path d="M{LEFT} {y(share):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    lines += [f'<text x="{x(each):.1f}" y="{HEIGHT - 32}" text-anchor="middle">{each}</text>' for each in shares]
    lines.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">ranks</text>')
    for number, (name, color) in enumerate(LINES):
        points = " ".join(f"{x(ranks):.1f},{y(each[number]):.1f}" for ranks, each in shares.items())
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        height = y(0.2) + 16 * number
        lines.append(f'<path d="M{LEFT + 12} {height:.1f}h20" stroke="{color}" stroke-width="2"/>')
        lines.append(f'<text x="{LEFT + 38}" y="{height + 4:.1f}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])
