"""Rank 0's thread for all ranks, without the ranks."""

from __future__ import annotations

import json
import socket
from typing import Any

from anabranch.distributed._connection import Connection
from anabranch.distributed._coordinator import Coordinator


def call(rank: int) -> dict[str, Any]:
    return {"t": "call", "comm": "world", "number": 1, "rank": rank, "size": 2, "call": {"what": "all_reduce"}}


def test_what_comes_together_with_a_hello_is_heard() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    connections = [Connection(socket.create_connection(listener.getsockname(), timeout=60)) for _ in range(2)]
    for rank, connection in enumerate(connections):
        both = [{"token": "secret", "rank": rank}, call(rank)]
        text = b"".join(json.dumps(message).encode() + b"\n" for message in both)
        # The first rank's comes at once, the second one's in parts.
        parts = [text] if rank == 0 else [text[:5], text[5:]]
        for part in parts:
            connection._socket.sendall(part)
    coordinator = Coordinator(listener, 2, "secret")
    for connection in connections:
        (verdict,) = connection.receive() or []
        assert (verdict["t"], verdict["number"], verdict["error"]) == ("verdict", 1, None)
    for rank, connection in enumerate(connections):
        connection.send(t="bye", rank=rank, started={})
        connection.close()
    coordinator.join(60)
