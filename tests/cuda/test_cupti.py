"""Traces with NVIDIA's package for CUPTI: the times are the GPU's own."""

import time

import pytest

import anabranch as ab

pytest.importorskip("cupti", reason="cupti-python is not installed")
pytestmark = pytest.mark.alone

ONE = ab.LaunchConfig(1, 1)


def durations(trace, kind):
    return [operation.end - operation.begin for operation in trace.operations if operation.kind == kind]


@pytest.fixture
def stream(cuda, kernels):
    stream = ab.Stream(cuda)
    ab.launch(kernels.spin, ONE, 1, stream=stream)
    stream.synchronize()
    return stream


def test_a_kernel_takes_as_long_as_the_gpu_takes(stream, kernels):
    with ab.trace() as trace:
        for _ in range(10):
            ab.launch(kernels.spin, ONE, 0, stream=stream)
            time.sleep(0.001)  # so that each finds the stream idle
        ab.launch(kernels.spin, ONE, 3_000_000, stream=stream)
    *short, long = durations(trace, "kernel")
    # Between events the least is some 5 µs.
    assert min(short) < 0.003
    assert 3 <= long < 3.2


def test_work_that_is_under_way_when_the_trace_ends_has_its_times(stream, kernels):
    for _ in range(2):
        with ab.trace() as trace:
            ab.launch(kernels.spin, ONE, 5_000_000, stream=stream)
            ab.launch(kernels.spin, ONE, 0, stream=stream)
        first, second = trace.operations
        assert 5 <= first.end - first.begin < 5.2
        assert second.end - second.begin < 0.003
        assert second.begin >= first.end


def test_times_are_on_the_clock_of_the_host(stream, kernels):
    began = time.monotonic()
    with ab.trace() as trace:
        time.sleep(0.01)
        before = (time.monotonic() - began) * 1000
        ab.launch(kernels.spin, ONE, 1_000_000, stream=stream)
        stream.synchronize()
        after = (time.monotonic() - began) * 1000
    (kernel,) = trace.operations
    assert before - 0.5 <= kernel.begin <= kernel.end <= after + 0.5


def test_work_that_was_held_back_is_told_with_its_events_times(stream, kernels):
    with ab.trace() as trace:
        with ab.testing.Gate(stream):
            ab.launch(kernels.spin, ONE, 1_000_000, stream=stream)
        ab.launch(kernels.spin, ONE, 1_000_000, stream=stream)
    first, second = (operation for operation in trace.operations if operation.kind == "kernel")
    assert all(1 <= operation.end - operation.begin < 2 for operation in (first, second))
    assert second.begin >= first.end - 0.02  # two ways of comparing clocks


def test_nothing_is_lost_between_two_looks(stream, kernels):
    with ab.trace() as trace:
        ab.launch(kernels.spin, ONE, 0, stream=stream)
        once = durations(trace, "kernel")
        ab.launch(kernels.spin, ONE, 0, stream=stream)
    assert durations(trace, "kernel")[0] == once[0]
    assert max(durations(trace, "kernel")) < 0.01
