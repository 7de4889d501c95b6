"""Threads that name no stream, by the GPU's clock: whether their kernels run at the same time."""

import sysconfig

import pytest

from .gpu import SCRIPT

pytestmark = pytest.mark.usefixtures("kernels")

VARIABLE = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"
BY_DEFAULT = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

MEASURE = """
spin = module.get_kernel("spin")
EACH, THREADS = 100, 4
events = []

def work(start):
    with device:
        begin, end = ab.Event(enable_timing=True), ab.Event(enable_timing=True)
        start.wait()
        begin.record()
        ab.launch(spin, ONE, EACH * 1_000_000)
        end.record()
        events.append((begin, end))

def run():
    events.clear()
    start = threading.Barrier(THREADS, timeout=20)
    threads = [threading.Thread(target=work, args=[start]) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ab.synchronize()
    # From the first kernel's begin to the last one's end, in kernels.
    return max(begin.elapsed_time(end) for begin, _ in events for _, end in events) / EACH

run()
print(run())
"""


@pytest.mark.alone
@pytest.mark.parametrize(("value", "overlap"), [("1", True), ("0", False), (None, BY_DEFAULT)])
def test_kernels_of_threads_without_a_stream_overlap_when_the_default_is_per_thread(value, overlap, run_python):
    kernels = float(run_python(SCRIPT + MEASURE, env={VARIABLE: value}))
    # Four kernels one after the other, or all at the time of one; what lies between is a kernel that came late.
    assert kernels < 2 if overlap else kernels > 3.9, kernels
