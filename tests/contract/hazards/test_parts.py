"""Which bytes an access touches: views, and copies of a part. Those with no byte in common need no order."""

import numpy as np
import pytest

import anabranch as ab

from ..accesses import each_way, ready, streams, write


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


def races(use, *args, **kwargs):
    try:
        use(*args, **kwargs)
    except ab.RaceError:
        return True
    return False


# Views

DISJOINT = {
    "halves": (np.s_[:4], np.s_[4:]),
    "neighbours": (np.s_[3:4], np.s_[4:5]),
    "even and odd": (np.s_[::2], np.s_[1::2]),
    "even and odd, backwards": (np.s_[::-2], np.s_[::2]),
    "thirds": (np.s_[::3], np.s_[1::3]),
    "rows": (np.s_[0], np.s_[1]),
    "columns": (np.s_[:, 0], np.s_[:, 1]),
    "halves of rows": (np.s_[:, :2], np.s_[:, 2:]),
    "two tiles": (np.s_[:2, 2:], np.s_[2:, :2]),
    "tiles side by side": (np.s_[:2, :2], np.s_[:2, 2:]),
    "a checkerboard": (np.s_[::2, ::2], np.s_[1::2, ::2]),
    "nothing": (np.s_[2:2], np.s_[:]),
}
OVERLAPPING = {
    "the same": (np.s_[:], np.s_[:]),
    "one within the other": (np.s_[2:3], np.s_[:]),
    "one element": (np.s_[:4], np.s_[3:]),
    "one element, backwards": (np.s_[3::-1], np.s_[3:]),
    "forwards and backwards": (np.s_[:], np.s_[::-1]),
    "even and a third": (np.s_[::2], np.s_[::3]),
    "a row and a column": (np.s_[1], np.s_[:, 1]),
    "tiles with a common corner": (np.s_[:3, :3], np.s_[2:, 2:]),
}


def shape_for(*keys):
    return (4, 4) if any(isinstance(key, tuple) for key in keys) or isinstance(keys[0], int) else (8,)


@each_way
@pytest.mark.parametrize(("one", "two"), DISJOINT.values(), ids=DISJOINT)
def test_views_with_nothing_in_common_need_no_order(device, way, one, two):
    (a, b), array = streams(device), ready(device, shape_for(one, two))
    way.write(array[one], a)
    way.write(array[two], b)


@each_way
@pytest.mark.parametrize(("one", "two"), OVERLAPPING.values(), ids=OVERLAPPING)
def test_views_with_something_in_common_race(device, way, one, two):
    (a, b), array = streams(device), ready(device, shape_for(one, two))
    way.write(array[one], a)
    assert races(way.write, array[two], b)
    assert races(way.read, array[two], b)
    b.wait_stream(a)
    way.write(array[two], b)


def test_a_view_of_a_view_is_known_by_its_bytes(device):
    (a, b), array = streams(device), ready(device, 16)
    write(array[4:12][2:6], a)
    assert races(write, array[6:7], b)
    write(array[4:6], b)
    write(array[10:][::2], b)


def test_views_of_an_array_that_is_gone_race_with_each_other(device):
    (a, b), array = streams(device), ready(device)
    one, two = array[:5], array[4:]
    del array
    write(one, a)
    assert races(write, two, b)


def test_random_views_race_if_and_only_if_they_have_an_element_in_common(device):
    random = np.random.default_rng(3)
    numbers = np.arange(36).reshape(6, 6)

    def part():
        start, stop = sorted(random.integers(0, 7, 2))
        step = int(random.integers(1, 4))
        piece = slice(int(start), int(stop), step)
        return slice(None, None, -1) if random.integers(8) == 0 else piece

    for _ in range(200):
        (a, b), array = streams(device), ready(device, (6, 6))
        one, two = ((part(), part()) for _ in range(2))
        write(array[one], a)
        assert races(write, array[two], b) == bool(np.intersect1d(numbers[one], numbers[two]).size)


