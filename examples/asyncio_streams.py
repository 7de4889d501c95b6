"""Streams inside asyncio: a task waits for its stream, and the event loop serves the others meanwhile."""

import asyncio

import numpy as np

import anabranch as ab


@ab.kernel
def step(i, source: ab.In, target: ab.Out):
    """Take the mean of a value and its neighbours."""
    left, right = max(i - 1, 0), min(i + 1, source.shape[0] - 1)
    target[i] = (source[left] + source[i] + source[right]) / 3


async def smooth(name, values, steps):
    """Smooth values on a stream of this task's own."""
    with ab.Stream(name=name) as stream:  # the current stream belongs to the task, across every await
        now, after = ab.array(values), ab.empty(values.shape, values.dtype)
        for _ in range(steps):
            ab.launch(step, values.size, now, after)
            now, after = after, now
        await stream
        print(f"{name}: {steps} steps are done")
        return now.numpy()


async def main():
    """Smooth the same noise for different times, all at once."""
    noise = np.random.default_rng(0).normal(size=100_000)
    results = await asyncio.gather(*(smooth(f"task {steps}", noise, steps) for steps in (10, 100, 1000)))
    spreads = [result.std() for result in results]
    assert spreads == sorted(spreads, reverse=True)
    print("What is left of the noise:", ", ".join(f"{spread:.3f}" for spread in spreads))


asyncio.run(main())
