"""The environment variables through which launchers describe a job to its processes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

# Of those that start MPI programs, by what they set: rank and size.
_MPI = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
)
_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class Launch:
    """How this process was started.

    Attributes
    ----------
    by : str
        ``"mpi"``: MPI knows rank and size; ``"address"``: the processes meet at `address`; ``"nobody"``: it is alone.
    rank, size : int or None
        None where only MPI knows.
    address : str or None
        ``host:port``, which rank 0 opens.
    """

    by: str
    rank: int | None = None
    size: int | None = None
    address: str | None = None

    def __str__(self) -> str:
        if self.by == "nobody":
            return "alone"
        return "a rank of MPI" if self.rank is None else f"rank {self.rank} of {self.size} at {self.address or 'MPI'}"


def is_launched() -> bool:
    """Return whether the variables of a launcher are set: ``mpiexec``, ``mpirun``, ``srun`` or ``torchrun``.

    Examples
    --------
    >>> import anabranch as ab
    >>> ab.distributed.is_launched()
    False
    """
    return _of_mpi(os.environ) is not None or _of_torchrun(os.environ) is not None


def rank_among(environ: Mapping[str, str]) -> int | None:
    """Return the rank that a launcher has given to this process among several; None without one, or for one process.

    Variables that make no sense are for `find_launch` to refuse: here they count as none.
    """
    try:
        launch = find_launch(environ)
        if launch.rank is None and launch.by == "mpi":  # where only MPI knows the size
            return _number(environ, next(rank for rank, _ in _MPI if rank in environ))
    except ValueError:
        return None
    return launch.rank if (launch.size or 1) > 1 else None


def find_launch(
    environ: Mapping[str, str], rank: int | None = None, size: int | None = None, address: str | None = None
) -> Launch:
    """Return how a process was started, from arguments or else from its environment.

    Raises
    ------
    ValueError
        Some of the arguments are missing, a value makes no sense, or two launchers contradict each other.
    """
    given = {"rank": rank, "size": size, "address": address}
    if any(value is not None for value in given.values()):
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise ValueError(
                f"init was given {_listed(given)}, without {' and '.join(missing)}: give all three or none"
            )
        assert rank is not None
        assert size is not None
        assert address is not None
        return _checked(Launch("address", rank, size, address), "rank", "size", "address")
    mpi, torchrun = _of_mpi(environ), _of_torchrun(environ)
    if mpi is not None and torchrun is not None and (mpi.rank, mpi.size) != (torchrun.rank, torchrun.size):
        # A rank that only MPI knows contradicts nobody.
        if mpi.rank is not None and mpi.size is not None:
            raise ValueError(
                f"the launcher of MPI calls this rank {mpi.rank} of {mpi.size}, but RANK={environ['RANK']} and "
                f"WORLD_SIZE={environ['WORLD_SIZE']} say otherwise: unset those that are left over"
            )
    return mpi or torchrun or Launch("nobody", 0, 1)


def _listed(given: Mapping[str, object]) -> str:
    return " and ".join(name for name, value in given.items() if value is not None)


def _of_mpi(environ: Mapping[str, str]) -> Launch | None:
    for rank, size in _MPI:
        if rank in environ:
            if size not in environ:
                return Launch("mpi")
            return _checked(Launch("mpi", _number(environ, rank), _number(environ, size)), rank, size, "")
    return None


def _of_torchrun(environ: Mapping[str, str]) -> Launch | None:
    present = [name for name in _TORCHRUN if name in environ]
    # RANK alone is a name that others use, too.
    if "RANK" not in present or "WORLD_SIZE" not in present:
        return None
    if len(present) < len(_TORCHRUN):
        missing = [name for name in _TORCHRUN if name not in environ]
        raise ValueError(f"torchrun's variables {', '.join(present)} are set, without {' and '.join(missing)}")
    port = _number(environ, "MASTER_PORT")
    if environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        port += 1  # the agent listens on the port itself
    found = Launch(
        "address", _number(environ, "RANK"), _number(environ, "WORLD_SIZE"), f"{environ['MASTER_ADDR']}:{port}"
    )
    return _checked(found, "RANK", "WORLD_SIZE", "MASTER_ADDR:MASTER_PORT")


def _number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise ValueError(f"{name}={environ[name]!r} is not a number") from None


def _checked(launch: Launch, rank: str, size: str, address: str) -> Launch:
    assert launch.rank is not None
    assert launch.size is not None
    if launch.size < 1:
        raise ValueError(f"{size} is at least 1, not {launch.size}")
    if not 0 <= launch.rank < launch.size:
        raise ValueError(f"{rank} is from 0 to {launch.size - 1} with {size} {launch.size}, not {launch.rank}")
    if launch.address is not None:
        host_and_port(launch.address, address)
    return launch


def host_and_port(address: str, name: str = "address") -> tuple[str, int]:
    """Split ``host:port``; an IPv6 host stands in brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{name} is host:port, with a port from 1 to 65535, not {address!r}")
    return host.strip("[]"), int(port)