SAME_MEMORY = {
    "imported twice": lambda memory: (ab.asarray(memory), ab.asarray(memory)),
    "two views imported": lambda memory: (ab.asarray(memory[:6]), ab.from_dlpack(memory[5:])),
    "imported anew": lambda memory: (ab.asarray(memory), ab.asarray(np.asarray(ab.asarray(memory)))),
}


@pytest.mark.parametrize("imported", SAME_MEMORY.values(), ids=SAME_MEMORY)
def test_memory_of_another_library_is_known_again(imported):
    (a, b), memory = streams("cpu:0"), np.zeros(8, "float32")
    one, two = imported(memory)
    with ab.testing.Gate(a):
        write(one, a)
        assert races(write, two, b)


# Copies


def test_a_copy_accesses_the_elements_that_it_is_told_to(a, b, x, y):
    ab.copy(x, y, stream=a, dst_offset=2, src_offset=1, count=3)
    write(x[:2], b)
    write(x[5:], b)
    write(y[:1], b)
    write(y[4:], b)
    for part in x[2:3], x[4:5], y[1:2], y[3:4]:
        assert races(write, part, b)


def test_two_copies_to_different_parts_need_no_order(device):
    (a, b), source, target = streams(device), ready(device), ready(device)
    ab.copy(target, source, stream=a, count=4)
    ab.copy(target, source, stream=b, dst_offset=4, src_offset=4)
    assert races(ab.copy, target, source, stream=b, dst_offset=3, count=1)


def test_chunks_that_go_through_streams_of_their_own_need_no_order_with_each_other(device):
    """A kernel's result is sent off in parts, each of which the host waits for alone."""
    compute, *others = streams(device, 5)
    result, sent = ready(device, 16), ready(device, 16)
    write(result, compute)
    compute.synchronize()
    for number, stream in enumerate(others):
        ab.copy(sent, result, stream=stream, dst_offset=4 * number, src_offset=4 * number, count=4)
    later = ab.Stream(device)
    for number, stream in enumerate(others):
        stream.synchronize()
        write(sent[4 * number : 4 * number + 4], later)
        if number + 1 < len(others):
            assert races(write, sent[4 * number + 4 :], later)


def test_a_copy_within_an_array_reads_and_writes_it(a, b, array):
    ab.copy(array[4:], array[:4], stream=a)
    ab.copy(array[1:4], array[:3], stream=a)
    assert races(write, array[:1], b)
    assert races(write, array[7:], b)


def test_a_copy_of_an_array_to_itself_does_nothing(a, b, array):
    write(array, a)
    ab.copy(array, array, stream=b)


def test_a_copy_of_nothing_accesses_nothing(a, b, x, y):
    write(x, a)
    write(y, a)
    ab.copy(x, y, stream=b, count=0)
    ab.copy(x, y, stream=b, dst_offset=8, src_offset=8)


@pytest.mark.numba
def test_a_launch_of_no_indices_accesses_nothing(device):
    @ab.kernel
    def count(i, target):
        target[i] += 1

    (a, b), array = streams(device), ready(device)
    write(array, a)
    ab.launch(count, 0, array, stream=b)


def test_making_an_array_from_another_reads_that_one(a, b, array):
    write(array, a)
    assert races(ab.array, array, stream=b)
    b.wait_stream(a)
    assert (ab.array(array, stream=b).numpy() == 1).all()


def test_making_an_array_writes_to_it(a, b):
    for make in ab.zeros, ab.ones:
        array = make(8, stream=a)
        assert races(write, array, b)


# Many parts


def test_hundreds_of_parts_are_told_apart(device):
    (a, b), array = streams(device), ready(device, 1000)
    for _ in range(2):
        for part in range(0, 1000, 2):
            write(array[part : part + 1], a)
            write(array[part + 1 : part + 2], b)
    assert races(write, array[500:501], b)
    assert races(write, array[501:502], a)


def test_thousands_of_parts_are_told_apart(device):
    (a, b), array = streams(device), ready(device, 2200)
    with ab.testing.Gate(a), ab.testing.Gate(b):
        for _ in range(2):
            for part in range(0, 2200, 2):
                write(array[part : part + 1], a)
                write(array[part + 1 : part + 2], b)
