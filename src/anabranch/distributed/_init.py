"""How a process joins the others."""

from __future__ import annotations

import atexit
import itertools
import os
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from anabranch._core.errors import Error
from anabranch._device.device import Device, current_device, devices
from anabranch._stream.host_threads import check_fork
from anabranch.distributed import _mpi, _progress
from anabranch.distributed._communicator import Communicator
from anabranch.distributed._engine import Engine
from anabranch.distributed._launcher import Launch, find_launch
from anabranch.distributed._mpi_engine import MpiEngine
from anabranch.distributed._side_channel import AbsentError, SideChannel

if TYPE_CHECKING:
    from anabranch._device.device import DeviceLike

# The longest timeout, in seconds, that all clocks and calls of the system can take.
_LONGEST = 1e9

# How long the end of the process waits for operations that their streams have not reached.
_DRAIN = 10.0


class _Process:
    """The connections of this process to the others: MPI and the side channel."""

    def __init__(self, launch: Launch, timeout: float) -> None:
        self.launch = launch
        self.number = os.getpid()
        self.mpi = _mpi.start(launch, timeout)
        module = self.mpi.module
        self.control = module.COMM_WORLD.Dup()
        local = self.control.Split_type(module.COMM_TYPE_SHARED)
        self.local = local.rank, local.size
        local.Free()
        self.side = SideChannel(self.control)
        self.numbers = itertools.count()
        self.meetings = 0
        self.communicators: list[Communicator] = []
        atexit.register(self.end)

    def is_broken(self) -> bool:
        """Return whether a communicator is."""
        return any(communicator.error is not None for communicator in self.communicators)

    def end(self) -> None:
        """Leave the other ranks once everything enqueued is over.

        What has started has the communicator's time; what no stream reaches is given up `_DRAIN` seconds later. Where
        an exception ends the program, it tells the others so, and waits for nothing: they will not be joined by this
        rank. Calls no MPI then, nor if a communicator is broken or a collective is in flight. Does nothing in a forked
        child, whose connections are the parent's.
        """
        if os.getpid() != self.number:
            return
        error = _uncaught() if self.side.size > 1 else None
        if error is None and not self.is_broken():
            self._drain()
        broken = error is not None or self.is_broken()
        idle = _progress.stop()
        self.side.close(2.0 if broken or not idle else _DRAIN, error)
        if self.mpi.owned and idle and not broken and not self.mpi.module.Is_finalized():
            self.mpi.module.Finalize()

    def _drain(self) -> None:
        """Wait until everything enqueued is over. An error that ends this has nobody to be raised to: it is printed."""
        deadline = time.monotonic() + _DRAIN
        while waiting := [each for each in self.communicators if each.is_waiting and each.error is None]:
            if _progress.in_flight() or any(each.backend == "nccl" for each in waiting):
                deadline = time.monotonic() + _DRAIN
            elif time.monotonic() > deadline:
                break
            time.sleep(0.001)
        for communicator in self.communicators:
            if communicator.error is not None:
                print(f"anabranch: rank {self.side.rank}: {communicator.error}", file=sys.stderr)


def _uncaught() -> BaseException | None:
    """Return the exception that ends the program. The interpreter keeps one for debuggers, also of a prompt's line."""
    return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)


_process: _Process | None = None
_joining = threading.Lock()


def init(
    device: DeviceLike = None,
    backend: Literal["mpi", "nccl"] | None = None,
    *,
    rank: int | None = None,
    size: int | None = None,
    address: str | None = None,
    timeout: float = 300.0,
) -> Communicator:
    """Join the processes that were started together; return the communicator of them all.

    A collective: every process must call it, and the call returns once all have. Each further call returns another
    communicator.

    Without arguments, settings come from the launcher: with ``mpiexec``, ``mpirun`` or ``srun``, from MPI; with
    ``torchrun``, from ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT`` (or the next port, if torchrun's
    agent uses that one itself). Without a launcher, the process is the only rank, and every collective works.

    Parameters
    ----------
    device : Device or str, optional
        The device of the arrays. None: the current device if it is a CPU or this is the only rank of the machine; else
        GPU number `local_rank` if every rank has its own GPU; else ``cpu``.
    backend : {"nccl", "mpi"}, optional
        None: NCCL if every rank has its own GPU and nccl4py is installed, else MPI.
    rank, size, address : int, int, str
        For processes without a launcher: all three, with ``host:port`` of rank 0, which listens there. This requires
        MPICH as MPI.
    timeout : float
        Seconds that a collective may take on a rank after its stream has reached it; also the limit of this call, but
        for MPI's own start under ``mpiexec``.

    Raises
    ------
    ModuleNotFoundError
        The engine is not installed; the message says which extra has it.
    ValueError
        Arguments or launcher variables are incomplete or contradict each other; `timeout` is not positive or over
        a billion seconds.
    Error
        The port is taken, ranks did not come or have died, MPI cannot start so, or it has no more communicators.
    ForkError
        In a forked child of a process that has used a device.
    """
    global _process
    check_fork()
    if device in ("gloo", "mpi", "nccl"):
        fitting = "nccl" if device == "nccl" else "mpi"
        raise ValueError(f"the first argument is the device, not {device!r}: write init(backend={fitting!r})")
    if backend not in (None, "mpi", "nccl"):
        raise ValueError(f"backend is 'nccl', 'mpi' or None, not {backend!r}")
    for name, value in (("rank", rank), ("size", size)):
        if value is not None and (isinstance(value, bool) or not hasattr(type(value), "__index__")):
            raise TypeError(f"{name} is an int, not {value!r}")
    if address is not None and not isinstance(address, str):
        raise TypeError(f"address is a text, host:port, not {address!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout is a number of seconds, not {timeout!r}")
    if not 0 < timeout <= _LONGEST:
        raise ValueError(f"timeout is more than 0 and at most {_LONGEST:g} seconds, not {timeout:g}")
    launch = find_launch(os.environ, rank, size, address)
    with _joining:
        if _process is None:
            _process = _joined(launch, timeout)
        elif rank is not None and launch != _process.launch:
            raise ValueError(f"this process is {_process.launch}, and cannot become {launch}")
        process = _process
    _meet(process, timeout)
    with process.mpi.limit():
        control = process.control.Dup()
        place, kind = _placed(process, control, device, backend)
        name = f"world.{next(process.numbers)}"
        members = list(range(control.size))
        return _made(process, control, kind, name, members, process.local, place, timeout)


