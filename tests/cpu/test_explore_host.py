"""Exploration: host functions, forks, graphs, several devices and frees."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    ThreadPoolExecutor,
    as_completed,
    wait,
)

import numpy as np
import pytest

import anabranch as ab
from anabranch.testing import explore

from .test_explore_classes import off, streams, zeros  # noqa: F401


@ab.kernel
def set_one(i, x: ab.Out):  # type: ignore[no-untyped-def]
    x[i] = 1.0


def test_a_host_function_is_an_operation() -> None:
    def program() -> None:
        a, b = streams(2)
        array = zeros()

        view = np.asarray(array)

        def add() -> None:
            view[:] += 3

        a.submit(add, writes=[array])
        ab.fill(array, 3, stream=b)
        ab.synchronize("cpu")
        results.add(array.numpy()[0])

    results: set[float] = set()
    report = explore(program)
    assert report.ok, report
    assert (report.classes, report.runs) == (2, 2)
    assert results == {6, 3}


def test_a_host_function_enqueues_and_waits() -> None:
    def program() -> None:
        a, b = streams(2)
        array = zeros()

        def work() -> int:
            ab.fill(array, 7, stream=b)
            b.synchronize()
            return int(array.numpy()[0])

        assert a.submit(work).result() == 7

    report = explore(program)
    assert report.ok, report


def test_the_order_in_which_functions_end_is_explored() -> None:
    def program() -> None:
        futures = {stream.submit(lambda number=number: number): number for number, stream in enumerate(streams(2))}
        orders.append([future.result() for future in as_completed(futures)])

    orders: list[list[int]] = []
    report = explore(program)
    assert report.ok, report
    assert report.runs == report.classes
    assert {tuple(order) for order in orders} == {(0, 1), (1, 0)}


@pytest.mark.parametrize("when", [ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION])
def test_a_wait_for_several_futures_runs_the_streams(when: str) -> None:
    def program() -> None:
        array = zeros()
        futures = []
        for number, stream in enumerate(streams(2)):
            ab.fill(array[2 * number : 2 * number + 2], number, stream=stream)
            futures.append(stream.submit(int))
        done, left = wait(futures, timeout=60, return_when=when)
        counts.add((len(done), len(left)))
        assert wait(futures) == (set(futures), set())

    counts: set[tuple[int, int]] = set()
    report = explore(program)
    assert report.ok, report
    assert report.runs == report.classes
    assert counts == ({(1, 1), (2, 0)} if when == FIRST_COMPLETED else {(2, 0)})


def test_a_wait_for_futures_that_never_end_is_a_deadlock() -> None:
    gates = []

    def program() -> None:
        a, b = streams(2)
        gates.append(ab.testing.Gate(a))
        list(as_completed([a.submit(int), b.submit(int)]))

    report = explore(program)
    assert not report.ok
    assert "deadlock" in str(report.error)


def test_a_future_is_queried_both_ways() -> None:
    answers = set()

    def program() -> None:
        (a,) = streams(1)
        future = a.submit(int)
        answers.add(future.done())
        assert future.result() == 0

    report = explore(program)
    assert report.ok, report
    assert answers == {True, False}


def test_host_functions_that_wait_for_each_other_are_a_deadlock() -> None:
    def program() -> None:
        a, b = streams(2)
        array = zeros()
        a.submit(lambda: b.synchronize())
        b.submit(lambda: a.synchronize())
        ab.fill(array, 1, stream=a)
        ab.fill(array, 1, stream=b)
        ab.synchronize("cpu")

    report = explore(program)
    assert not report.ok
    assert "deadlock" in str(report.error)


def test_a_fork_joins() -> None:
    def program() -> None:
        (parent,) = streams(1)
        arrays = [zeros(), zeros()]
        with ab.fork(2, parent) as branches:
            for branch, array in zip(branches, arrays, strict=True):
                ab.fill(array, 1, stream=branch)
        for array in arrays:
            ab.fill(array, 2, stream=parent)
        parent.synchronize()
        assert all(array.numpy()[0] == 2 for array in arrays)

    report = explore(program)
    assert report.ok, report
    assert report.classes == 1


def test_frees_are_no_choice() -> None:
    def program() -> None:
        a, b = streams(2)
        array = ab.zeros(4, device="cpu", stream=a)
        b.wait_stream(a)
        ab.fill(array, 1, stream=b)
        array.close()
        other = ab.zeros(4, device="cpu", stream=a)
        assert other.numpy()[0] == 0

    report = explore(program)
    assert report.ok, report
    assert report.classes == 1


def test_a_graph_runs() -> None:
    def program() -> None:
        a, b = streams(2)
        array = zeros()
        with ab.capture(a) as graph:
            ab.fill(array, 1)
        graph.launch(stream=a)
        ab.fill(array, 2, stream=b)
        ab.synchronize("cpu")
        results.add(array.numpy()[0])

    results: set[float] = set()
    report = explore(program)
    assert report.ok, report
    assert report.classes == 2
    assert results == {1, 2}


def test_conditions_in_graphs_run() -> None:
    def program() -> None:
        a, b = streams(2)
        flag = ab.full(1, 3, dtype=np.int32, device="cpu")
        total = zeros()
        ab.synchronize("cpu")
        with ab.capture(a) as graph:
            ab.run_if(flag, lambda: ab.fill(total, 4))
        graph.launch(stream=a)
        graph.launch(stream=a)
        ab.fill(total, 5, stream=b)
        ab.synchronize("cpu")
        results.add(int(total.numpy()[0]))

    results: set[int] = set()
    report = explore(program)
    assert report.ok, report
    assert (report.classes, report.runs) == (3, 3)
    assert results == {4, 5}


def test_await_waits() -> None:
    import asyncio

    def program() -> None:
        async def main() -> np.ndarray:
            (a,) = streams(1)
            array = zeros()
            ab.fill(array, 5, stream=a)
            await a
            return await ab.to_host(array)

        assert asyncio.run(main())[0] == 5

    report = explore(program)
    assert report.ok, report


@pytest.mark.skipif(sum("cpu" in str(device) for device in ab.devices()) < 2, reason="needs two CPU devices")
def test_two_devices_are_explored_together() -> None:
    def program() -> None:
        a, b = ab.Stream("cpu:0"), ab.Stream("cpu:1")
        array = zeros()
        other = ab.zeros(4, device="cpu:1")
        ab.synchronize()
        ab.fill(array, 1, stream=a)
        ab.copy(other, array, stream=b)
        ab.synchronize()
        results.add(other.numpy()[0])

    results: set[float] = set()
    report = explore(program)
    assert report.ok, report
    assert report.classes == 2
    assert results == {0, 1}


def test_a_default_stream_that_the_first_run_makes_is_the_same_in_the_second() -> None:
    code = """
