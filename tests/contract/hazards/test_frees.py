"""Memory that one stream allocated, another uses, and the first gets again: safe in every mode, and never reported.

The cases are those of Ascend's check for missing calls of `record_stream`, which there is none of here.
"""

import gc
import threading

import numpy as np
import pytest

import anabranch as ab

from ..accesses import each_order_by_the_host, ready, streams
from ..arrays import TIMEOUT

SIZE = 1000

each_mode = pytest.mark.parametrize("mode", ["auto", "check", "off"])

# What orders the stream that has the memory, `owner`, with the one that uses it, `user`, before the memory is dropped.
BEFORE_THE_DROP = {
    "nothing": lambda owner, user: None,
    "the user waits": lambda owner, user: user.wait_stream(owner),
    "the owner waits": lambda owner, user: owner.wait_stream(user),
    "the owner waits for an event": lambda owner, user: owner.wait_event(user.record_event()),
    "both wait": lambda owner, user: (user.wait_stream(owner), owner.wait_stream(user)),
}
each_order_before_the_drop = pytest.mark.parametrize("order", BEFORE_THE_DROP.values(), ids=BEFORE_THE_DROP)


@pytest.fixture(autouse=True)
def _in_mode(request, on_device):
    """Run the test in the mode that it asks for, else under `check`."""
    mode = request.getfixturevalue("mode") if "mode" in request.fixturenames else "check"
    with ab.hazards(mode):
        yield


def overwrite(stream, count=10):
    """Allocate and write what would land on memory freed too early."""
    return [ab.full(SIZE, -1, "float32", stream=stream) for _ in range(count)]


def made(owner, *users):
    """Make an array on a stream that others may use."""
    array = ab.full(SIZE, 7, "float32", stream=owner)
    for user in users:
        user.wait_stream(owner)
    return array


def assert_all(arrays, value):
    for array in arrays:
        np.testing.assert_array_equal(array.numpy(), np.full(SIZE, value, "float32"))


@each_mode
@each_order_before_the_drop
def test_memory_is_not_used_again_before_its_reader_is_through(device, mode, order):
    (owner, user), result = streams(device), ready(device, SIZE)
    array = made(owner, user)
    with ab.testing.Gate(user):
        ab.copy(result, array, stream=user)
        order(owner, user)
        del array
        others = overwrite(owner)
    assert_all([result], 7)
    assert_all(others, -1)


@each_mode
@each_order_before_the_drop
def test_memory_is_not_used_again_before_its_writer_is_through(device, mode, order):
    owner, user = streams(device)
    array = made(owner, user)
    with ab.testing.Gate(user):
        ab.fill(array, 3, stream=user)
        order(owner, user)
        del array
        others = overwrite(owner)
    user.synchronize()
    assert_all(others, -1)


@each_mode
def test_memory_is_not_used_again_by_its_user_before_its_owner_is_through(device, mode):
    owner, user = streams(device)
    result = ready(device, SIZE)
    array = made(owner, user)
    user.wait_stream(owner)
    ab.fill(array, 5, stream=user)
    owner.wait_stream(user)
    with ab.testing.Gate(owner):
        ab.copy(result, array, stream=owner)
        del array
        others = overwrite(user)
    assert_all([result], 5)
    assert_all(others, -1)


@pytest.mark.parametrize("mode", ["auto", "check"])
def test_memory_that_its_stream_gets_again_is_not_used_by_another_before_its_reader_is_through(device, mode):
    (owner, user), result = streams(device), ready(device, SIZE)
    array = made(owner)
    with ab.testing.Gate(owner):
        ab.copy(result, array, stream=owner)
        del array
        others = [ab.empty(SIZE, "float32", stream=owner) for _ in range(10)]
        for each in others:
            ab.fill(each, -1, stream=user)
    assert_all([result], 7)
    assert_all(others, -1)


@each_mode
@each_order_by_the_host
def test_memory_whose_user_the_host_has_waited_for_may_be_used_again(device, mode, order):
    (owner, user), result = streams(device), ready(device, SIZE)
    array = made(owner, user)
    ab.copy(result, array, stream=user)
    order(user, owner)
    del array
    assert_all(overwrite(owner), -1)
    assert_all([result], 7)


@each_mode
@pytest.mark.parametrize("waited_for", range(4))
def test_memory_is_not_used_again_before_all_its_users_are_through(device, mode, waited_for):
    """Whichever of them the owner has waited for."""
    owner, *users = streams(device, 4)
    results = [ready(device, SIZE) for _ in users]
    array = made(owner, *users)
    gates = [ab.testing.Gate(user) for user in users]
    for user, result in zip(users, results, strict=True):
        ab.copy(result, array, stream=user)
    for user in users[:waited_for]:
        owner.wait_stream(user)
    del array
    others = overwrite(owner)
    for gate in reversed(gates):
        gate.open()
    assert_all(results, 7)
    assert_all(others, -1)


