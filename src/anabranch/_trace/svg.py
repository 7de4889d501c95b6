"""A trace as an SVG picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from anabranch._trace.axis import Gap, folded, ticks_between
from anabranch._trace.colours import KINDS, variables
from anabranch._trace.lanes import MOMENTS, Lane, lanes
from anabranch._trace.operation import Operation
from anabranch._trace.overlap import busy_spans, overlap
from anabranch._trace.words import describe, printable, size, summary, time

WIDTH = 1200
EDGE = 20  # margin on all sides
LETTER = 6.4  # average width of a small letter
LABEL = 22  # maximum letters of a stream's name
TOP = 64  # above the lanes: summary and axis
HEADING = 30  # above the lanes of a device
GAP = 10  # below each lane
LEAST, MOST = 34, 80  # heights of a lane
FILLED = 260  # height that lanes fill if they are few
MARGIN = 10  # of a lane, around the blocks in its middle
FOOT = 46  # below the lanes: the legend
MANY = 300  # threshold of arrows: more are drawn thin, since they cross
OVERLAP = "of the time in which the device was busy, two or more of its streams were"
NEAR = 7  # marks of one kind that are nearer to each other are one

STYLE = """
text{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:var(--text)}
.title{font-size:15px;font-weight:600}
.device{font-size:13px;font-weight:600}
.faint{font-size:11px;fill:var(--faint)}
.end{text-anchor:end}.mid{text-anchor:middle}
.ground{fill:var(--ground);stroke:var(--line)}
.lane{fill:var(--lane)}
.grid{stroke:var(--line);fill:none}
.gap{fill:none;stroke:var(--line);stroke-dasharray:3 3}
.name{font-size:11px;fill:var(--block-text);pointer-events:none}
.kernel{fill:var(--kernel)}.copy{fill:var(--copy)}.fill{fill:var(--fill)}.host{fill:var(--host)}.graph{fill:var(--graph)}.compile{fill:var(--compile)}
.wait{fill:url(#wait);stroke:var(--wait)}.added{fill:url(#added);stroke:var(--added)}
.record,.alloc,.free{stroke-width:1.5}
.record{stroke:var(--record);fill:var(--record)}
.alloc{stroke:var(--alloc);fill:var(--alloc)}
.free{stroke:var(--free);fill:var(--free)}
.halo{stroke:var(--ground);stroke-width:4;stroke-opacity:.75;fill:none;pointer-events:none}
.arrow{stroke:var(--faint);stroke-width:1.5;fill:none;marker-end:url(#wait-tip);pointer-events:none}
.arrow.for-added{stroke:var(--added);marker-end:url(#added-tip)}
.arrow.one-of-many{stroke-width:.75;opacity:.3}
.wait-stripe{stroke:var(--wait);stroke-width:2;stroke-opacity:.55}.added-stripe{stroke:var(--added);stroke-width:2;stroke-opacity:.6}
.wait-tip{fill:var(--faint)}.added-tip{fill:var(--added)}
"""

# For waits, and for waits that hazards added: the hatching, and the arrow's tip.
DEFINITION = """
<pattern id="{kind}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<path class="{kind}-stripe" d="M1 0V6"/></pattern>
<marker id="{kind}-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"
 markerUnits="userSpaceOnUse" orient="auto"><path class="{kind}-tip" d="M0 .5 8 4 0 7.5z"/></marker>"""


def svg(operations: Sequence[Operation]) -> str:
    """Return operations as an SVG document: a lane per stream, and an arrow from each source to its wait's end."""
    return "\n".join(_Picture(operations).document()) + "\n"


class _Picture:
    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.lanes = lanes(operations)
        self.axis = folded(operations)
        longest = max((min(len(lane.label), LABEL) for lane in self.lanes), default=0)
        self.left = EDGE + max(84.0, longest * LETTER * 1.15) + 12
        self.right = WIDTH - EDGE - 8
        self.scale = (self.right - self.left) / self.axis.length
        self.lane = min(MOST, max(LEAST, FILLED // max(1, len(self.lanes)) - GAP))
        self.block = self.lane - MARGIN
        self.tops: list[float] = []
        self.headings: list[tuple[Lane, float]] = []
        bottom = float(TOP)
        for lane, before in zip(self.lanes, [None, *self.lanes], strict=False):
            if before is None or lane.device != before.device:
                self.headings.append((lane, bottom))
                bottom += HEADING
            self.tops.append(bottom)
            bottom += self.lane + GAP
        self.bottom = bottom
        self.height = bottom + FOOT

    def x(self, time: float) -> float:
        return self.left + self.axis.place(time) * self.scale

    def document(self) -> Iterator[str]:
        size = f'width="{WIDTH}" height="{_number(self.height)}" viewBox="0 0 {WIDTH} {_number(self.height)}"'
        yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="timeline">'
        yield f'<title id="timeline">Timeline: {_text(summary(self.operations))}</title>'
        yield f"<style>{variables()}{STYLE}</style>"
        yield f"<defs>{''.join(DEFINITION.format(kind=kind) for kind in ('wait', 'added'))}\n</defs>"
        yield f'<rect class="ground" x=".5" y=".5" width="{WIDTH - 1}" height="{_number(self.height - 1)}" rx="8"/>'
        yield f'<text class="title" x="{EDGE}" y="30">{_text(summary(self.operations))}</text>'
        yield from self._devices()
        for lane, top in zip(self.lanes, self.tops, strict=True):
            yield from self._lane(lane, top)
        for gap in self.axis.gaps:
            yield from self._gap(gap)
        yield from self._axis()
        for lane, top in zip(self.lanes, self.tops, strict=True):
            for operation in lane.operations:
                if operation.kind not in MOMENTS:
                    yield from self._block(operation, top + MARGIN / 2)
        yield from self._arrows()
        # On top of the enclosing blocks and of the arrows that start there.
        for lane, top in zip(self.lanes, self.tops, strict=True):
            yield from self._marks([operation for operation in lane.operations if operation.kind in MOMENTS], top)
        yield from self._legend()
        yield "</svg>"

    def _axis(self) -> Iterator[str]:
        if not self.operations:
            return
        places = ticks_between(self.axis, 10)
        lines = "".join(f"M{_number(self.x(place))} {TOP - 6}V{_number(self.bottom)}" for place, _ in places)
        yield f'<path class="grid" d="{lines}"/>'
        ticks = [(self.x(place), label) for place, label in places]
        gaps = [(self.x(gap.begin) + self.x(gap.end)) / 2 for gap in self.axis.gaps]
        lengths = [f"⋯ {time(float(f'{gap.end - gap.begin:.2g}'))}" for gap in self.axis.gaps]
        # The last tick has the unit.
        for x, label in _apart([*ticks[-1:], *zip(gaps, lengths, strict=True), *ticks[:-1]]):
            yield f'<text class="faint mid" x="{_number(x)}" y="{TOP - 11}">{label}</text>'

    def _devices(self) -> Iterator[str]:
        shares = overlap(self.operations)
        for lane, top in self.headings:
            alias = _text(lane.device.alias)
            yield f'<text class="device" x="{EDGE}" y="{_number(top + 20)}">{alias}</text>'
            share = f"overlap {shares[lane.device]:.0%} {OVERLAP}"
            yield f'<text class="faint" x="{_number(self.left)}" y="{_number(top + 20)}">{share}</text>'

    def _lane(self, lane: Lane, top: float) -> Iterator[str]:
        label = lane.label if len(lane.label) <= LABEL else lane.label[: LABEL - 1] + "…"
        busy = sum(end - begin for begin, end in busy_spans(lane)) / (self.axis.end - self.axis.begin)
        band = f'x="{_number(self.left - 4)}" y="{_number(top)}" width="{_number(self.right - self.left + 8)}"'
        yield f'<rect class="lane" {band} height="{self.lane}" rx="5"/>'
        middle = top + self.lane / 2
        yield f'<text x="{EDGE}" y="{_number(middle - 2)}"><title>{_text(lane.label)}</title>{_text(label)}</text>'
        if lane.stream is not None:
            yield f'<text class="faint" x="{EDGE}" y="{_number(middle + 12)}">{busy:.0%} busy</text>'

    def _block(self, operation: Operation, y: float) -> Iterator[str]:
        x = self.x(operation.begin)
        width = max(1.0, self.x(operation.end) - x)
        if width > 3:
            width -= 0.6  # a line between neighbours
        waits = operation.kind == "wait"
        place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{self.block}"'
        yield f'<rect {_class(operation)} {place} rx="{_number(min(4, width / 4))}">{_title(operation)}</rect>'
        name = printable(f"compile {operation.name}" if operation.kind == "compile" else operation.name)
        fitting = int((width - 6) / LETTER)
        if not waits and fitting >= min(len(name), 5):
            shown = name if len(name) <= fitting else name[: fitting - 2] + "…"
            middle = f'x="{_number(x + width / 2)}" y="{_number(y + self.block / 2 + 4)}"'
            yield f'<text class="name mid" {middle}>{escape(shown)}</text>'

    def _gap(self, gap: Gap) -> Iterator[str]:
        x, end = self.x(gap.begin), self.x(gap.end)
        place = f'x="{_number(x)}" y="{TOP - 4}" width="{_number(end - x)}" height="{_number(self.bottom - TOP + 4)}"'
        words = f"<title>no stream is busy for {time(gap.end - gap.begin)}; shown short</title>"
        yield f'<rect class="gap" {place}>{words}</rect>'

    def _marks(self, moments: Sequence[Operation], top: float) -> Iterator[str]:
        """Draw moments: those of one kind that lie close to each other as one mark, with a title for all of them."""
        groups: dict[str, list[Operation]] = {}
        for operation in moments:
            group = groups.get(operation.kind)
            if group is not None and self.x(operation.begin) - self.x(group[0].begin) < NEAR:
                group.append(operation)
                continue
            if group is not None:
                yield self._mark(group, top)
            groups[operation.kind] = [operation]
        for group in groups.values():
            yield self._mark(group, top)

    def _mark(self, group: Sequence[Operation], top: float) -> str:
        operation, x = group[0], _number(self.x(group[0].begin))
        glyph = {
            "record": f"M{x} {_number(top + 1)}V{_number(top + self.lane)}m-2.5 {1 - self.lane}h5v4h-5z",
            "alloc": f"M{x} {_number(top + self.lane)}m-3 0h6l-3 -5z",
            "free": f"M{x} {_number(top + self.lane - 5)}m-3 0h6l-3 5z",
        }[operation.kind]
        title = _title(operation)
        if len(group) > 1:
            nbytes = sum(one.nbytes or 0 for one in group)
            amount = f", {size(nbytes)}" if nbytes else ""
            title = (
                f"<title>{len(group)} of {_kind(operation)}{amount}\n{escape(describe(operation), quote=False)}</title>"
            )
        return f'<path {_class(operation)} data-count="{len(group)}" d="{glyph}">{title}</path>'

    def _arrows(self) -> Iterator[str]:
        lanes_with_tops = zip(self.lanes, self.tops, strict=True)
        tops = {operation: top for lane, top in lanes_with_tops for operation in lane.operations}
        arrows = [
            (operation, operation.source)
            for operation in self.operations
            if operation.source is not None and operation.source in tops
        ]
        many = len(arrows) > MANY
        for operation, source in arrows:
            down = tops[source] < tops[operation]
            edge = self.lane - MARGIN / 2
            start = tops[source] + (edge if down else self.lane - edge)
            stop = tops[operation] + (self.lane - edge if down else edge)
            left, right = _number(self.x(min(source.end, operation.end))), _number(self.x(operation.end))
            middle = _number((start + stop) / 2)
            curve = f"M{left} {_number(start)}C{left} {middle} {right} {middle} {right} {_number(stop)}"
            look = "arrow" + " for-added" * operation.added + " one-of-many" * many
            halo = "" if many else f'<path class="halo" d="{curve}"/>'
            yield f'{halo}<path class="{look}" d="{curve}"/>'

    def _legend(self) -> Iterator[str]:
        kinds = {_kind(operation) for operation in self.operations}
        x, y = float(EDGE), self.bottom + 14
        for kind in (kind for kind in KINDS if kind in kinds):
            if kind in MOMENTS:
                yield self._legend_mark(kind, x, y)
            else:
                yield f'<rect class="{kind}" x="{_number(x)}" y="{_number(y)}" width="18" height="12" rx="3"/>'
            words = {"added": "added wait"}.get(kind, kind)
            yield f'<text class="faint" x="{_number(x + 24)}" y="{_number(y + 10)}">{words}</text>'
            x += 24 + len(words) * LETTER + 20

    def _legend_mark(self, kind: str, x: float, y: float) -> str:
        return f'<path class="{kind}" d="M{_number(x + 9)} {_number(y - 2)}v16"/>'


def _apart(labels: Sequence[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Yield the labels, each with its middle, that no earlier one comes too near to."""
    taken: list[tuple[float, float]] = []
    for x, label in labels:
        half = (len(label) + 1) * LETTER / 2
        if all(x + half <= begin or x - half >= end for begin, end in taken):
            taken.append((x - half, x + half))
            yield x, label


def _kind(operation: Operation) -> str:
    return "added" if operation.kind == "wait" and operation.added else operation.kind


def _class(operation: Operation) -> str:
    return f'class="{_kind(operation)}" data-kind="{operation.kind}"'


def _title(operation: Operation) -> str:
    return f"<title>{escape(describe(operation), quote=False)}</title>"


def _text(text: str) -> str:
    return escape(printable(text))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
