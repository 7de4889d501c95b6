"""Events that take the time: how long a kernel runs, without the copy that follows it on another stream.

The times are the device's own. What the host spends on the calls is no part of them, and nothing is synchronized in
between, which would change what is measured.
"""

import time

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


n, steps = 200_000, 100
values = ab.ones(n)
ab.launch(decay, n, 0, RATE, values)  # compiles the kernel, which must not be measured
result = ab.array(np.zeros(n, "float32"), device="cpu", pinned=True)

compute, readback = ab.Stream(name="compute"), ab.Stream(name="readback")
compute.wait_stream(ab.current_stream())

begin, middle, end = (ab.Event(enable_timing=True) for _ in range(3))
called = time.perf_counter()
begin.record(compute)
ab.launch(decay, n, steps, RATE, values, stream=compute)
middle.record(compute)

readback.wait_event(middle)  # an event orders streams as well
ab.copy(result, values, stream=readback)
end.record(readback)
enqueued = time.perf_counter()

kernel, copy = begin.elapsed_time(middle), middle.elapsed_time(end)  # waits for the events
seen = time.perf_counter()
with result.host() as data:
    np.testing.assert_allclose(data, (1 - RATE) ** steps, rtol=1e-3)
assert kernel >= 0
assert copy >= 0
print(f"on {ab.current_device().alias}: kernel {kernel:.3f} ms, copy {copy:.3f} ms")
print(f"on the host: {1000 * (enqueued - called):.3f} ms to enqueue both, {1000 * (seen - called):.3f} ms until done")