@each_mode
@pytest.mark.parametrize("closed", ["user", "owner"])
def test_the_streams_of_memory_may_be_closed_before_it_is_dropped(device, mode, closed):
    (owner, user), result = streams(device), ready(device, SIZE)
    array = made(owner, user)
    with ab.testing.Gate(user):
        if closed == "owner":
            owner.close()
        ab.copy(result, array, stream=user)
        if closed == "user":
            user.close()
            user = None
        else:
            owner = ab.Stream(device)
        del array
        others = overwrite(owner)
    assert_all([result], 7)
    assert_all(others, -1)


@each_mode
@pytest.mark.parametrize("how", ["del", "close", "in a thread", "by the garbage collector", "in a stream's function"])
def test_whoever_drops_memory_need_know_nothing(device, mode, how):
    (owner, user), result = streams(device), ready(device, SIZE)
    array = made(owner, user)
    with ab.testing.Gate(user):
        ab.copy(result, array, stream=user)
        if how == "close":
            array.close()
        elif how == "in a thread":
            thread = threading.Thread(target=array.close)
            thread.start()
            thread.join(TIMEOUT)
        elif how == "by the garbage collector":
            cycle = [array]
            cycle.append(cycle)
            del cycle
        elif how == "in a stream's function":
            ab.Stream(device).submit(array.close).result(TIMEOUT)
        del array
        gc.collect()
        others = overwrite(owner)
    assert_all([result], 7)
    assert_all(others, -1)


@each_mode
def test_a_view_that_is_left_keeps_memory_for_its_users(device, mode):
    (owner, user), result = streams(device), ready(device, 10)
    array = made(owner, user)
    part = array[:10]
    del array
    with ab.testing.Gate(user):
        ab.copy(result, part, stream=user)
        del part
        others = overwrite(owner)
    np.testing.assert_array_equal(result.numpy(), np.full(10, 7, "float32"))
    assert_all(others, -1)


@each_mode
def test_memory_that_a_function_uses_stays_until_its_end(device, mode):
    owner, user = streams(device)
    array = made(owner, user)
    results = []
    with ab.testing.Gate(user):
        future = user.submit(lambda given: results.append(given.numpy()), array, reads=[array])
        del array
        others = overwrite(owner)
    future.result(TIMEOUT)
    np.testing.assert_array_equal(results[0], np.full(SIZE, 7, "float32"))
    assert_all(others, -1)


@pytest.mark.parametrize("mode", ["auto", "check"])
def test_memory_used_again_may_go_to_any_stream_first(device, mode):
    """How memory came to a stream is nobody's mistake, so the order is there, and nothing is reported."""
    (owner, user, third), result = streams(device, 3), ready(device, SIZE)
    array = made(owner, user)
    with ab.testing.Gate(user):
        ab.copy(result, array, stream=user)
        del array
        others = [ab.empty(SIZE, stream=owner) for _ in range(10)]
        for other in others:
            ab.fill(other, -1, stream=third)
    assert_all([result], 7)
    assert_all(others, -1)


def test_new_memory_of_a_stream_that_is_held_may_be_used_by_another(owner, user):
    with ab.testing.Gate(owner):
        array = ab.empty(SIZE, stream=owner)
        ab.fill(array, 2, stream=user)
    assert_all([array], 2)


def test_memory_used_again_brings_no_race_of_its_earlier_life(device):
    owner, user, third = streams(device, 3)
    for _ in range(20):
        array = ab.empty(SIZE, stream=owner)
        user.wait_stream(owner)
        ab.fill(array, 1, stream=user)
        del array
        array = ab.empty(SIZE, stream=third)
        ab.fill(array, 2, stream=third)
        del array


def test_memory_used_again_has_races_of_its_own(owner, user):
    ab.full(SIZE, 1, "float32", stream=owner)
    array = ab.full(SIZE, 2, "float32", stream=owner)
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 3, stream=user)
    assert caught.value.kind == "WAW"


def test_memory_used_again_has_races_of_its_own_after_a_wait(device):
    """Of an access to all of it, which is not just how the stream got the memory, made again."""
    (owner, user), other = streams(device), ready(device, SIZE)
    with ab.testing.Gate(owner):
        ab.full(SIZE, 1, "float32", stream=owner)
        array = ab.empty(SIZE, stream=owner)
        ab.fill(other, 1, stream=user)
        owner.wait_stream(user)
        ab.fill(array, 2, stream=owner)
        with pytest.raises(ab.RaceError) as caught:
            ab.fill(array, 3, stream=user)
    assert caught.value.kind == "WAW"


@each_mode
def test_what_raced_is_freed_safely_too(device, mode):
    """The use without order is what is wrong, whatever became of it; the free is not."""
    (owner, user), result = streams(device), ready(device, SIZE)
    array = ab.full(SIZE, 7, "float32", stream=owner)
    owner.synchronize()
    with ab.testing.Gate(user), ab.collect_races() as races:
        ab.copy(result, array, stream=user)
        ab.fill(array, 7, stream=owner)
        del array
        others = overwrite(owner)
    assert_all([result], 7)
    assert_all(others, -1)
    assert [race.kind for race in races] == ["WAR"]
