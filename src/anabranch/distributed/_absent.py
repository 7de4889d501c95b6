"""What stands for the names that communicators of other libraries have and ours lack."""

from __future__ import annotations

from typing import Final

_ANYTHING: Final = "messages carry arrays; other objects travel with mpi4py, beside it"
_MESSAGE: Final = "write comm.send(x, to) or comm.recv(x, source), which do not block; comm.group() joins several"

INSTEAD: Final = {
    "Abort": "a rank that an exception ends tells the others",
    "Allgather": "write comm.all_gather(out, x)",
    "Allreduce": "write comm.all_reduce(x)",
    "Alltoall": "write comm.all_to_all(out, x)",
    "Barrier": "write comm.barrier()",
    "Bcast": "write comm.broadcast(x)",
    "Create_group": "write comm.split(color)",
    "Dup": "write comm.split(0)",
    "Free": "write comm.close()",
    "Gather": "write comm.gather(out, x)",
    "Get_rank": "write comm.rank",
    "Get_size": "write comm.size",
    "Iallreduce": "write comm.all_reduce(x), which returns at once",
    "Ibcast": "write comm.broadcast(x), which returns at once",
    "Irecv": _MESSAGE,
    "Isend": _MESSAGE,
    "Recv": _MESSAGE,
    "Reduce": "write comm.reduce(x)",
    "Reduce_scatter": "write comm.reduce_scatter(out, x)",
    "Scatter": "write comm.scatter(out, x)",
    "Send": _MESSAGE,
    "Sendrecv": _MESSAGE,
    "Split": "write comm.split(color, key)",
    "all_gather_into_tensor": "write comm.all_gather(out, x)",
    "all_to_all_single": "write comm.all_to_all(out, x)",
    "allgather": f"write comm.all_gather(out, x); {_ANYTHING}",
    "allreduce": f"write comm.all_reduce(x); {_ANYTHING}",
    "alltoall": f"write comm.all_to_all(out, x); {_ANYTHING}",
    "bcast": f"write comm.broadcast(x); {_ANYTHING}",
    "destroy_process_group": "write comm.close()",
    "get_backend": "write comm.backend",
    "get_rank": "write comm.rank",
    "get_world_size": "write comm.size",
    "irecv": _MESSAGE,
    "isend": _MESSAGE,
    "new_group": "write comm.split(color, key)",
    "new_subgroups": "write comm.split(color, key)",
    "reduce_scatter_tensor": "write comm.reduce_scatter(out, x)",
    "sendrecv": _MESSAGE,
    "world_size": "write comm.size",
}
