"""`ab.trace`: what is recorded, and which wait was for what."""

import inspect
import threading
import time
from contextlib import suppress
from importlib.util import find_spec

import pytest

import anabranch as ab

from ..accesses import put, ready, streams, write
from ..arrays import TIMEOUT

pytestmark = [
    pytest.mark.thread_unsafe(reason="a trace has what all threads do"),
    pytest.mark.usefixtures("nothing_left"),
]


def here():
    """Return the line that calls this."""
    return inspect.currentframe().f_back.f_lineno


def kinds(trace):
    return [operation.kind for operation in trace.operations]


# What is recorded


def test_fills_copies_and_host_functions_are_told_with_their_lines(device, stream):
    a, b = ready(device), ready(device)
    with ab.trace() as trace:
        ab.fill(a, 1, stream=stream)
        ab.copy(b, a, stream=stream)
        stream.submit(time.monotonic)
        last = here()
    operations = trace.operations
    assert [operation.kind for operation in operations] == ["fill", "copy", "host"]
    assert [operation.line for operation in operations] == [last - 3, last - 2, last - 1]
    assert {operation.file for operation in operations} == {__file__}
    assert [operation.nbytes for operation in operations] == [32, 32, None]
    assert all(operation.stream == stream and operation.device is device for operation in operations)
    assert not any(operation.added for operation in operations)
    assert operations[-1].name == "monotonic"


def test_a_function_whose_name_is_no_text_is_told(device):
    def function():
        return 7

    function.__qualname__ = "\udcff"
    stream = ab.Stream(device)
    with ab.trace() as trace:
        assert stream.submit(function).result(TIMEOUT) == 7
    assert [operation.name for operation in trace.operations] == [r"\udcff"]


def test_a_stream_whose_name_is_no_text_is_told_in_every_format(device, tmp_path):
    a, b, array = ab.Stream(device, name="\udcff"), ab.Stream(device, name="b\ud800"), ready(device)
    assert (a.name, b.name) == ("\udcff", "b\ud800")
    with ab.trace() as trace:
        write(array, a)
        a.submit(int)
        b.wait_stream(a)
        write(array, b)
    assert {operation.stream.name for operation in trace.operations} == {a.name, b.name}
    assert "b\ufffd" in str(trace)
    assert device.alias in str(trace)
    assert all(rf"{stream.name!r}" in repr(stream) for stream in (a, b))
    suffixes = ["html", "json", "svg", *(["pftrace"] if find_spec("perfetto") else [])]
    for suffix in suffixes:
        trace.save(tmp_path / f"trace.{suffix}")
    for name in (tmp_path / "trace.json", tmp_path / "trace.html"):
        assert r"b\ud800" in name.read_text()
    assert "b\ufffd" in (tmp_path / "trace.svg").read_text()
    if "pftrace" in suffixes:
        assert "b\ufffd".encode() in (tmp_path / "trace.pftrace").read_bytes()


@pytest.mark.numba
def test_kernels_are_told_by_name(device):
    stream, a = ab.Stream(device), ready(device)
    with ab.trace() as trace:
        ab.launch(put, 8, a, stream=stream)
    operation = trace.operations[-1]
    assert (operation.name, operation.line) == ("put", here() - 2)


def test_records_and_waits_are_told(a, b):
    with ab.trace() as trace:
        event = a.record_event()
        b.wait_event(event)
        b.wait_stream(a)
        last = here()
    assert [(operation.kind, operation.stream, operation.line) for operation in trace.operations] == [
        ("record", a, last - 3),
        ("wait", b, last - 2),
        ("wait", b, last - 1),
    ]


