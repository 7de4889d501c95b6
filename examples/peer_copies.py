"""Two devices compute halves of one rod and exchange what lies at the border, copied from device to device.

Heat spreads along a rod: each cell becomes a mean of itself and its neighbours. Each device has one half, and one cell
more, which is a copy of the other half's first or last cell. After every step those copies are made anew. The devices
wait for each other through events; the host enqueues all steps at once and waits for none.

With two GPUs it runs on them, else on two devices of the CPU, which behave alike.
"""

import os

os.environ.setdefault("ANABRANCH_CPU_DEVICES", "2")  # read when devices are first looked for

import numpy as np

import anabranch as ab


@ab.kernel
def spread(i, now: ab.In, after: ab.Out):
    """Let heat flow between a cell and its neighbours."""
    after[i + 1] = (now[i] + 2 * now[i + 1] + now[i + 2]) / 4


half, steps = 5_000, 100
pair = ab.devices(ab.current_device().kind)[:2]
if len(pair) < 2:
    pair = ab.devices("cpu")[:2]  # one GPU has no peer
if len(pair) < 2:
    raise SystemExit("this needs two devices: ANABRANCH_CPU_DEVICES=2 makes two of the CPU")

# The ends of the rod stay as they are. Each half has a cell on either side that it does not compute.
rod = np.random.default_rng(0).random(2 * half + 2)
left, right = (ab.Stream(device, name=device.alias) for device in pair)
left_now, left_after = (ab.array(rod[: half + 2], device=left.device) for _ in range(2))
right_now, right_after = (ab.array(rod[half:], device=right.device) for _ in range(2))

for _ in range(steps):
    ab.launch(spread, half, left_now, left_after, stream=left)
    ab.launch(spread, half, right_now, right_after, stream=right)
    # A copy reads one device's memory and writes the other's, so both must be through with the step.
    left.wait_stream(right)
    right.wait_stream(left)
    ab.copy(right_after[:1], left_after[-2:-1], stream=left)  # a copy may go on a stream of either side
    ab.copy(left_after[-1:], right_after[1:2], stream=right)
    # And the next step needs both copies.
    left.wait_stream(right)
    right.wait_stream(left)
    left_now, left_after, right_now, right_after = left_after, left_now, right_after, right_now

expected = rod.copy()
for _ in range(steps):
    expected[1:-1] = (expected[:-2] + 2 * expected[1:-1] + expected[2:]) / 4
together = np.concatenate([left_now.numpy()[:-1], right_now.numpy()[1:]])
np.testing.assert_allclose(together, expected, rtol=1e-12)
print(f"{steps} steps on {left.name} and {right.name}; the rod's mean is {together.mean():.6f}")
