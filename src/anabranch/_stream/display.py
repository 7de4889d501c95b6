"""Streams as HTML, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch._core.errors import Error

if TYPE_CHECKING:
    from anabranch._stream.stream import Stream


def _state(stream: Stream) -> str:
    if stream.closed:
        return "closed"
    from anabranch._stream.queued import queued  # which needs streams, and they need this

    try:
        if stream.is_capturing:
            return "records for a graph"
        count = 0 if stream.query() else queued(stream)
    except Error as error:
        return f"failed: {error}"
    if count == 0:
        return "nothing is queued"
    most = "" if stream.device.kind == "cpu" else "at most "
    return f"{most}1 operation is queued" if count == 1 else f"{most}{count} operations are queued"


def html(stream: Stream) -> str:
    """Return a stream and how many operations are queued on it. Waits for nothing."""
    from html import escape

    return f"<div><code>{escape(repr(stream).strip('<>'))}</code>: {escape(_state(stream))}</div>"
