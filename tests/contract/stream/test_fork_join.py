"""`fork`: branches that start after their parent's work, and that the parent joins."""

import asyncio
from concurrent.futures import Future

import pytest

import anabranch as ab

from ..arrays import TIMEOUT


@pytest.mark.parametrize("n", [1, 2, 5])
def test_branches_are_new_streams_of_the_device(n, device):
    parent = ab.Stream()
    with ab.fork(n, stream=parent) as branches:
        assert len(branches) == n
        assert len({parent, *branches}) == n + 1
        assert all(branch.device is device for branch in branches)


def test_branches_start_after_the_work_of_the_parent(enqueue):
    parent = ab.Stream()
    with ab.testing.Gate(parent):
        enqueue(parent)
        with ab.fork(3, stream=parent) as branches:
            assert not any(branch.query() for branch in branches)
    parent.synchronize()


def test_branches_do_not_wait_for_what_the_parent_gets_later():
    parent = ab.Stream()
    with ab.fork(2, stream=parent) as branches, ab.testing.Gate(parent):
        assert [branch.submit(int).result(10) for branch in branches] == [0, 0]


def test_branches_do_not_wait_for_each_other():
    with ab.fork(2, stream=ab.Stream()) as (a, b), ab.testing.Gate(a):
        b.submit(int).result(10)
        assert not a.query()


@pytest.mark.parametrize("held", range(3))
def test_the_parent_joins_every_branch_on_exit(held, enqueue):
    parent = ab.Stream()
    with ab.fork(3, stream=parent) as branches:
        gate = ab.testing.Gate(branches[held])
        enqueue(branches[held])
        assert parent.query()
    assert not parent.query()
    gate.open()
    parent.synchronize()


def test_leaving_waits_for_nothing():
    parent = ab.Stream()
    with ab.fork(3, stream=parent) as branches:
        gates = [ab.testing.Gate(branch) for branch in branches]
    work = parent.submit(int)
    assert not work.done()
    for gate in gates:
        gate.open()
    assert work.result(10) == 0


def test_fork_and_join_order_the_work():
    parent, done = ab.Stream(), []
    parent.submit(done.append, "before")
    with ab.fork(3, stream=parent) as branches:
        for index, branch in enumerate(branches):
            branch.submit(done.append, index)
    parent.submit(done.append, "after")
    parent.synchronize()
    assert sorted(done[1:-1]) == [0, 1, 2]
    assert (done[0], done[-1]) == ("before", "after")


def test_branches_are_closed_on_exit():
    with ab.fork(2, stream=ab.Stream()) as branches:
        assert not any(branch.closed for branch in branches)
    assert all(branch.closed for branch in branches)


