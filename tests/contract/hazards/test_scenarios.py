"""Programs of a few streams with and without the order that they need, under `check`.

The situations are those that PyTorch's stream sanitizer is tested with.
"""

from itertools import pairwise

import pytest

import anabranch as ab

from ..accesses import each_order, each_order_by_streams, each_pair, each_way, read, ready, streams, write
from ..programs import Program, each_program


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


# Two streams


@each_way
def test_reads_need_no_order(device, way, array):
    for stream in streams(device, 5):
        way.read(array, stream)


@each_way
@each_pair
def test_accesses_without_order_race(way, kind, first, second, a, b, array):
    getattr(way, first)(array, a)
    with pytest.raises(ab.RaceError) as caught:
        getattr(way, second)(array, b)
    assert caught.value.kind == ("RAW" if kind == "WAW" and way.write_reads else kind)
    assert caught.value.first.stream == a
    assert caught.value.second.stream == b


@each_order
@each_way
@each_pair
def test_accesses_in_order_pass(order, way, kind, first, second, a, b, array):
    getattr(way, first)(array, a)
    order(a, b)
    getattr(way, second)(array, b)


@each_order
@each_pair
def test_order_made_before_the_first_access_is_too_early(order, kind, first, second, a, b, array):
    order(a, b)
    {"read": read, "write": write}[first](array, a)
    with pytest.raises(ab.RaceError):
        {"read": read, "write": write}[second](array, b)


@each_order_by_streams
def test_order_the_other_way_round_does_not_help(order, a, b, array):
    write(array, a)
    order(b, a)
    with pytest.raises(ab.RaceError):
        write(array, b)


@each_order_by_streams
def test_order_helps_no_third_stream(order, a, b, c, array):
    write(array, a)
    order(a, b)
    with pytest.raises(ab.RaceError):
        write(array, c)


@each_way
def test_one_stream_needs_no_order(way, stream, array):
    for _ in range(3):
        way.write(array, stream)
        way.read(array, stream)


@each_way
def test_different_arrays_need_no_order(device, way):
    for stream in streams(device, 3):
        array = ready(device)
        way.write(array, stream)


PROGRAMS = {
    "work without arrays races with nothing": "a writes x, b works, b marks e, a writes x",
    "what comes after the first access does not matter": "a writes x, b after a, a writes y, b writes x",
    "every reader is compared with the last writer": "a writes x, b after a, b reads x, c reads x !RAW a",
    "two branches may read but neither may write": (
        "a writes x, a marks e, b after e, b reads x, c after e, c reads x, b writes x !WAR c, b after c, b writes x"
    ),
    "who comes after the last writer comes after those before": (
        "a writes x, b after a, b writes x, c after b, c reads x"
    ),
    "a reader of one part brings no order to another": (
        "a writes x, b after a, b reads x[:4], a writes x[4:], c after b, c writes x[:4], c writes x[4:] !WAW a"
    ),
    "a whole covers its parts": "a writes x[:4], a writes x[4:], b after a, b writes x, c after b, c writes x[2:6]",
    "a part does not cover the whole": (
        "a writes x, a marks e, b after e, b writes x[:4], c after b, a writes x[4:], c writes x[4:] !, c writes x[:4]"
    ),
    # The last link was there before the first, so nothing came through it.
    "a chain made in the wrong sequence is none": "a writes x, c after b, b after a, c reads x !",
    # b's first wait covered the earlier write to x; the later one is a's own.
    "what two streams know adds up": (
        "a writes x, b writes y, a marks e, b marks f, a writes x, b writes y,"
        " b after e, a after f, b marks g, a after g, a writes x, a writes y"
    ),
    "a diamond is in order": (
        "a writes x, b after a, b writes x[:4], d after b, c after a, c writes x[4:], d after c, d reads x"
    ),
    "waiting for oneself is no order with others": "a writes x, b after b, b marks e, b after e, b writes x !",
    "an older event takes nothing back": "a writes x, a marks e, a writes x, b after a, b after e, b writes x",
    "an event covers what was there at its record": "a reads x, a marks e, a reads x, b after e, b writes x !",
    "many streams may wait for one event": (
        "a writes x, a marks e, b after e, b reads x, c after e, c reads x, d after e, d reads x"
    ),
    "recording again takes back no earlier wait": "a writes x, a marks e, b after e, c marks e, b writes x",
    "a wait does not follow a later record": "a marks e, b after e, a writes x, a marks e, b writes x !",
    "a wait outlives its event": "a writes x, a marks e, b after e, e closes, b writes x",
    "order outlives the stream it came through": "a writes x, c after a, c marks e, c closes, b after e, b writes x",
    "work of a closed stream races too": "a writes x, a closes, b writes x !",
    "an event that the host waits for covers what was there at its record": (
        "a writes x, a marks e, a writes y, a completes, host after e, b writes x, b writes y !"
    ),
    "what the host has waited for is known to every stream from then on": (
        "a writes x, host after a, b marks e, c after e, c writes x"
    ),
}


@each_program(PROGRAMS)
def test_a_program_races_where_it_says(device, program):
    Program(device).run(program)


def test_a_chain_may_go_through_another_device(device, other_device):
    Program(device, other_device).run("a writes x, other after a, other marks e, b after e, b writes x")


# Readers and writers


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
