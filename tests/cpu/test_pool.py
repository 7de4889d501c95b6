"""The workers of a CPU device: what waits holds none, what is idle burns nothing, what is enqueued never blocks."""

import os
import threading
import time

import pytest

import anabranch as ab


@pytest.fixture(params=ab.devices("cpu"), ids=lambda device: device.alias)
def device(request):
    return request.param


def threads():
    return len(os.listdir("/proc/self/task"))


def used_processor_time(seconds):
    """Processor time that the process uses while this thread rests."""
    begin = time.process_time()
    threading.Event().wait(seconds)
    return time.process_time() - begin


@pytest.mark.parametrize("wait", ["event", "stream"])
def test_ten_thousand_waiting_streams_need_no_thread(wait, device):
    held, done = ab.Stream(device), []
    ab.zeros(1000, device=device).numpy()  # every thread that there is for one stream
    held.submit(int).result(10)
    before = threads()
    with ab.testing.Gate(held):
        event = held.record_event()
        streams = [ab.Stream(device) for _ in range(10_000)]
        for stream in streams:
            if wait == "event":
                stream.wait_event(event)
            else:
                stream.wait_stream(held)
        ab.Stream(device).submit(done.append, threads()).result(10)
        assert threads() <= before + 1
        assert not any(stream.query() for stream in streams)
    for stream in streams:
        stream.synchronize()


def test_streams_that_wait_hold_no_worker(device):
    gates = [ab.testing.Gate(ab.Stream(device)) for _ in range(4 * (os.cpu_count() or 1) + 16)]
    array = ab.full(1 << 20, 1.0, device=device, stream=ab.Stream(device))
    assert array.numpy().sum() == 1 << 20
    for gate in gates:
        gate.open()


def test_a_hundred_thousand_operations_enqueue_without_blocking(device):
    stream = ab.Stream(device)
    array = ab.zeros(1, dtype="int64", device=device, stream=stream)
    with ab.testing.Gate(stream):
        for value in range(100_000):
            ab.fill(array, value, stream=stream)
        assert not stream.query()
    assert array.numpy().tolist() == [99_999]


def test_a_hundred_thousand_waits_enqueue_without_blocking(device):
    stream, other = ab.Stream(device), ab.Stream(device)
    with ab.testing.Gate(other):
        for _ in range(100_000):
            stream.wait_event(other.record_event())
        assert not stream.query()
    stream.synchronize()


def test_a_long_chain_through_many_streams_ends(device):
    """Each stream waits for the one before: completing them must not nest."""
    first, *others = streams = [ab.Stream(device) for _ in range(20_000)]
    with ab.testing.Gate(first):
        for stream, before in zip(others, streams, strict=False):
            stream.wait_stream(before)
        assert not others[-1].query()
    others[-1].synchronize()
    del first, others, streams


def test_ten_thousand_host_functions_that_may_start_at_once_end(device, run_python):
    """Functions that wait for each other get a thread each; for short ones, that many would be in each other's way."""
    script = f"""
        import anabranch as ab

        root = ab.Stream({device.alias!r})
        streams = [ab.Stream(root.device) for _ in range(10_000)]
        with ab.testing.Gate(root):
            for stream in streams:
                stream.wait_stream(root)
            futures = [stream.submit(int, index) for index, stream in enumerate(streams)]
        print([future.result() for future in futures] == list(range(10_000)))
        """
    assert run_python(script, timeout=30) == "True\n"


@pytest.mark.parametrize("state", ["idle", "held", "waited for"])
def test_workers_with_nothing_to_do_burn_nothing(state, device, in_thread):
    stream = ab.Stream(device)
    ab.zeros(1 << 20, device=device, stream=stream).numpy()
    gate = ab.testing.Gate(stream)
    if state == "idle":
        gate.open()
    elif state == "waited for":
        waits = [in_thread(stream.synchronize), in_thread(stream.record_event().synchronize)]
    assert used_processor_time(0.5) < 0.05
    gate.open()
    if state == "waited for":
        for wait in waits:
            wait.result(10)


def test_events_recorded_and_dropped_leave_no_growth(device):
    def use(n):
        for _ in range(n):
            stream.record_event()
        stream.synchronize()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    stream = ab.Stream(device)
    use(50_000)
    before = resident()
    use(500_000)
    assert resident() - before < 8 << 20
