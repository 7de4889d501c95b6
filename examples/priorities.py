"""Two streams with the same work, one of them urgent: it is served first, and so done long before the other.

A priority is a hint and no order. Where the device is free, the other stream's work runs; and what must come first
needs a wait, whatever the priorities are. So the times below are printed and not checked.
"""

import numpy as np

import anabranch as ab

RATE = np.float32(0.001)


@ab.kernel
def decay(i, steps, rate: np.float32, x: ab.InOut):
    """Let a value fall by a small part of itself, again and again."""
    value = x[i]
    for _ in range(steps):
        value -= rate * value
    x[i] = value


device = ab.current_device()
n, steps, launches = (1 << 22, 200, 8) if device.kind == "cuda" else (1 << 16, 100, 8)  # enough to fill the device


def mark(stream):
    """Record an event that takes the time."""
    return stream.record_event(ab.Event(enable_timing=True))


def race(first_priority, second_priority):
    """Do the same on two streams; return how many milliseconds each takes."""
    streams = [ab.Stream(priority=priority) for priority in (first_priority, second_priority)]
    arrays = [ab.ones(n, stream=stream) for stream in streams]
    for stream in streams:
        stream.synchronize()
    begun = [mark(stream) for stream in streams]
    for _ in range(launches):
        for stream, array in zip(streams, arrays, strict=True):
            ab.launch(decay, n, steps, RATE, array, stream=stream)
    done = [mark(stream) for stream in streams]
    for array in arrays:
        np.testing.assert_allclose(array.numpy(), (1 - RATE) ** (steps * launches), rtol=1e-3)
    return [begin.elapsed_time(end) for begin, end in zip(begun, done, strict=True)]


lowest, highest = device.priority_range
print(f"{device.alias} has priorities from {lowest}, the lowest, to {highest}, the highest")
assert ab.Stream(priority=highest - 1).priority == highest  # what is out of the range is clamped
race(lowest, lowest)  # compiles the kernel
for priorities in (lowest, lowest), (lowest, highest), (highest, lowest):
    first, second = race(*priorities)
    print(f"priorities {priorities[0]:2} and {priorities[1]:2}: {first:8.3f} ms and {second:8.3f} ms")
