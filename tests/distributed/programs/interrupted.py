"""A signal ends rank 0's waiting calls; rank 1 comes to them later, and is not alone in MPI. FOLDER."""

import signal
import sys
import time
from pathlib import Path

import pytest

import anabranch as ab

folder = Path(sys.argv[1])
comm = ab.distributed.init(timeout=0.5)
x = ab.ones(4)
ab.synchronize()


class Alarm(BaseException):
    """What the program's own handler of a signal raises."""


def alarm(*_):
    raise Alarm


def compared():
    with ab.hazards("check"):
        comm.all_reduce(x)


calls = {"split": lambda: comm.split(0), "all_reduce": compared}
signal.signal(signal.SIGALRM, alarm)
for name, call in calls.items():
    left = folder / name
    if comm.rank == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Alarm):
            call()
        left.touch()
        while not (folder / f"{name} told").exists():
            time.sleep(0.01)
    else:
        while not left.exists():
            time.sleep(0.01)
        with pytest.raises(ab.CollectiveError, match="rank 0 has not"):
            call()
        (folder / f"{name} told").touch()
for call in calls.values():
    call()
assert x.numpy()[0] == comm.size
print("fine", flush=True)
