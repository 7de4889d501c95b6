"""Views of all elements: in another order, shape or dtype."""

import itertools

import numpy as np
import pytest

import anabranch as ab

from ..arrays import values


def same(view, expected):
    np.testing.assert_array_equal(view.numpy(), expected)
    assert (view.shape, view.dtype) == (expected.shape, expected.dtype)


BASES = {
    "a row": (np.s_[:], (12,)),
    "a plane": (np.s_[:], (3, 4)),
    "a box": (np.s_[:], (2, 3, 4)),
    "every other row": (np.s_[::2], (6, 4)),
    "a column": (np.s_[:, 1], (4, 3)),
    "backwards": (np.s_[::-1], (12,)),
    "one": (np.s_[:], (1, 1)),
    "no dimension": (np.s_[...], ()),
    "none": (np.s_[:0], (3, 4)),
}
each_base = pytest.mark.parametrize(("part", "shape"), BASES.values(), ids=BASES)


@each_base
def test_the_transpose_is_numpys(device, part, shape):
    base, array = values(shape), ab.array(values(shape), device=device)
    same(array[part].T, base[part].T)
    same(array[part].transpose(), base[part].transpose())
    same(array[part].transpose(None), base[part].transpose(None))


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))), ids=str)
def test_axes_are_given_in_any_order_and_way(device, axes):
    base, array = values((2, 3, 4)), ab.array(values((2, 3, 4)), device=device)
    same(array.transpose(*axes), base.transpose(axes))
    same(array.transpose(axes), base.transpose(axes))
    same(array.transpose([each - 3 for each in axes]), base.transpose(axes))


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2), (-3, 0)], ids=str)
def test_axes_that_are_not_each_dimension_once_are_refused(device, axes):
    with pytest.raises(ValueError, match=r"axes|axis"):
        ab.zeros((2, 3), device=device).transpose(*axes)


def test_an_axis_that_is_no_int_is_refused(device):
    with pytest.raises(TypeError, match="float"):
        ab.zeros((2, 3), device=device).transpose(0.0, 1)


SHAPES = [(12,), (3, 4), (4, 3), (2, 6), (2, 3, 2), (1, 12, 1), (-1,), (3, -1), (-1, 2, 2), (2, 1, 6)]


@pytest.mark.parametrize("new", SHAPES, ids=str)
@each_base
def test_a_new_shape_is_numpys(device, part, shape, new):
    base, array = values(shape)[part], ab.array(values(shape), device=device)[part]
    try:
        expected = base.reshape(new)
    except ValueError:
        expected = None
    if expected is None or (base.size and not np.shares_memory(base, expected)):  # NumPy copies
        with pytest.raises(ValueError, match="shape"):
            array.reshape(new)
        return
    same(array.reshape(new), expected)
    same(array.reshape(*new), expected)


def test_a_shape_that_takes_a_copy_says_so(device):
    array = ab.array(values((3, 4)), device=device).T
    with pytest.raises(ValueError, match=r"copy it first, with contiguous\(\)"):
        array.reshape(12)
    with pytest.raises(ValueError, match="copy it first"):
        array.ravel()
    same(array.contiguous().reshape(12), values((3, 4)).T.reshape(12))


@pytest.mark.parametrize("shape", [(5,), (-1, 5), (-1, -1), (0, -1), (3, 5), (-2, 6)], ids=str)
def test_a_shape_of_another_size_is_refused(device, shape):
    with pytest.raises(ValueError, match=r"shape|size"):
        ab.zeros(12, device=device).reshape(shape)


def test_a_shape_that_is_no_int_is_refused(device):
    with pytest.raises(TypeError, match="int"):
        ab.zeros(12, device=device).reshape(3.0, -1)


@pytest.mark.parametrize("name", ["a row", "a box", "backwards", "a column", "one", "no dimension", "none"])
def test_ravel_is_numpys(device, name):
    part, shape = BASES[name]
    same(ab.array(values(shape), device=device)[part].ravel(), values(shape)[part].ravel())


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()], ids=str)
def test_squeeze_is_numpys(device, axis):
    base, array = values((1, 3, 1)), ab.array(values((1, 3, 1)), device=device)
    same(array.squeeze(axis), base.squeeze(axis))


@pytest.mark.parametrize("axis", [1, 3, -4])
def test_a_dimension_of_more_than_one_is_not_squeezed(device, axis):
    with pytest.raises(ValueError, match="axis"):
        ab.zeros((1, 3, 1), device=device).squeeze(axis)


@pytest.mark.parametrize("key", [None, np.s_[..., None], np.s_[None, :, None], np.s_[0, None], np.s_[:, None, ::-2]])
def test_none_adds_a_dimension(device, key):
    base, array = values((3, 4)), ab.array(values((3, 4)), device=device)
    same(array[key], base[key])
    assert array[key].reshape(array[key].shape).shape == base[key].shape


def test_no_more_dimensions_than_an_array_has_are_added(device):
    with pytest.raises(IndexError, match="16 dimensions"):
        ab.zeros(3, device=device)[(None,) * 16]


VIEWS = [
    ("float32", "int32", np.s_[:]),
    ("float32", "uint8", np.s_[:]),
    ("float32", "float64", np.s_[:]),
    ("complex64", "float32", np.s_[:]),
    ("complex64", "float32", np.s_[::2]),
    ("int16", "complex128", np.s_[:]),
    ("float32", "int32", np.s_[:, ::2]),
]


@pytest.mark.parametrize(("of", "to", "part"), VIEWS)
def test_a_view_as_another_dtype_is_numpys(device, of, to, part):
    base, array = values((4, 8), of)[part], ab.array(values((4, 8), of), device=device)[part]
    view, expected = array.view(to), base.view(to)
    assert (view.shape, view.strides, view.dtype) == (expected.shape, expected.strides, expected.dtype)
    assert view.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("shape", "part", "to"),
    [
        ((), np.s_[...], "float64"),
        ((4,), np.s_[::2], "float64"),
        ((3,), np.s_[:], "float64"),
        ((4,), np.s_[1:3], "float64"),
    ],
)
def test_a_view_as_another_dtype_is_refused_where_bytes_do_not_fit(device, shape, part, to):
    with pytest.raises(ValueError, match="float64"):
        ab.zeros(shape, device=device)[part].view(to)


def test_what_is_written_through_a_view_is_in_the_array(device):
    array = ab.zeros((2, 3), device=device)
    array.T[0] = 1
    array.reshape(3, 2)[2, 1] = 2
    array.ravel()[2] = 3
    array.view("int32")[1, 1] = 0x40800000
    np.testing.assert_array_equal(array.numpy(), [[1, 0, 3], [1, 4, 2]])


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a.T,
        lambda a: a.transpose(),
        lambda a: a.reshape(-1),
        lambda a: a.ravel(),
        lambda a: a.squeeze(),
        lambda a: a.view("int32"),
    ],
)
def test_a_closed_array_has_no_views(device, use):
    array = ab.zeros(3, device=device)
    array.close()
    with pytest.raises(ab.ClosedError):
        use(array)