@dataclass(frozen=True)
class _Meeting:
    """The ranks, before they have another communicator."""

    side: SideChannel
    timeout: float
    name: str = "init"

    @property
    def rank(self) -> int:
        return self.side.rank

    @property
    def size(self) -> int:
        return self.side.size

    @property
    def error(self) -> Error | None:
        return Error(f"{gone}, and init needs all ranks") if (gone := self.side.gone) else None


def _meet(process: _Process, timeout: float) -> None:
    """Block until every rank has called `init`, or one is gone."""
    meeting = _Meeting(process.side, timeout)
    try:
        process.side.compare(meeting, process.meetings, {"what": ["init"], "text": "init()", "place": ""})
    except AbsentError as absent:
        raise Error(f"{absent.who} not called init in {timeout:g} s") from None
    if (error := meeting.error) is not None:
        raise error
    process.meetings += 1


def _joined(launch: Launch, timeout: float) -> _Process:
    try:
        return _Process(launch, timeout)
    except TimeoutError as error:
        raise Error(str(error)) from error
    except OSError as error:
        raise Error(f"rank {launch.rank} cannot open {launch.address}: {error}; is the port taken?") from error


def _placed(process: _Process, control: Any, device: DeviceLike, backend: str | None) -> tuple[Device, str]:
    # Every rank has to come to the same backend, so what each has is told to all.
    local_rank, local_size = process.local
    gpus = devices("cuda")
    if device is not None:
        place = Device(device) if isinstance(device, str) else device
        if not isinstance(place, Device):
            raise TypeError(f"a device is a Device, its alias or None, not {type(device).__name__}")
    elif (current := current_device()).kind == "cpu" or local_size == 1:
        place = current
    else:
        place = gpus[local_rank] if local_rank < len(gpus) else Device("cpu")
    from anabranch.distributed import _nccl

    own = (socket.gethostname(), place.alias) if place.kind == "cuda" else None
    told = control.allgather((own, _nccl.is_installed()))
    fit = None not in (places := [one for one, _ in told]) and len(set(places)) == len(places)
    if device is None and place.kind == "cuda" and not fit:
        place = Device("cpu")
    if backend is None:
        return place, "nccl" if fit and all(installed for _, installed in told) else "mpi"
    if backend == "nccl":
        _nccl.require()
        if not fit:
            raise ValueError(f"NCCL needs a GPU of its own for every rank; this one has {place.alias}")
    return place, backend


def _made(
    process: _Process,
    control: Any,
    backend: str,
    name: str,
    members: list[int],
    local: tuple[int, int],
    device: Device,
    timeout: float,
) -> Communicator:
    engine: Engine
    title = "" if name == "world.0" else f"{name} "
    if backend == "nccl":
        from anabranch.distributed._nccl import NcclEngine

        engine = NcclEngine(control, device, title, timeout, lambda *why: made.give_up(*why))
    else:
        engine = MpiEngine(process.mpi, control.Dup(), title, timeout)
    made = Communicator(
        engine, control, process.side, name, members=members, local=local, device=device, timeout=timeout
    )
    process.communicators = [
        each for each in process.communicators if not each.closed or each.error is not None or each.is_waiting
    ]
    process.communicators.append(made)
    return made


def split(parent: Communicator, control: Any, color: int | None, key: int, number: int) -> Communicator | None:
    """Return the communicator of the ranks with the same color, or None for no color."""
    process = _process
    assert process is not None
    module = process.mpi.module
    with process.mpi.limit():
        part = control.Split(module.UNDEFINED if color is None else color, key)
        if color is None:
            return None
        members = [parent.members[rank] for rank in part.allgather(parent.rank)]
        shared = part.Split_type(module.COMM_TYPE_SHARED)
        local = shared.rank, shared.size
        shared.Free()
        name = f"{parent.name}/{number}.{color}"
        return _made(process, part, parent.backend, name, members, local, parent.device, parent.timeout)
