"""Parts of a sum on streams of their own that start after what is before them and end before what comes after."""

import numpy as np

import anabranch as ab


@ab.kernel
def add_up(_, numbers: ab.In, total: ab.Out):
    """Add up the numbers; called once, so that a part takes little of the device and others run beside it."""
    found = 0
    for j in range(numbers.shape[0]):
        found += numbers[j]
    total[0] = found


n, parts = 1_000_000, 4
numbers = ab.array(np.arange(n))

with ab.Stream(name="main"):
    totals, total = ab.zeros(parts, "int64"), ab.empty(1, "int64")
    with ab.fork(parts) as branches:  # each starts after the zeros
        for number, branch in enumerate(branches):
            part = numbers[number * n // parts : (number + 1) * n // parts]
            # Each writes an element of its own: if all added to one, they would have to come one after the other.
            ab.launch(add_up, 1, part, totals[number : number + 1], stream=branch)
    ab.launch(add_up, 1, totals, total)  # starts after all of them

result = total.numpy()[0]
assert result == n * (n - 1) // 2
print(f"The total is {result}")
