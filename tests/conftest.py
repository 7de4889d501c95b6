"""What all tests of the package share: the devices, threads, fresh interpreters."""

import asyncio
import contextlib
import functools
import gc
import importlib.util
import inspect
import os
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import Future
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, settings

# Read when anabranch first looks for devices: two, so that every machine tests what crosses devices.
os.environ.setdefault("ANABRANCH_CPU_DEVICES", "2")
# A worker of Dask logs that its end has cut off a heartbeat, now and then. Programs of tests are to print nothing.
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")

import anabranch as ab

from .own_fixtures import with_own_fixtures
from .prepared import Prepared

# How long an example takes to make or to run says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Under compute-sanitizer an interpreter that uses a GPU has taken 36 s to come and go.
SLOW = 3 if os.environ.get("ANABRANCH_CUDA_SANITIZER") else 1

# Where each test runs in several threads, they share the examples.
settings.register_profile("threads", settings.get_profile("busy"), max_examples=25)

LOCK_ON = "the interpreter lock, off at the beginning, is on"


def threads_of(config):
    # pytest-run-parallel calls each test in so many threads at once.
    return int(config.getoption("parallel_threads", 1))


def pytest_configure(config):
    if threads_of(config) > 1:
        settings.load_profile("threads")


def pytest_collection_modifyitems(config, items):
    threads = threads_of(config)
    for item in items:
        if inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.obj = in_a_loop(item.obj)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(60 * SLOW))
        if threads > 1:
            with_own_fixtures(item)
            if item.get_closest_marker("memory") or item.get_closest_marker("alone"):
                item.add_marker(pytest.mark.thread_unsafe(reason="measures what others at work change"))


def in_a_loop(test):
    """Return a function that runs an asynchronous test to its end."""

    @functools.wraps(test)
    def run(**given):
        asyncio.run(test(**given))

    return run


def pytest_sessionfinish(session):
    on = bool(sysconfig.get_config_var("Py_GIL_DISABLED") and sys._is_gil_enabled())
    if hasattr(session.config, "workerinput"):  # pytest-xdist heeds no exit of its workers
        session.config.workeroutput["lock_on"] = on
    elif on:
        pytest.exit(LOCK_ON, returncode=1)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    if getattr(node, "workeroutput", {}).get("lock_on"):
        pytest.exit(LOCK_ON, returncode=1)


def pytest_runtest_setup(item):
    if item.get_closest_marker("numba") and importlib.util.find_spec("numba") is None:
        pytest.skip("Numba is not installed")


@pytest.fixture(autouse=True, scope="module")
def little_to_collect(request):
    """What is there by now is out of the collector's sight, so that a test may collect what it made in no time.

    With what pytest makes of thousands of tests, and Numba of its modules, that takes up to 0.6 s.
    """
    if any(item.get_closest_marker("numba") for item in request.session.items) and importlib.util.find_spec("numba"):
        importlib.import_module("numba")
    gc.collect()
    gc.freeze()


# The devices that tests run on: all, or those whose names begin so. Tests that were made for others and then deselected
# would stay in memory, which the free-threaded interpreter walks through at each collection.
TESTED = [device for device in ab.devices() if device.alias.startswith(os.environ.get("ANABRANCH_TESTED", ""))]
if not TESTED:
    raise pytest.UsageError(f"ANABRANCH_TESTED={os.environ['ANABRANCH_TESTED']} names none of {ab.devices()}")


@pytest.fixture(params=TESTED, ids=lambda device: device.alias)
def device(request):
    """Each device in turn."""
    return request.param


@pytest.fixture
def other_device(device):
    """A device other than `device`; over all values of `device`, every device is the other one once."""
    devices = ab.devices()
    if len(devices) == 1:
        pytest.skip("there is only one device")
    return devices[(devices.index(device) + 1) % len(devices)]


@pytest.fixture
def device_pair(device, other_device):
    """Two different devices."""
    return device, other_device


@pytest.fixture(scope="session")
def first_device():
    """The current device of a thread that has chosen none."""
    return ab.current_device()


@pytest.fixture(autouse=True)
def current_unchanged(first_device):
    """A test leaves the current device and streams of its thread as they were."""
    before = [ab.current_stream(device) for device in ab.devices()]
    yield
    assert ab.current_device() is first_device
    assert [ab.current_stream(device) for device in ab.devices()] == before


@pytest.fixture(autouse=True)
def gates_opened():
    """A test that fails leaves no gate closed, which would hold the tests after it."""
    gates, gate_class = [], ab.testing.Gate

    def make(stream):
        gate = gate_class(stream)
        gates.append(gate)
        return gate

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ab.testing, "Gate", make)
        yield
    for gate in gates:
        gate.open()


@pytest.fixture
def failures_forgotten():
    """For tests that fail a stream, which must be gone before another test synchronizes the device."""
    _forget_failures()  # of a test whose arguments, which pytest keeps until its end, had kept their streams
    yield
    gc.collect()
    _forget_failures()


def _forget_failures():
    for _ in range(20):  # a stream that is gone is raised for once, the others each time
        try:
            ab.synchronize()
        except Exception:
            continue
        break


@pytest.fixture
def in_thread():
    """Call a function in a new thread; gives a future."""

    def start(function, *args):
        future = Future()

        def run():
            try:
                future.set_result(function(*args))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    return start


@pytest.fixture
def in_threads(in_thread):
    """Call `function(0)` to `function(n - 1)` in `n` threads that start together; gives the results."""

    def run(n, function):
        start = threading.Barrier(n, timeout=30)

        def body(index):
            start.wait()
            return function(index)

        return [future.result(50) for future in [in_thread(body, index) for index in range(n)]]

    return run


@pytest.fixture
def run_python(tmp_path):
    """Run a script in a fresh interpreter in which every warning is an error; gives what it printed.

    It must end in time, with status `returncode`, and print nothing to stderr. `env` sets variables, None removes one.
    """

    def run(script, *, env=(), returncode=0, timeout=40 * SLOW):
        path = tmp_path / "script.py"
        path.write_text(dedent(script))
        environment = {key: value for key, value in {**os.environ, **dict(env)}.items() if value is not None}
        command = [sys.executable, "-W", "error", str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
        assert (done.returncode, done.stderr) == (returncode, ""), done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def prepared():
    """Programs in processes that begin with Numba imported; see prepared.py."""
    with contextlib.closing(Prepared()) as interpreter:
        yield interpreter


@pytest.fixture
def script(tmp_path):
    """Write a script; gives its path."""

    def write(text, name="script.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text))
        return str(path)

    return write
