"""Faults of the GPU, each in a process of its own, since they end all work of the process on that GPU."""

from textwrap import dedent

import pytest

from .gpu import SCRIPT

pytestmark = pytest.mark.usefixtures("kernels")

FAULT = (
    SCRIPT
    + """
stream, other = ab.Stream(), ab.Stream()
array = ab.zeros(4, "int32", stream=stream)
other_array = ab.ones(4, stream=other)
before = stream.record_event()
timed = ab.Event(enable_timing=True)
kernel, spin = module.get_kernel(NAME), module.get_kernel("spin")
ab.synchronize()

def fail():
    # Late enough for what the script enqueues behind it.
    ab.launch(spin, ONE, 100_000_000, stream=stream)
    ab.launch(kernel, ONE, array, stream=stream)

def met(call):
    try:
        call()
    except ab.DriverError as error:
        return error
    raise AssertionError(f"{call} raised nothing")

def until_raised(query):
    while True:
        assert query() in (True, False)
"""
)


@pytest.fixture(params=[("stray", (700,)), ("trap", (715, 719))], ids=["illegal address", "trap"])
def run_fault(request, run_python):
    """Run a script in which `fail()` enqueues a kernel that fails the GPU."""
    name, codes = request.param
    names = f"NAME, CODES = {name!r}, {codes!r}\n"
    return lambda script, **options: run_python(names + FAULT + dedent(script), **options)


def test_a_fault_is_reported_by_the_next_synchronization_with_the_kernel_s_name(run_fault):
    script = """
        fail()
        error = met(stream.synchronize)
        assert error.code in CODES, error
        assert error.name.startswith("CUDA_ERROR_"), error
        assert f"'{NAME}'" in str(error), error
        assert "cuda:0" in str(error), error
        assert isinstance(error, ab.Error)
        """
    assert run_fault(script) == ""


OBSERVERS = {
    "stream.synchronize": "stream.synchronize()",
    "another stream's synchronize": "other.wait_stream(stream); other.synchronize()",
    "stream.query": "until_raised(stream.query)",
    "event.synchronize": "event.synchronize()",
    "event.query": "until_raised(event.query)",
    "device.synchronize": "device.synchronize()",
    "ab.synchronize": "ab.synchronize()",
    "array.numpy": "array.numpy()",
    "a pageable copy": "ab.copy(ab.zeros(4, 'int32', device='cpu'), array, stream=stream)",
    "a host function": "stream.submit(int).result(20)",
    "await": "import asyncio; asyncio.run(until(stream))",
}


@pytest.mark.parametrize("observe", OBSERVERS.values(), ids=OBSERVERS)
def test_every_observer_reports_a_fault(run_fault, observe):
    script = f"""
        async def until(thing):
            await thing

        def observe():
            {observe}

        fail()
        event = stream.record_event()
        error = met(observe)
        assert error.code in CODES, error
        assert f"'{{NAME}}'" in str(error), error
        """
    assert run_fault(script) == ""


def test_every_later_use_meets_the_first_cause(run_fault):
    script = """
        fail()
        first = met(stream.synchronize)
        observers = [
            stream.synchronize, stream.query, other.synchronize, other.query, before.synchronize, before.query,
            device.synchronize, ab.synchronize, array.numpy, other_array.numpy,
            lambda: ab.zeros(4), lambda: ab.zeros(4, stream=other), lambda: ab.array([1.0]), ab.Stream,
            lambda: stream.submit(int).result(20), lambda: other.submit(int).result(20),
        ]
        # Of what is only enqueued it may be the observers that tell.
        others = [
            stream.record_event, lambda: timed.record(stream), fail, lambda: ab.launch(spin, ONE, 1000, stream=other),
            lambda: ab.fill(array, 1, stream=stream), lambda: ab.copy(array, array[::-1], stream=stream),
            lambda: other.wait_stream(stream), lambda: stream.wait_event(before),
        ]
        errors = []
        for _ in range(2):
            errors += [met(call) for call in observers]
            for call in others:
                try:
                    call()
                except ab.Error as error:
                    errors.append(error)
        assert {(error.code, error.name, str(error)) for error in errors} == {(first.code, first.name, str(first))}
        """
    assert run_fault(script) == ""


def test_a_fault_is_reported_when_its_code_is_held_by_the_stream_alone(run_fault):
    script = """
        fail()
        del kernel, spin, module
        gc.collect()
        assert f"'{NAME}'" in str(met(stream.synchronize))
        del stream, array
        gc.collect()
        met(device.synchronize)
        """
    assert run_fault(script) == ""


def test_host_functions_meet_the_fault_in_their_futures(run_fault):
    script = """
        ran = []
        early = other.submit(ran.append, "early")
        early.result(20)
        waiting = [stream.submit(ran.append, number) for number in range(3)]
        fail()
        behind = [stream.submit(ran.append, "behind"), stream.submit(ran.append, "behind")]
        errors = [future.exception(20) for future in behind]
        later = other.submit(ran.append, "later").exception(20)
        for error in [*errors, later]:
            assert isinstance(error, ab.DriverError), error
            assert error.code in CODES, error
        # What came before the fault in its stream ran.
        assert [future.exception(20) for future in waiting] == [None] * 3
        assert ran == ["early", 0, 1, 2], ran
        """
    assert run_fault(script) == ""


