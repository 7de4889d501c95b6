"""`collect_races`: what races still runs, and each pair of source lines is told once."""

import numpy as np
import pytest

import anabranch as ab

from ..accesses import read, ready, streams, write
from ..arrays import TIMEOUT

pytestmark = pytest.mark.races


def raises(device):
    """Whether a race raises here."""
    (a, b), array = streams(device), ready(device)
    write(array, a)
    try:
        write(array, b)
    except ab.RaceError:
        return True
    return False


def test_nothing_is_collected_where_nothing_races(a, b, array):
    with ab.collect_races() as races:
        write(array, a)
        b.wait_stream(a)
        read(array, b)
    assert races == []


def test_a_race_is_collected_as_the_error_that_it_would_raise(a, b, array):
    with ab.collect_races() as races:
        write(array, a)
        read(array, b)
    (race,) = races
    assert isinstance(race, ab.RaceError)
    assert (race.kind, race.first.stream, race.second.stream) == ("RAW", a, b)


def test_what_races_still_runs(device):
    (a, b), array, called = streams(device), ready(device), []
    with ab.collect_races() as races:
        ab.fill(array, 1, stream=a)
        a.synchronize()
        ab.fill(array[:4], 2, stream=b)
        ab.fill(array[4:], 3, stream=a)
        b.submit(called.append, 1, writes=[array])
    b.synchronize()
    a.synchronize()
    assert [race.kind for race in races] == ["RAW"]
    assert called == [1]
    np.testing.assert_array_equal(array.numpy(), [2, 2, 2, 2, 3, 3, 3, 3])


def test_no_order_is_added(in_thread, a, b, array):
    with ab.testing.Gate(a), ab.collect_races() as races:
        write(array, a)
        write(array, b)
        in_thread(b.synchronize).result(TIMEOUT)
    assert len(races) == 1


def test_one_pair_of_lines_is_one_race_however_often(a, b, array):
    with ab.collect_races() as races:
        for _ in range(5):
            ab.fill(array, 1, stream=a)
        for _ in range(5):
            ab.fill(array, 1, stream=b)
    assert [race.kind for race in races] == ["WAW"]


def test_one_line_may_race_with_several(a, b, c, array):
    with ab.collect_races() as races:
        ab.fill(array[:4], 1, stream=a)
        ab.fill(array[4:], 1, stream=b)
        ab.fill(array, 1, stream=c)
    assert [race.first.stream for race in races] == [a, b]
    assert len({race.second.line for race in races}) == 1


def test_one_then_the_other_and_the_other_way_round_are_two(a, b, x, y):
    def one(array, stream):
        ab.fill(array, 1, stream=stream)

    def other(array, stream):
        ab.fill(array, 2, stream=stream)

    with ab.collect_races() as races:
        one(x, a)
        other(x, b)
        other(y, a)
        one(y, b)
    there, back = [(race.first.line, race.second.line) for race in races]
    assert there == back[::-1]


def test_a_line_may_race_with_itself(device, array):
    with ab.collect_races() as races:
        for stream in streams(device, 4):
            ab.fill(array, 1, stream=stream)
    (race,) = races
    assert race.first.line == race.second.line


def test_equal_lines_of_different_files_are_different(device):
    array, (a, *others) = ready(device), streams(device, 4)
    with ab.collect_races() as races:
        ab.fill(array, 1, stream=a)
        a.synchronize()
        for number, stream in enumerate(others):
            code = compile("ab.fill(array, 1, stream=stream)", f"<file {number}>", "exec")
            exec(code, {"ab": ab, "array": array, "stream": stream})
    pairs = {(race.first.file, race.second.file) for race in races}
    assert pairs == {("<file 0>", "<file 1>"), ("<file 0>", "<file 2>"), ("<file 1>", "<file 2>")}


def test_races_come_in_the_order_in_which_they_are_found(device):
    (a, b), arrays = streams(device), [ready(device) for _ in range(3)]
    with ab.collect_races() as races:
        for array in arrays:
            ab.fill(array, 1, stream=a)
        ab.fill(arrays[0], 1, stream=b)
        assert len(races) == 1
        ab.copy(arrays[2], arrays[1], stream=b)
    # The two of the copy have one pair of lines.
    assert [race.kind for race in races] == ["WAW", "RAW"]


def test_every_array_of_an_operation_is_looked_at(device):
    (a, b), arrays = streams(device), [ready(device) for _ in range(4)]
    with ab.collect_races() as races:
        ab.fill(arrays[0], 1, stream=a)
        ab.fill(arrays[1], 1, stream=a)
        ab.fill(arrays[2], 1, stream=a)
        b.submit(int, reads=arrays[:2], writes=arrays[2:])
    assert len({race.first.line for race in races}) == len(races) == 3


def test_a_view_of_the_host_is_collected_and_right(device):
    if device.kind != "cpu":
        pytest.skip("the host does not reach the memory")
    stream, array = ab.Stream(device), ready(device)
    with ab.collect_races() as races:
        ab.fill(array, 3, stream=stream)
        with array.host() as view:
            np.testing.assert_array_equal(view, np.full(8, 3))
    assert [race.kind for race in races] == ["HOST"]


def test_numpy_is_never_collected(stream, array):
    with ab.collect_races() as races:
        ab.fill(array, 3, stream=stream)
        np.testing.assert_array_equal(array.numpy(), np.full(8, 3))
    assert races == []


# The block


@pytest.mark.parametrize("mode", ["auto", "check", "off"])
def test_after_the_block_the_mode_is_what_it_was(device, mode):
    with ab.hazards(mode):
        with ab.collect_races():
            assert not raises(device)
        assert raises(device) == (mode == "check")


def test_after_the_block_nothing_is_added_to_the_list(a, b, array):
    with ab.collect_races() as races:
        write(array, a)
    with ab.hazards("check"), pytest.raises(ab.RaceError):
        write(array, b)
    assert races == []


def test_an_exception_goes_through_and_the_mode_is_what_it_was(device):
    with ab.hazards("check"):
        with pytest.raises(ZeroDivisionError), ab.collect_races():
            raises(device) / 0
        assert raises(device)


def test_the_inner_of_two_blocks_collects(device):
    with ab.collect_races() as outer:
        with ab.collect_races() as inner:
            assert not raises(device)
        assert (len(outer), len(inner)) == (0, 1)
        assert not raises(device)
    assert (len(outer), len(inner)) == (1, 1)


def test_check_inside_the_block_raises_and_collects_nothing(device):
    with ab.collect_races() as races:
        with ab.hazards("check"):
            assert raises(device)
        assert races == []
        assert not raises(device)
    assert len(races) == 1


def test_off_inside_the_block_collects_nothing(device):
    with ab.collect_races() as races, ab.hazards("off"):
        assert not raises(device)
    assert races == []


def test_another_thread_collects_nothing_here(device, in_thread):
    def race():
        with ab.hazards("check"):
            return raises(device)

    with ab.collect_races() as races:
        assert in_thread(race).result(TIMEOUT)
    assert races == []


def test_two_threads_collect_their_own(device, in_threads):
    def race(number):
        with ab.collect_races() as races:
            for _ in range(number):
                (a, b), array = streams(device), ready(device)
                write(array, a)
                read(array, b)
        return len(races)

    assert in_threads(4, race) == [0, 1, 1, 1]