import anabranch as ab

def program():
    array, (a, b) = ab.zeros(4, device="cpu"), (ab.per_thread_stream("cpu"), ab.Stream("cpu"))
    ab.synchronize()
    with ab.hazards("off"):
        ab.fill(array, 1, stream=a)
        ab.fill(array, 2, stream=b)

report = ab.testing.explore(program)
print(report.ok, report.classes, report.runs)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True 2 2\n"


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_enqueued_while_the_host_writes_comes_before_or_after(apart: bool) -> None:
    def program() -> None:
        (a,) = streams(1)
        array = zeros()
        with array[:2].host(write=True) as view:
            ab.fill(array[2:] if apart else array, 1, stream=a)
            view[:] = 2
        results.add(array.numpy()[0])

    results: set[float] = set()
    report = explore(program)
    assert report.ok, report
    assert (report.classes, report.runs) == ((1, 1) if apart else (2, 2))
    assert results == ({2} if apart else {1, 2})


@pytest.mark.numba
def test_a_kernel_that_is_launched_while_the_host_reads_is_found() -> None:
    def program() -> None:
        a, b = streams(2)
        array = zeros()
        with array.host() as view:
            ab.launch(set_one, 4, array, stream=a)
            ab.launch(set_one, 4, zeros(), stream=b)
            assert view.sum() == 0

    report = explore(program)
    assert isinstance(report.error, AssertionError)
    assert "access by the host" in str(report)
    assert not explore(program, schedules=report.schedule).ok


def test_work_that_reads_what_the_host_reads_is_no_choice() -> None:
    def program() -> None:
        (a,) = streams(1)
        array, other = zeros(), zeros()
        with array.host() as view:
            ab.copy(other, array, stream=a)
            assert view.sum() == 0
        with array.host(write=True):
            pass
        ab.copy(other, array, stream=a)

    report = explore(program)
    assert (report.ok, report.classes) == (True, 1), report


def filled(value: int) -> int:
    with ab.Stream("cpu"):
        return int(ab.full(4, value).numpy().sum())


def with_a_pool() -> list[int]:
    with ThreadPoolExecutor(1) as pool:
        return list(pool.map(filled, [1, 2, 3]))


def with_asyncio() -> list[int]:
    async def main() -> list[int]:
        return [await asyncio.to_thread(filled, value) for value in (1, 2, 3)]

    return asyncio.run(main())


@pytest.mark.parametrize("run", [with_a_pool, with_asyncio])
def test_a_thread_waits_while_the_program_waits_for_the_thread(run: Callable[[], list[int]]) -> None:
    def program() -> None:
        assert run() == [4, 8, 12]

    report = explore(program)
    assert report.ok, report
    assert report.uncontrolled
    assert not report.complete
    assert "without other orders of the program's own threads, tasks and functions" in str(report)


@pytest.mark.parametrize("tasks", [1, 2])
def test_tasks_beside_one_that_awaits_are_not_explored(tasks: int) -> None:
    def program() -> None:
        array = zeros()

        async def write(stream: ab.Stream) -> None:
            ab.fill(array, 1, stream=stream)
            await stream

        async def main() -> None:
            await asyncio.gather(*map(write, streams(tasks)))

        asyncio.run(main())

    report = explore(program)
    assert report.ok, report
    assert report.uncontrolled


def test_a_lone_task_is_explored_completely() -> None:
    def program() -> None:
        async def main() -> None:
            (stream,) = streams(1)
            ab.fill(zeros(), 1, stream=stream)
            await stream

        asyncio.run(main())

    report = explore(program)
    assert (report.ok, report.complete, report.uncontrolled) == (True, True, False)
