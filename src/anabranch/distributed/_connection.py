"""Messages between the ranks beside the transport: JSON, one a line, over TCP."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any

Message = dict[str, Any]


class Connection:
    """One end of a connection. Any thread may send; one receives."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._sending = threading.Lock()
        self._received = b""

    def fileno(self) -> int:
        """Return the descriptor, for `selectors`."""
        return self._socket.fileno()

    def send(self, **message: Any) -> None:
        """Send a message. To nobody, if the other end is gone: the receiving side finds that out."""
        data = json.dumps(message).encode() + b"\n"
        with self._sending, contextlib.suppress(OSError):
            self._socket.sendall(data)

    def receive(self) -> list[Message] | None:
        """Return what has arrived, blocking until something has; None once the other end is gone."""
        try:
            data = self._socket.recv(65536)
        except OSError:
            data = b""
        if not data:
            return None
        *lines, self._received = (self._received + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Close this end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
