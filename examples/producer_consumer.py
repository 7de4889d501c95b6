"""A producer fills an array on one stream, a consumer reads it on another: an event tells when it may.

Neither stream waits for more than it must. The producer goes on after the event with work that the consumer does not
need, and the consumer does what needs no data before it waits. The host waits once, for the result.
"""

import numpy as np

import anabranch as ab


@ab.kernel
def add_to(i, amount, x: ab.InOut):
    """Add a number to each element; called once for each index."""
    x[i] = x[i] + amount


@ab.kernel
def double_sum(i, x: ab.In, y: ab.In, z: ab.Out):
    """Add two arrays and double what comes of it."""
    z[i] = 2 * (x[i] + y[i])


n = 1_000_000
producer, consumer = ab.Stream(name="producer"), ab.Stream(name="consumer")

# Pinned: a GPU copies from this memory by itself, so that the copy below returns at once.
numbers = ab.array(np.arange(n, dtype="float32"), device="cpu", pinned=True)

with producer:
    data = ab.empty(n)
    ab.copy(data, numbers, stream=producer)
    arrived = producer.record_event()  # complete when the copy is
    other = ab.ones(n)  # what the producer does from here on, nobody waits for
    ab.launch(add_to, n, 1.0, other)

with consumer:
    mine = ab.full(n, 5.0, "float32")  # at the same time as the copy
    result = ab.empty(n)
    consumer.wait_event(arrived)  # the consumer waits here, the host does not
    ab.launch(double_sum, n, data, mine, result)

assert np.array_equal(result.numpy(), 2 * (np.arange(n, dtype="float32") + 5))
assert np.all(other.numpy() == 2)
print(f"The consumer has read {n} numbers on {result.device.alias}, the last of them {result[-1].numpy():.0f}")
