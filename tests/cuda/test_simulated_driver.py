"""What is asked of a driver, and what becomes of one that is old or fails: with a driver that is simulated."""

import pytest

from .simulated import BEGIN

PTX = r"""
    module = ab.Module(
        b".version 8.0\n.target sm_90\n.address_size 64\n"
        b".visible .entry nothing(.param .u64 x, .param .u64 y, .param .u64 n) { ret; }\n")
    kernel = module.get_kernel("nothing")
    config = ab.LaunchConfig(1, 32)
"""


# Which drivers will do


def test_a_device_of_the_driver_is_there(run_with):
    script = """
        import anabranch as ab
        print(ab.devices("cuda"), ab.Device("cuda:0").name, ab.Device("cuda").priority_range)
        """
    assert run_with(script) == "[Device('cuda:0')] Simulated GPU (0, -5)\n"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"FAKE_VERSION": "11080"}, "the CUDA driver is of CUDA 11.8; it must be of 12.0 or later"),
        (
            {"FAKE_MISSING": "cuMemPoolCreate"},
            "the CUDA driver has no cuMemPoolCreate; it must be of CUDA 12.0 or later",
        ),
        ({"FAKE_FAILS": "cuInit:802"}, "the CUDA driver does not start: a fake error (802)"),
        ({"FAKE_FAILS": "cuInit:100"}, "the CUDA driver sees no GPU"),
    ],
    ids=["old", "incomplete", "broken", "no GPU"],
)
def test_a_driver_that_will_not_do_is_none_and_the_reason_is_told(run_with, settings, reason):
    script = """
        import anabranch as ab
        print(ab.devices("cuda"))
        try:
            ab.Device("cuda:0")
        except ab.DeviceError as error:
            print(error)
        print(ab.ones(3, device="cpu").numpy())
        """
    listed, message, data = run_with(script, **settings).splitlines()
    assert listed == "[]"
    assert reason in message
    assert data == "[1. 1. 1.]"


def test_kernels_can_be_launched_where_the_driver_cannot_tell_their_parameters(run_with):
    # cuFuncGetParamInfo came with CUDA 12.4. PTX tells them, too.
    script = (
        BEGIN
        + PTX
        + """
    x, y = ab.zeros(4, device=device), ab.zeros(4, device=device)
    print(made(lambda: ab.launch(kernel, config, x, y, 4), "cuLaunchKernel"), len(kernel.parameters))
    """
    )
    assert run_with(script, FAKE_MISSING="cuFuncGetParamInfo", FAKE_VERSION="12000") == "[1] 3\n"


# What is asked


# A fill, a copy and a launch.
PUT = (
    "array, array2 = ab.zeros(4, stream=stream), ab.zeros(4, stream=stream); "
    "put = lambda s: (ab.fill(array, 1, stream=s), ab.copy(array2, array, stream=s), "
    "ab.launch(kernel, config, array, array, 4, stream=s)); stream.synchronize()"
)
RECORD = """
    def record():
        with ab.capture(stream) as graph:
            put(stream)
        return graph
    graph = record()"""
GRAPH = PUT + RECORD
GRAPHED = (
    PUT
    + """
    @ab.graphed
    def work(x, y, n):
        ab.fill(x, 1)
        ab.copy(y, x)
        ab.launch(kernel, config, x, y, n)
    stream.__enter__()"""
)

