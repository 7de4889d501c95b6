"""`ab.run_if` and `ab.run_while`: the same result eager and captured."""

import gc

import pytest

import anabranch as ab

from ..accesses import ready
from ..memory.test_memory import resident
from .replays import assert_all, give, kinds

# Of kernels within a branch or loop of a graph memcheck does not see that they come after allocations of their stream.
pytestmark = pytest.mark.unseen_order


@ab.kernel
def count_down(i, left: ab.InOut, passes: ab.InOut):
    left[0] -= 1
    passes[0] += 1


@ab.kernel
def refill(i, count, left: ab.Out):
    left[0] = count


def flag(device, value):
    return ab.full(1, value, "int32", device=device)


def eagerly(function, times=1):
    for _ in range(times):
        function()


def captured(function, times=1):
    stream = ab.current_stream()
    with ab.capture(stream) as graph:
        function()
    for _ in range(times):
        graph.launch(stream)


WAYS = {"eager": eagerly, "captured": captured}
each_way = pytest.mark.parametrize("run", WAYS.values(), ids=WAYS)
each_way_of_loops = pytest.mark.parametrize(
    "run", [eagerly, pytest.param(captured, marks=pytest.mark.captured_loop)], ids=WAYS
)


@pytest.fixture(autouse=True)
def stream(device, on_device):
    """A stream that can be captured is current."""
    with ab.Stream(device) as one:
        yield one


@each_way
@pytest.mark.parametrize(("value", "expected"), [(0, 2), (1, 1), (-5, 1)])
def test_one_of_two_branches_runs(device, run, value, expected):
    array, chosen = ready(device), flag(device, value)
    run(lambda: ab.run_if(chosen, lambda: ab.fill(array, 1), lambda: ab.fill(array, 2)))
    assert_all(array, expected)


@each_way
@pytest.mark.parametrize(("value", "expected"), [(0, 0), (1, 1)])
def test_without_the_other_branch_nothing_runs(device, run, value, expected):
    array, chosen = ready(device), flag(device, value)
    run(lambda: ab.run_if(chosen, lambda: ab.fill(array, 1)))
    assert_all(array, expected)


def test_each_replay_looks_at_the_flag_anew(device, stream):
    array, chosen = ready(device), flag(device, 0)
    with ab.capture(stream) as graph:
        ab.run_if(chosen, lambda: ab.fill(array, 1), lambda: ab.fill(array, 2))
    assert kinds(graph) == ["if"]
    for value in 0, 1, 0:
        give(chosen, value)
        graph.launch(stream)
        assert_all(array, 1 if value else 2)


@each_way
def test_the_flag_is_as_the_work_before_left_it(device, run):
    array, chosen = ready(device), flag(device, 0)

    def work():
        ab.fill(chosen, 1)
        ab.run_if(chosen, lambda: ab.fill(array, 1), lambda: ab.fill(array, 2))
        ab.fill(chosen, 0)

    run(work)
    assert_all(array, 1)
    assert_all(chosen, 0)


@each_way
def test_branches_nest(device, run):
    array, outer, inner = ready(device), flag(device, 1), flag(device, 0)

    def then():
        ab.fill(array[:4], 1)
        ab.run_if(inner, lambda: ab.fill(array[4:], 2), lambda: ab.fill(array[4:], 3))

    run(lambda: ab.run_if(outer, then))
    assert array.numpy().tolist() == [1] * 4 + [3] * 4


@each_way_of_loops
def test_a_loop_that_is_not_entered(device, run):
    array, again = ready(device), flag(device, 0)
    run(lambda: ab.run_while(again, lambda: ab.fill(array, 1)))
    assert_all(array, 0)


@each_way_of_loops
def test_a_loop_whose_body_clears_the_flag_passes_once(device, run):
    array, again = ready(device), flag(device, 1)

    def body():
        ab.fill(array, 1)
        ab.fill(again, 0)

    run(lambda: ab.run_while(again, body))
    assert_all(array, 1)
    assert_all(again, 0)


@pytest.mark.numba
@each_way_of_loops
@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_loop_passes_until_the_flag_is_0(device, run, count):
    left, passes = flag(device, count), flag(device, 0)
    run(lambda: ab.run_while(left, lambda: ab.launch(count_down, 1, left, passes)))
    assert (left.numpy()[0], passes.numpy()[0]) == (0, count)


@pytest.mark.numba
@each_way_of_loops
def test_each_replay_loops_anew(device, run):
    left, passes = flag(device, 0), flag(device, 0)

    def work():
        ab.fill(left, 5)
        ab.run_while(left, lambda: ab.launch(count_down, 1, left, passes))

    run(work, 3)
    assert passes.numpy()[0] == 15


@pytest.mark.numba
@each_way_of_loops
def test_a_loop_in_a_loop(device, run):
    outer, inner, passes, rounds = (flag(device, value) for value in (3, 0, 0, 0))

    def body():
        ab.fill(inner, 4)
        ab.run_while(inner, lambda: ab.launch(count_down, 1, inner, passes))
        ab.launch(count_down, 1, outer, rounds)

    run(lambda: ab.run_while(outer, body))
    assert (rounds.numpy()[0], passes.numpy()[0]) == (3, 12)


