"""Names that arrays of other libraries have: asking for one says what stands for it."""

import re

import pytest

import anabranch as ab
from anabranch._memory.absent import absent


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


def test_absent_names_are_not_there():
    x = ab.ones(3, device="cpu")
    for name in absent:
        assert not hasattr(x, name)
        assert not hasattr(ab.Array, name)
        assert name not in dir(x)
    assert {"sum", "shape", "__dlpack__"} <= set(dir(x))
    with pytest.raises(AttributeError, match=r"no attribute 'other'$"):
        _ = x.other


def test_what_stands_for_an_absent_name_exists():
    x = ab.zeros(3, device="cpu")
    for name, each in absent.items():
        for said in re.findall(r"\bx\.(\w+)", repr(each)):
            assert hasattr(x, said), (name, said)
        for said in re.findall(r"\bab\.(\w+)", repr(each)):
            assert hasattr(ab, said), (name, said)
