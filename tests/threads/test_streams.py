"""Streams and events used by many threads at once."""

import gc
import threading
from concurrent.futures import CancelledError

import pytest

import anabranch as ab

THREADS = 8


def test_what_one_thread_enqueues_stays_in_its_order(device, in_threads):
    stream, done = ab.Stream(device), []

    def body(thread):
        for index in range(200):
            stream.submit(done.append, (thread, index))

    with ab.testing.Gate(stream):
        in_threads(THREADS, body)
    stream.synchronize()
    assert sorted(done) == [(thread, index) for thread in range(THREADS) for index in range(200)]
    for thread in range(THREADS):
        assert [index for which, index in done if which == thread] == list(range(200))


def test_threads_with_their_own_streams_overlap(device, in_threads):
    meet = threading.Barrier(THREADS, timeout=20)

    def body(_):
        with ab.Stream(device) as stream:
            return stream.submit(meet.wait).result(30)

    assert sorted(in_threads(THREADS, body)) == list(range(THREADS))


def test_threads_with_the_per_thread_stream_overlap(device, in_threads):
    meet = threading.Barrier(THREADS, timeout=20)
    assert sorted(in_threads(THREADS, lambda _: ab.per_thread_stream(device).submit(meet.wait).result(30))) == list(
        range(THREADS)
    )


def test_waits_among_the_streams_of_many_threads_end(device, in_threads):
    """Each wait is for work enqueued before it, so whatever the threads' order is, nothing waits in a circle."""
    streams = [ab.Stream(device, non_blocking=bool(index % 2)) for index in range(THREADS)]

    def body(thread):
        for index in range(300):
            mine, other = streams[thread], streams[(thread + index) % THREADS]
            other.submit(int)
            mine.wait_stream(other)
            mine.wait_event(other.record_event())
        mine.synchronize()

    in_threads(THREADS, body)
    assert all(stream.query() for stream in streams)


def test_blocking_streams_and_the_legacy_stream_of_many_threads_end(device, in_threads):
    def body(thread):
        stream = ab.Stream(device, non_blocking=False)
        results = []
        for index in range(100):
            target = (stream, ab.legacy_stream(device), ab.per_thread_stream(device))[(thread + index) % 3]
            results.append(target.submit(int, index))
        return [result.result(30) for result in results]

    assert in_threads(THREADS, body) == [list(range(100))] * THREADS


def test_one_event_may_be_recorded_and_waited_for_by_many_threads(device, in_threads):
    event = ab.Event(device=device)

    def body(_):
        stream = ab.Stream(device)
        for _ in range(300):
            event.record(stream)
            event.wait(stream)
            event.query()
        event.synchronize()
        stream.synchronize()
        return stream.query()

    assert in_threads(THREADS, body) == [True] * THREADS
    assert event.query()


def test_many_threads_may_synchronize_one_stream(device, in_threads):
    stream = ab.Stream(device)
    gate = ab.testing.Gate(stream)
    event = stream.record_event()

    def body(thread):
        if thread == 0:
            gate.open()
        elif thread % 2:
            stream.synchronize()
        else:
            event.synchronize()
        return thread == 0 or stream.query()

    assert all(in_threads(THREADS, body))


@pytest.mark.parametrize("wait", ["stream", "event", "device", "elapsed_time", "numpy"])
def test_a_host_that_waits_lets_other_threads_run(wait, device, in_thread):
    stream, event = ab.Stream(device), ab.Event(enable_timing=True, device=device)
    gate = ab.testing.Gate(stream)
    array = ab.zeros(4, device=device, stream=stream)
    event.record(stream)
    opened = in_thread(gate.open)
    {
        "stream": stream.synchronize,
        "event": event.synchronize,
        "device": device.synchronize,
        "elapsed_time": lambda: event.elapsed_time(event),
        "numpy": array.numpy,
    }[wait]()
    opened.result(10)
    assert event.query()


def test_streams_may_be_made_used_and_closed_in_many_threads(device, in_threads):
    def body(thread):
        total = 0
        for index in range(200):
            stream = ab.Stream(device, non_blocking=bool(index % 2))
            total += stream.submit(int, thread).result(30)
            if index % 3:
                stream.close()
        return total

    assert in_threads(THREADS, body) == [200 * thread for thread in range(THREADS)]


def test_a_stream_closed_while_others_use_it_works_or_says_so(device, in_threads):
    for _ in range(300):
        stream = ab.Stream(device)

        def body(thread, stream=stream):
            futures = []
            try:
                if thread == 0:
                    stream.close()
                for _ in range(20):
                    futures.append(stream.submit(int))
                    stream.record_event()
                    stream.query()
            except ab.ClosedError:
                pass
            return [future.result(30) for future in futures]

        in_threads(4, body)
        assert stream.closed


def test_an_event_closed_while_others_use_it_works_or_says_so(device, in_threads):
    stream = ab.Stream(device)
    for _ in range(300):
        event = ab.Event(device=device)

        def body(thread, event=event):
            try:
                if thread == 0:
                    event.close()
                for _ in range(20):
                    event.record(stream)
                    event.wait(stream)
                    event.synchronize()
            except ab.ClosedError:
                pass

        in_threads(4, body)
        assert event.closed
    stream.synchronize()


