"""Results come back in parts, and the host works on the first part while the device makes the second.

A copy from a device to pinned memory does not wait, so an event is needed to know when it is done. `a.numpy()` would do
both at once; what events add is that everything is enqueued first, and that the host chooses when to look.
"""

import numpy as np

import anabranch as ab


@ab.kernel
def squares(i, first, x: ab.Out):
    """Set each element to the square of its number, counted from `first`."""
    x[i] = (first + i) * (first + i)


n = 500_000
stream = ab.Stream(name="compute")

# Pinned memory is the CPU's, and so belongs to a stream of the CPU until another one has waited for that.
low_host = ab.empty(n, "int64", device="cpu", pinned=True)
high_host = ab.empty(n, "int64", device="cpu", pinned=True)
stream.wait_stream(ab.current_stream("cpu"))

with stream:
    low, high = ab.empty(n, "int64"), ab.empty(n, "int64")
    ab.launch(squares, n, 0, low)
    ab.copy(low_host, low, stream=stream)  # returns before it has begun
    low_ready = stream.record_event()
    ab.launch(squares, n, n, high)
    ab.copy(high_host, high, stream=stream)
    high_ready = stream.record_event()

# Nothing has been waited for so far; the host is free.
expected = np.arange(2 * n) ** 2

low_ready.synchronize()  # for the first copy only; the stream goes on
with low_host.host() as part:  # the pinned memory itself, as NumPy sees it
    assert np.array_equal(part, expected[:n])
    print(f"first half:  sum {part.sum()}, the second is {'there' if high_ready.query() else 'on its way'}")

high_ready.synchronize()
with high_host.host() as part:
    assert np.array_equal(part, expected[n:])
    print(f"second half: sum {part.sum()}")
