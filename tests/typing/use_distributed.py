# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
"""Communicators as a user's typed program uses them."""

from typing import Literal, assert_type

import anabranch as ab


def join() -> None:
    with ab.distributed.init("cpu", "mpi", timeout=30) as comm:
        assert_type(comm, ab.distributed.Communicator)
        assert_type(comm.rank + comm.size + comm.local_rank, int)
        assert_type(comm.backend, Literal["mpi", "nccl"])


def communicate(comm: ab.distributed.Communicator, a: ab.Array, b: ab.Array) -> None:
    comm.all_reduce(a)
    comm.all_reduce(a, "avg", b, stream=ab.current_stream())
    comm.gather(b if comm.rank == 0 else None, a, root=0)
    with comm.group():
        comm.send(a, (comm.rank + 1) % comm.size)
        comm.recv(b, (comm.rank - 1) % comm.size)
    comm.barrier()


def split(comm: ab.distributed.Communicator, color: int | None) -> None:
    assert_type(comm.split(comm.rank % 2, key=-comm.rank), ab.distributed.Communicator)
    assert_type(comm.split(color), ab.distributed.Communicator | None)


def mistakes(comm: ab.distributed.Communicator, a: ab.Array) -> None:
    ab.distributed.init(backend="gloo")  # type: ignore[arg-type]
    comm.all_reduce(a, "summ")  # type: ignore[arg-type]
    comm.broadcast(a, src=0)  # type: ignore[call-arg]
    comm.all_reduce(1.0)  # type: ignore[arg-type]
