"""Calls of graphed functions among other work: streams, hazards, threads, branches, captures."""

import itertools

import numpy as np
import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all, give, kinds
from .test_graphed import Counted, given, move


def copying():
    return Counted(lambda x, y: ab.copy(y, x))


# Streams


def test_a_call_goes_to_the_callers_current_stream(device):
    work, (x, y) = copying(), given(device, 1, 2)
    for _ in range(2):
        stream = ab.Stream(device)
        with stream, ab.testing.Gate(stream):
            work(x, y)
            assert not stream.query()
            assert ab.Stream(device).query()
        assert_all(y, 1)
    assert work.calls == 1


def test_a_call_returns_before_the_work_is_done(device):
    work, stream = copying(), ab.Stream(device)
    arrays = [ready(device) for _ in range(4)]
    give(arrays[0], 5)
    with stream, ab.testing.Gate(stream):
        for x, y in itertools.pairwise(arrays):
            work(x, y)
        assert not stream.query()
    assert_all(arrays[-1], 5)
    assert work.calls == 1


def test_queued_calls_keep_their_arrays(device):
    work, stream = Counted(move), ab.Stream(device)
    pairs = [given(device, value, -1) for value in range(10)]
    with stream, ab.testing.Gate(stream):
        for x, y in pairs:
            work(x, y)
    for value, (x, y) in enumerate(pairs):
        assert_all(x, 0)
        assert_all(y, value)
    assert work.calls == 1


def test_calls_within_a_stream_that_was_left_do_not_change_it(device):
    work, stream = copying(), ab.Stream(device)
    with stream:
        work(*given(device, 1, 2))
        assert ab.current_stream(device) is stream


# Order


def test_calls_on_two_streams_are_ordered_where_they_share_arrays(device):
    work, (x, y, z) = copying(), given(device, 1, 2, 3)
    one, other = ab.Stream(device), ab.Stream(device)
    with one, ab.testing.Gate(one):
        work(x, y)
        with other:
            work(y, z)
        assert not other.query()
    assert_all(z, 1)


def test_work_after_a_call_waits_for_it_only_where_it_uses_its_arrays(device):
    work, (x, y, z) = copying(), given(device, 1, 2, 3)
    stream = ab.Stream(device)
    work(*given(device, 0, 0))
    after, beside = ab.Stream(device), ab.Stream(device)
    with ab.testing.Gate(stream):
        with stream:
            work(x, y)
        ab.fill(y, 9, stream=after)
        ab.fill(z, 9, stream=beside)
        assert not after.query()
        beside.synchronize()
    assert_all(y, 9)


def test_a_missing_order_is_a_race_under_check(device):
    work, (x, y, z) = copying(), given(device, 1, 2, 3)
    one, other = ab.Stream(device), ab.Stream(device)
    with ab.hazards("check"):
        with one:
            work(x, y)
        ab.fill(z, 1, stream=other)
        with pytest.raises(ab.RaceError) as caught:
            ab.fill(y, 1, stream=other)
        assert caught.value.kind == "WAW"
    assert_all(y, 1)


def test_replays_of_one_capture_are_in_order_also_under_check(device):
    work, (x, y, z) = copying(), given(device, 1, 2, 3)
    with ab.hazards("check"):
        with ab.Stream(device):
            work(x, y)
        with ab.Stream(device):
            work(y, z)
    assert_all(z, 1)


def test_what_earlier_arguments_were_used_for_does_not_count(device):
    work, (x, y, z, w, v) = copying(), given(device, 1, 2, 3, 4, 5)
    work(v, v[:])
    device.synchronize()
    one, other = ab.Stream(device), ab.Stream(device)
    with ab.hazards("check"):
        with one:
            work(x, y)
            work(z, w)
        ab.fill(v, 1, stream=other)


def test_a_race_within_the_function_is_found_at_each_call(device):
    def work(x):
        with ab.fork(2) as (a, b):
            ab.fill(x, 1, stream=a)
            ab.fill(x, 2, stream=b)

    racing = Counted(work)
    with ab.hazards("check"):
        for _ in range(2):
            with pytest.raises(ab.RaceError):
                racing(ready(device))
    assert racing.graphs == 0
    x = ready(device)
    racing(x)
    assert_all(x, 2)
    with ab.hazards("check"), pytest.raises(ab.RaceError):
        racing(x)


def test_forks_within(device):
    def work(x, y, z):
        with ab.fork(2) as (a, b):
            ab.copy(y, x, stream=a)
            ab.copy(z, x, stream=b)
        ab.fill(x, 0)

    forking = Counted(work)
    for value in 3, 4:
        x, y, z = given(device, value, 0, 0)
        forking(x, y, z)
        for array, expected in ((x, 0), (y, value), (z, value)):
            assert_all(array, expected)
    assert forking.calls == 1


