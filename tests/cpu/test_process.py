"""The end of a process with work in flight. Each test in a fresh interpreter."""

import sys

import pytest

import anabranch as ab

FIRST = [device.alias for device in ab.devices() if device.index == 0]
each_kind = pytest.mark.parametrize("alias", FIRST)

EXIT = {
    "nothing used": "",
    "work pending": """
        array = ab.zeros(1 << 20, stream=stream)
        for value in range(1000):
            ab.fill(array, value, stream=stream)
        """,
    "a gate never opened": """
        gate = ab.testing.Gate(stream)
        array = ab.zeros(1 << 20, stream=stream)
        ab.fill(array, 1, stream=stream)
        """,
    "a gate that nobody keeps": """
        ab.testing.Gate(stream)
        stream.submit(print, "ran")
        del stream
        """,
    "streams that wait for a gate never opened": """
        gate = ab.testing.Gate(stream)
        streams = [ab.Stream() for _ in range(100)]
        for waiting in streams:
            waiting.wait_stream(stream)
            waiting.submit(print, "ran")
        """,
    "default streams behind a gate never opened": """
        gate = ab.testing.Gate(ab.legacy_stream())
        futures = [ab.per_thread_stream().submit(int), ab.Stream(non_blocking=False).submit(int)]
        """,
    "host functions waiting for a gate never opened": """
        gate = ab.testing.Gate(stream)
        futures = [stream.submit(print, "ran") for _ in range(100)]
        """,
    "a host function that never ends": """
        started = threading.Event()
        future = stream.submit(lambda: (started.set(), threading.Event().wait()))
        started.wait()
        """,
    "host functions that never end": """
        met = threading.Barrier(11)
        for _ in range(10):
            ab.Stream().submit(lambda: (met.wait(), threading.Event().wait()))
        met.wait()
        """,
    "host functions that compute": """
        for _ in range(8):
            for _ in range(50):
                ab.Stream().submit(sum, range(1_000_000))
        """,
    "host functions that enqueue for ever": """
        def again(stream):
            stream.submit(again, stream)
        for _ in range(4):
            again(ab.Stream())
        stream.submit(int).result()
        """,
    "host functions that make arrays for ever": """
        def again():
            ab.zeros(1000, stream=stream).numpy()
            other.submit(again)
        other = ab.Stream()
        other.submit(again)
        stream.submit(int).result()
        """,
    "a thread that synchronizes": """
        gate = ab.testing.Gate(stream)
        for wait in (stream.synchronize, stream.record_event().synchronize, stream.device.synchronize):
            threading.Thread(target=wait, daemon=True).start()
        """,
    "a thread that waits for futures": """
        gate = ab.testing.Gate(stream)
        def body():
            while True:
                ab.Stream().submit(int).result()
        for wait in (stream.submit(int).result, body):
            threading.Thread(target=wait, daemon=True).start()
        ab.Stream().submit(int).result()
        """,
    "a thread that enqueues": """
        def body():
            while True:
                ab.fill(ab.empty(10, stream=stream), 1, stream=stream)
                stream.synchronize()
        threading.Thread(target=body, daemon=True).start()
        stream.submit(int).result()
        """,
    "an await": """
        import asyncio
        gate = ab.testing.Gate(stream)
        async def wait():
            await stream
        async def main():
            asyncio.create_task(wait())
            await asyncio.sleep(0)
        asyncio.run(main())
        """,
    "a stream in use": "stream.use(); ab.zeros(10)",
    "a scope that was not left": """
        gate = ab.testing.Gate(stream)
        def generator():
            with stream, ab.fork(2) as branches:
                yield branches
        left_open = generator()
        next(left_open)
        """,
    "cycles": """
        things = [stream, ab.Event(), ab.zeros(10), ab.testing.Gate(stream)]
        things.append(things)
        del stream
        """,
    "closed streams": """
        gate = ab.testing.Gate(stream)
        stream.submit(print, "ran")
        stream.close()
        """,
    "a failed stream": "ab.testing.fail(stream)",
    "a failed stream behind a gate never opened": """
        gate = ab.testing.Gate(stream)
        ab.testing.fail(stream)
        future = stream.submit(int)
        """,
    "every device": """
        gates = [ab.testing.Gate(ab.Stream(device)) for device in ab.devices()]
        arrays = [ab.zeros(1 << 16, device=device, stream=ab.Stream(device)) for device in ab.devices()]
        """,
    "a function at exit that uses streams": """
        import atexit
        gate = ab.testing.Gate(ab.Stream())
        atexit.register(lambda: ab.fill(ab.zeros(10, stream=stream), 1, stream=stream))
        atexit.register(stream.synchronize)
        """,
    "references in modules that live long": """
        sys.anabranch_things = [stream, ab.zeros(10), stream.record_event(), ab.testing.Gate(stream)]
        """,
}


def exiting(end, alias):
    lines = "\n".join(line.removeprefix(" " * 8) for line in end.strip("\n").splitlines())
    return f"""\
import sys
import threading
import anabranch as ab

ab.Device({alias!r}).__enter__()
stream = ab.Stream()
{lines.strip()}
"""


@each_kind
@pytest.mark.parametrize("end", EXIT.values(), ids=EXIT)
def test_exit_with_work_in_flight_is_quiet(end, alias, run_python):
    assert run_python(exiting(end, alias)) == ""


@each_kind
@pytest.mark.parametrize(("leave", "returncode"), [("sys.exit(3)", 3), ("import os; os._exit(4)", 4)])
def test_exit_keeps_the_status_of_the_program(leave, returncode, alias, run_python):
    assert run_python(exiting(EXIT["a gate never opened"] + leave, alias), returncode=returncode) == ""


@each_kind
def test_work_that_has_been_waited_for_was_done_before_exit(alias, run_python):
    script = """
        stream.submit(print, "ran")
        stream.synchronize()
        """
    assert run_python(exiting(script, alias)) == "ran\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="subinterpreters need Python 3.12")
def test_a_subinterpreter_refuses_or_works_but_does_not_crash(run_python):
    script = """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import anabranch as ab
        ab.zeros(4).numpy()
        interpreter = interpreters.create()
        try:
            interpreters.run_string(interpreter, "import anabranch")
        except Exception:
            pass
        interpreters.destroy(interpreter)
        """
    assert run_python(script) == ""


@pytest.mark.numba
def test_ctrl_c_leaves_a_compiler_that_can_be_imported(run_python, tmp_path):
    output = run_python(
        """
        import os, signal, sys
        import anabranch as ab

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it

        class Interrupt:
            def find_spec(self, name, path=None, target=None):
                if name == "numba.core.typeconv":
                    sys.meta_path.remove(self)
                    os.kill(os.getpid(), signal.SIGINT)

        @ab.kernel
        def add(i, x: ab.InOut):
            x[i] += 1

        x = ab.zeros(4, device="cpu")
        sys.meta_path.insert(0, Interrupt())
        try:
            ab.launch(add, 4, x)
        except KeyboardInterrupt:
            print("interrupted")
        ab.launch(add, 4, x)
        print(x.numpy().tolist())
        """,
        env={"ANABRANCH_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert output == "interrupted\n[1.0, 1.0, 1.0, 1.0]\n"
