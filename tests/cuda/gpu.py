"""What the tests on a GPU share: kernels, and small things without fixtures."""

import importlib.util
import time

import numpy as np

KERNELS = r"""
// Keeps its stream busy for so long, by the GPU's clock: what does not wait for it comes first.
extern "C" __global__ void spin(long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < (unsigned long long)nanoseconds);
}
extern "C" __global__ void add(const int* x, int* y, int value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + value;
}
// Every block waits for all, so they have to run at once.
extern "C" __global__ void meet(unsigned* arrived) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1);
  while (*(volatile unsigned*)arrived < gridDim.x) {}
}
extern "C" __global__ void trap(int* y) {
  asm volatile("trap;");
}
extern "C" __global__ void stray(int* y) {
  *(volatile int*)16 = y[0];
}
"""

# Elements of arrays that take the GPU long enough to matter, and the host not.
SIZE = 1 << 20

# The beginning of a script in a fresh interpreter that uses the kernels.
SCRIPT = f"""
import gc, threading, time, warnings
import anabranch as ab

KERNELS = r'''{KERNELS}'''
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    module = ab.Module(KERNELS)
ONE = ab.LaunchConfig(1, 1)
device = ab.Device("cuda:0")
device.__enter__()
"""


def installed(name):
    """Tell whether a module could be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def eventually(condition, seconds=20.0):
    """Ask until it holds: for what other threads clean up in their own time. Whether it came to hold."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def values(shape, dtype):
    """Return a NumPy array whose neighbours differ, in every dtype."""
    numbers = np.arange(np.prod(shape, dtype=np.int64)) * 7 % 97 + 1
    if dtype == "bool":
        return (numbers % 3 == 0).reshape(shape)
    if np.dtype(dtype).kind == "c":
        numbers = numbers - 1j * numbers
    return numbers.astype(dtype).reshape(shape)


def checked(result):
    """Return what a call of cuda.bindings gave beside its status, which has to be success."""
    status, *answers = result
    assert int(status) == 0, status
    return answers[0] if len(answers) == 1 else tuple(answers)


class CudaInterface:
    """Memory of somebody who speaks `__cuda_array_interface__` and nothing else."""

    def __init__(self, owner, **changes):
        self.owner = owner
        self.__cuda_array_interface__ = owner.__cuda_array_interface__ | changes
