"""A rank is late for the collective of a graph that replays."""

import time

import anabranch as ab

comm = ab.distributed.init(timeout=1)
stream, other = ab.Stream(), ab.Stream()
x = ab.ones(8, stream=stream)
with ab.capture(stream) as graph:
    comm.all_reduce(x, stream=stream)
graph.launch(stream)
stream.synchronize()
if comm.rank == 1:
    time.sleep(3)
for waits in (stream, other):
    try:
        if waits is stream:
            graph.launch(stream)
            other.wait_stream(stream)
        waits.synchronize()
    except ab.CollectiveError as error:
        print(f"rank {comm.rank}, {'other' if waits is other else 'its'} stream: {error}", flush=True)
