"""Copies and kernels at the same time: the data is cut into chunks, and the chunks go over several streams.

On one stream, a chunk is copied to the device, computed there and copied back before the next one begins. On several,
one chunk is on its way in while another is computed and a third is on its way out: a GPU has engines of its own for
each direction. On a CPU device both are work for the same cores, so there the gain is small or none.
"""

import time

import numpy as np

import anabranch as ab

RATE = np.float32(0.001)


@ab.kernel
def decay(i, steps, rate: np.float32, x: ab.In, y: ab.Out):
    """Let a value fall by a small part of itself, again and again."""
    value = x[i]
    for _ in range(steps):
        value -= rate * value
    y[i] = value


on_gpu = ab.current_device().kind == "cuda"
n, steps = (1 << 25, 400) if on_gpu else (1 << 18, 50)  # a kernel takes about as long as a copy, or more
chunks = 16
size = n // chunks

# Only with pinned memory are copies to and from a GPU asynchronous.
source = ab.array(np.linspace(1, 2, n, dtype="float32"), device="cpu", pinned=True)
target = ab.array(np.zeros(n, "float32"), device="cpu", pinned=True)


def process(number_of_streams):
    """Send all chunks through that many streams; return how many milliseconds it takes."""
    streams = [ab.Stream(name=f"lane {number}") for number in range(number_of_streams)]
    begin = time.perf_counter()
    for chunk in range(chunks):
        stream = streams[chunk % number_of_streams]
        part = slice(chunk * size, (chunk + 1) * size)
        # Within a chunk the stream keeps the order; between chunks there is none, since they share no memory.
        x, y = ab.empty(size, stream=stream), ab.empty(size, stream=stream)
        ab.copy(x, source[part], stream=stream)
        ab.launch(decay, size, steps, RATE, x, y, stream=stream)
        ab.copy(target[part], y, stream=stream)
    for stream in streams:
        stream.synchronize()
    return 1000 * (time.perf_counter() - begin)


times = {}
for number in 1, 4:
    ab.fill(target, 0)
    ab.synchronize("cpu")
    process(number)  # compiles the kernel, and lets the device keep memory for the rounds that count
    times[number] = min(process(number) for _ in range(3))
    with target.host() as values, source.host() as before:
        np.testing.assert_allclose(values, before * (1 - RATE) ** steps, rtol=1e-3)
    print(f"{number} stream{'s' * (number > 1)}: {times[number]:.2f} ms")
print(f"speed-up on {ab.current_device().alias}: {times[1] / times[4]:.2f}")
