import numpy as np
import pytest

import anabranch as ab

from ..arrays import values, zeros

# What does not fit


@pytest.mark.parametrize(
    ("dst_shape", "src_shape"),
    [((3,), (4,)), ((6,), (2, 3)), ((2, 3), (3, 2)), ((1, 3), (3,)), ((3, 3), (3,)), ((3,), (1,)), ((), (1,))],
    ids=str,
)
def test_shapes_that_differ_are_refused_by_name(device, dst_shape, src_shape):
    dst, src = ab.zeros(dst_shape, device=device), ab.ones(src_shape, device=device)
    with pytest.raises(ValueError, match="shape"):
        ab.copy(dst, src)
    assert not dst.numpy().any()


@pytest.mark.parametrize(("to", "of"), [("float32", "float64"), ("int32", "uint32"), ("int32", "float32")])
@pytest.mark.parametrize("part", [{}, {"count": 2}])
def test_dtypes_that_differ_are_refused_by_name(device, to, of, part):
    dst, src = ab.zeros(4, to, device=device), ab.ones(4, of, device=device)
    with pytest.raises(ValueError, match=rf"{to}(.|\n)*{of}|{of}(.|\n)*{to}"):
        ab.copy(dst, src, **part)
    assert not dst.numpy().any()


@pytest.mark.parametrize(
    "part",
    [
        {"dst_offset": -1, "count": 1},
        {"src_offset": -1, "count": 1},
        {"count": -1},
        {"count": 7},
        {"dst_offset": 3, "count": 6},
        {"src_offset": 2, "count": 5},
        {"dst_offset": 9, "count": 1},
        {"src_offset": 7, "count": 1},
        {"dst_offset": 9},
        {"src_offset": 7},
        {"dst_offset": 2**62, "count": 2**62},
        {"src_offset": 2**63 - 1, "count": 1},
    ],
    ids=str,
)
def test_offsets_and_counts_out_of_range_are_refused_by_value(device, part, stream):
    dst, src = zeros(8, device=device), ab.array(values(6), device=device)
    with pytest.raises(ValueError, match="|".join(map(str, part.values()))):
        ab.copy(dst, src, stream=stream, **part)
    assert stream.query()
    assert not dst.numpy().any()


@pytest.mark.parametrize("part", [{"dst_offset": 1}, {"src_offset": 1}, {"count": 5}], ids=str)
def test_the_range_of_a_view_is_its_own(device, part):
    array = ab.array(values(20), device=device)
    with pytest.raises(ValueError, match=r"offset|count"):
        ab.copy(array[:4], array[10:14], **({"count": 4} | part))
    np.testing.assert_array_equal(array.numpy(), values(20))


@pytest.mark.parametrize("dst", [None, 1, [1, 2, 3]], ids=repr)
def test_only_arrays_are_copied_to(device, dst):
    with pytest.raises(TypeError):
        ab.copy(dst, ab.zeros(3, device=device))


def test_copy_to_read_only_memory_is_refused():
    data = values(4)
    data.flags.writeable = False
    dst = ab.asarray(data)
    with pytest.raises(ValueError, match="read-only"):
        ab.copy(dst, ab.zeros(4, device="cpu"))
    with pytest.raises(ValueError, match="read-only"):
        ab.copy(dst[1:], ab.zeros(3, device="cpu"))
    np.testing.assert_array_equal(data, values(4))


def test_copy_from_read_only_memory_is_fine(device):
    data = values(4)
    data.flags.writeable = False
    dst = zeros(4, device=device)
    ab.copy(dst, ab.asarray(data))
    np.testing.assert_array_equal(dst.numpy(), values(4))


# Arguments


class Closer:
    """A number that closes something while it is converted."""

    def __init__(self, value, what):
        self.value, self.what = value, what

    def __index__(self):
        self.what.close()
        return self.value


@pytest.mark.parametrize("name", ["dst_offset", "src_offset", "count"])
@pytest.mark.parametrize("closed", ["dst", "src", "stream"])
def test_a_number_that_closes_what_is_copied_is_an_error(device, name, closed):
    given = {"dst": zeros(4, device=device), "src": ab.ones(4, device=device), "stream": ab.Stream(device)}
    with pytest.raises(ab.ClosedError):
        ab.copy(**given, **{name: Closer(1, given[closed])})
    if closed != "dst":
        assert not given["dst"].numpy().any()


def test_copy_takes_its_arguments_by_name_too(device):
    dst = zeros(3, device=device)
    ab.copy(src=ab.array(values(3), device=device), dst=dst, stream=None, count=None)
    np.testing.assert_array_equal(dst.numpy(), values(3))


@pytest.mark.parametrize(
    ("given", "named", "told"),
    [
        ((), {}, "dst and src"),
        (("dst",), {}, "dst and src"),
        (("dst", "src", "stream"), {}, "by name; 3 were given"),
        (("dst", "src"), {"dst": "dst"}, "dst twice"),
        (("dst", "src"), {"size": "src"}, "unexpected argument 'size'"),
    ],
)
def test_arguments_that_copy_does_not_take_are_named(device, given, named, told):
    known = {"dst": zeros(3, device=device), "src": ab.ones(3, device=device), "stream": ab.Stream(device)}
    with pytest.raises(TypeError, match=told):
        ab.copy(*(known[each] for each in given), **{name: known[each] for name, each in named.items()})
    assert not known["dst"].numpy().any()
