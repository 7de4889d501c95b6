"""What stands here for names of `torch.distributed` and mpi4py."""

from __future__ import annotations

from typing import Final

from anabranch.distributed._absent import INSTEAD as OF_COMMUNICATORS
from anabranch.distributed._communicator import Communicator

_INIT: Final = "write comm = ab.distributed.init()"
_OPS: Final = 'reductions are "sum", "prod", "min", "max" and "avg"'
_ANY: Final = "comm.recv(x, source) names one rank, whose messages arrive in the order in which they were sent"
_WAIT: Final = "calls return None: what uses an array later waits by itself, and stream.synchronize() holds the host"
_INSTEAD: Final = {
    "ANY_SOURCE": _ANY,
    "ANY_TAG": _ANY,
    "COMM_WORLD": _INIT,
    "Finalize": "MPI is ended with the process; comm.close() closes a communicator",
    "IN_PLACE": "comm.all_reduce(x) and comm.reduce(x) write to x itself unless out= is given",
    "Init": _INIT,
    "MAX": _OPS,
    "MIN": _OPS,
    "MPI": "write comm = ab.distributed.init(); mpi4py itself is there beside it, as mpi4py.MPI",
    "P2POp": "with comm.group(): joins sends and receives",
    "PROD": _OPS,
    "ReduceOp": _OPS,
    "Request": _WAIT,
    "SUM": _OPS,
    "Status": "messages have no status: comm.recv(x, source) fails where the message does not fit x",
    "Work": _WAIT,
    "batch_isend_irecv": "with comm.group(): joins sends and receives",
    "get_global_rank": "comm.split(color, key) orders ranks by key, and equal keys by rank: number them before",
    "init_device_mesh": "write comm.split(color) for each row and each column of the ranks",
    "init_process_group": _INIT,
    "is_available": "of one process, everything works with no engine",
    "is_initialized": "write ab.distributed.is_launched(), whether a launcher started this process",
    "is_torchelastic_launched": "write ab.distributed.is_launched()",
}


def instead_of(name: str) -> str:
    """Return what to write instead of a name that the subpackage lacks; an empty string if nothing is known."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    instead = OF_COMMUNICATORS.get(name)
    if instead is None and hasattr(Communicator, name):
        instead = f"write comm.{name}{'(...)' if callable(getattr(Communicator, name)) else ''}"
    return f"a communicator has it: after comm = ab.distributed.init(), {instead}" if instead else ""
