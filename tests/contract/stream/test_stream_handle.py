"""Handles of streams: wrapping those of other libraries, handing out ours."""

import gc
import weakref

import pytest

import anabranch as ab


class Foreign:
    """A stream of another library: speaks `__cuda_stream__` and gives, or raises, what it was told to."""

    def __init__(self, answer):
        self.answer = answer

    def __cuda_stream__(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


WRAP = {
    "int": lambda stream: ab.Stream.from_external(stream.handle, stream.device),
    "object": lambda stream: ab.Stream.from_external(Foreign((0, stream.handle)), stream.device),
    "stream": lambda stream: ab.Stream.from_external(stream, stream.device),
}
wrap_each_way = pytest.mark.parametrize("wrap", WRAP.values(), ids=WRAP)


def test_a_stream_speaks_the_protocol(stream):
    assert stream.__cuda_stream__() == (0, stream.handle)


@wrap_each_way
def test_two_streams_for_one_handle_are_equal(wrap, stream):
    assert wrap(stream) == stream
    assert hash(wrap(stream)) == hash(stream)
    assert len({stream, wrap(stream), wrap(wrap(stream))}) == 1


def test_streams_of_two_handles_are_not_equal():
    assert ab.Stream() != ab.Stream()
    assert ab.Stream() != "stream"
    assert ab.Stream() != 1


@wrap_each_way
def test_two_streams_for_one_handle_are_one_queue(wrap, stream):
    wrapper = wrap(stream)
    with ab.testing.Gate(stream):
        assert not wrapper.query()
    wrapper.synchronize()
    with ab.testing.Gate(wrapper):
        assert not stream.query()


@wrap_each_way
def test_a_wrapper_tells_what_the_stream_is(wrap, device):
    stream = ab.Stream(priority=-1, non_blocking=False)
    wrapper = wrap(stream)
    assert wrapper.handle == stream.handle
    assert wrapper.device is device
    assert (wrapper.priority, wrapper.non_blocking) == (stream.priority, False)


@pytest.mark.parametrize("default", [ab.legacy_stream, ab.per_thread_stream])
@wrap_each_way
def test_a_default_stream_may_be_wrapped(default, wrap, device):
    wrapper = wrap(default(device))
    assert wrapper == default(device)
    assert hash(wrapper) == hash(default(device))


def test_the_handle_0_of_an_object_is_the_legacy_stream_as_others_name_it(device):
    assert ab.Stream.from_external(Foreign((0, 0)), device) == ab.legacy_stream(device)
    with pytest.raises(ValueError, match="handle"):
        ab.Stream.from_external(0, device)


def test_an_int_handle_belongs_to_the_current_device(device, other_device):
    stream = ab.Stream(other_device)
    with other_device:
        assert ab.Stream.from_external(stream.handle).device is other_device
    assert ab.Stream.from_external(ab.Stream().handle).device is device


def test_from_external_keeps_the_object_alive():
    stream = ab.Stream()
    foreign = Foreign((0, stream.handle))
    alive = weakref.ref(foreign)
    wrapper = ab.Stream.from_external(foreign)
    del foreign
    gc.collect()
    assert alive() is not None
    assert wrapper == stream


@wrap_each_way
@pytest.mark.parametrize("end", [ab.Stream.close, lambda _: None], ids=["closed", "dropped"])
def test_the_end_of_a_wrapper_is_no_end_of_the_stream(wrap, end, stream, other):
    wrapper, another = wrap(stream), wrap(stream)
    end(wrapper)
    del wrapper
    gc.collect()
    assert not stream.closed
    assert not another.closed
    other.wait_stream(another)
    assert stream.submit(int).result(10) == 0
    assert another.submit(int).result(10) == 0
    stream.synchronize()


@wrap_each_way
def test_closing_the_stream_closes_no_wrapper(wrap, stream):
    wrapper = wrap(stream)
    stream.close()
    assert stream.closed
    assert not wrapper.closed
    assert wrapper.submit(int).result(10) == 0
    wrapper.synchronize()


class Silent:
    """Speaks no protocol."""


class NotCallable:
    __cuda_stream__ = "stream"


BAD = {
    "None": None,
    "text": "stream",
    "float": 1.0,
    "no protocol": Silent(),
    "a class": Foreign,
    "not callable": NotCallable(),
    "returns None": Foreign(None),
    "returns a handle": Foreign(2),
    "returns text": Foreign("0, 2"),
    "returns too little": Foreign((0,)),
    "returns too much": Foreign((0, 2, 0)),
    "returns a version that is not known": Foreign((1, 2)),
    "returns a version that is no int": Foreign(("0", 2)),
    "returns a handle that is no int": Foreign((0, "2")),
    "returns no handle": Foreign((0, None)),
    "raises": Foreign(RuntimeError("no stream here")),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_an_object_that_does_not_speak_the_protocol_properly_is_a_type_error(bad, device):
    with pytest.raises(TypeError):
        ab.Stream.from_external(bad, device)
