"""What stands here for names of `torch.distributed` and mpi4py."""

from __future__ import annotations

from typing import Final

from anabranch.distributed._absent import INSTEAD as OF_COMMUNICATORS
from anabranch.distributed._communicator import Communicator

_INIT: Final = "write comm = ab.distributed.init()"
_INSTEAD: Final = {
    "COMM_WORLD": _INIT,
    "P2POp": "with comm.group(): joins sends and receives",
    "ReduceOp": 'reductions are "sum", "prod", "min", "max" and "avg"',
    "batch_isend_irecv": "with comm.group(): joins sends and receives",
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
