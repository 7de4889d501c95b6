"""Programs of a few streams with and without the order that they need, under `check`.

The situations are those that PyTorch's stream sanitizer is tested with.
"""

from itertools import pairwise

import pytest

import anabranch as ab

from ..accesses import each_order, each_order_by_streams, each_pair, each_way, read, ready, streams, write


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


# Two streams


@each_way
def test_reads_need_no_order(device, way):
    array = ready(device)
    for stream in streams(device, 5):
        way.read(array, stream)


@each_way
@each_pair
def test_accesses_without_order_race(device, way, kind, first, second):
    (a, b), array = streams(device), ready(device)
    getattr(way, first)(array, a)
    with pytest.raises(ab.RaceError) as caught:
        getattr(way, second)(array, b)
    assert caught.value.kind == ("RAW" if kind == "WAW" and way.write_reads else kind)
    assert caught.value.first.stream == a
    assert caught.value.second.stream == b


@each_order
@each_way
@each_pair
def test_accesses_in_order_pass(device, order, way, kind, first, second):
    (a, b), array = streams(device), ready(device)
    getattr(way, first)(array, a)
    order(a, b)
    getattr(way, second)(array, b)


@each_order
@each_pair
def test_order_made_before_the_first_access_is_too_early(device, order, kind, first, second):
    (a, b), array = streams(device), ready(device)
    order(a, b)
    {"read": read, "write": write}[first](array, a)
    with pytest.raises(ab.RaceError):
        {"read": read, "write": write}[second](array, b)


@each_order_by_streams
def test_order_the_other_way_round_does_not_help(device, order):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    order(b, a)
    with pytest.raises(ab.RaceError):
        write(array, b)


@each_order_by_streams
def test_order_helps_no_third_stream(device, order):
    (a, b, c), array = streams(device, 3), ready(device)
    write(array, a)
    order(a, b)
    with pytest.raises(ab.RaceError):
        write(array, c)


@each_way
def test_one_stream_needs_no_order(device, way):
    stream, array = ab.Stream(device), ready(device)
    for _ in range(3):
        way.write(array, stream)
        way.read(array, stream)


@each_way
def test_different_arrays_need_no_order(device, way):
    for stream in streams(device, 3):
        array = ready(device)
        way.write(array, stream)


def test_work_without_arrays_races_with_nothing(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    b.submit(int)
    b.record_event()
    write(array, a)


def test_what_comes_after_the_first_access_does_not_matter(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    b.wait_stream(a)
    write(ready(device), a)
    write(array, b)


# Readers and writers


def test_every_reader_is_compared_with_the_last_writer(device):
    (a, b, c), array = streams(device, 3), ready(device)
    write(array, a)
    b.wait_stream(a)
    read(array, b)
    with pytest.raises(ab.RaceError) as caught:
        read(array, c)
    assert (caught.value.kind, caught.value.first.stream) == ("RAW", a)


def test_two_branches_may_read_but_neither_may_write(device):
    (a, b, c), array = streams(device, 3), ready(device)
    write(array, a)
    event = a.record_event()
    for branch in b, c:
        branch.wait_event(event)
        read(array, branch)
    with pytest.raises(ab.RaceError) as caught:
        write(array, b)
    assert (caught.value.kind, caught.value.first.stream) == ("WAR", c)
    b.wait_stream(c)
    write(array, b)


@pytest.mark.parametrize("missing", [None, 0, 4, 9])
def test_a_writer_comes_after_all_readers(device, missing):
    (writer, *readers), array = streams(device, 11), ready(device)
    events = []
    for reader in readers:
        read(array, reader)
        events.append(reader.record_event())
    for number, event in enumerate(events):
        if number != missing:
            writer.wait_event(event)
    if missing is None:
        write(array, writer)
        return
    with pytest.raises(ab.RaceError) as caught:
        write(array, writer)
    assert caught.value.first.stream == readers[missing]


def test_who_comes_after_the_last_writer_comes_after_those_before(device):
    (a, b, c), array = streams(device, 3), ready(device)
    write(array, a)
    b.wait_stream(a)
    write(array, b)
    c.wait_stream(b)
    read(array, c)


def test_a_reader_of_one_part_brings_no_order_to_another(device):
    (a, b, c), array = streams(device, 3), ready(device)
    write(array, a)
    b.wait_stream(a)
    read(array[:4], b)
    write(array[4:], a)
    c.wait_stream(b)
    write(array[:4], c)
    with pytest.raises(ab.RaceError) as caught:
        write(array[4:], c)
    assert caught.value.first.stream == a


# Chains and merges


@pytest.mark.parametrize("broken", [None, 0, 5, 9])
def test_order_goes_through_a_chain_of_streams(device, broken):
    chain, array = streams(device, 11), ready(device)
    read(array, chain[0])
    for number, (before, after) in enumerate(pairwise(chain)):
        if number != broken:
            after.wait_event(before.record_event())
    if broken is None:
        write(array, chain[-1])
        return
    with pytest.raises(ab.RaceError) as caught:
        write(array, chain[-1])
    assert caught.value.first.stream == chain[0]


def test_a_chain_made_in_the_wrong_sequence_is_none(device):
    """The last link was there before the first, so nothing came through it."""
    (a, b, c), array = streams(device, 3), ready(device)
    write(array, a)
    c.wait_stream(b)
    b.wait_stream(a)
    with pytest.raises(ab.RaceError):
        read(array, c)


def test_what_two_streams_know_adds_up(device):
    (a, b), x, y = streams(device), ready(device), ready(device)
    write(x, a)
    write(y, b)
    of_a, of_b = a.record_event(), b.record_event()
    write(x, a)
    write(y, b)
    b.wait_event(of_a)
    a.wait_event(of_b)
    a.wait_event(b.record_event())
    # b's first wait covered the earlier write to x; the later one is a's own.
    write(x, a)
    write(y, a)


def test_an_older_event_takes_nothing_back(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    older = a.record_event()
    write(array, a)
    b.wait_stream(a)
    b.wait_event(older)
    write(array, b)


def test_a_diamond_is_in_order(device):
    (top, left, right, bottom), array = streams(device, 4), ready(device)
    write(array, top)
    for side, part in (left, array[:4]), (right, array[4:]):
        side.wait_stream(top)
        write(part, side)
        bottom.wait_stream(side)
    read(array, bottom)


def test_waiting_for_oneself_is_no_order_with_others(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    b.wait_stream(b)
    b.wait_event(b.record_event())
    with pytest.raises(ab.RaceError):
        write(array, b)


@pytest.mark.filterwarnings("ignore:.*was never recorded")
def test_two_buffers_that_take_turns_need_an_order_back(device):
    (producer, consumer), buffers = streams(device), [ready(device), ready(device)]
    read_by_now = [ab.Event(device=device), ab.Event(device=device)]
    for turn in range(6):
        producer.wait_event(read_by_now[turn % 2])
        write(buffers[turn % 2], producer)
        consumer.wait_stream(producer)
        read(buffers[turn % 2], consumer)
        read_by_now[turn % 2].record(consumer)
    with pytest.raises(ab.RaceError) as caught:
        write(buffers[0], producer)
    assert (caught.value.kind, caught.value.first.stream) == ("WAR", consumer)
