"""Arrays as text and as HTML: with their elements, if those are few and their work is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anabranch._core.errors import Error, ForkError

if TYPE_CHECKING:
    from anabranch._memory.array import Array

# An array of more elements shows none.
_FEW = 100


def _seen(array: Array) -> tuple[Any, str]:
    """Return the elements, or None, and words for the work that they depend on."""
    if array.closed or array.size > _FEW:
        return None, ""
    try:
        values, streams = array._completed()
    except Error:
        return None, ", failed"
    if values is not None:
        return values, ""
    # A stream is listed once for each of its writes.
    names = [repr(stream.name) if stream.name else f"{stream.handle:#x}" for stream in dict.fromkeys(streams)]
    return None, f", pending on stream {' and '.join(names)}" if names else ", pending"


def _shown(array: Array) -> tuple[str, Any, str]:
    """Return the description and what `_seen` does. In the child of a fork nothing is known of an array."""
    try:
        return array._described(), *_seen(array)
    except ForkError:
        return "<Array of the parent of a fork>", None, ""


def text(array: Array) -> str:
    """Return the text of an array. Waits for no pending work."""
    described, values, state = _shown(array)
    if values is None:
        return f"{described[:-1]}{state}>"
    elements = str(values)
    return f"{described[:-1]}{chr(10) if chr(10) in elements else ' '}{elements}>"


def html(array: Array) -> str:
    """Return the same as HTML, for notebooks."""
    from html import escape

    described, values, state = _shown(array)
    described = escape(described.strip("<>"))
    elements = "" if values is None else f"<pre>{escape(str(values))}</pre>"
    return f"<div><code>{described}{escape(state)}</code>{elements}</div>"
