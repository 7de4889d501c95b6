"""What stands here for names of `torch.distributed` and mpi4py."""

from __future__ import annotations

from typing import Final

from anabranch.distributed._communicator import Communicator

_INIT: Final = "write comm = ab.distributed.init()"
_OF_COMMUNICATORS: Final = {
    "Get_rank": "rank",
    "Get_size": "size",
    "all_gather_into_tensor": "all_gather",
    "all_to_all_single": "all_to_all",
    "destroy_process_group": "close",
    "get_backend": "backend",
    "get_rank": "rank",
    "get_world_size": "size",
    "irecv": "recv",
    "isend": "send",
    "new_group": "split",
    "new_subgroups": "split",
    "reduce_scatter_tensor": "reduce_scatter",
}
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
    member = _OF_COMMUNICATORS.get(name, name)
    if not hasattr(Communicator, member):
        return ""
    call = "(...)" if callable(getattr(Communicator, member)) else ""
    return f"a communicator has it: comm = ab.distributed.init(), then comm.{member}{call}"