COSTS = {
    "a launch": (
        "array = ab.zeros(4, stream=stream); warm = ab.launch(kernel, config, array, array, 4, stream=stream)",
        "ab.launch(kernel, config, array, array, 4, stream=stream)",
        {"cuLaunchKernel": 1},
    ),
    "an event recorded again": ("event = stream.record_event()", "event.record(stream)", {"cuEventRecord": 1}),
    "a wait for a stream": (
        "stream.wait_stream(other)",
        "stream.wait_stream(other)",
        {"cuEventRecord": 1, "cuStreamWaitEvent": 1},
    ),
    "a wait for the default stream": (
        "default = ab.legacy_stream(device)",
        "stream.wait_stream(default)",
        {"cuEventRecord": 1, "cuStreamWaitEvent": 1},
    ),
    "a wait for an event": ("event = other.record_event()", "stream.wait_event(event)", {"cuStreamWaitEvent": 1}),
    "a query": (
        "event = other.record_event(); event.synchronize()",
        "event.record(other); event.query()",
        {"cuEventRecord": 1, "cuEventQuery": 1},
    ),
    "a query of what was found complete": ("event = other.record_event(); event.synchronize()", "event.query()", {}),
    "a query of one that others may record": (
        "event = other.record_event(); event.synchronize(); event.handle",
        "event.query()",
        {"cuEventQuery": 1},
    ),
    "the time between events that are complete": (
        "begin, end = (stream.record_event(ab.Event(enable_timing=True, device=device)) for _ in range(2)); "
        "stream.synchronize()",
        "begin.elapsed_time(end)",
        {"cuEventElapsedTime": 1},
    ),
    "an event made and dropped": ("", "ab.Event(device=device)", {}),
    "a stream made and dropped": ("ab.Stream(device)", "ab.Stream(device)", {}),
    "a stream entered and left": ("", "stream.__enter__(); stream.__exit__(None, None, None)", {}),
    "an idle stream synchronized": ("", "stream.synchronize()", {"cuStreamQuery": 1}),
    "memory allocated and freed": (
        "ab.empty(1024, stream=stream)",
        "ab.empty(1024, stream=stream)",
        {},
    ),
    "much memory allocated and freed": (
        "ab.empty(100_000, stream=stream)",
        "ab.empty(100_000, stream=stream)",
        {"cuMemAllocFromPoolAsync": 1, "cuMemFreeAsync": 1},
    ),
    "zeros": (
        "ab.zeros(1024, stream=stream)",
        "ab.zeros(1024, stream=stream)",
        {"cuMemsetD8Async": 1},
    ),
    "a copy from pinned memory": (
        "a = ab.empty(1024, stream=stream); b = ab.empty(1024, device='cpu', pinned=True)",
        "ab.copy(a, b, stream=stream)",
        {"cuMemcpyAsync": 1},
    ),
    "order that is missing, twice": (
        "a = ab.zeros(1024, stream=stream)",
        "ab.fill(a, 0, stream=other); ab.fill(a, 0, stream=stream)",
        {"cuMemsetD8Async": 2, "cuEventRecord": 2, "cuStreamWaitEvent": 2},
    ),
    "order that is there": (
        "a = ab.zeros(1024, stream=stream); other.wait_stream(stream)",
        "ab.fill(a, 0, stream=other); stream.wait_stream(other); "
        "ab.fill(a, 0, stream=stream); other.wait_stream(stream)",
        {"cuMemsetD8Async": 2, "cuEventRecord": 2, "cuStreamWaitEvent": 2},
    ),
    "a copy between views that share no byte": (
        "a = ab.zeros((8, 8), stream=stream)",
        "ab.copy(a[:, ::2], a[:, 1::2], stream=stream)",
        {"cuLaunchKernel": 1},
    ),
    "a graph launched": (
        f"{GRAPH}; graph.launch(stream)",
        "graph.launch(stream)",
        {"cuGraphLaunch": 1},
    ),
    "new arguments for a launch of a graph": (
        f"{GRAPH}; node = graph.nodes[2]; numbers = iter(range(10**6)); graph.launch(stream)",
        "graph.set_args(node, array, array, next(numbers)); graph.launch(stream)",
        {"cuGraphExecKernelNodeSetParams": 1, "cuGraphLaunch": 1},
    ),
    "new arguments that no replay had yet": (
        f"{GRAPH}; node = graph.nodes[2]; numbers = iter(range(10**6)); graph.launch(stream)",
        "graph.set_args(node, array, array, next(numbers))",
        {},
    ),
    "a graphed call with the same arrays": (
        f"{GRAPHED}; work(array, array2, 1)",
        "work(array, array2, 1)",
        {"cuGraphLaunch": 1},
    ),
    "a graphed call with other arrays": (
        f"{GRAPHED}; work(array, array2, 1)",
        "work(array2, array, 1); work(array, array2, 1)",
        {
            "cuGraphExecKernelNodeSetParams": 2,
            "cuGraphExecMemcpyNodeSetParams": 2,
            "cuGraphExecMemsetNodeSetParams": 2,
            "cuGraphLaunch": 2,
        },
    ),
    "a graphed call with another number": (
        f"{GRAPHED}; numbers = iter(range(10**6)); work(array, array2, 1)",
        "work(array, array2, next(numbers))",
        {"cuGraphExecKernelNodeSetParams": 1, "cuGraphLaunch": 1},
    ),
    "a capture": (
        GRAPH,
        "graph = record()",
        {
            "cuGraphCreate": 1,
            "cuGraphAddMemsetNode": 1,
            "cuGraphAddMemcpyNode": 1,
            "cuGraphAddKernelNode": 1,
            "cuGraphInstantiateWithFlags": 1,
            "cuGraphUpload": 1,
            "cuGraphDestroy": 1,
            "cuGraphExecDestroy": 1,
        },
    ),
    "what is recorded": (
        f"{GRAPH}; scope = ab.capture(other); scope.__enter__()",
        "put(other)",
        {},
    ),
    "a copy within the GPU": (
        "a, b = ab.zeros(64, stream=stream), ab.zeros(64, stream=stream)",
        "ab.copy(a, b, stream=stream)",
        {"cuLaunchKernel": 1},
    ),
    "a large fill": (
        "a = ab.empty(1 << 16, stream=stream)",
        "ab.fill(a, 1.5, stream=stream)",
        {"cuLaunchKernel": 1},
    ),
    "a copy between views that overlap": (
        "a = ab.zeros((8, 8), stream=stream)",
        "ab.copy(a[1:], a[:-1], stream=stream)",
        {"cuLaunchKernel": 2},
    ),
}

