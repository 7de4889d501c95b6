"""Streams as HTML, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anabranch._core.errors import Error

if TYPE_CHECKING:
    from anabranch._stream.stream import Stream

_LISTED: Final = 8  # names of operations


def _state(stream: Stream) -> str:
    if stream.closed:
        return "closed"
    from anabranch._stream.queued import queued  # which needs streams, and they need this

    try:
        if stream.is_capturing:
            return "records for a graph"
        count, names = (0, []) if stream.query() else queued(stream)
    except Error as error:
        return f"failed: {error}"
    if count == 0:
        return "nothing is queued"
    most = "" if stream.device.kind == "cpu" else "at most "
    state = f"{most}1 operation is queued" if count == 1 else f"{most}{count} operations are queued"
    return f"{state}: {_listed(names)}" if names else state


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def html(stream: Stream) -> str:
    """Return a stream and what is queued on it, by name as far as a trace is on. Waits for nothing."""
    from html import escape

    return f"<div><code>{escape(repr(stream).strip('<>'))}</code>: {escape(_state(stream))}</div>"