@pytest.mark.numba
@each_way_of_loops
def test_a_branch_in_a_loop(device, run):
    left, passes, array = flag(device, 3), flag(device, 0), ready(device)

    def body():
        ab.launch(count_down, 1, left, passes)
        ab.run_if(left, lambda: ab.fill(array, 1), lambda: ab.fill(array, 2))

    run(lambda: ab.run_while(left, body))
    assert_all(array, 2)


@pytest.mark.memory
def test_captures_of_branches_leave_nothing_behind(device, stream):
    chosen, array = flag(device, 1), ready(device)

    def cycles(count):
        for _ in range(count):
            with ab.capture(stream):
                ab.run_if(chosen, lambda: ab.fill(array, 1), lambda: ab.fill(array, 2))
        gc.collect()

    cycles(300)
    before = resident()
    cycles(3000)
    assert resident() - before < 4 << 20


@each_way
def test_bodies_fork(device, stream, run):
    array, chosen = ready(device), flag(device, 1)

    def then():
        with ab.fork(2) as (a, b):
            ab.fill(array[:4], 1, stream=a)
            ab.fill(array[4:], 2, stream=b)

    run(lambda: ab.run_if(chosen, then))
    assert array.numpy().tolist() == [1] * 4 + [2] * 4


def test_what_comes_before_and_after_is_in_order(device, stream):
    x, y, chosen = ready(device), ready(device), flag(device, 1)
    with ab.capture(stream) as graph, ab.fork(2) as (a, b):
        ab.fill(x, 1, stream=a)
        with b:
            ab.run_if(chosen, lambda: ab.copy(y, x))
        ab.fill(x, 2, stream=a)
    assert kinds(graph) == ["fill", "if", "fill"]
    assert [(one.index, other.index) for one, other in graph.edges] == [(0, 1), (1, 2)]
    for _ in range(3):
        graph.launch(stream)
        assert_all(y, 1)
        assert_all(x, 2)


def test_a_body_cannot_allocate(device, stream):
    chosen = flag(device, 1)
    for run in (
        lambda: ab.run_if(chosen, lambda: ab.zeros(8)),
        lambda: ab.run_if(chosen, lambda: None, lambda: ab.zeros(8)),
        lambda: ab.run_while(chosen, lambda: ab.zeros(8)),
    ):
        with pytest.raises(ab.CaptureError, match="allocate"), ab.capture(stream):
            run()
        assert not stream.is_capturing
    ab.run_if(chosen, lambda: ab.zeros(8))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda device: ab.zeros(1, "int64", device=device),
        lambda device: ab.zeros(1, "float32", device=device),
        lambda device: ab.zeros(2, "int32", device=device),
        lambda device: ab.zeros(0, "int32", device=device),
    ],
    ids=["int64", "float32", "two", "none"],
)
def test_a_wrong_flag_is_refused(device, stream, wrong):
    array = wrong(device)
    for run in (lambda: ab.run_if(array, int), lambda: ab.run_while(array, int)):
        with pytest.raises(ValueError, match="int32"):
            run()
        with pytest.raises(ValueError, match="int32"), ab.capture(stream):
            run()


def test_what_is_no_array_or_no_function_is_refused(device, stream):
    chosen = flag(device, 1)
    for wrong in (
        lambda: ab.run_if(1, int),
        lambda: ab.run_while(True, int),
        lambda: ab.run_if(chosen, None),
        lambda: ab.run_if(chosen, int, 3),
        lambda: ab.run_while(chosen, None),
    ):
        with pytest.raises(TypeError):
            wrong()


@each_way
def test_an_exception_in_a_body_comes_through(device, stream, run):
    chosen, array = flag(device, 1), ready(device)

    def body():
        ab.fill(chosen, 0)
        raise ZeroDivisionError

    for loop in (lambda: ab.run_if(chosen, body), lambda: ab.run_while(chosen, body)):
        give(chosen, 1)
        with pytest.raises(ZeroDivisionError):
            run(loop)
        assert not stream.is_capturing
    ab.fill(array, 3)
    assert_all(array, 3)


@pytest.mark.parametrize("use", ["synchronize", "query"])
def test_what_a_capture_forbids_is_forbidden_in_a_body(device, stream, use):
    chosen = flag(device, 1)
    with pytest.raises(ab.CaptureError), ab.capture(stream):
        ab.run_if(chosen, getattr(stream, use))
    assert not stream.is_capturing
    stream.synchronize()


def test_both_functions_are_called_once_in_a_capture(device, stream):
    chosen, calls = flag(device, 0), []
    with ab.capture(stream) as graph:
        ab.run_if(chosen, lambda: calls.append("then"), lambda: calls.append("otherwise"))
    graph.launch(stream)
    graph.launch(stream)
    stream.synchronize()
    assert calls == ["then", "otherwise"]


def test_a_graph_with_a_branch_goes_into_another(device, stream):
    array, chosen = ready(device), flag(device, 1)
    with ab.capture(stream) as inner:
        ab.run_if(chosen, lambda: ab.fill(array, 1), lambda: ab.fill(array, 2))
    with ab.capture(stream) as outer:
        inner.launch()
    for value, expected in (1, 1), (0, 2):
        give(chosen, value)
        outer.launch(stream)
        assert_all(array, expected)
