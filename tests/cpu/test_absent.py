"""Names that classes of other libraries have: asking for one says what stands for it."""

import re

import pytest

import anabranch as ab
from anabranch._memory.absent import INSTEAD as OF_ARRAYS
from anabranch._stream.absent import OF_EVENTS, OF_STREAMS
from anabranch.distributed._absent import INSTEAD as OF_COMMUNICATORS

# A class, or one of its objects where it takes no engine to make one; the names that it lacks; and how the sentences
# call an object.
CLASSES = {
    "Array": (lambda: ab.zeros(3, device="cpu"), OF_ARRAYS, "x"),
    "Stream": (lambda: ab.Stream("cpu"), OF_STREAMS, "stream"),
    "Event": (lambda: ab.Event("cpu"), OF_EVENTS, "event"),
    "Communicator": (lambda: ab.distributed.Communicator, OF_COMMUNICATORS, "comm"),
}
each_class = pytest.mark.parametrize("name", CLASSES)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("fill", "x[...] = value"),
        ("zero_", "x[...] = 0"),
        ("get", "x.numpy()"),
        ("cpu", 'x.to("cpu")'),
        ("cuda", 'x.to("cuda")'),
        ("detach", "no gradients"),
        ("dot", "(x * y).sum()"),
        ("clone", "x.copy()"),
        ("numel", "x.size"),
        ("data_ptr", "x.ptr"),
        ("record_stream", "x.mark"),
    ],
)
def test_a_name_of_another_library_says_what_stands_for_it(name, instead):
    x = ab.zeros(3, device="cpu")
    with pytest.raises(AttributeError, match=rf"'Array' object has no attribute '{name}'; .*{re.escape(instead)}"):
        getattr(x, name)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; "):
        setattr(x, name, 1)


@each_class
def test_absent_names_are_not_there(name):
    make, absent, _ = CLASSES[name]
    one = make()
    for each in absent:
        assert not hasattr(one, each)
        assert not hasattr(type(one), each)
        assert isinstance(one, type) or each not in dir(one)
    assert {"close", "device", "__class__", "__dir__"} <= set(dir(one))
    with pytest.raises(AttributeError, match=r"no attribute 'other'$"):
        _ = one.other


@each_class
def test_what_stands_for_an_absent_name_exists(name):
    make, absent, called = CLASSES[name]
    one = make()
    for each, sentence in absent.items():
        with pytest.raises(AttributeError, match=f"^{name!r} object has no attribute {each!r}; {re.escape(sentence)}$"):
            getattr(one, each)
        for said in re.findall(rf"\b{called}\.(\w+)", sentence):
            assert hasattr(one, said), (each, said)
        for said in re.findall(r"\bab\.(\w+)", sentence):
            assert hasattr(ab, said), (each, said)
