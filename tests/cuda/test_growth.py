"""Nothing grows: not the process, not what it holds of the GPU. And the end of a process with work in flight."""

from textwrap import dedent

import numpy as np
import pytest

import anabranch as ab

from .gpu import SCRIPT

MEASURE = """
from pathlib import Path

def resident():
    gc.collect()
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) * 1024

def settled(measure, most, seconds=20):
    # Some of what is let go goes on other threads.
    deadline = time.monotonic() + seconds
    while measure() > most and time.monotonic() < deadline:
        time.sleep(0.01)
    return measure()

def used():
    ab.synchronize()
    return device.total_memory - device.free_memory
"""


@pytest.fixture
def run_measured(kernels, run_python):
    return lambda script: run_python(SCRIPT + MEASURE + dedent(script), timeout=240)


@pytest.mark.slow
@pytest.mark.timeout(250)
def test_a_hundred_thousand_streams_and_events_leave_nothing(run_measured):
    script = """
        array = ab.zeros(16)

        def churn(rounds):
            for _ in range(rounds):
                streams = [ab.Stream(priority=-(n % 3), non_blocking=n % 2 == 0) for n in range(50)]
                events = [ab.Event(enable_timing=n % 2 == 0, blocking=n % 10 == 0) for n in range(50)]
                for before, stream, event in zip([streams[-1], *streams], streams, events):
                    stream.wait_stream(before)
                    ab.fill(array, 1, stream=stream)
                    event.record(stream)
                for event in events:
                    event.synchronize()
                for stream in streams[::2]:
                    stream.close()

        churn(100)
        memory, host = used(), resident()
        churn(2000)
        assert settled(used, memory + (32 << 20)) <= memory + (32 << 20)
        assert settled(resident, host + (32 << 20)) <= host + (32 << 20), (host, resident())
        """
    assert run_measured(script) == ""


@pytest.mark.slow
@pytest.mark.timeout(250)
def test_ten_gibibytes_in_pieces_across_threads_leave_nothing(run_measured):
    script = """
        import random
        from concurrent.futures import ThreadPoolExecutor

        def churn(seed, total):
            chosen = random.Random(seed)
            with device:
                streams = [ab.Stream() for _ in range(3)]
                kept = []
                while total > 0:
                    size = chosen.randrange(1 << 16, 32 << 20)
                    total -= size
                    source, stream = chosen.choice(streams), chosen.choice(streams)
                    array = ab.empty(size, "uint8", stream=source)
                    stream.wait_stream(source)
                    ab.fill(array, seed, stream=stream)
                    kept.append(array)
                    if len(kept) > 4:
                        kept.pop(chosen.randrange(len(kept)))
                for stream in streams:
                    stream.synchronize()

        def run(total):
            with ThreadPoolExecutor(8) as pool:
                for future in [pool.submit(churn, seed, total // 8) for seed in range(8)]:
                    future.result()

        run(1 << 30)
        memory, host = used(), resident()
        run(10 << 30)
        assert settled(used, memory + (64 << 20)) <= memory + (64 << 20), (memory, used())
        assert settled(resident, host + (64 << 20)) <= host + (64 << 20), (host, resident())
        """
    assert run_measured(script) == ""


@pytest.mark.memory
@pytest.mark.parametrize("wait", ["device.synchronize", "ab.synchronize"])
def test_of_much_memory_freed_a_device_that_was_synchronized_keeps_little(run_measured, wait):
    script = f"""
        for stream in (None, ab.Stream()):
            for round in range(2):
                arrays = [ab.zeros(device.total_memory // 8, "uint8", stream=stream) for _ in range(4)]
                {wait}()
                del arrays
                {wait}()
                free = ctypes.c_size_t()
                ctypes.CDLL("libcuda.so.1").cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(ctypes.c_size_t()))
                assert free.value > device.total_memory * 3 // 4, free.value
        """
    assert run_measured("import ctypes\n" + dedent(script)) == ""


@pytest.mark.slow
@pytest.mark.timeout(250)
def test_readbacks_modules_and_host_functions_leave_nothing(run_measured):
    script = """
        add = module.get_kernel("add")
        stream = ab.Stream()

        def churn(rounds):
            for _ in range(rounds):
                with stream:
                    x, y = ab.array([1, 2, 3, 4], "int32"), ab.zeros(4, "int32")
                    ab.launch(add, ab.LaunchConfig(1, 4), x, y, 1, 4)
                assert stream.submit(int, 3).result(20) == 3
                assert y.numpy().sum() == 14
                pinned = ab.zeros(1000, device="cpu", pinned=True)
                ab.copy(pinned, ab.ones(1000, stream=stream), stream=stream)

        churn(300)
        memory, host = used(), resident()
        churn(6000)
        assert settled(used, memory + (32 << 20)) <= memory + (32 << 20)
        assert settled(resident, host + (32 << 20)) <= host + (32 << 20), (host, resident())
        """
    assert run_measured(script) == ""


# What is in flight is not handed out again