def test_a_host_function_may_meet_the_fault_itself(run_fault):
    script = """
        fail()
        error = ab.Stream("cpu").submit(array.numpy).exception(20)
        assert isinstance(error, ab.DriverError), error
        """
    assert run_fault(script) == ""


def test_the_cpu_goes_on(run_fault):
    script = """
        fail()
        met(stream.synchronize)
        with ab.Device("cpu"):
            with ab.Stream() as s:
                a, b = ab.ones(1000), ab.zeros(1000)
                ab.copy(b, a)
                assert s.submit(int, 3).result(20) == 3
                event = s.record_event()
                event.synchronize()
            assert b.numpy().sum() == 1000
            ab.Device("cpu").synchronize()
        """
    assert run_fault(script) == ""


def test_what_waits_for_the_fault_fails_with_it_on_the_cpu(run_fault):
    script = """
        waiting = ab.Stream("cpu")
        fail()
        waiting.wait_stream(stream)
        assert met(waiting.synchronize).code in CODES
        future = waiting.submit(int)
        assert isinstance(future.exception(20), ab.DriverError)
        """
    assert run_fault(script) == ""


def test_threads_that_wait_all_meet_the_fault(run_fault):
    script = """
        from concurrent.futures import ThreadPoolExecutor
        gate = ab.testing.Gate(stream)
        fail()
        with ThreadPoolExecutor(8) as pool:
            errors = [pool.submit(met, stream.synchronize) for _ in range(8)]
            gate.open()
            assert {error.result(20).code in CODES for error in errors} == {True}
        """
    assert run_fault(script) == ""


ENDS = {
    "at once": "",
    "observed": "met(stream.synchronize)",
    "with host functions": "futures = [s.submit(int) for s in (stream, other) for _ in range(10)]",
    "behind a gate never opened": "gate = ab.testing.Gate(other); other.wait_stream(stream); other.submit(int)",
    "with everything dropped": "del array, other_array, stream, other, before, kernel, module; gc.collect()",
    "observed and dropped": "met(stream.synchronize); del array, other_array, stream, other, kernel; gc.collect()",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_process_ends_quietly_after_a_fault(run_fault, end):
    assert run_fault(f"fail()\n{end}\n", timeout=30) == ""


# What is no fault of the GPU: the call fails, and the device goes on

GOES_ON = """
y = ab.zeros(1000, "int32")
stream = ab.Stream()
add = module.get_kernel("add")

def check():
    with stream:
        x, z = ab.full(1000, 2, "int32"), ab.zeros(1000, "int32")
        ab.launch(add, ab.LaunchConfig(4, 256), x, z, 3, 1000)
        assert (z.numpy() == 5).all()
    ab.synchronize()

def refused(error, call):
    try:
        call()
    except error as met:
        return met
    raise AssertionError(f"{call} raised nothing")
"""


@pytest.fixture
def run_on(run_python):
    return lambda script: run_python(SCRIPT + GOES_ON + dedent(script))


def test_a_launch_that_no_device_can_do_is_refused_and_enqueues_nothing(run_on):
    script = """
        meet = module.get_kernel("meet")
        arrived = ab.zeros(1, "uint32")
        ab.synchronize()
        for _ in range(3):
            refused(ValueError, lambda: ab.launch(meet, ab.LaunchConfig(1, 4096), arrived, stream=stream))
            refused(ValueError, lambda: ab.launch(meet, ab.LaunchConfig(1, 32, 1 << 30), arrived, stream=stream))
            config = ab.LaunchConfig(1 << 20, 1024, cooperative=True)
            refused(ab.DriverError, lambda: ab.launch(meet, config, arrived, stream=stream))
            assert stream.query()
            check()
        assert arrived.numpy()[0] == 0
        """
    assert run_on(script) == ""


def test_a_launch_refused_behind_a_gate_fails_its_stream_alone(run_on):
    script = """
        meet = module.get_kernel("meet")
        arrived, held = ab.zeros(1, "uint32"), ab.Stream()
        with ab.testing.Gate(held):
            ab.launch(meet, ab.LaunchConfig(1 << 20, 1024, cooperative=True), arrived, stream=held)
            future = held.submit(int)
        error = refused(ab.DriverError, held.synchronize)
        assert (error.code, error.name) == (720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE")
        assert isinstance(future.exception(20), ab.DriverError)
        assert refused(ab.DriverError, held.query).code == 720
        del held, error
        gc.collect()
        ab.Stream().synchronize()
        x = ab.full(1000, 2, "int32", stream=stream)
        assert (x.numpy() == 2).all()
        """
    assert run_on(script) == ""


@pytest.mark.memory
def test_memory_that_is_not_there_is_an_error_and_the_device_goes_on(run_on):
    script = """
        sizes = [1 << 60, 2 * device.total_memory, device.total_memory - (64 << 20)]
        for size in sizes:
            for where in (None, stream):
                error = refused(ab.OutOfMemoryError, lambda: ab.empty(size, "uint8", device=device, stream=where))
                assert isinstance(error, (MemoryError, ab.Error))
                assert str(size) in str(error), error
                assert "cuda:0" in str(error), error
                check()
        """
    assert run_on(script) == ""


@pytest.mark.memory
def test_memory_that_comes_free_is_found(run_on):
    script = """
        size = device.free_memory // 4
        for _ in range(12):
            with stream:
                array = ab.empty(size, "uint8")
                ab.fill(array, 1)
                other = ab.empty(size, "uint8", stream=ab.Stream())
                del array, other
        check()
        """
    assert run_on(script) == ""
