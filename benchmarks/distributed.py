"""Collectives over MPI against mpi4py's own calls, in the same processes, one after the other.

Run it with ``mpiexec -n 2 python benchmarks/distributed.py``. Rank 0 prints, for each size, microseconds of a whole
`all_reduce`: enqueued and synchronized, against ``Iallreduce`` and ``Wait``; medians of alternating rounds. Then how
much of an `all_reduce` of 64 MiB and of a kernel on another stream is at the same time, by a trace, and what that
saves.
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


@ab.kernel
def iterate(i, rounds, x: ab.InOut):
    value = x[i]
    for _ in range(rounds):
        value = value * (2.5 - value)
    x[i] = value


def overlap(comm: ab.distributed.Communicator, nbytes: int) -> tuple[float, float, float, float]:
    """Return milliseconds of an `all_reduce`, of a kernel, and of both on two streams; and a share.

    The share is that of the shorter one's time, by a trace, in which the other one is running, too.
    """
    communicate, compute = ab.Stream(comm.device, name="communicate"), ab.Stream(comm.device, name="compute")
    x, y = ab.zeros(nbytes // 4, stream=communicate), ab.full(1 << 16, 0.5, stream=compute)

    def run(*, collective: bool, kernel: bool) -> None:
        if kernel:
            ab.launch(iterate, y.shape, 1000, y, stream=compute)
        if collective:
            comm.all_reduce(x, stream=communicate)
        ab.synchronize()

    found: list[tuple[float, float, float, float]] = []
    for _ in range(7):
        times = []
        for collective, kernel in [(True, False), (False, True), (True, True)]:
            MPI.COMM_WORLD.Barrier()
            times.append(measure(lambda c=collective, k=kernel: run(collective=c, kernel=k), 1) / 1e3)
        MPI.COMM_WORLD.Barrier()
        with ab.trace() as trace:
            run(collective=True, kernel=True)
        spans = [(each.begin, each.end) for each in trace.operations if each.kind in ("collective", "kernel")]
        common = min(end for _, end in spans) - max(begin for begin, _ in spans)
        found.append((*times, max(0.0, common) / min(end - begin for begin, end in spans)))
    collective, kernel, both, share = (median(column) for column in zip(*found, strict=True))
    return collective, kernel, both, share


def main() -> None:
    """Print the table and the overlap."""
    with ab.distributed.init() as comm:
        if comm.rank == 0:
            print(f"all_reduce of float32, {comm.size} ranks: microseconds, ours and mpi4py's; our call alone")
            print(f"{'bytes':>10}{'ours':>10}{'mpi4py':>10}{'ratio':>8}{'GB/s':>8}{'call':>8}")
        for nbytes in SIZES:
            ours, theirs, call = compare(comm, nbytes)
            if comm.rank == 0:
                line = f"{nbytes:10}{ours:10.1f}{theirs:10.1f}{ours / theirs:8.2f}{nbytes / ours / 1e3:8.2f}{call:8.1f}"
                print(line, flush=True)
        collective, kernel, both, share = overlap(comm, SIZES[-1])
        if comm.rank == 0:
            times = f"{collective:.1f} ms, a kernel {kernel:.1f} ms, both {both:.1f} ms"
            print(f"all_reduce of {SIZES[-1] >> 20} MiB {times}:")
            print(f"by a trace, {share:.0%} of the shorter one is at the same time as the other")


if __name__ == "__main__":
    main()
