"""What an `all_reduce` over NCCL costs the host, against C, nccl4py and PyTorch, in the same processes.

Run it with ``mpiexec -n 2 python benchmarks/distributed_nccl.py``, or without mpiexec for one rank. Rank 0 prints
microseconds of a call that enqueues a sum of 4 KiB of float32: medians of alternating rounds. Then those of a whole sum
that the host waits for, and of a graph that contains ten.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import anabranch as ab

COUNT = 1024
CALLS = 200
ROUNDS = 15
GRAPH_CALLS = 10
# The rank 0 of PyTorch's process group listens here.
PORT = int(os.environ.get("NCCL_BENCHMARK_PORT", "29517"))


def compiled() -> Any:
    """Compile the twin in C, and load it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("there is no C compiler; on Debian: apt-get install gcc")
    source = Path(__file__).parent / "twins" / "nccl.c"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nccl.so"
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(path)], check=True)
        library = ctypes.CDLL(str(path))
    library.all_reduce_seconds.restype = ctypes.c_double
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.all_reduce_seconds.argtypes = [pointer, pointer, size, pointer, pointer, ctypes.c_int]
    return library


def in_c(stream: ab.Stream, communicator: Any) -> Callable[[], float]:
    """Return what measures a call in C, with a communicator of nccl4py."""
    nccl = ctypes.CDLL("libnccl.so.2", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    function = ctypes.cast(nccl.ncclAllReduce, ctypes.c_void_p).value
    x = ab.zeros(COUNT, device=stream.device, stream=stream)
    library = compiled()
    return lambda: float(library.all_reduce_seconds(function, x.ptr, COUNT, communicator.ptr, stream.handle, CALLS))


def timed(call: Callable[[], object]) -> Callable[[], float]:
    """Return what measures a call of Python."""

    def measure() -> float:
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        return (time.perf_counter() - begin) / CALLS

    return measure


def by_nccl4py(stream: ab.Stream, communicator: Any) -> Callable[[], float]:
    """Return what measures a call of nccl4py."""
    import nccl.core

    x = ab.zeros(COUNT, device=stream.device, stream=stream)
    return timed(lambda: communicator.allreduce(x, x, nccl.core.NcclRedOp.SUM, stream=stream.handle))


def by_torch(comm: ab.distributed.Communicator) -> Callable[[], float] | None:
    """Return what measures a call of PyTorch, where it is installed."""
    try:
        import torch
        from torch import distributed
    except ImportError:
        return None
    torch.cuda.set_device(comm.local_rank)
    address = f"tcp://127.0.0.1:{PORT}"
    distributed.init_process_group("nccl", init_method=address, rank=comm.rank, world_size=comm.size)
    x = torch.zeros(COUNT, device="cuda")
    return timed(lambda: distributed.all_reduce(x))


def main() -> None:
    """Print the table."""
    import nccl.core
    from mpi4py import MPI

    with ab.distributed.init(backend="nccl") as comm:
        identifier = bytes(nccl.core.get_unique_id()) if comm.rank == 0 else None
        identifier = nccl.core.UniqueId.from_bytes(MPI.COMM_WORLD.bcast(identifier))
        s, other = ab.Stream(comm.device), ab.Stream(comm.device)
        x = ab.zeros(COUNT, stream=s)
        theirs = by_torch(comm)
        communicator = nccl.core.Communicator.init(comm.size, comm.rank, identifier)
        ways = {
            "C": in_c(other, communicator),
            "anabranch": timed(lambda: comm.all_reduce(x, stream=s)),
            "nccl4py": by_nccl4py(other, communicator),
        }
        if theirs is not None:
            ways["torch"] = theirs
        found = compare(ways)
        if comm.rank == 0:
            print(f"all_reduce of {4 * COUNT} bytes, {comm.size} ranks: microseconds of a call that enqueues it")
            for name, microseconds in found.items():
                print(f"{name:>12}{microseconds:10.2f}{microseconds / found['C']:8.2f}")
        with ab.capture(s) as graph:
            for _ in range(GRAPH_CALLS):
                comm.all_reduce(x, stream=s)

        def whole() -> None:
            comm.all_reduce(x, stream=s)
            s.synchronize()

        def replay() -> None:
            graph.launch(s)
            s.synchronize()

        def one_by_one() -> None:
            for _ in range(GRAPH_CALLS):
                comm.all_reduce(x, stream=s)
            s.synchronize()

        found = compare({"one": timed(whole), "ten": timed(one_by_one), "a graph of ten": timed(replay)})
        if comm.rank == 0:
            print("enqueued and awaited:")
            for name, microseconds in found.items():
                print(f"{name:>16}{microseconds:10.2f}")
        graph.close()
        ab.synchronize()


def compare(ways: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Return microseconds of each way: medians of rounds that take turns."""
    from mpi4py import MPI

    rounds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, measure in ways.items():
            MPI.COMM_WORLD.Barrier()
            rounds[name].append(measure())
            ab.synchronize()
    return {name: 1e6 * median(values) for name, values in rounds.items()}


if __name__ == "__main__":
    main()
