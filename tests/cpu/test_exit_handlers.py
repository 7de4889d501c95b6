"""Waits in exit handlers that run when the devices have stopped. Each test in a fresh interpreter."""

import pytest

import anabranch as ab

FIRST = [device.alias for device in ab.devices() if device.index == 0]
each_kind = pytest.mark.parametrize("alias", FIRST)

LATE = {
    "a stream": "stream.synchronize()",
    "an event": "stream.record_event().synchronize()",
    "an array": "array.numpy()",
    "a future": "future.result()",
    "what a future failed with": "future.exception()",
    "a future of late": "ab.Stream().submit(int).result()",
    "await of a stream": "asyncio.run(wait(stream))",
    "await of an event": "asyncio.run(wait(stream.record_event()))",
    "await of an array": "asyncio.run(wait(ab.to_host(array)))",
    "await of a future": "asyncio.run(wait(future))",
}


@each_kind
@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
def test_a_wait_that_could_never_end_raises_at_exit(late, alias, run_python):
    script = f"""
        import asyncio
        import atexit

        async def wait(awaitable):
            await awaitable

        def late():
            try:
                {late}
            except ab.Error as error:
                print(error)

        atexit.register(late)  # handlers run last to first: this one after ours
        import anabranch as ab

        ab.Device({alias!r}).__enter__()
        stream = ab.Stream()
        stream.submit(int).result()
        gate = ab.testing.Gate(stream)
        array = ab.zeros(10, stream=stream)
        future = stream.submit(print, "ran")
        """
    assert run_python(script).startswith("the interpreter is exiting and the devices have stopped; this ")


@each_kind
def test_what_is_over_may_be_asked_for_at_exit(alias, run_python):
    script = f"""
        import asyncio
        import atexit

        async def wait(awaitable):
            return await awaitable

        def late():
            print(done.result(), done.exception(), done.done(), asyncio.run(wait(done)), asyncio.run(wait(copied)))
            try:
                pending.result(0)
            except TimeoutError:
                print("in time")

        atexit.register(late)
        import anabranch as ab

        ab.Device({alias!r}).__enter__()
        stream, held = ab.Stream(), ab.Stream()
        done, copied = stream.submit(int, 3), ab.to_host(ab.full(2, 1, stream=stream))
        done.result()
        asyncio.run(wait(copied))
        gate = ab.testing.Gate(held)
        pending = held.submit(int)
        """
    assert run_python(script) == "3 None True 3 [1 1]\nin time\n"


IN_THREAD = {
    **{f"{name}, at exit": f"exiting.wait(); {late}" for name, late in LATE.items()},
    "a stream": "stream.synchronize()",
    "an event": "stream.record_event().synchronize()",
    "an array": "array.numpy()",
    "a device": "stream.device.synchronize()",
}


@each_kind
@pytest.mark.parametrize("waits", IN_THREAD.values(), ids=IN_THREAD)
def test_a_daemon_thread_that_waits_ends_without_a_word(waits, alias, run_python):
    script = f"""
        import asyncio
        import atexit
        import threading

        exiting = threading.Event()

        async def wait(awaitable):
            await awaitable

        def body():
            ab.Device({alias!r}).__enter__()
            begun.wait()
            {waits}

        def late():
            exiting.set()
            thread.join()
            print("joined")

        atexit.register(late)
        import anabranch as ab

        ab.Device({alias!r}).__enter__()
        stream = ab.Stream()
        stream.submit(int).result()
        gate = ab.testing.Gate(stream)
        array = ab.zeros(10, stream=stream)
        future = stream.submit(print, "ran")
        begun = threading.Barrier(2)
        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        begun.wait()
        """
    assert run_python(script) == "joined\n"
