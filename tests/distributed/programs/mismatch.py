"""Ranks that disagree about a call under "check": KIND."""

import sys

import anabranch as ab

kind = sys.argv[1]
comm = ab.distributed.init(timeout=60)
odd = comm.rank == comm.size - 1
x, y = ab.ones(8), ab.ones(8, "int32")
with ab.hazards("check"):
    try:
        comm.all_reduce(x)  # of which a slow rank may hear together with the failure of the message
        if kind == "verb" and odd:
            comm.broadcast(x)
        elif kind == "dtype" and odd:
            comm.all_reduce(y)
        elif kind == "shape" and odd:
            comm.all_reduce(x[:5])
        elif kind == "op" and odd:
            comm.all_reduce(x, "max")
        elif kind == "root":
            comm.broadcast(x, int(odd))
        elif kind == "message":
            if comm.rank == 0:
                comm.send(x, comm.size - 1)
            elif odd:
                comm.recv(x[:3], 0)
            comm.barrier()
            ab.synchronize()
        else:
            comm.all_reduce(x)
        ab.synchronize()
    except ab.CollectiveError as error:
        print(f"rank {comm.rank}: {error.ranks}: {error}")
    if kind != "message":
        # Nothing was enqueued anywhere.
        comm.all_reduce(x)
        print((x.numpy() == comm.size**2).all())
