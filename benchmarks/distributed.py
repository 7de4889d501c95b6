"""Collectives over MPI against mpi4py's own calls, in the same processes, one after the other.

Run it with ``mpiexec -n 2 python benchmarks/distributed.py``. Rank 0 prints, for each size, microseconds of a whole
`all_reduce`: enqueued and synchronized, against ``Iallreduce`` and ``Wait``; medians of alternating rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
from mpi4py import MPI

import anabranch as ab

SIZES = [1 << power for power in range(10, 27, 2)]


def measure(call: Callable[[], None], repeat: int) -> float:
    """Return microseconds of a call."""
    begin = time.perf_counter()
    for _ in range(repeat):
        call()
    return 1e6 * (time.perf_counter() - begin) / repeat


def compare(comm: ab.distributed.Communicator, nbytes: int) -> tuple[float, float, float]:
    """Return microseconds of ours, of theirs, and of our call alone, which returns before the collective is over."""
    stream = ab.Stream(comm.device)
    x = ab.zeros(nbytes // 4, stream=stream)
    theirs = np.zeros(nbytes // 4, "float32")
    repeat = max(5, min(300, (1 << 24) // nbytes))

    def whole() -> None:
        comm.all_reduce(x, stream=stream)
        stream.synchronize()

    def raw() -> None:
        MPI.COMM_WORLD.Iallreduce(MPI.IN_PLACE, theirs).Wait()

    found: list[tuple[float, float, float]] = []
    for _ in range(7):
        MPI.COMM_WORLD.Barrier()
        ours, others = measure(whole, repeat), measure(raw, repeat)
        calls = measure(lambda: comm.all_reduce(x, stream=stream), repeat)
        stream.synchronize()
        found.append((ours, others, calls))
    return median(one[0] for one in found), median(one[1] for one in found), median(one[2] for one in found)


def main() -> None:
    """Print the table."""
    with ab.distributed.init() as comm:
        if comm.rank == 0:
            print(f"all_reduce of float32, {comm.size} ranks: microseconds, ours and mpi4py's; our call alone")
            print(f"{'bytes':>10}{'ours':>10}{'mpi4py':>10}{'ratio':>8}{'GB/s':>8}{'call':>8}")
        for nbytes in SIZES:
            ours, theirs, call = compare(comm, nbytes)
            if comm.rank == 0:
                line = f"{nbytes:10}{ours:10.1f}{theirs:10.1f}{ours / theirs:8.2f}{nbytes / ours / 1e3:8.2f}{call:8.1f}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
