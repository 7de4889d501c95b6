"""The same kernel on a GPU and on the CPU at the same time, while the host does something else.

A launch returns at once on either device, so it does not matter which comes first. Without a GPU the program takes two
devices of the CPU.
"""

import os

os.environ.setdefault("ANABRANCH_CPU_DEVICES", "2")  # read when devices are first looked for

import numpy as np

import anabranch as ab


@ab.kernel
def divisors(i, counts: ab.Out):
    """Count what divides the number i + 1."""
    number = i + 1
    found = 0
    for candidate in range(1, number + 1):
        if number % candidate == 0:
            found += 1
    counts[i] = found


n = 2_000
first = ab.current_device()  # a GPU if there is one
others = [device for device in ab.devices("cpu") if device is not first]
if not others:
    raise SystemExit("this needs two devices: ANABRANCH_CPU_DEVICES=2 makes two of the CPU")

streams = [ab.Stream(device, name=device.alias) for device in (first, others[0])]
counts = []
for stream in streams:
    counts.append(ab.empty(n, "int64", stream=stream))
    ab.launch(divisors, n, counts[-1], stream=stream)
done = [stream.record_event() for stream in streams]

# The host has the time to compute the same in its own way: each number divides its multiples.
expected = np.zeros(n, "int64")
for number in range(1, n + 1):
    expected[number - 1 :: number] += 1

for stream, event in zip(streams, done, strict=True):
    print(f"{stream.name} {'is done' if event.query() else 'is still at it'}")
for array in counts:
    assert np.array_equal(array.numpy(), expected)  # waits for this device, and not for the other
print(f"Both have found {expected.sum()} divisors")