# Besides asking which context is current.
WATCHED = sorted(
    {name for _, _, expected in COSTS.values() for name in expected}
    | {"cuCtxSetCurrent", "cuEventCreate", "cuStreamCreateWithPriority", "cuStreamSynchronize", "cuCtxSynchronize"}
)


@pytest.mark.parametrize(("before", "work", "expected"), COSTS.values(), ids=COSTS)
def test_each_operation_asks_for_what_it_is_and_no_more(run_with, before, work, expected):
    script = f"""{BEGIN}{PTX}
    {before}
    names = {WATCHED!r}
    def ten():
        for _ in range(10):
            {work}
    # Until as many events are there as are kept.
    ten(), ten()
    for name, count in zip(names, made(ten, *names)):
        if count:
            print(name, count)
    """
    found = dict(line.split() for line in run_with(script).splitlines())
    assert {name: int(count) / 10 for name, count in found.items()} == expected


def test_the_time_of_work_that_is_under_way_is_waited_for(run_with):
    script = f"""{BEGIN}
    begin, end = (ab.Event(enable_timing=True, device=device) for _ in range(2))
    array = ab.empty(1 << 22, stream=stream)
    for _ in range(20):
        begin.record(stream)
        ab.fill(array, 1, stream=stream)
        end.record(stream)
        assert begin.elapsed_time(end) > 0
        assert end.query() and begin.query()
    """
    assert run_with(script) == ""


# Errors