@pytest.mark.filterwarnings("ignore:.*is not captured:RuntimeWarning")
def test_an_argument_that_the_function_also_closes_over_is_no_replay(device):
    # Such a call orders what the others need not.
    (constant,) = given(device, 1)

    def work(x, y):
        with ab.fork(2) as (a, b):
            ab.fill(x, 7, stream=a)
            ab.copy(y, constant, stream=b)

    forking, (x, y) = Counted(work), given(device, 0, 0)
    forking(x, y)
    assert_all(y, 1)
    forking(constant, y)
    assert_all(y, 7)
    assert forking.calls == 2


def test_calls_from_several_threads(device, in_threads):
    work = Counted(move)

    def body(number):
        stream = ab.Stream(device)
        with device, stream:
            for turn in range(20):
                x, y = given(device, number * 100 + turn, -1)
                work(x, y)
                assert_all(y, number * 100 + turn)
                assert_all(x, 0)

    in_threads(4, body)
    assert work.calls <= 4
    assert work.graphs == 1


# Branches and loops


@pytest.mark.unseen_order
def test_branches_by_arrays_of_the_call(device):
    def work(flag, x, y):
        ab.run_if(flag, lambda: ab.copy(y, x), lambda: ab.fill(y, 9))

    branching = Counted(work)
    for value in 1, 0, 1, 0:
        x, y = given(device, 5 + value, -1)
        branching(ab.full(1, value, "int32", device=device), x, y)
        assert_all(y, 6 if value else 9)
    assert branching.calls == 1


@pytest.mark.unseen_order
def test_a_flag_may_be_a_part_of_an_array(device):
    branching = Counted(lambda flags, y: ab.run_if(flags[2:3], lambda: ab.fill(y, 1), lambda: ab.fill(y, 2)))
    for flags in [0, 0, 1], [1, 1, 0]:
        y = ready(device)
        branching(ab.array(np.array(flags, "int32"), device=device), y)
        assert_all(y, 1 if flags[2] else 2)
    assert branching.calls == 1


@pytest.mark.captured_loop
@pytest.mark.unseen_order
def test_loops_by_arrays_of_the_call(device):
    def work(flag, nothing, x, y):
        def body():
            ab.copy(y, x)
            ab.copy(flag, nothing)

        ab.run_while(flag, body)

    looping, nothing = Counted(work), ab.zeros(1, "int32", device=device)
    for value in 1, 0, 2:
        flag = ab.full(1, value, "int32", device=device)
        x, y = given(device, 5, -1)
        looping(flag, nothing, x, y)
        assert_all(y, 5 if value else -1)
        assert_all(flag, 0)
    assert looping.calls == 1


def test_host_functions_are_called_by_each_call(device):
    called = []

    def work(x):
        ab.fill(x, 1)
        ab.current_stream(device).submit(called.append, "called")

    calling = Counted(work)
    for count in 1, 2, 3:
        x = ready(device)
        calling(x)
        device.synchronize()
        assert called == ["called"] * count
        assert_all(x, 1)
    assert calling.calls == 1


@pytest.mark.filterwarnings("ignore:.*is not captured:RuntimeWarning")
def test_host_functions_have_the_arguments_of_their_call(device):
    seen = []

    def work(x, number):
        ab.fill(x, 1)
        ab.current_stream(device).submit(lambda *args: seen.append(args), number, x)

    calling = ab.graphed(work)
    for number in 1, 2:
        x = ready(device)
        calling(x, number)
        device.synchronize()
        assert len(seen) == number
        assert type(seen[-1][0]) is int
        assert seen[-1][0] == number
        assert seen[-1][1].ptr == x.ptr


# In captures


def test_in_a_capture_it_becomes_a_part_of_that(device):
    work, stream, (x, y) = Counted(move), ab.Stream(device), given(device, 3, 0)
    with ab.capture(stream) as graph:
        work(x, y)
    assert kinds(graph) == ["copy", "fill"]
    assert (work.calls, work.graphs) == (1, 0)
    assert_all(y, 0)
    graph.launch(stream)
    assert_all(y, 3)


@pytest.mark.parametrize("calls_before", [0, 1])
def test_a_call_by_another_thread_in_a_stream_that_is_captured_becomes_a_part_of_that(device, in_thread, calls_before):
    work, stream, (x, y) = Counted(move), ab.Stream(device), given(device, 3, 0)
    for _ in range(calls_before):
        work(*given(device, 1, 0))

    def call():
        with stream:
            work(x, y)

    with ab.capture(stream) as graph:
        in_thread(call).result(50)
    assert kinds(graph) == ["copy", "fill"]
    assert_all(y, 0)
    graph.launch(stream)
    assert_all(y, 3)


def test_a_graphed_function_within_another_is_a_part_of_it(device):
    inner = Counted(move)
    outer = Counted(lambda x, y: (inner(x, y), ab.fill(x, 4))[2:])
    for value in 1, 2:
        x, y = given(device, value, 0)
        outer(x, y)
        assert_all(x, 4)
        assert_all(y, value)
    assert (outer.calls, inner.calls, inner.graphs) == (1, 1, 0)
