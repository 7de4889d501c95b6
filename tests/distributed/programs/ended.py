"""Under `check`, rank 2 ends, and the others call what it would have to take part in."""

import anabranch as ab

comm = ab.distributed.init(timeout=60)
x = ab.ones(4)
if comm.rank < 2:
    with ab.hazards("check"):
        try:
            comm.all_reduce(x)
        except ab.CollectiveError as error:
            print(f"CollectiveError {error.ranks}: {error}", flush=True)
