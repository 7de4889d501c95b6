"""Blocks of indices that share memory: a transposition in tiles, and sums.

The tiles are a matter of speed on a GPU. There, neighbouring threads should access neighbouring memory, which a plain
transposition does only when it reads, or only when it writes.
"""

import numpy as np

import anabranch as ab

TILE = 32
BLOCK = 256


@ab.kernel
def transpose(index, x: ab.In, y: ab.Out):
    """Write what lies in the rows of x to the columns of y."""
    row, column = index
    i, j = ab.block(TILE, TILE)
    tile = ab.shared((TILE, TILE + 1), "float32")  # one more column, so that a column lies in different banks of memory
    if row < x.shape[0] and column < x.shape[1]:
        tile[i, j] = x[row, column]
    ab.barrier()
    row, column = column - j + i, row - i + j  # the place of this index in the transposed tile
    if row < y.shape[0] and column < y.shape[1]:
        y[row, column] = tile[j, i]


@ab.kernel
def add_up(n, x: ab.In, total: ab.InOut):
    """Add all elements of x to the total."""
    place = ab.block(BLOCK)
    part = ab.shared(BLOCK, "float64")
    part[place] = x[n] if n < x.size else 0.0
    step = BLOCK // 2
    while step > 0:
        ab.barrier()  # all of the block come here, since the condition of the loop is the same for them
        if place < step:
            part[place] += part[place + step]
        step //= 2
    if place == 0:
        ab.atomic_add(total, 0, part[0])  # one for the block


def whole_blocks(size: int, block: int) -> int:
    """Return the size of the smallest launch in whole blocks that covers `size` indices."""
    return -(-size // block) * block


rng = np.random.default_rng(0)
image = rng.random((1000, 300), "float32")
samples = rng.random(100_000)

with ab.Stream():
    x, y = ab.array(image), ab.empty(image.shape[::-1])
    ab.launch(transpose, (whole_blocks(1000, TILE), whole_blocks(300, TILE)), x, y)
    total = ab.zeros(1, "float64")
    ab.launch(add_up, whole_blocks(samples.size, BLOCK), ab.array(samples), total)

assert np.array_equal(y.numpy(), image.T)
assert np.isclose(total.item(), samples.sum())
print(f"the sum of {samples.size} samples is {total.item():.3f}")
