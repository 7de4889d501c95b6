"""Futures of host functions: of graphs, with callbacks, and awaited through `asyncio.wrap_future`."""

import asyncio
import subprocess
import sys

import numpy as np
import pytest

import anabranch as ab

from .test_real_programs import complete

pytestmark = pytest.mark.timeout(60)


def explore(program):
    with ab.hazards("off"):
        return ab.testing.explore(program)


# -- of graphs --


def test_the_future_of_a_graph_ends_with_its_replay():
    def program():
        stream = ab.Stream("cpu")
        with ab.capture(stream) as graph:
            future = stream.submit(lambda: 5)
        graph.launch(stream)
        assert future.result() == 5
        assert future.done()

    complete(explore(program), 1)


def test_the_future_of_a_graph_is_queried_both_ways():
    answers = set()

    def program():
        stream = ab.Stream("cpu")
        with ab.capture(stream) as graph:
            future = stream.submit(int)
        assert not future.done()
        graph.launch(stream)
        answers.add(future.done())

    complete(explore(program), 2)
    assert answers == {True, False}


def test_what_a_graph_does_after_its_function_is_not_in_a_complete_exploration():
    def program():
        stream = ab.Stream("cpu")
        array = ab.zeros(4, device="cpu", stream=stream)
        with ab.capture(stream) as graph:
            future = stream.submit(lambda: 5)
            ab.fill(array, 1)
        graph.launch(stream)
        assert future.result() == 5

    report = explore(program)
    assert (report.ok, report.uncontrolled, report.complete) == (True, True, False), report


def test_a_function_that_another_function_launches_the_graph_of():
    def program():
        stream, other = ab.Stream("cpu"), ab.Stream("cpu")
        with ab.capture(stream) as graph:
            future = stream.submit(lambda: 5)
        other.submit(graph.launch, stream)
        assert future.result() == 5

    report = explore(program)
    assert report.ok, report


def test_a_function_that_raises_in_a_graph():
    def fail():
        raise ValueError("in a graph")

    def program():
        stream = ab.Stream("cpu")
        with ab.capture(stream) as graph:
            future = stream.submit(fail)
        graph.launch(stream)
        with pytest.raises((ValueError, ab.KernelError), match="in a graph"):
            future.result()

    report = explore(program)
    assert "in a graph" in str(report.error)  # the graph's stream has failed


@pytest.mark.parametrize("launched", [False, True])
def test_a_function_that_no_graph_calls_is_a_deadlock(launched):
    def program():
        stream = ab.Stream("cpu")
        flag = ab.zeros(1, "int32", device="cpu", stream=stream)
        futures = []
        with ab.capture(stream) as graph:
            ab.run_if(flag, lambda: futures.append(ab.current_stream("cpu").submit(int)))
        if launched:
            graph.launch(stream)
        futures[0].result()

    report = explore(program)
    assert "deadlock" in str(report.error)


# -- cancelled --


def test_a_function_is_cancelled_before_and_after_it_has_run():
    ends = set()

    def program():
        stream, called = ab.Stream("cpu"), []
        future = stream.submit(called.append, 1)
        cancelled = future.cancel()
        stream.synchronize()
        assert future.cancelled() == cancelled
        assert future.cancel() == cancelled
        ends.add((cancelled, *called))

    complete(explore(program), 2)
    assert ends == {(True,), (False, 1)}


def test_a_program_that_relies_on_a_cancel_fails():
    def program():
        assert ab.Stream("cpu").submit(int).cancel()

    report = explore(program)
    assert isinstance(report.error, AssertionError), report
    assert not ab.testing.explore(program, schedules=report.schedule).ok


def test_what_a_function_had_waited_for_comes_before_a_cancel_that_fails():
    def program():
        one, other = ab.Stream("cpu"), ab.Stream("cpu")
        array = ab.zeros(4, device="cpu", stream=one)
        future = one.submit(int)
        if future.cancel():
            one.synchronize()
        ab.fill(array, 1, stream=other)
        other.synchronize()
        assert array.numpy().tolist() == [1] * 4

    complete(explore(program), 2)


def test_a_function_cannot_cancel_itself():
    def program():
        stream, futures = ab.Stream("cpu"), []
        gate = ab.testing.Gate(stream)
        futures.append(stream.submit(lambda: futures[0].cancel()))
        gate.open()
        assert futures[0].result() is False

    complete(explore(program), 1)


# -- callbacks --


