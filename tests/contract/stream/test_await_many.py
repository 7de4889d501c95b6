"""Thousands of awaits in flight take no threads, and no time until something is over."""

import pytest

pytestmark = pytest.mark.many_streams

IN_FLIGHT = """
import asyncio
import gc
import os
import time

import anabranch as ab


def threads():
    return len(os.listdir("/proc/self/task"))


async def wait(awaitable):
    return await awaitable


async def main():
    root = ab.Stream()
    array = ab.zeros(100)
    root.submit(int)
    await root  # starts what every later await shares
    await ab.to_host(array)
    gate = ab.testing.Gate(root)
    ab.fill(array, 1, stream=root)
    awaited = {awaited}
    before = threads()
    tasks = [asyncio.create_task(wait(each)) for each in awaited]
    await asyncio.sleep(0)
    gc.collect()
    # What it takes to begin them is no part of it, nor is what `asyncio.wait` does with each.
    await asyncio.sleep(0.1)
    began, used = time.monotonic(), time.process_time()
    await asyncio.sleep(0.3)
    used = (time.process_time() - used) / (time.monotonic() - began)
    assert not any(task.done() for task in tasks)
    # Where one host thread was busy for long, as on a loaded machine, another came to help it: some, not one for each.
    assert threads() <= before + 3, (before, threads())
    assert used < 0.1, used
    gate.open()
    await asyncio.wait_for(asyncio.gather(*tasks), 20)


with ab.Device({alias!r}):
    asyncio.run(main())
"""

AWAITED = {
    "a stream": "[root] * 5000",
    "events of a stream": "[root.record_event() for _ in range(5000)]",
    "streams": "[ab.Stream() for _ in range(1000)]; [each.wait_stream(root) for each in awaited]",
    "arrays": "[ab.to_host(ab.full(100, 1, stream=root)) for _ in range(1000)]",
    "an array": "[ab.to_host(array) for _ in range(1000)]",
}


@pytest.mark.alone
@pytest.mark.parametrize("awaited", AWAITED.values(), ids=AWAITED)
def test_what_is_held_takes_no_threads_and_no_time(device, awaited, run_python):
    assert run_python(IN_FLIGHT.format(awaited=awaited, alias=device.alias)) == ""
