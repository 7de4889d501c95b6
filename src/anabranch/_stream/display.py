"""Streams as HTML, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from anabranch._core.errors import Error

if TYPE_CHECKING:
    from anabranch._stream.stream import Stream


def _state(stream: Stream) -> str:
    if stream.closed:
        return "closed"
    try:
        if stream.is_capturing:
            return "records for a graph"
        return "nothing is queued" if stream.query() else "work is queued"
    except Error as error:
        return f"failed: {error}"


def html(stream: Stream) -> str:
    """Return a stream and whether work is queued on it. Waits for nothing."""
    return f"<div><code>{escape(repr(stream).strip('<>'))}</code>: {escape(_state(stream))}</div>"
