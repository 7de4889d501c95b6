"""What stands for the names that streams and events of other libraries have and ours lack."""

from __future__ import annotations

from typing import Final

_CALL: Final = "write stream.submit(f), which gives a future"
_CAPTURE: Final = "write with ab.capture(stream) as graph:"
_HANDLE: Final = "write stream.handle"

OF_STREAMS: Final = {
    "add_callback": _CALL,
    "async_done": "await the stream itself",
    "auto_synchronize": "write stream.synchronize() after a with block",
    "begin_capture": _CAPTURE,
    "create_graph_builder": _CAPTURE,
    "cuda_stream": _HANDLE,
    "done": "write stream.query()",
    "end_capture": _CAPTURE,
    "is_complete": "write stream.query()",
    "launch_host_func": _CALL,
    "null": "write ab.default_stream()",
    "ptds": "write ab.per_thread_stream()",
    "ptr": _HANDLE,
    "record": "write stream.record_event()",
    "stream_id": _HANDLE,
    "sync": "write stream.synchronize()",
    "wait": "write stream.wait_event(event) or stream.wait_stream(other)",
}
OF_EVENTS: Final = {
    "cuda_event": "write event.handle",
    "done": "write event.query()",
    "is_complete": "write event.query()",
    "is_done": "write event.query()",
    "ptr": "write event.handle",
    "sync": "write event.synchronize()",
}
