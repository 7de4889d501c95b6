"""When kernels and their code are released."""

import pytest


@pytest.mark.numba
def test_a_kernel_dropped_while_it_is_queued_is_released_without_a_host_function(run_python):
    program = """
import gc, time, weakref
import numpy as np
import anabranch as ab

class Table(np.ndarray):
    pass

def make(table):
    @ab.kernel
    def look(i, y: ab.Out):
        y[i] = table[i]

    return look

stream = ab.Stream()
y = ab.zeros(4, stream=stream)
with ab.testing.Gate(stream):
    kernel = make((1.0, 2.0, 3.0, 4.0))
    ab.launch(kernel, 4, y, stream=stream)
    dropped = weakref.ref(kernel)
    del kernel
    gc.collect()
stream.synchronize()
ab.fill(y, 0, stream=stream)
stream.synchronize()
deadline = time.monotonic() + 20
while dropped() is not None and time.monotonic() < deadline:
    gc.collect()
    time.sleep(0.01)
print(dropped())
"""
    assert run_python(program).split() == ["None"]
