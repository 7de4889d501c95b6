"""A double buffer with one wait missing: found, shown, replayed, mended, and proven.

Batches go through two buffers: while one is summed up, the other is filled. A buffer may be filled again only when the
kernel of two rounds ago has read it, and that wait is easily forgotten. The program then gives the right sum nearly
every time. Exploration does not wait for the day on which it does not: it runs the program under every schedule of its
operations that can matter, on the CPU. Hazards are off, so nothing mends the order meanwhile.
"""

import numpy as np

import anabranch as ab


@ab.kernel
def add(i, x: ab.In, total: ab.InOut):
    """Add an element of a batch to that of the total."""
    total[i] += x[i]


def sum_up(batches, *, forget):
    """Return the sum of the batches; `forget` leaves out the wait."""
    upload, compute = ab.Stream("cpu", name="upload"), ab.Stream("cpu", name="compute")
    buffers = [ab.empty(4, "float64", stream=upload) for _ in range(2)]
    used = [ab.Event(device="cpu") for _ in buffers]
    total = ab.zeros(4, "float64", stream=compute)
    for number, batch in enumerate(batches):
        k = number % 2
        if not forget:
            upload.wait_event(used[k])  # the kernel of two rounds ago is through with the buffer
        ab.copy(buffers[k], batch, stream=upload)
        compute.wait_event(upload.record_event())
        ab.launch(add, 4, buffers[k], total, stream=compute)
        compute.record_event(used[k])
    return total.numpy()


def explore(*, forget, **options):
    """Explore the sum of four batches."""
    batches = [ab.array(np.full(4, value), device="cpu") for value in (1.0, 10.0, 100.0, 1000.0)]

    def program():
        with ab.hazards("off"):
            assert sum_up(batches, forget=forget).tolist() == [1111.0] * 4

    return ab.testing.explore(program, **options)


found = explore(forget=True)
print(found)
assert not found.ok

again = explore(forget=True, schedules=found.schedule)  # the same schedule, as often as you like: under a debugger, too
assert not again.ok
assert again.runs == 1

mended = explore(forget=False)
print(mended)
assert mended.ok
assert mended.complete
assert mended.classes == 1  # no two operations that conflict can come in another order
