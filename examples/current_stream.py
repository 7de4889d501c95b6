"""Calls that name no stream use the current one. `with` makes a stream current for a block, `use` from now on."""

import numpy as np

import anabranch as ab


@ab.kernel
def add_up(i, numbers: ab.In, total: ab.InOut):
    """Add one number to the total, whoever else is doing so."""
    ab.atomic_add(total, 0, numbers[i])


numbers = np.arange(10)
default = ab.current_stream()
assert default == ab.default_stream()

stream = ab.Stream(name="mine")
with stream:
    on_device = ab.array(numbers)
    total = ab.zeros(1, "int64")  # on `stream`
    ab.launch(add_up, numbers.size, on_device, total)  # also on `stream`, and so after the zero
    assert ab.current_stream() == stream
    with ab.Stream(name="inner") as inner:
        assert ab.current_stream() == inner
    assert ab.current_stream() == stream
assert ab.current_stream() == default  # what was current before is so again, also after an error

# The total was made on `stream`. Another stream comes after that only if it waits, as ScopedStream lets it do: for the
# stream that it replaces.
with stream, ab.ScopedStream(ab.Stream(name="scoped"), sync_exit=True):
    ab.launch(add_up, 1, on_device[-1:], total)

stream.use()  # the same as `with stream:`, without a block to end it
ab.launch(add_up, 1, on_device[-1:], total)  # after the scoped stream, because of sync_exit
assert ab.current_stream() == stream
default.use()
assert ab.current_stream() == default

result = total.numpy()[0]  # waits for what writes the total, on whichever streams that is
assert result == numbers.sum() + 2 * numbers[-1]
print(f"The total is {result}, computed on {total.device.alias}")
