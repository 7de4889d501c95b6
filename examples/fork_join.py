"""Parts of a sum on streams of their own that start after what is before them and end before what comes after."""

import numpy as np

import anabranch as ab


@ab.kernel
def add_up(i, numbers: ab.In, total: ab.InOut):
    """Add one number to the total, whoever else is doing so."""
    ab.atomic_add(total, 0, numbers[i])


n, parts = 400_000, 4
numbers = ab.array(np.arange(n))

with ab.Stream(name="main"):
    total = ab.zeros(1, "int64")
    with ab.fork(parts) as branches:  # each starts after the zeros
        for number, branch in enumerate(branches):
            part = numbers[number * n // parts : (number + 1) * n // parts]
            ab.launch(add_up, part.size, part, total, stream=branch)
    ab.launch(add_up, 1, numbers[-1:], total)  # starts after all of them

result = total.numpy()[0]
assert result == n * (n - 1) // 2 + n - 1
print(f"The total is {result}")
