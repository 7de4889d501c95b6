"""Hazards and asyncio: each task has a mode, and knows of the order what it has found out itself."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import os

import pytest

import anabranch as ab

from ..accesses import ready, streams, write
from ..arrays import TIMEOUT
from ..tasks import turns


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


# What a task knows


@pytest.mark.parametrize(
    "awaited", [lambda stream: stream, lambda stream: stream.record_event()], ids=["stream", "event"]
)
async def test_awaiting_orders_what_the_task_does_later(awaited, a, b, array):
    gate = ab.testing.Gate(a)
    write(array, a)
    asyncio.get_running_loop().call_soon(gate.open)
    await awaited(a)
    write(array, b)


@pytest.mark.parametrize(
    "awaited", [lambda stream: stream, lambda stream: stream.record_event()], ids=["stream", "event"]
)
def test_what_a_task_awaits_first_orders_what_it_does_later(awaited, a, b, array):
    write(array, a)

    async def main():
        await awaited(a)
        write(array, b)

    asyncio.run(main())


@pytest.mark.parametrize("wait", ["synchronize", "await"])
async def test_what_one_task_has_waited_for_is_not_known_to_another(device, wait):
    (a, b), array = streams(device), ready(device)

    async def waiting():
        if wait == "await":
            await a
        else:
            a.synchronize()
        write(ready(device), b)

    async def other():
        ab.current_stream()
        await turns()
        with pytest.raises(ab.RaceError):
            write(array, ab.Stream(device))

    write(array, a)
    await asyncio.gather(other(), waiting())


def test_what_a_task_knows_is_not_told_by_an_operation_that_is_refused(device):
    (a, b, shared), x, y = streams(device, 3), ready(device), ready(device)

    def use(outcome):
        with ab.hazards("check"), outcome:
            write(x, shared)

    with concurrent.futures.ThreadPoolExecutor(1) as other:
        other.submit(int).result(TIMEOUT)  # begins now, when nothing is known
        write(x, a)
        a.synchronize()
        write(y, b)
        with pytest.raises(ab.RaceError):
            write(y, shared)
        other.submit(use, pytest.raises(ab.RaceError)).result(TIMEOUT)
        # By one that is not refused, it is.
        write(ready(device), shared)
        other.submit(use, contextlib.nullcontext()).result(TIMEOUT)


async def test_a_task_starts_with_what_its_creator_has_waited_for(a, b, array):
    async def use():
        write(array, b)

    write(array, a)
    await a
    await asyncio.create_task(use())


@pytest.mark.xfail(strict=True, reason="a task takes over what its creator knows when it first needs it")
async def test_a_task_does_not_start_with_what_its_creator_waits_for_later(a, b, array):
    async def use():
        await turns(2)
        with pytest.raises(ab.RaceError):
            write(array, b)

    write(array, a)
    task = asyncio.create_task(use())
    await turns(1)
    a.synchronize()
    await task


async def test_awaiting_a_task_does_not_tell_what_it_has_waited_for(a, b, array):
    async def wait():
        await a

    write(array, a)
    await asyncio.create_task(wait())
    with pytest.raises(ab.RaceError):
        write(array, b)


@pytest.mark.xfail(strict=True, reason="asyncio finds out about the future on another thread's behalf")
async def test_awaiting_a_future_orders_what_the_task_does_later(a, b, array):
    write(array, a)
    await asyncio.wrap_future(a.submit(int))
    write(array, b)


WAITS = {
    "wait": lambda future: concurrent.futures.wait([future], TIMEOUT),
    "as_completed": lambda future: list(concurrent.futures.as_completed([future], TIMEOUT)),
}


@pytest.mark.xfail(strict=True, reason="they ask the future's state, none of its methods")
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_waiting_for_several_futures_orders_what_the_task_does_later(wait, a, b, array):
    write(array, a)
    wait(a.submit(int))
    write(array, b)


# Modes


def mode(device):
    """Tell whether the mode is `check`: only then is a race reported."""
    (a, b), array = streams(device), ready(device)
    write(array, a)
    try:
        write(array, b)
    except ab.RaceError:
        return "check"
    return "not check"


def test_a_task_starts_with_the_mode_of_its_creator(device):
    async def tell():
        return mode(device)

    async def main():
        inside = asyncio.create_task(tell())
        with ab.hazards("auto"):
            other = asyncio.create_task(tell())
        return await inside, await other

    assert asyncio.run(main()) == ("check", "not check")


@pytest.mark.races
def test_a_task_keeps_the_mode_that_its_creator_had_when_it_made_it(device):
    async def tell():
        await turns()
        return mode(device)

    async def main():
        task = asyncio.create_task(tell())
        ab.hazards("off")
        result = await task
        assert mode(device) == "not check"
        return result

    assert asyncio.run(main()) == "check"
    assert mode(device) == "check"


@pytest.mark.races
def test_tasks_do_not_see_each_others_modes(device):
    async def use(own, expected):
        with ab.hazards(own):
            for _ in range(5):
                await turns(1)
                assert mode(device) == expected
        await turns(1)
        return mode(device)

    async def main():
        return await asyncio.gather(use("check", "check"), use("auto", "not check"), use("off", "not check"))

    assert asyncio.run(main()) == ["check"] * 3


def test_a_mode_that_a_task_sets_ends_with_it(device):
    async def leave():
        ab.hazards("auto")

    async def main():
        await asyncio.create_task(leave())
        return mode(device)

    assert asyncio.run(main()) == "check"


def test_a_coroutine_that_is_awaited_sets_the_mode_of_its_task(device):
    async def leave():
        ab.hazards("auto")

    async def main():
        await leave()
        return mode(device)

    assert asyncio.run(main()) == "not check"


def test_races_are_collected_across_an_await(device):
    async def main():
        (a, b), array = streams(device), ready(device)
        with ab.collect_races() as races:
            write(array, a)
            await b
            write(array, b)
        return races

    assert [race.kind for race in asyncio.run(main())] == ["WAW"]


def test_a_task_does_not_collect_the_races_of_another(device):
    async def race():
        (a, b), array = streams(device), ready(device)
        write(array, a)
        await turns()
        with pytest.raises(ab.RaceError):
            write(array, b)

    async def main():
        other = asyncio.create_task(race())
        with ab.collect_races() as races:
            await other
        return races

    assert asyncio.run(main()) == []


@pytest.mark.parametrize("copied", [False, True], ids=["to_thread", "executor with a copied context"])
def test_a_thread_that_asyncio_starts_has_the_mode_of_a_thread(device, copied):
    async def main():
        if not copied:
            return await asyncio.to_thread(mode, device)
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(None, context.run, mode, device)

    assert asyncio.run(main()) == ("check" if os.environ.get("ANABRANCH_HAZARDS") == "check" else "not check")


async def test_stream_scopes_and_modes_of_two_tasks_do_not_mix(device):
    async def use(own, expected, stream):
        with stream:
            await turns(1)
            with ab.hazards(own):
                await turns(1)
                assert ab.current_stream(device) == stream
                assert mode(device) == expected
            await turns(1)
            assert ab.current_stream(device) == stream
            assert mode(device) == "check"

    a, b = streams(device)
    await asyncio.gather(use("auto", "not check", a), use("check", "check", b))
