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
