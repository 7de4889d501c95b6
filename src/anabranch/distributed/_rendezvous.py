"""Starts MPI among processes that no launcher of MPI has started.

Rank 0 starts a small server at an address that all know. It speaks PMI-1, the protocol in which MPICH, and what is
derived from it, asks its launcher who the other ranks are. So MPI starts as under ``mpiexec``. Open MPI asks in
another protocol, PMIx, whose server is a library of its own.

The file is a program, too: the server, in a process of its own because MPI starts without releasing the interpreter
lock.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from typing import IO, Any

# What PMI_Init of MPICH looks for.
_VARIABLES = ("PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_ID")


def meet(rank: int, size: int, host: str, port: int, timeout: float) -> dict[str, str]:
    """Wait until all ranks are there; return the environment variables with which MPI then starts.

    Raises
    ------
    OSError
        Rank 0 cannot open the port.
    TimeoutError
        Ranks did not come.
    ValueError
        Two processes have the same rank, or one has another size than rank 0: all that wait are told at once.
    """
    if rank == 0:
        with socket.create_server((host, port), family=_family(host, port)) as listener:
            _start_server(listener, size, timeout)
    deadline = time.monotonic() + timeout
    with _connect(host, port, deadline) as connection:
        connection.settimeout(timeout + 10)
        stream = connection.makefile("rwb", buffering=0)
        stream.write(f"cmd=anabranch rank={rank} size={size}\n".encode())
        answer = stream.readline().decode().rstrip("\n")
    if answer.startswith("missing "):
        ranks = answer.removeprefix("missing ")
        many = "s" if "," in ranks else ""
        raise TimeoutError(f"rank{many} {ranks} did not come to {host}:{port} in {timeout:g} s")
    if answer != "ready":
        raise ValueError(answer or f"whoever listens at {host}:{port} is not rank 0 of an ab.distributed program")
    values = (str(rank), str(size), f"{host}:{port}", str(rank))
    return dict(zip(_VARIABLES, values, strict=True))


def _family(host: str, port: int) -> socket.AddressFamily:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]


def _connect(host: str, port: int, deadline: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection((host, port), timeout=max(0.1, deadline - time.monotonic()))
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"rank 0 does not listen at {host}:{port}: {error}") from error
            time.sleep(0.05)


def _start_server(listener: socket.socket, size: int, timeout: float) -> None:
    # The pipe's end that stays open here closes with this process, which is how the server learns of its end.
    read, _ = os.pipe()
    try:
        server = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, str(listener.fileno()), str(size), str(timeout)],
            stdin=read,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    finally:
        os.close(read)
    if code := server.wait():
        raise OSError(f"the server by which the ranks find one another did not start: {sys.executable} returned {code}")


class Server:
    """Answers all ranks, each in a thread of its own.

    It outlives rank 0 for as long as another rank is connected: MPICH says goodbye in an exit handler of the C library,
    after `MPI_Finalize` and after the interpreter's end, and crashes where nobody answers. A rank that has gone counts
    as one that has come to each later barrier, so that nobody waits for it in `MPI_Finalize`.
    """

    def __init__(self, size: int, timeout: float) -> None:
        self._size = size
        self._deadline = time.monotonic() + timeout
        self._changed = threading.Condition()
        self._present: set[int] = set()
        self._contradiction = ""  # of ranks, before all were there
        self._values: dict[str, str] = {}
        self._in_barrier = 0
        self._barriers = 0
        self._connections = 0
        self._gone = 0  # ranks whose connection has ended
        # MPICH names its shared memory after it, and what a killed process has left must not be taken for ours.
        self._name = f"anabranch_{os.getpid()}_{time.time_ns()}"

    def serve(self, listener: socket.socket) -> None:
        """Answer whoever connects, for ever."""
        while True:
            connection, _ = listener.accept()
            with self._changed:
                self._connections += 1
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def wait_for_the_last(self) -> None:
        """Wait until nobody is connected."""
        with self._changed:
            self._changed.wait_for(lambda: not self._connections)

    def _answer(self, connection: socket.socket) -> None:
        commands: set[str] = set()
        try:
            with contextlib.suppress(OSError):  # a process that is gone
                self._converse(connection, commands)
        finally:
            with self._changed:
                self._connections -= 1
                self._gone += "initack" in commands
                self._end_barrier()
                self._changed.notify_all()

    def _converse(self, connection: socket.socket, commands: set[str]) -> None:
        with connection, connection.makefile("rwb", buffering=0) as stream:
            while line := stream.readline().decode(errors="replace").rstrip("\n"):
                words = dict(word.split("=", 1) for word in line.split(" ") if "=" in word)
                commands.add(words.get("cmd", ""))
                reply = getattr(self, f"_{words.get('cmd', '')}", None)
                if reply is None:
                    stream.write(b"cmd=unknown rc=-1\n")
                else:
                    reply(stream, words, line)

    def _say(self, stream: IO[bytes], **words: Any) -> None:
        stream.write((" ".join(f"{name}={value}" for name, value in words.items()) + "\n").encode())

    def _anabranch(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        answer = self._meet(int(words["rank"]), int(words["size"]))
        stream.write(f"{answer}\n".encode())

    def _meet(self, rank: int, size: int) -> str:
        """Wait until all ranks are there, or two contradict each other; return the answer for this one."""
        with self._changed:
            wrong = self._contradiction or self._wrong(rank, size)
            if wrong:
                # Who comes after all were there is a stranger, and stops nobody.
                self._contradiction = "" if self._are_all_there() else wrong
                self._changed.notify_all()
                return wrong
            self._present.add(rank)
            self._changed.notify_all()
            settled = lambda: self._contradiction or self._are_all_there()  # noqa: E731
            self._changed.wait_for(settled, max(0.0, self._deadline - time.monotonic()))
            if self._are_all_there():
                return "ready"
            missing = sorted(set(range(self._size)) - self._present)
            return self._contradiction or f"missing {', '.join(map(str, missing))}"

    def _are_all_there(self) -> bool:
        return len(self._present) == self._size

    def _wrong(self, rank: int, size: int) -> str:
        """Return what a rank says that cannot be; empty if nothing is wrong."""
        if size != self._size:
            return f"rank {rank} says that there are {size} ranks, rank 0 says {self._size}"
        return f"two processes say that they are rank {rank}" if rank in self._present else ""

    def _initack(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        self._say(stream, cmd="initack", rc=0)
        for name, value in (("size", self._size), ("rank", words["pmiid"]), ("debug", 0)):
            self._say(stream, cmd="set", **{name: value})

    def _init(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        self._say(stream, cmd="response_to_init", pmi_version=1, pmi_subversion=1, rc=0)

    def _get_maxes(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        self._say(stream, cmd="maxes", kvsname_max=256, keylen_max=64, vallen_max=1024, rc=0)

    def _get_appnum(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        self._say(stream, cmd="appnum", appnum=0, rc=0)

    def _get_universe_size(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        self._say(stream, cmd="universe_size", size=self._size, rc=0)

    def _get_my_kvsname(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        self._say(stream, cmd="my_kvsname", kvsname=self._name, rc=0)

    def _put(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        self._values[words["key"]] = line.split(" value=", 1)[1]
        self._say(stream, cmd="put_result", rc=0, msg="success")

    def _get(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        value = self._values.get(words["key"])
        if value is None:
            self._say(stream, cmd="get_result", rc=-1, msg="key_not_found", value="unknown")
        else:
            self._say(stream, cmd="get_result", rc=0, msg="success", value=value)

    def _barrier_in(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        with self._changed:
            barrier = self._barriers
            self._in_barrier += 1
            self._end_barrier()
            self._changed.wait_for(lambda: self._barriers != barrier)
        self._say(stream, cmd="barrier_out", rc=0)

    def _end_barrier(self) -> None:
        """Let those go who wait for each other, if all are there. Holds the lock."""
        if self._in_barrier and self._in_barrier + self._gone >= self._size:
            self._in_barrier = 0
            self._barriers += 1
            self._changed.notify_all()

    def _finalize(self, stream: IO[bytes], words: dict[str, str], line: str) -> None:
        self._say(stream, cmd="finalize_ack", rc=0)


def _main() -> None:
    descriptor, size, timeout = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    if os.fork():  # rank 0 has no child that it would have to wait for
        os._exit(0)
    server = Server(size, timeout)
    threading.Thread(target=server.serve, args=(socket.socket(fileno=descriptor),), daemon=True).start()
    sys.stdin.buffer.read()  # until rank 0 has ended
    server.wait_for_the_last()
    os._exit(0)


if __name__ == "__main__":
    _main()
