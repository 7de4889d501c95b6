"""The end of a process with work in flight, and fork. Each test in a fresh interpreter."""

import sys
from textwrap import indent

import pytest

import anabranch as ab

FIRST = [device.alias for device in ab.devices() if device.index == 0]
each_kind = pytest.mark.parametrize("alias", FIRST)

# -- fork --

FORK = """
import asyncio
import os
import sys
import warnings
import anabranch as ab

warnings.simplefilter("ignore", DeprecationWarning)  # a process with threads forks

with ab.Device({alias!r}):
    stream, event, array = ab.Stream(), ab.Event(), ab.zeros(4)
    event.record()
    device = ab.current_device()
    held = ab.Stream()
    gate = ab.testing.Gate(held)
    future = held.submit(int)
    array.numpy()
    coming, empty = ab.to_host(array), ab.to_host(array[:0])

async def wait(awaitable):
    await awaitable

sys.stdout.flush()
pid = {fork}
if pid == 0:
{child}
_, status = os.waitpid(pid, 0)
gate.open()
assert future.result(10) == 0
assert stream.submit(int, 7).result(10) == 7
assert array.numpy().sum() == 0
sys.exit(os.waitstatus_to_exitcode(status))
"""

REFUSED = """
try:
    {use}
except ab.ForkError:
    os._exit(0)
os._exit(1)
"""

AFTER_FORK = [
    "ab.Stream()",
    "ab.Event()",
    "ab.zeros(4)",
    "ab.current_stream()",
    "ab.default_stream()",
    "ab.synchronize()",
    "device.synchronize()",
    "stream.query()",
    "stream.synchronize()",
    "stream.submit(int)",
    "stream.record_event()",
    "stream.wait_event(event)",
    "stream.wait_stream(stream)",
    "stream.use()",
    "stream.__enter__()",
    "event.query()",
    "event.record()",
    "event.wait(stream)",
    "event.synchronize()",
    "array.numpy()",
    "ab.fill(array, 1)",
    "ab.fork(2).__enter__()",
    "ab.testing.Gate(stream)",
    "gate.open()",
    "gate.is_open",
    "future.result()",
    "future.exception()",
    "future.done()",
    "future.add_done_callback(print)",
    "asyncio.run(wait(future))",
    "asyncio.run(wait(asyncio.wrap_future(future)))",
    "asyncio.run(wait(coming))",
    "asyncio.run(wait(empty))",
    "asyncio.run(wait(stream))",
    "asyncio.run(wait(event))",
    "ab.hazards('check')",
]


def forking(child, alias, fork="os.fork()"):
    return FORK.format(alias=alias, fork=fork, child=indent(child, "    "))


@each_kind
@pytest.mark.parametrize("use", AFTER_FORK)
def test_a_use_in_the_child_of_a_fork_is_an_error_and_the_parent_goes_on(use, alias, run_python):
    assert run_python(forking(REFUSED.format(use=use), alias)) == ""


@each_kind
def test_what_there_was_before_a_fork_has_a_text(alias, run_python):
    show = """
with_html = [stream, array, graph]
for each in [*with_html, event, device, gate]:
    assert repr(each).startswith("<" + type(each).__name__) or each is device, repr(each)
for each in with_html:
    assert each._repr_html_()
os._exit(0)
"""
    before = "captured = ab.Stream()\nwith ab.capture(captured) as graph:\n    ab.fill(array, 1)\nsys.stdout.flush()"
    assert run_python(forking(show, alias).replace("sys.stdout.flush()", before)) == ""


@each_kind
def test_a_fork_that_python_does_not_see_is_seen(alias, run_python):
    child = REFUSED.format(use="stream.query()")
    assert run_python(forking(child, alias, "__import__('ctypes').PyDLL(None).fork()")) == ""


@each_kind
@pytest.mark.parametrize(
    "child",
    [
        "sys.exit(0)",
        "del stream, event, array, gate; sys.exit(0)",
        "array.close(); stream.close(); event.close(); sys.exit(0)",
    ],
    ids=["exits", "drops", "closes"],
)
def test_the_child_of_a_fork_ends_quietly(child, alias, run_python):
    assert run_python(forking(child, alias)) == ""


@each_kind
def test_a_child_of_a_fork_that_used_nothing_may_use_everything(alias, run_python):
    script = f"""
        import os
        import sys
        import anabranch as ab

        pid = os.fork()
        if pid == 0:
            with ab.Device({alias!r}), ab.Stream() as stream:
                array = ab.full(4, 2.0)
                assert array.numpy().sum() == 8
                assert stream.submit(int, 3).result(10) == 3
            sys.exit(0)
        _, status = os.waitpid(pid, 0)
        assert ab.zeros(4, device={alias!r}).numpy().sum() == 0
        sys.exit(os.waitstatus_to_exitcode(status))
        """
    assert run_python(script) == ""


@each_kind
def test_processes_that_are_spawned_work(alias, run_python):
    script = f"""
        import multiprocessing
        import anabranch as ab

        def body(n):
            return ab.full(n, 2.0, device={alias!r}).numpy().sum().item()

        if __name__ == "__main__":
            body(1)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(body, [1, 2]))
        """
    assert run_python(script) == "[2.0, 4.0]\n"


# -- exit --

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