def test_an_error_in_the_block_passes_and_joins_and_closes():
    parent, gates, closed = ab.Stream(), [], []

    def body():
        with ab.fork(2, stream=parent) as branches:
            closed.extend(branches)
            gates.append(ab.testing.Gate(branches[1]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        body()
    assert all(branch.closed for branch in closed)
    assert not parent.query()
    gates[0].open()
    parent.synchronize()


def test_the_current_stream_stays(device):
    before = ab.current_stream()
    with ab.fork(2, stream=ab.Stream()):
        assert ab.current_stream() == before
        assert ab.current_device() is device
    assert ab.current_stream() == before


def test_the_parent_is_the_current_stream_if_none_is_given():
    with ab.Stream() as parent:
        with ab.testing.Gate(parent), ab.fork(2) as branches:
            assert not any(branch.query() for branch in branches)
        with ab.fork(2) as branches:
            gate = ab.testing.Gate(branches[0])
        assert not parent.query()
        gate.open()
        parent.synchronize()


def test_the_parent_is_the_one_that_was_current_at_the_start():
    with ab.Stream() as parent, ab.Stream() as other:
        with parent:
            scope = ab.fork(1)
            (branch,) = scope.__enter__()
            gate = ab.testing.Gate(branch)
        scope.__exit__(None, None, None)
        assert not parent.query()
        assert other.query()
        gate.open()


def test_forks_nest():
    parent, done = ab.Stream(), []
    with ab.fork(2, stream=parent) as (a, b):
        a.submit(done.append, "a")
        with ab.fork(2, stream=a) as (c, d):
            gate = ab.testing.Gate(d)
            c.submit(done.append, "c").result(10)
            d.submit(done.append, "d")
        b.submit(done.append, "b").result(10)
        a.submit(done.append, "joined")
    parent.submit(done.append, "parent")
    assert done == ["a", "c", "b"]
    gate.open()
    parent.synchronize()
    assert done == ["a", "c", "b", "d", "joined", "parent"]


def test_a_branch_may_be_current():
    with ab.fork(2, stream=ab.Stream()) as (a, b):
        with a:
            assert ab.current_stream() == a
        with b:
            assert ab.current_stream() == b


def test_the_parent_of_a_fork_may_be_a_default_stream():
    with ab.fork(2, stream=ab.legacy_stream()) as branches:
        gate = ab.testing.Gate(branches[0])
    assert not ab.legacy_stream().query()
    gate.open()
    ab.legacy_stream().synchronize()


# -- one fork, used again --


def test_a_fork_within_itself_has_branches_of_its_own():
    scope = ab.fork(1, stream=ab.Stream())
    with scope as (outer,):
        with scope as (inner,):
            assert not outer.closed
        assert inner.closed
        assert not outer.closed
    assert outer.closed


async def test_each_task_leaves_its_own_block():
    scope = ab.fork(1, stream=ab.Stream())

    async def first(entered, over):
        with scope as (branch,):
            entered.set_result(None)
            await over
        return branch

    loop = asyncio.get_running_loop()
    entered, over = loop.create_future(), loop.create_future()
    task = asyncio.create_task(first(entered, over))
    await entered
    with scope as (branch,):
        over.set_result(None)
        assert (await task).closed
        assert not branch.closed
    assert branch.closed


async def test_a_task_that_began_in_a_block_leaves_its_own():
    scope = ab.fork(1, stream=ab.Stream())

    async def within():
        with scope as (branch,):
            assert not branch.closed
        return branch

    with scope as (branch,):
        assert (await asyncio.create_task(within())).closed
        assert not branch.closed
    assert branch.closed


def test_each_thread_leaves_its_own_block(in_thread):
    scope, entered, over = ab.fork(1, stream=ab.Stream()), Future(), Future()

    def first():
        with scope as (branch,):
            entered.set_result(None)
            over.result(TIMEOUT)
        return branch

    thread = in_thread(first)
    entered.result(TIMEOUT)
    with scope as (branch,):
        over.set_result(None)
        assert thread.result(TIMEOUT).closed
        assert not branch.closed
    assert branch.closed


def test_a_block_may_be_left_by_another_thread(in_thread):
    parent = ab.Stream()
    scope = ab.fork(1, stream=parent)
    (branch,) = scope.__enter__()
    with ab.testing.Gate(branch):
        in_thread(scope.__exit__, None, None, None).result(TIMEOUT)
        assert branch.closed
        assert not parent.query()


def test_a_block_that_was_not_entered_cannot_be_left():
    scope = ab.fork(1)
    with pytest.raises(RuntimeError, match="has not been entered"):
        scope.__exit__(None, None, None)
    with scope:
        pass
    with pytest.raises(RuntimeError, match="has not been entered"):
        scope.__exit__(None, None, None)


# -- over devices --


def test_devices_have_a_branch_each(device_pair):
    with ab.fork(devices=device_pair, stream=ab.Stream()) as branches:
        assert [branch.device for branch in branches] == list(device_pair)


def test_devices_may_be_named_and_repeated(device, other_device):
    with ab.fork(3, devices=[device.alias, other_device, device.alias]) as branches:
        assert [branch.device for branch in branches] == [device, other_device, device]


def test_branches_on_other_devices_start_after_the_parent_and_are_joined(other_device):
    parent = ab.Stream()
    with ab.testing.Gate(parent), ab.fork(devices=[other_device], stream=parent) as (branch,):
        assert not branch.query()
    with ab.fork(devices=[other_device], stream=parent) as (branch,):
        gate = ab.testing.Gate(branch)
    assert not parent.query()
    gate.open()
    parent.synchronize()


@pytest.mark.parametrize("n", [1, 3])
def test_a_number_of_branches_that_is_not_that_of_devices_is_an_error(n, device):
    with pytest.raises(ValueError, match=str(n)):
        ab.fork(n, devices=[device, device]).__enter__()


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        ({"n": "a"}, TypeError, "n is the number of branches, an int, not 'a'"),
        ({"n": True}, TypeError, "n is the number of branches, an int, not True"),
        ({"n": 0}, ValueError, "fork needs at least one branch, not 0"),
        ({"devices": []}, ValueError, "fork needs at least one device, and devices has none"),
        ({"n": 2.0, "devices": ["cpu:0"]}, TypeError, "n is the number of branches, an int, not 2.0"),
    ],
)
def test_a_wrong_number_of_branches_is_named(arguments, error, reason):
    with pytest.raises(error, match=reason):
        ab.fork(**arguments)


def test_an_unknown_device_is_an_error():
    with pytest.raises(ab.DeviceError):
        ab.fork(devices=["cpu:99"]).__enter__()
