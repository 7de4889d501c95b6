"""`testing.Gate` holds a stream."""

import pytest

import anabranch as ab


def test_a_gate_holds_its_stream_until_it_is_opened(enqueue, stream):
    gate = ab.testing.Gate(stream)
    enqueue(stream)
    assert not stream.query()
    assert gate.open() is None
    stream.synchronize()


def test_a_gate_opens_at_the_end_of_a_with(stream):
    with ab.testing.Gate(stream):
        work = stream.submit(int)
        assert not work.done()
    assert work.result(10) == 0


def test_a_gate_opens_when_the_block_raises(stream):
    with pytest.raises(ZeroDivisionError), ab.testing.Gate(stream):
        1 / 0  # noqa: B018
    stream.synchronize()


def test_opening_again_does_nothing(stream):
    gate = ab.testing.Gate(stream)
    gate.open()
    gate.open()
    with gate:
        pass
    gate.open()
    with ab.testing.Gate(stream):
        gate.open()
        assert not stream.query()
    stream.synchronize()


def test_any_thread_may_open(in_thread, stream):
    gate = ab.testing.Gate(stream)
    in_thread(gate.open).result(10)
    stream.synchronize()


def test_a_gate_holds_from_now(stream):
    before = stream.submit(int)
    with ab.testing.Gate(stream):
        assert before.result(10) == 0
        assert not stream.query()


def test_a_gate_may_be_opened_before_its_stream_comes_to_it(stream):
    first, second = ab.testing.Gate(stream), ab.testing.Gate(stream)
    second.open()
    assert not stream.query()
    first.open()
    stream.synchronize()


def test_every_gate_of_a_stream_holds_it(stream):
    gates = [ab.testing.Gate(stream) for _ in range(3)]
    for gate in gates:
        assert not stream.query()
        gate.open()
    stream.synchronize()


def test_a_gate_holds_nothing_but_its_stream(enqueue, other_device, stream):
    with ab.testing.Gate(stream):
        array = ab.zeros(1000)
        ab.empty(1000, stream=stream)
        assert array.numpy().sum() == 0
        for other in [ab.Stream(), ab.Stream(priority=-1), ab.Stream(other_device)]:
            enqueue(other)
            other.synchronize()
        assert not stream.query()


@pytest.mark.many_streams
def test_many_streams_may_be_held_while_others_work(enqueue):
    gates = [ab.testing.Gate(ab.Stream()) for _ in range(500)]
    stream = ab.Stream()
    enqueue(stream)
    stream.synchronize()
    for gate in gates:
        gate.open()


def test_a_gate_holds_no_memory_that_is_freed_elsewhere():
    held, stream = ab.Stream(), ab.Stream()
    with ab.testing.Gate(held):
        for _ in range(100):
            ab.zeros(1 << 20, dtype="uint8", stream=stream)
        stream.synchronize()


@pytest.mark.parametrize("wrong", [None, 1, "stream"])
def test_a_gate_of_something_else_is_a_type_error(wrong):
    with pytest.raises(TypeError):
        ab.testing.Gate(wrong)
