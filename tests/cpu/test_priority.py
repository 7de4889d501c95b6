"""Priorities on the CPU: a worker takes the tasks of a high-priority stream first."""

import pytest

# One worker, held by a kernel that spins until the host sets a flag; what was enqueued meanwhile is stamped by events.
SCRIPT = """
import numpy as np
import anabranch as ab

@ab.kernel
def hold(i, flag: ab.InOut):
    while ab.atomic_add(flag, 0, 0) == 0:
        pass

@ab.kernel
def increase(i, x: ab.InOut):
    x[i] += 1

def stamped(stream):
    x = ab.zeros(1, device="cpu", stream=stream)
    ab.launch(increase, 1, x, stream=stream)
    return stream.record_event(ab.Event(enable_timing=True))

flag = np.ones(1, np.int32)
holder = ab.Stream("cpu")
ab.launch(hold, 1, ab.asarray(flag), stream=holder)  # compiled here, and done at once
begin = stamped(holder)
begin.synchronize()

flag[0] = 0
ab.launch(hold, 1, ab.asarray(flag), stream=holder)
low = [stamped(ab.Stream("cpu")) for _ in range(20)]
high = [stamped(ab.Stream("cpu", priority=-1)) for _ in range(5)]
flag[0] = 1
latest_high = max(begin.elapsed_time(event) for event in high)
earliest_low = min(begin.elapsed_time(event) for event in low)
print(latest_high <= earliest_low)
"""


@pytest.mark.numba
def test_a_worker_takes_the_tasks_of_high_priority_streams_first(run_python):
    assert run_python(SCRIPT, env={"ANABRANCH_CPU_WORKERS": "1", "ANABRANCH_DEVICE": "cpu"}) == "True\n"
