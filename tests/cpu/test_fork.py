"""Fork of a process that uses the library. Each test in a fresh interpreter."""

from textwrap import indent

import pytest

import anabranch as ab

FIRST = [device.alias for device in ab.devices() if device.index == 0]
each_kind = pytest.mark.parametrize("alias", FIRST)

BEFORE_FORK = """
import asyncio
import os
import signal
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
"""

FORK = """
pid = {fork}
if pid == 0:
{child}
_, status = os.waitpid(pid, 0)
"""

AFTER_THE_CHILD = """
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
    forked = FORK.format(fork=fork, child=indent(child, "    "))
    return BEFORE_FORK.format(alias=alias) + forked + AFTER_THE_CHILD


# A child for each use, all of one process: interpreters and what they import would take most of the time.
EACH_USE = """
for use in {uses!r}:
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            eval(use)
        except ab.ForkError:
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert status == 0, (use, status)
    assert stream.submit(int, 7).result(10) == 7
"""


@each_kind
def test_a_use_in_the_child_of_a_fork_is_an_error_and_the_parent_goes_on(alias, run_python):
    script = BEFORE_FORK.format(alias=alias) + EACH_USE.format(uses=AFTER_FORK) + AFTER_THE_CHILD
    assert run_python(script) == ""


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
