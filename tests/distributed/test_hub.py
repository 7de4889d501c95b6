"""Rank 0's thread for all ranks, without the ranks."""

from __future__ import annotations

import json
import socket
from typing import Any

from anabranch.distributed._hub import Hub
from anabranch.distributed._line import Line


def call(rank: int) -> dict[str, Any]:
    return {"t": "call", "comm": "world", "number": 1, "rank": rank, "size": 2, "call": {"what": "all_reduce"}}


def test_what_comes_together_with_a_hello_is_heard() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    lines = [Line(socket.create_connection(listener.getsockname(), timeout=60)) for _ in range(2)]
    for rank, line in enumerate(lines):
        both = [{"token": "secret", "rank": rank}, call(rank)]
        text = b"".join(json.dumps(message).encode() + b"\n" for message in both)
        # The first rank's comes at once, the second one's in parts.
        parts = [text] if rank == 0 else [text[:5], text[5:]]
        for part in parts:
            line._connection.sendall(part)
    hub = Hub(listener, 2, "secret")
    for line in lines:
        (verdict,) = line.receive() or []
        assert (verdict["t"], verdict["number"], verdict["error"]) == ("verdict", 1, None)
    for rank, line in enumerate(lines):
        line.send(t="bye", rank=rank)
        line.close()
    hub.join(60)
