"""A message is shorter than its buffer, in a call or in a graph: CALL."""

import sys

import anabranch as ab

comm = ab.distributed.init(timeout=20)
stream = ab.Stream()
x = ab.full(8, comm.rank, stream=stream)
stream.synchronize()
if comm.rank == 0:
    comm.send(x[:5], 1, stream=stream)
elif sys.argv[1] == "graph":
    with ab.capture(stream) as graph:
        comm.recv(x, 0, stream=stream)
    graph.launch(stream)
else:
    comm.recv(x, 0, stream=stream)
try:
    comm.barrier(stream=stream)  # the sender's part is over before
    stream.synchronize()
except ab.CollectiveError as error:
    print(f"rank {comm.rank}: {error}", flush=True)