def test_a_synchronized_device_makes_queries_quick_again_once(run_with):
    script = (
        BEGIN
        + """
    x, y = ab.zeros(1001, device=device), ab.zeros(1001, device=device)
    ab.synchronize(device)
    print(made(lambda: ab.synchronize(device), "cuCtxSynchronize"))
    ab.copy(x[1:], y[1:])  # the driver's, since our kernels want addresses that are multiples of 16
    print(made(lambda: ab.synchronize(device), "cuCtxSynchronize"))
    print(made(lambda: ab.synchronize(device), "cuCtxSynchronize"))
    large = ab.empty((1 << 16) + 1, device=device)
    ab.fill(large[1:], 0)
    print(made(lambda: ab.synchronize(device), "cuCtxSynchronize"))
    """
    )
    assert run_with(script).split() == ["[0]", "[1]", "[0]", "[1]"]


def test_an_error_of_one_call_is_raised_there_and_nothing_is_lost(run_with):
    script = f"""{BEGIN}
    try:
        ab.zeros(4, stream=stream)
    except ab.DriverError as error:
        print(error.code, error.name, error)
    stream.synchronize()
    print(stream.query())
    """
    assert run_with(script, FAKE_FAILS="cuMemsetD8Async:1") == (
        "1 CUDA_ERROR_FAKE CUDA_ERROR_FAKE (1): filling: a fake error\nTrue\n"
    )


@pytest.mark.parametrize("code", [700, 719])
def test_an_error_that_the_context_does_not_survive_is_told_from_then_on_with_the_kernel(run_with, code):
    script = f"""{BEGIN}{PTX}
    array = ab.zeros(4, stream=stream)
    ab.launch(kernel, config, array, array, 4, stream=stream)
    errors = []
    for observe in (stream.synchronize, stream.query, other.query, array.numpy, device.synchronize):
        try:
            observe()
        except ab.DriverError as error:
            errors.append((error.code, str(error)))
    print(len(errors), len(set(errors)), errors[0])
    print(ab.ones(3, device="cpu").numpy().sum())
    """
    first, last = run_with(script, FAKE_FAILS=f"cuStreamQuery:{code}").splitlines()
    assert first.startswith(f"5 1 ({code}, ")
    assert "'nothing'" in first
    assert last == "3.0"


# Awaits


def test_a_device_that_fails_wakes_those_who_await_what_is_held(run_with):
    script = """
    import asyncio
    import os

    async def wait(awaitable):
        await awaitable

    async def main():
        gate = ab.testing.Gate(stream)
        array = ab.zeros(4, stream=stream)
        tasks = [asyncio.create_task(wait(each)) for each in (stream, stream.record_event(), ab.to_host(array))]
        await asyncio.sleep(0)
        os.environ["FAKE_FAILS"] = "cuStreamQuery:700"
        try:
            ab.fill(ab.zeros(4, stream=other), 1, stream=other)
            other.query()
        except ab.DriverError as error:
            assert error.code == 700
        errors = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert [error.code for error in errors] == [700] * 3

    asyncio.run(main())
    """
    assert run_with(BEGIN + script) == ""


# The current context


MARKS = """
    import threading
    event = ab.Event(device=device)
    event.record(stream)
    array = ab.ones(4, stream=stream)
    def work():
        event.record(stream)
        event.wait(other)
        stream.wait_stream(other)
        other.wait_stream(stream)
        ab.fill(array, 2, stream=stream)
    def count():
        print(made(lambda: (event.record(stream), event.wait(other)), "cuCtxGetCurrent"))
    for body in (work, count):
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    stream.synchronize()
    print(array.numpy())
"""


@pytest.mark.parametrize(("settings", "asked"), [({}, 0), ({"FAKE_ASKS_CONTEXT": "1"}, 2)], ids=["finds it", "asks"])
def test_a_driver_that_finds_the_context_by_the_stream_is_not_asked_which_is_current(run_with, settings, asked):
    assert run_with(BEGIN + MARKS, **settings) == f"[{asked}]\n[2. 2. 2. 2.]\n"
