"""Collectives over MPI against mpi4py's own calls and PyTorch's gloo, in the same processes, one after the other.

Run it with ``mpiexec -n 2 python benchmarks/distributed.py``. Rank 0 prints, for each size, microseconds of a whole
`all_reduce`: enqueued and synchronized, against ``Iallreduce`` and ``Wait``, and against
``torch.distributed.all_reduce`` where PyTorch is installed; medians of alternating rounds. Then how much of an
`all_reduce` of 64 MiB and of a kernel on another stream is at the same time, by a trace, and what that saves.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from functools import partial
from math import nan
from statistics import median
from typing import NamedTuple

import numpy as np
from mpi4py import MPI

import anabranch as ab

SIZES = [1 << power for power in range(10, 27, 2)]


def measure(call: Callable[[], object], repeat: int) -> float:
    """Return microseconds of a call."""
    begin = time.perf_counter()
    for _ in range(repeat):
        call()
    return 1e6 * (time.perf_counter() - begin) / repeat


def find_gloo(comm: ab.distributed.Communicator) -> Callable[[np.ndarray], Callable[[], object]] | None:
    """Return what makes a call of gloo that reduces an array, or None without PyTorch."""
    try:
        import torch
        import torch.distributed as dist
    except ModuleNotFoundError:
        return None
    address = None
    if comm.rank == 0:
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dist.init_process_group("gloo", MPI.COMM_WORLD.bcast(address), world_size=comm.size, rank=comm.rank)
    return lambda array: partial(dist.all_reduce, torch.from_numpy(array))


class Times(NamedTuple):
    """Microseconds of an `all_reduce`."""

    ours: float
    mpi4py: float
    gloo: float  # NaN without PyTorch
    call: float  # of our call alone, which returns before the collective is over


def compare(comm: ab.distributed.Communicator, nbytes: int, gloo: Callable[..., Callable[[], object]] | None) -> Times:
    """Return medians of alternating rounds."""
    stream = ab.Stream(comm.device)
    x = ab.zeros(nbytes // 4, stream=stream)
    theirs = np.zeros(nbytes // 4, "float32")
    by_gloo = gloo(np.zeros(nbytes // 4, "float32")) if gloo else None
    repeat = max(5, min(300, (1 << 24) // nbytes))

    def whole() -> None:
        comm.all_reduce(x, stream=stream)
        stream.synchronize()

    def raw() -> None:
        MPI.COMM_WORLD.Iallreduce(MPI.IN_PLACE, theirs).Wait()

    found: list[Times] = []
    for _ in range(7):
        MPI.COMM_WORLD.Barrier()
        ours, others = measure(whole, repeat), measure(raw, repeat)
        calls = measure(lambda: comm.all_reduce(x, stream=stream), repeat)
        stream.synchronize()
        MPI.COMM_WORLD.Barrier()
        found.append(Times(ours, others, measure(by_gloo, repeat) if by_gloo else nan, calls))
    return Times(*map(median, zip(*found, strict=True)))


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
            print(f"all_reduce of float32, {comm.size} ranks: microseconds; our GB/s; our call alone")
            print(f"{'bytes':>10}{'ours':>10}{'mpi4py':>10}{'ratio':>8}{'gloo':>10}{'ratio':>8}{'GB/s':>8}{'call':>8}")
        gloo = find_gloo(comm)
        for nbytes in SIZES:
            times = compare(comm, nbytes, gloo)
            if comm.rank == 0:
                line = f"{nbytes:10}{times.ours:10.1f}"
                for peer in (times.mpi4py, times.gloo):
                    line += f"{peer:10.1f}{times.ours / peer:8.2f}"
                print(f"{line}{nbytes / times.ours / 1e3:8.2f}{times.call:8.1f}", flush=True)
        collective, kernel, both, share = overlap(comm, SIZES[-1])
        if comm.rank == 0:
            times = f"{collective:.1f} ms, a kernel {kernel:.1f} ms, both {both:.1f} ms"
            print(f"all_reduce of {SIZES[-1] >> 20} MiB {times}:")
            print(f"by a trace, {share:.0%} of the shorter one is at the same time as the other")


if __name__ == "__main__":
    main()
