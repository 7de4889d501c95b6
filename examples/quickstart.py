"""Two streams, and one wait between them: the shortest program that uses streams."""

import numpy as np

import anabranch as ab


@ab.kernel
def saxpy(i, alpha, x: ab.In, y: ab.InOut):
    """Add a multiple of x to y; called once for each index."""
    y[i] = alpha * x[i] + y[i]


n = 1_000_000
first, second = ab.Stream(name="first"), ab.Stream(name="second")

# Nothing here waits for the work: each line puts some into a stream and goes on.
with first:
    x = ab.full(n, 3.0, "float32")
with second:
    y = ab.ones(n)  # at the same time as x
    second.wait_stream(first)  # what comes next needs both
    ab.launch(saxpy, n, 2.0, x, y)

result = y.numpy()  # waits for what y depends on
assert np.all(result == 7.0)
print(f"{n} elements on {y.device.alias}, each of them {result[0]}")
