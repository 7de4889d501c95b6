"""Names that classes of other libraries have: asking for one says what stands for it."""

import re

import numpy as np
import pytest

import anabranch as ab
from anabranch._core.elsewhere import _INSTEAD as OF_PACKAGE
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
        ("add_", "x += y"),
        ("exp", "math.exp(x[i])"),
        ("masked_fill", "ab.where(mask, value, x)"),
        ("to_device", "x.to(device)"),
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
        names_exist(each, sentence, {called: one})


def names_exist(name, sentence, owners):
    """Check the attributes that the sentence for a name mentions; `owners` has what the sentence calls an object."""
    for called, owner in {**owners, "ab": ab, "np": np}.items():
        for said in re.findall(rf"\b{called}\.(\w+)", sentence):
            assert hasattr(owner, said), (name, said)


def test_what_stands_for_a_name_of_another_package_exists():
    for each, sentence in OF_PACKAGE.items():
        with pytest.raises(AttributeError, match=f"'anabranch' has no attribute {each!r}; {re.escape(sentence)}$"):
            getattr(ab, each)
        names_exist(each, sentence, {"x": ab.Array})


@pytest.mark.numba
@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("abs", "abs(x)", np.abs),
        ("argsort", "np.argsort(x.numpy())", np.argsort),
        ("cumsum", "np.cumsum(x.numpy())", np.cumsum),
        ("flat", "x.ravel()", np.ravel),
        ("flip", "x[::-1]", np.flip),
        ("nonzero", "np.nonzero(x.numpy())", np.nonzero),
        ("sort", "np.sort(x.numpy())", np.sort),
        ("sqrt", "x ** 0.5", np.sqrt),
        ("std", "((x - x.mean()) ** 2).mean() ** 0.5", np.std),
        ("take", "np.take(x.numpy(), indices)", lambda values: np.take(values, [2, 0])),
        ("var", "((x - x.mean()) ** 2).mean()", np.var),
    ],
)
def test_what_stands_for_a_function_computes_it(name, written, expected):
    values = np.array([4.0, 0.25, 9.0, 0.0])
    assert written in OF_ARRAYS[name]
    result = eval(written, {"np": np, "x": ab.array(values, device="cpu"), "indices": [2, 0]})
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected(values)))


@pytest.mark.parametrize(
    ("name", "written", "shape", "expected"),
    [
        ("roll", "y[:n], y[n:] = x[-n:], x[:-n]", 3, [3, 1, 2]),
        ("repeat", "y[...] = x[..., None]", (3, 2), [1, 1, 2, 2, 3, 3]),
        ("repeat", "y[...] = x", (2, 3), [1, 2, 3, 1, 2, 3]),
        ("expand", "y[...] = x", (2, 3), [1, 2, 3, 1, 2, 3]),
    ],
)
def test_what_stands_for_a_copy_makes_it(name, written, shape, expected):
    x, y = ab.array([1, 2, 3], device="cpu"), ab.empty(shape, "int64", device="cpu")
    assert written in OF_ARRAYS[name]
    exec(written, {"x": x, "y": y, "n": 1})
    assert y.ravel().tolist() == expected
