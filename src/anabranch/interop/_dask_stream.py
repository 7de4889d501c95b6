"""Streams on the way between the workers of Dask: each arrives as one of the receiver's own."""

from __future__ import annotations

import itertools
import os
import secrets
import threading
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

from anabranch._core.errors import ClosedError
from anabranch._device.device import current_device
from anabranch._stream.current import legacy_stream, per_thread_stream
from anabranch._stream.stream import Stream

# The process that a stream comes from, and its number there.
_Key: TypeAlias = tuple[str, int]

_TOKEN: Final = secrets.token_hex(8)
_lock = threading.Lock()
_numbers = itertools.count()
# Streams that were sent or have arrived, for as long as somebody has them.
_keys: WeakKeyDictionary[Stream, _Key] = WeakKeyDictionary()
_streams: WeakValueDictionary[_Key, Stream] = WeakValueDictionary()

_DEFAULTS: Final = {"legacy": legacy_stream, "per-thread": per_thread_stream}


def serialize(stream: Stream) -> tuple[dict[str, Any], list[Any]]:
    """Return what describes a stream. Its work stays where it is, and is not waited for."""
    if stream.closed:
        raise ClosedError(f"{stream!r} is closed")
    default = next((name for name, of in _DEFAULTS.items() if stream == of(stream.device)), "")
    with _lock:
        key = _keys.get(stream)
        if key is None:
            # With the process's number: a child that was forked has the same token.
            key = _keys[stream] = f"{_TOKEN} {os.getpid()}", next(_numbers)
            _streams[key] = stream
    options = {"priority": stream.priority, "non_blocking": stream.non_blocking, "name": stream.name}
    return {"key": list(key), "default": default, "options": options}, []


def deserialize(header: dict[str, Any], _frames: list[Any]) -> Stream:
    """Return the stream that another stands for here: where it comes from itself, elsewhere one of the current device.

    That is the default stream of the same kind, or a new stream with its priority and name; the same one each time, for
    as long as somebody has it.
    """
    device = current_device()
    process, number = header["key"]
    with _lock:
        found = _streams.get((process, number))
        if found is not None and not found.closed:
            return found
        if header["default"]:
            return _DEFAULTS[header["default"]](device)
        lowest, highest = device.priority_range  # a smaller number is more urgent
        options = header["options"]
        stream = Stream(device, **{**options, "priority": max(highest, min(lowest, options["priority"]))})
        _streams[process, number] = stream
        _keys[stream] = process, number
        return stream


def reduced(stream: Stream) -> tuple[Any, ...]:
    """Return the same for a pickler."""
    return deserialize, serialize(stream)
