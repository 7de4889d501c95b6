"""A rank is late for the collective of a graph that replays: FOLDER."""

import sys
import time
from pathlib import Path

import anabranch as ab

failed = Path(sys.argv[1]) / "failed"
comm = ab.distributed.init(timeout=3)
stream, other = ab.Stream(), ab.Stream()
x = ab.ones(8, stream=stream)
with ab.capture(stream) as graph:
    comm.all_reduce(x, stream=stream)
graph.launch(stream)
stream.synchronize()
while comm.rank == 1 and not failed.exists():
    time.sleep(0.01)
for waits in (stream, other):
    try:
        if waits is stream:
            graph.launch(stream)
            other.wait_stream(stream)
        waits.synchronize()
    except ab.CollectiveError as error:
        print(f"rank {comm.rank}, {'other' if waits is other else 'its'} stream: {error}", flush=True)
failed.touch()