def test_allocations_and_frees_are_told_where_the_program_makes_them(device):
    stream = ab.Stream(device)
    with ab.trace() as trace:
        array = ab.empty(100, "uint8", stream=stream)
        made = here() - 1
        del array
        dropped = here() - 1
        closed = ab.empty(200, "uint8", stream=stream)
        closed.close()
    operations = trace.operations
    assert [(operation.kind, operation.nbytes) for operation in operations] == [
        ("alloc", 100),
        ("free", 100),
        ("alloc", 200),
        ("free", 200),
    ]
    assert [operation.line for operation in operations] == [made, dropped, dropped + 2, dropped + 3]
    assert all(operation.begin == operation.end for operation in operations)
    assert operations[0].stream == stream


def test_a_view_neither_allocates_nor_frees(array):
    with ab.trace() as trace:
        view = array[2:5]
        del view
    assert trace.operations == []


def test_pinned_memory_is_told_too():
    with ab.trace() as trace:
        ab.empty(100, "uint8", device="cpu", pinned=True)
    assert [(operation.kind, operation.nbytes) for operation in trace.operations] == [("alloc", 100), ("free", 100)]


def test_an_array_that_an_exception_drops_leaves_the_exception_alone(device):
    def fail():
        array = ready(device)
        raise KeyError(array.shape)

    with ab.trace() as trace:
        with pytest.raises(KeyError):
            fail()
        threading.Event().wait(0)
    assert kinds(trace).count("free") == 1


def test_an_array_that_ends_while_an_exception_is_on_its_way_leaves_it_alone(device):
    with ab.trace() as trace:
        for text in ["no number", "none either"]:
            # The array goes once the other argument has raised, and what was raised is not yet caught.
            with pytest.raises(ValueError, match=text):
                divmod(ready(device), int(text))
    assert kinds(trace).count("free") == 2


def test_a_race_is_raised_while_a_trace_is_on(a, b, array):
    with ab.hazards("check"), ab.trace() as trace:
        write(array, a)
        with pytest.raises(ab.RaceError):
            ab.array(array, stream=b)
    assert kinds(trace) == ["fill", "alloc", "free"]


def test_a_readback_is_not_told(stream):
    array = ab.zeros(1000, stream=stream)
    with ab.trace() as trace:
        array.numpy()
    assert trace.operations == []


def test_a_trace_may_go_on(stream, array):
    trace = ab.trace()
    for _ in range(2):
        with trace:
            write(array, stream)
        write(array, stream)
    first, second = trace.operations
    assert first.begin <= first.end <= second.begin


def test_the_end_of_the_block_lets_exceptions_through(stream, array):
    trace = ab.trace()
    with suppress(KeyError), trace:
        write(array, stream)
        raise KeyError
    write(array, stream)
    assert kinds(trace) == ["fill"]


def test_nested_traces_have_each_what_is_done_in_them(stream, array):
    with ab.trace() as outer:
        write(array, stream)
        with ab.trace() as inner:
            write(array, stream)
    assert (len(outer.operations), len(inner.operations)) == (2, 1)


def test_a_trace_within_itself_is_on_until_the_outer_block_ends(stream, array):
    with ab.trace() as trace:
        with trace as again:
            write(array, stream)
        assert again is trace
        assert len(trace.operations) == 1
        write(array, stream)
    write(array, stream)
    assert kinds(trace) == ["fill", "fill"]


def test_what_other_threads_do_is_told(device, in_threads):
    def work(index):
        stream, array = ab.Stream(device), ready(device)
        for _ in range(20):
            ab.fill(array, index, stream=stream)

    with ab.trace() as trace:
        in_threads(4, work)
    fills = [operation for operation in trace.operations if operation.kind == "fill"]
    assert len(fills) == 80
    assert len({operation.stream for operation in fills}) == 4


def test_streams_that_are_dropped_stay_told_apart(device):
    array = ready(device)
    with ab.trace() as trace:
        for _ in range(5):
            stream = ab.Stream(device)
            ab.fill(array, 1, stream=stream)
            stream.synchronize()
            del stream
    assert len({operation.stream for operation in trace.operations}) == 5