def test_callbacks_have_run_when_a_wait_ends():
    def program():
        stream, called = ab.Stream("cpu"), []
        future = stream.submit(lambda: 5)
        future.add_done_callback(lambda future: called.append(future.result()))
        assert future.result() == 5
        assert called == [5]
        future.add_done_callback(called.append)
        assert called == [5, future]

    complete(explore(program))


def test_a_callback_may_wait_and_enqueue():
    def program():
        stream, other = ab.Stream("cpu"), ab.Stream("cpu")
        array = ab.zeros(4, device="cpu", stream=stream)

        def fill(future):
            assert future.done()
            stream.synchronize()
            ab.fill(array, future.result(), stream=other)
            other.synchronize()

        future = stream.submit(lambda: 5)
        future.add_done_callback(fill)
        future.result()
        assert array.numpy().tolist() == [5] * 4

    report = explore(program)
    assert report.ok, report


@pytest.mark.parametrize("seen", [False, True])
def test_the_query_after_a_callback_is_answered_both_ways(seen):
    """That a callback has looked at the future tells the host nothing."""
    answers = set()

    def program():
        stream, other = ab.Stream("cpu"), ab.Stream("cpu")
        future = stream.submit(int)
        future.add_done_callback(lambda future: seen and future.result())
        ab.fill(ab.zeros(4, device="cpu", stream=other), 1, stream=other)
        other.synchronize()
        answers.add(future.done())

    complete(explore(program))
    assert answers == {True, False}


# -- in event loops --


def test_a_wrapped_future_runs_the_streams():
    def program():
        async def main():
            return await asyncio.wrap_future(ab.Stream("cpu").submit(lambda: 5))

        assert asyncio.run(main()) == 5

    complete(explore(program), 1)


def test_a_wrapped_future_raises_what_its_function_raises():
    def fail():
        raise ValueError("in a function")

    def program():
        async def main():
            with pytest.raises(ValueError, match="in a function"):
                await asyncio.wrap_future(ab.Stream("cpu").submit(fail))

        asyncio.run(main())

    complete(explore(program), 1)


def test_which_wrapped_future_is_first_is_a_choice():
    counts = set()

    def program():
        async def main():
            futures = [asyncio.wrap_future(ab.Stream("cpu").submit(int, number)) for number in (1, 2)]
            done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            counts.add(tuple(future in done for future in futures))
            assert await asyncio.gather(*futures) == [1, 2]

        asyncio.run(main())

    complete(explore(program))
    assert counts == {(True, False), (False, True), (True, True)}


def test_a_wrapped_future_is_polled_both_ways():
    answers = set()

    def program():
        async def main():
            future = asyncio.wrap_future(ab.Stream("cpu").submit(int))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            answers.add(future.done())
            await future

        asyncio.run(main())

    complete(explore(program))
    assert answers == {True, False}


def test_a_wrapped_future_that_is_cancelled():
    def program():
        async def main():
            future = asyncio.wrap_future(ab.Stream("cpu").submit(int))
            future.cancel()
            with pytest.raises(asyncio.CancelledError):
                await future

        asyncio.run(main())

    report = explore(program)
    assert report.ok, report


def test_a_wrapped_future_behind_a_gate_that_nobody_opens_is_a_deadlock():
    gates = []

    def program():
        async def main():
            stream = ab.Stream("cpu")
            gates.append(ab.testing.Gate(stream))
            await asyncio.wrap_future(stream.submit(int))

        asyncio.run(main())

    report = explore(program)
    assert "deadlock" in str(report.error)


def test_tasks_that_wait_for_wrapped_futures_of_a_graph():
    def program():
        stream = ab.Stream("cpu")
        with ab.capture(stream) as graph:
            future = stream.submit(lambda: np.float32(5))
        graph.launch(stream)

        async def wait():
            return await asyncio.wrap_future(future)

        async def main():
            return await asyncio.gather(wait(), wait())

        assert asyncio.run(main()) == [5, 5]

    report = explore(program)
    assert report.ok, report


def test_a_callback_that_its_loop_does_not_live_to_run():
    code = """
import asyncio
import anabranch as ab

def program():
    called = []
    async def main():
        stream.submit(int).add_done_callback(called.append)
    stream = ab.Stream("cpu")
    with ab.testing.Gate(stream):
        asyncio.run(main())
    stream.synchronize()
    assert called

report = ab.testing.explore(program)
print(report.ok)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "True\n"
