"""The process whose instructions are counted: `counts_driver.py SHIM ID...`, under callgrind.

Each benchmark is set up as for timing and warmed up; then its batch runs with COUNT calls and with twice as many, and a
dump is written after each. Only what the main thread does in a batch is counted: callgrind has a switch per thread.
"""

import ctypes
import gc
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import bench_launch
from harness import OURS, Timed, load

WARM_UP = 2000
COUNT = 500


def main(library: str, *benchmarks: str) -> None:
    shim = ctypes.PyDLL(library)
    # Numba would take longer under callgrind than all that is counted; what the kernel does is not.
    address = ctypes.cast(shim.kernel, ctypes.c_void_p).value
    native = SimpleNamespace(address=address, keepalive=shim, places=(), block=())
    bench_launch.scaled_sum.compile_cpu = lambda signature, checked: native
    set_ups = {name: contextmanager(load()[name][OURS]) for name in benchmarks}
    gc.disable()
    started = False
    for name, set_up in set_ups.items():
        with set_up() as case:
            if not isinstance(case, Timed):
                raise TypeError(f"{name} is not a benchmark whose calls can be counted")
            case.batch(WARM_UP)
            case.drain()
            if not started:
                shim.start()
                started = True
            for calls in (COUNT, 2 * COUNT):
                shim.toggle()
                case.batch(calls)
                shim.toggle()
                shim.dump(f"{name} {calls}".encode())
                case.drain()


if __name__ == "__main__":
    main(*sys.argv[1:])