@pytest.mark.parametrize("mode", ["auto", "check", "off"])
def test_every_mode_of_hazards_is_traced(mode, stream, array):
    with ab.hazards(mode), ab.trace() as trace:
        write(array, stream)
    assert kinds(trace) == ["fill"]


def test_what_is_refused_is_not_told(a, b, array):
    with ab.hazards("check"), ab.trace() as trace:
        write(array, a)
        with pytest.raises(ab.RaceError):
            write(array, b)
        with pytest.raises(ValueError, match="shape"):
            ab.copy(array, array[2:], stream=b)
    assert kinds(trace) == ["fill"]


# Which wait is for what


def test_waits_that_hazards_add_are_marked_and_have_the_line_that_needs_them(a, b, array):
    with ab.hazards("auto"), ab.trace() as trace:
        with ab.testing.Gate(a):
            write(array, a)
            ab.fill(array, 2, stream=b)
            line = here() - 1
        b.wait_stream(a)
    first, added, second, wait = trace.operations
    assert (added.kind, added.added, added.stream, added.line) == ("wait", True, b, line)
    assert added.source is first
    assert not wait.added
    assert second.begin >= added.end >= first.end


def test_a_wait_names_the_newest_operation_that_it_is_for(device):
    (a, b), array, other = streams(device), ready(device), ready(device)
    with ab.trace() as trace:
        write(array, a)
        event = a.record_event()
        write(other, a)
        b.wait_event(event)
        b.wait_stream(a)
    _, record, second, for_event, for_stream = trace.operations
    assert for_event.source is record
    assert for_stream.source is second


def test_operations_are_the_same_objects_each_time(a, b, array):
    with ab.trace() as trace:
        write(array, a)
        assert len(trace.operations) == 1
        b.wait_stream(a)
    assert trace.operations == trace.operations
    assert trace.operations[1].source is trace.operations[0]
    trace.operations.clear()
    assert len(trace.operations) == 2


def test_a_wait_for_what_came_before_the_trace_names_nothing(a, b, array):
    with ab.testing.Gate(a):
        write(array, a)
        with ab.trace() as trace:
            b.wait_stream(a)
    (wait,) = trace.operations
    assert wait.source is None


@pytest.mark.parametrize("mode", ["auto", "check", "off"])
def test_each_replay_of_a_graph_is_told_with_the_waits_for_the_one_before(device, mode, a, b, array):
    with ab.capture(device=device) as graph:
        ab.fill(array, 1)
    with ab.hazards(mode), ab.trace() as trace, ab.testing.Gate(a):
        for stream in (a, b, a):
            graph.launch(stream)
        line = here() - 1
    operations = trace.operations
    first, second, third = (operation for operation in operations if operation.kind == "graph")
    assert [replay.stream for replay in (first, second, third)] == [a, b, a]
    assert {operation.line for operation in operations} == {line}
    # Hazards make the same order, so there may be another wait for it.
    waits = [operation for operation in operations if operation.kind == "wait"]
    assert {wait.stream: wait.source for wait in waits} == {b: first, a: second}
    # A GPU's clock tells halves of a microsecond.
    assert all(wait.end <= second.begin + 0.001 for wait in waits if wait.stream == b)


@pytest.mark.numba
def test_the_first_launch_of_a_kernel_shows_its_compilation(device):
    @ab.kernel
    def fresh(i, x):
        x[i] = 1

    with ab.trace() as t:
        a = ab.zeros(4)
        for _ in range(2):
            ab.launch(fresh, 4, a)
    (compiled,) = [operation for operation in t.operations if operation.kind == "compile"]
    kernels = [operation for operation in t.operations if operation.kind == "kernel"]
    assert (compiled.name, compiled.stream, compiled.device) == ("fresh", None, device)
    assert (compiled.file, compiled.line) == (__file__, kernels[0].line)
    assert 0 <= compiled.begin < compiled.end <= kernels[0].begin
    assert len(kernels) == 2
