"""What host functions enqueue and read comes in one order of several: such an exploration is not complete."""

import threading

import numpy as np
import pytest

import anabranch as ab

from .test_real_programs import complete

pytestmark = pytest.mark.numba


@ab.kernel
def inc(i, x: ab.InOut):
    x[i] += 1


@ab.kernel
def double(i, x: ab.InOut):
    x[i] *= 2


def streams(count):
    return [ab.Stream("cpu") for _ in range(count)]


def filled(stream):
    return ab.ones(2, device="cpu", stream=stream)


def two_functions_for_one_stream():
    a, b, c = streams(3)
    x = filled(c)
    f = a.submit(lambda: ab.launch(inc, 2, x, stream=c))
    g = b.submit(lambda: ab.launch(double, 2, x, stream=c))
    f.result()
    g.result()
    return x.numpy()[0]


def a_function_and_the_main_thread_for_one_stream():
    a, c = streams(2)
    x = filled(c)
    f = a.submit(lambda: ab.launch(inc, 2, x, stream=c))
    ab.launch(double, 2, x, stream=c)
    f.result()
    return x.numpy()[0]


def functions_for_streams_of_their_own():
    a, b, c = streams(3)
    x = filled(c)
    c.synchronize()

    def work(kernel):
        with ab.Stream("cpu") as own:
            ab.launch(kernel, 2, x, stream=own)

    f, g = a.submit(work, inc), b.submit(work, double)
    f.result()
    g.result()
    return x.numpy()[0]


def a_function_that_reads():
    a, c = streams(2)
    x = filled(c)
    f = a.submit(lambda: x.numpy()[0])
    ab.launch(inc, 2, x, stream=c)
    return f.result()


def a_function_that_opens_a_view():
    a, c = streams(2)
    x = filled(c)

    def read():
        with x.host() as view:
            return view[0]

    f = a.submit(read)
    ab.launch(inc, 2, x, stream=c)
    return f.result()


def a_function_that_exports():
    a, c = streams(2)
    x = filled(c)
    f = a.submit(lambda: np.asarray(x)[0])
    ab.launch(inc, 2, x, stream=c)
    return f.result()


def a_function_that_records():
    a, c, d = streams(3)
    x = filled(c)
    event = ab.Event(device="cpu")
    event.record(c)
    f = a.submit(event.record, c)
    ab.launch(inc, 2, x, stream=c)
    d.wait_event(event)
    f.result()
    return 0


def a_callback():
    a, c = streams(2)
    x = filled(c)
    f = a.submit(int)
    f.add_done_callback(lambda _: ab.launch(inc, 2, x, stream=c))
    f.result()
    ab.launch(double, 2, x, stream=c)
    return x.numpy()[0]


def a_function_of_a_graph():
    a, c = streams(2)
    x = filled(c)
    with ab.capture(a) as graph:
        a.submit(lambda: ab.launch(inc, 2, x, stream=c))
    graph.launch(a)
    ab.launch(double, 2, x, stream=c)
    a.synchronize()
    return x.numpy()[0]


@pytest.mark.parametrize("mode", ["auto", "off"])
@pytest.mark.parametrize(
    "program",
    [
        two_functions_for_one_stream,
        a_function_and_the_main_thread_for_one_stream,
        functions_for_streams_of_their_own,
        a_function_that_reads,
        a_function_that_opens_a_view,
        a_function_that_exports,
        a_function_that_records,
        a_callback,
        a_function_of_a_graph,
    ],
)
def test_an_order_that_is_no_choice_leaves_the_exploration_incomplete(program, mode):
    with ab.hazards(mode):
        report = ab.testing.explore(program)
    assert report.ok, report
    assert (report.uncontrolled, report.complete) == (True, False)


# -- where there is one order --


def a_function_that_the_main_thread_waits_for():
    a, c = streams(2)
    x = filled(c)
    ab.launch(inc, 2, x, stream=c)
    a.submit(lambda: ab.launch(double, 2, x, stream=c)).result()
    ab.launch(inc, 2, x, stream=c)
    assert x.numpy()[0] == 5


def functions_of_one_stream():
    a, c = streams(2)
    x = filled(c)
    for kernel in (inc, double, inc):
        a.submit(ab.launch, kernel, 2, x, stream=c)
    a.synchronize()
    assert x.numpy()[0] == 5


def functions_that_wait_for_each_other():
    a, b, c = streams(3)
    x = filled(c)
    a.submit(lambda: ab.launch(inc, 2, x, stream=c))
    b.wait_stream(a)
    b.submit(lambda: ab.launch(double, 2, x, stream=c))
    b.synchronize()
    assert x.numpy()[0] == 4


def a_function_that_submits_a_function():
    a, b, c = streams(3)
    x = filled(c)

    def outer():
        ab.launch(inc, 2, x, stream=c)
        b.submit(lambda: ab.launch(double, 2, x, stream=c)).result()
        ab.launch(inc, 2, x, stream=c)

    a.submit(outer).result()
    assert x.numpy()[0] == 5


def functions_that_share_nothing():
    ends = []
    for stream in streams(2):
        own = ab.Stream("cpu")
        x = filled(own)
        ends.append((x, stream.submit(ab.launch, inc, 2, x, stream=own)))
    for x, future in ends:
        future.result()
        assert x.numpy()[0] == 2


def functions_that_read_the_same():
    a, b, c = streams(3)
    x = filled(c)
    futures = [stream.submit(lambda: x.numpy()[0]) for stream in (a, b)]
    assert [future.result() for future in futures] == [1, 1]


@pytest.mark.parametrize("mode", ["auto", "off"])
@pytest.mark.parametrize(
    "program",
    [
        a_function_that_the_main_thread_waits_for,
        functions_of_one_stream,
        functions_that_wait_for_each_other,
        a_function_that_submits_a_function,
        functions_that_share_nothing,
        functions_that_read_the_same,
    ],
)
def test_functions_that_are_in_order_are_explored_completely(program, mode):
    with ab.hazards(mode):
        complete(ab.testing.explore(program))


def test_a_function_that_reads_while_its_stream_goes_on_elsewhere():
    """The read is tried before and after what another stream writes."""
    seen = set()

    def program():
        a, b, c = streams(3)
        x = filled(c)
        c.synchronize()
        f = a.submit(lambda: ab.launch(inc, 2, x, stream=b))
        f.result()
        ab.launch(double, 2, x, stream=c)
        ab.synchronize("cpu")
        seen.add(x.numpy()[0])

    with ab.hazards("off"):
        complete(ab.testing.explore(program), 2)
    assert seen == {3, 4}


def test_what_functions_share_in_python_is_a_choice_if_they_declare_the_same_array():
    ends = set()

    def program():
        a, b = streams(2)
        log, shared = [], ab.empty(1, device="cpu")
        ab.synchronize("cpu")
        for stream in (a, b):
            stream.submit(log.append, stream is a, writes=[shared])
        ab.synchronize("cpu")
        ends.add(tuple(log))

    with ab.hazards("off"):
        complete(ab.testing.explore(program), 2)
    assert ends == {(True, False), (False, True)}


def test_threads_of_the_program_are_as_before():
    def program():
        (a,) = streams(1)
        x = filled(a)
        thread = threading.Thread(target=a.synchronize)
        thread.start()
        thread.join()
        assert x.numpy()[0] == 1

    report = ab.testing.explore(program)
    assert report.ok, report


def test_a_host_function_explores_nothing():
    def explore():
        ab.testing.explore(lambda: None)

    with pytest.raises(ab.Error, match="explore waits for all streams, so it cannot be called in a host function"):
        ab.Stream("cpu").submit(explore).result()