@pytest.mark.parametrize("held_by", ["gate", "kernel"])
def test_pinned_memory_in_flight_is_not_handed_out(cuda, delay, held_by):
    stream = ab.Stream(cuda)
    target = ab.zeros(1 << 20, "uint8", stream=stream)
    stream.synchronize()
    if held_by == "gate":
        gate = ab.testing.Gate(stream)
    else:
        delay(stream, 200)
    for value in range(1, 5):
        pinned = ab.full(1 << 20, value, "uint8", device="cpu", pinned=True)
        ab.synchronize("cpu")
        ab.copy(target, pinned, stream=stream)
        seen = ab.empty(1 << 20, "uint8", stream=stream)
        ab.copy(seen, target, stream=stream)
        pinned.close()
        with ab.full(1 << 20, 99, "uint8", device="cpu", pinned=True).host(write=True) as view:
            view[:] = 100
        if value == 1:
            first = seen
    if held_by == "gate":
        gate.open()
    np.testing.assert_array_equal(first.numpy(), 1)
    np.testing.assert_array_equal(seen.numpy(), 4)


def test_pinned_memory_comes_back_once_it_is_free(cuda):
    stream, addresses = ab.Stream(cuda), set()
    target = ab.zeros(1 << 20, "uint8", stream=stream)
    for _ in range(20):
        pinned = ab.zeros(1 << 20, "uint8", device="cpu", pinned=True)
        ab.synchronize("cpu")
        ab.copy(target, pinned, stream=stream)
        stream.synchronize()
        addresses.add(pinned.ptr)
    assert len(addresses) <= 3


@pytest.mark.parametrize("held_by", ["gate", "kernel"])
def test_device_memory_in_flight_is_not_handed_out(cuda, delay, held_by):
    writer, reader = ab.Stream(cuda), ab.Stream(cuda)
    array = ab.full(1 << 20, 3, "uint8", stream=writer)
    reader.wait_stream(writer)
    if held_by == "gate":
        gate = ab.testing.Gate(reader)
    else:
        delay(reader, 200)
    copy = ab.empty(1 << 20, "uint8", stream=reader)
    ab.copy(copy, array, stream=reader)
    array.close()
    others = [ab.full(1 << 20, 7, "uint8", stream=writer) for _ in range(16)]
    writer.synchronize()
    if held_by == "gate":
        gate.open()
    np.testing.assert_array_equal(copy.numpy(), 3)
    assert all((other.numpy() == 7).all() for other in others)


def test_a_device_is_synchronized_with_streams_that_nobody_holds(cuda, delay, foreign):
    pinned = ab.zeros(6, "uint8", device="cpu", pinned=True)
    seen = np.asarray(pinned)
    for number, stream in enumerate([ab.Stream(cuda) for _ in range(6)]):
        delay(stream, 100)
        # Past us, so that nothing of ours refers to the stream any more.
        foreign.fill(stream.handle, pinned[number : number + 1], number + 1)
        stream.close()
    del stream
    cuda.synchronize()
    assert list(seen) == [1, 2, 3, 4, 5, 6]


# The end of the process

ENDS = {
    "a kernel that runs on": "ab.launch(spin, ONE, 60_000_000_000, stream=stream)",
    "kernels on every stream": """
        for stream in [ab.Stream(), ab.legacy_stream(), ab.per_thread_stream(), ab.Stream(non_blocking=False)]:
            ab.launch(spin, ONE, 60_000_000_000, stream=stream)
        """,
    "a kernel and what waits for it": """
        ab.launch(spin, ONE, 60_000_000_000, stream=stream)
        other = ab.Stream()
        other.wait_stream(stream)
        array = ab.zeros(1 << 20, stream=other)
        pinned = ab.zeros(1 << 20, device="cpu", pinned=True)
        ab.copy(pinned, array, stream=other)
        future, event = other.submit(print, "ran"), other.record_event()
        del pinned, array
        """,
    "a gate never opened": """
        gate = ab.testing.Gate(stream)
        ab.launch(spin, ONE, 1000, stream=stream)
        future = stream.submit(print, "ran")
        """,
    "host functions that never end": """
        started = threading.Barrier(5)
        for _ in range(4):
            ab.Stream().submit(lambda: (started.wait(), threading.Event().wait()))
        started.wait()
        """,
    "host functions without end": """
        def again(stream):
            ab.fill(array, 1, stream=stream)
            stream.submit(again, stream)
        array = ab.zeros(1000)
        again(stream)
        again(ab.Stream())
        """,
    "threads that wait": """
        ab.launch(spin, ONE, 60_000_000_000, stream=stream)
        for wait in (stream.synchronize, stream.record_event().synchronize, device.synchronize):
            threading.Thread(target=wait, daemon=True).start()
        """,
    "threads that enqueue": """
        def body():
            while True:
                ab.fill(ab.empty(1000, stream=stream), 1, stream=stream)
        for _ in range(3):
            threading.Thread(target=body, daemon=True).start()
        stream.submit(int).result()
        """,
}


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_process_ends_quickly_and_quietly(run_python, end):
    script = SCRIPT + 'spin = module.get_kernel("spin")\nstream = ab.Stream()\n' + dedent(end)
    # Far less than the kernels would take.
    assert run_python(script, timeout=25) == ""