@pytest.mark.usefixtures("failures_forgotten")
def test_a_host_that_waits_for_a_stream_closed_meanwhile_learns_of_its_failure(device, in_thread):
    for _ in range(300):
        stream = ab.Stream(device)
        gate = ab.testing.Gate(stream)
        ab.testing.fail(stream)
        waiting = in_thread(stream.synchronize)
        stream.close()
        gate.open()
        ab.Stream(device).submit(int)  # may take over what the closed stream had
        assert isinstance(waiting.exception(10), ab.ClosedError | ab.KernelError | ab.DriverError)


def test_wrappers_of_one_handle_may_come_and_go_in_many_threads(device, in_threads):
    stream = ab.Stream(device)

    def body(_):
        for _ in range(200):
            wrapper = ab.Stream.from_external(stream.handle, device)
            assert wrapper == stream
            wrapper.record_event()
            wrapper.close()

    in_threads(THREADS, body)
    assert stream.submit(int).result(10) == 0


@pytest.mark.parametrize("kind", ["stream", "event", "array", "future", "gate"])
def test_the_last_reference_may_be_dropped_by_any_thread_with_work_pending(kind, device, in_thread):
    for _ in range(5):
        stream = ab.Stream(device)
        gate = ab.testing.Gate(stream)
        array = ab.zeros(1000, device=device, stream=stream)
        work, event = stream.submit(int, 5), stream.record_event()
        held = [{"stream": stream, "event": event, "array": array, "future": work, "gate": gate}[kind]]
        keep = [thing for thing in (stream, event, array, work, gate) if thing is not held[0]]
        open_gate = gate.open
        del stream, gate, array, work, event

        def drop(held=held):
            held.clear()
            gc.collect()

        in_thread(drop).result(10)
        open_gate()
        for thing in keep:
            if isinstance(thing, ab.Stream | ab.Event):
                thing.synchronize()


def test_a_host_function_may_drop_the_last_reference_to_its_stream(device):
    holder = [ab.Stream(device)]

    def body(holder):
        holder.clear()
        gc.collect()
        return True

    stream, gate = holder[0], ab.testing.Gate(holder[0])
    work = stream.submit(body, holder)
    last = stream.submit(int)
    del stream
    gate.open()
    assert work.result(10)
    assert last.result(10) == 0


def test_each_function_runs_or_is_cancelled(device, in_threads):
    stream, done = ab.Stream(device), []
    gate = ab.testing.Gate(stream)
    futures = [stream.submit(done.append, index) for index in range(500)]
    cancelled = [set() for _ in range(4)]

    def body(thread):
        if thread == 0:
            gate.open()
        for index in range(thread, 500, 4):
            if futures[index].cancel():
                cancelled[thread].add(index)

    in_threads(4, body)
    stream.synchronize()
    assert sorted([*done, *set().union(*cancelled)]) == list(range(500))
    for index, future in enumerate(futures):
        if future.cancelled():
            with pytest.raises(CancelledError):
                future.result(0)
        else:
            assert index in done


def test_one_gate_may_be_opened_by_many_threads(device, in_threads):
    for _ in range(50):
        stream = ab.Stream(device)
        gate = ab.testing.Gate(stream)
        work = stream.submit(int)
        in_threads(4, lambda _, gate=gate: gate.open())
        assert work.result(10) == 0


@pytest.mark.usefixtures("failures_forgotten")
def test_a_failure_reaches_every_thread_that_waits(device, in_threads):
    stream = ab.Stream(device)
    gate = ab.testing.Gate(stream)
    ab.testing.fail(stream)
    event = stream.record_event()

    def body(thread):
        if thread == 0:
            gate.open()
        with pytest.raises((ab.KernelError, ab.DriverError)):
            (event if thread % 2 else stream).synchronize()

    in_threads(THREADS, body)


def test_forks_in_many_threads_do_not_meet(device, in_threads):
    def body(thread):
        with ab.Stream(device) as parent:
            for _ in range(50):
                with ab.fork(3) as branches:
                    futures = [branch.submit(int, thread) for branch in branches]
            parent.synchronize()
        return [future.result(10) for future in futures]

    assert in_threads(THREADS, body) == [[thread] * 3 for thread in range(THREADS)]


@pytest.mark.parametrize("first", ["legacy_stream", "per_thread_stream", "current_stream", "default_stream", "devices"])
def test_many_threads_may_be_the_first(first, run_python):
    script = f"""
        import threading
        import anabranch as ab

        start, found = threading.Barrier(16), []

        def body():
            start.wait()
            found.append(ab.{first}())

        threads = [threading.Thread(target=body) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(found), all(one == found[0] for one in found))
        """
    assert run_python(script) == "16 True\n"


FIRST_USE = """
import threading

import anabranch as ab

start = threading.Barrier(8)
errors = []


def body(dtype):
    try:
        start.wait()
        ab.zeros(1, dtype, device="cpu")
    except BaseException as error:
        errors.append(error)


threads = [threading.Thread(target=body, args=[dtype]) for dtype in ("int8", "float32", "float64", "complex128") * 2]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
"""


def test_the_first_use_of_all_may_be_several_threads_at_once(run_python):
    for _ in range(5):
        assert run_python(FIRST_USE) == ""
