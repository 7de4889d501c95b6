"""Futures of host functions of graphs that nobody will ever call."""

import concurrent.futures
import gc

import pytest

import anabranch as ab


def submitted(stream):
    with ab.capture(stream) as graph:
        future = stream.submit(lambda: 5)
    return graph, future


def assert_cancelled(future):
    gc.collect()
    concurrent.futures.wait([future], 20)
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(0)


@pytest.mark.parametrize("error", [KeyError, ab.CaptureError])
def test_a_capture_that_fails_cancels_them(stream, error):
    futures = []

    def fail():
        futures.append(stream.submit(int))
        if error is KeyError:
            raise KeyError
        stream.synchronize()

    with pytest.raises(error), ab.capture(stream):
        fail()
    assert_cancelled(*futures)


@pytest.mark.parametrize("launched", [False, True])
def test_a_graph_that_goes_cancels_those_of_no_replay(stream, launched):
    graph, future = submitted(stream)
    with ab.testing.Gate(stream):
        if launched:
            graph.launch(stream)
        graph.close()
        del graph
        gc.collect()
        assert not (launched and future.done())
    if launched:
        assert future.result(20) == 5
    else:
        assert_cancelled(future)


def test_a_graph_that_becomes_another_cancels_them(stream):
    graph, future = submitted(stream)
    with ab.capture(stream) as other:
        pass
    graph.update(other)
    assert_cancelled(future)


def test_an_instance_calls_them_when_the_graph_is_gone(stream):
    graph, future = submitted(stream)
    other = graph.instance()
    del graph
    gc.collect()
    assert not future.done()
    other.launch(stream)
    assert future.result(20) == 5


def test_a_callback_that_exits_does_not_end_the_process(run_python, device):
    script = f"""
        import gc
        import sys
        import anabranch as ab

        def leave(_):
            raise SystemExit(3)

        sys.unraisablehook = lambda unraisable: print(repr(unraisable.exc_value))
        with ab.capture(device={device.alias!r}) as graph:
            ab.current_stream().submit(int).add_done_callback(leave)
        graph.close()
        del graph
        gc.collect()
        print("goes on")
        """
    assert run_python(script) == "SystemExit(3)\ngoes on\n"


@pytest.mark.parametrize("wait", ["result", "exception"])
def test_waiting_for_one_in_its_capture_is_refused(stream, wait):
    futures = []

    def submit_and_wait():
        futures.append(stream.submit(lambda: 5))
        getattr(futures[0], wait)(20)

    with pytest.raises(ab.CaptureError, match="captured function"), ab.capture(stream):
        submit_and_wait()
    assert not stream.is_capturing
    assert_cancelled(*futures)


def test_one_of_another_graph_can_be_waited_for_in_a_capture(device, stream):
    graph, future = submitted(stream)
    other = ab.Stream(device)
    graph.launch(stream)
    with ab.capture(other) as second:
        later = other.submit(lambda: 6)
        assert future.result(20) == 5
    second.launch(other)
    assert later.result(20) == 6


def test_a_graphed_function_that_waits_for_one_is_called_as_it_is(stream):
    @ab.graphed
    def double(factor):
        return factor * ab.current_stream().submit(lambda: 5).result(20)

    with stream, pytest.warns(RuntimeWarning, match="captured function"):
        assert double(2) == 10
    with stream:
        assert double(2) == 10
