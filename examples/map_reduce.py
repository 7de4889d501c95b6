"""Map and reduce: each stream computes a part, and one more stream adds up the parts when all events have come."""

import numpy as np

import anabranch as ab

LANES = 256  # indices of a launch; each takes every LANES-th element


@ab.kernel
def dot(lane, x: ab.In, y: ab.In, total: ab.InOut):
    """Add this lane's share of the scalar product to the total."""
    share = 0.0
    for j in range(lane, x.shape[0], LANES):
        share += x[j] * y[j]
    ab.atomic_add(total, 0, share)


@ab.kernel
def add_up(_, parts: ab.In, total: ab.Out):
    """Add up the parts; called once."""
    found = 0.0
    for j in range(parts.shape[0]):
        found += parts[j]
    total[0] = found


n, streams = 100_000, 8
random = np.random.default_rng(1)
data = [(random.normal(size=n), random.normal(size=n)) for _ in range(streams)]

# Map: the streams have nothing to do with each other, so the device may run them all at once.
parts = ab.array(np.zeros(streams))  # of host data: there for every stream when the call returns
arrived = []
for number, (x, y) in enumerate(data):
    with ab.Stream(name=f"map {number}") as stream:
        on_device = ab.array(x), ab.array(y)
        ab.launch(dot, LANES, *on_device, parts[number : number + 1])
        arrived.append(stream.record_event())

# Reduce: this stream waits for all events. The host waits for none.
with ab.Stream(name="reduce") as reduce:
    for event in arrived:
        reduce.wait_event(event)
    total = ab.empty(1, "float64")
    ab.launch(add_up, 1, parts, total)

expected = sum(x @ y for x, y in data)
np.testing.assert_allclose(total.numpy()[0], expected, rtol=1e-9, atol=1e-9)
print(f"{streams} streams on {total.device.alias} have found {total.numpy()[0]:.6f}")
