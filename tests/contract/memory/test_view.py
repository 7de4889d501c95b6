import gc

import numpy as np
import pytest

import anabranch as ab

from ..arrays import values

# Views

INDICES = [
    *(np.s_[...], np.s_[:], np.s_[()], np.s_[0], np.s_[-1], np.s_[1:], np.s_[:-1], np.s_[::-1], np.s_[::2]),
    *(np.s_[3:1], np.s_[-100:100], np.s_[100:], np.s_[::-2], np.s_[2:0:-1], np.s_[1, 2], np.s_[1, 2, 3]),
    *(np.s_[..., 0], np.s_[0, ...], np.s_[1, ..., 2], np.s_[1:, ::2], np.s_[::-1, ..., ::-3], np.s_[-1, :, -1]),
    *(np.s_[:, :, :, ...], np.s_[1, 2, 3, ...], np.s_[np.int64(1)], np.s_[np.uint8(1) :]),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_views_are_those_of_numpy(device, index):
    data = values((3, 4, 5))
    array = ab.array(data, device=device)
    # With an ellipsis, NumPy too gives a view where every dimension is indexed.
    whole = index if isinstance(index, tuple) else (index,)
    expected = data[whole if ... in whole else (*whole, ...)]
    view = array[index]
    assert (view.shape, view.dtype, view.strides) == (expected.shape, expected.dtype, expected.strides)
    assert (view.size, view.nbytes, view.ndim) == (expected.size, expected.nbytes, expected.ndim)
    if view.size:
        assert view.ptr - array.ptr == expected.ctypes.data - data.ctypes.data
    np.testing.assert_array_equal(view.numpy(), expected)


def test_views_of_views_are_those_of_numpy(device):
    data = values((6, 8))
    view = ab.array(data, device=device)[1::2][::-1, 2:][..., ::-3]
    np.testing.assert_array_equal(view.numpy(), data[1::2][::-1, 2:][..., ::-3])


@pytest.mark.parametrize("index", [np.s_[...], np.s_[()]], ids=str)
def test_an_array_of_no_dimensions_has_views(device, index):
    assert ab.full((), 5, device=device)[index].numpy() == 5


@pytest.mark.parametrize(
    "index", [np.s_[:: 10**30], np.s_[:: -(10**30)], np.s_[1 : 10**30 : 10**20], np.s_[2::9]], ids=str
)
def test_a_step_past_the_end_leaves_one_element(device, index):
    data = values(5)
    view = ab.array(data, device=device)[index]
    assert view.shape == (1,)
    np.testing.assert_array_equal(view.numpy(), data[index])


@pytest.mark.parametrize("index", [3, -4, 10**30, (0, 4), (..., 5), (0, 0, 0, 0), (0, 0, 0, ..., 0)], ids=str)
def test_an_index_that_does_not_fit_is_an_index_error(device, index):
    with pytest.raises(IndexError):
        ab.zeros((3, 4, 5), device=device)[index]


@pytest.mark.parametrize("make", [ab.zeros, np.zeros, lambda size, dtype: [0] * size], ids=["array", "numpy", "list"])
@pytest.mark.parametrize("dtype", ["bool", "int64"])
def test_an_index_of_elements_says_what_selects_them(device, make, dtype):
    with pytest.raises(TypeError, match=r"ab\.where chooses by a condition"):
        ab.zeros(1, device=device)[make(1, dtype=dtype)]


def test_an_array_of_indices_is_refused_by_its_type(device):
    with pytest.raises(TypeError, match=r"integers, slices, \.\.\. and None, not ndarray"):
        ab.zeros(3, device=device)[np.array([True, False, True])]


def test_rows_are_those_of_numpy(device):
    data = values((3, 2))
    array = ab.array(data, device=device)
    for row, expected in zip(array, data, strict=True):
        np.testing.assert_array_equal(row.numpy(), expected)
    with pytest.raises(TypeError, match="no dimension"):
        iter(ab.zeros((), device=device))


@pytest.mark.parametrize("index", [1.0, "1", (..., ...), [0, 1], np.s_[1.5:]], ids=str)
def test_an_index_other_than_integers_slices_and_one_ellipsis_is_refused(device, index):
    with pytest.raises((IndexError, TypeError)):
        ab.zeros((3, 4, 5), device=device)[index]


def test_a_slice_of_step_zero_is_refused(device):
    with pytest.raises(ValueError, match="zero"):
        ab.zeros(3, device=device)[::0]


def test_a_view_shares_the_memory_of_its_base(device):
    array = ab.zeros((3, 4), device=device)
    ab.fill(array[1, ::2], 7)
    np.testing.assert_array_equal(array.numpy(), [[0] * 4, [7, 0, 7, 0], [0] * 4])


def test_a_view_is_made_without_waiting(stream):
    with ab.testing.Gate(stream):
        view = ab.full((3, 4), 2, stream=stream)[1:, 0]
        assert not stream.query()
    np.testing.assert_array_equal(view.numpy(), [2, 2])


def test_a_view_is_where_its_base_is(device):
    array = ab.zeros(4, device=device, pinned=device.kind == "cpu")
    assert array[1:].device is device
    assert array[1:].pinned == array.pinned


def test_a_view_keeps_the_memory_when_the_base_is_closed(device):
    array = ab.array(values(1000), device=device)
    view = array[10:20]
    array.close()
    ab.synchronize(device)
    other = ab.zeros(1000, device=device)
    np.testing.assert_array_equal(view.numpy(), values(1000)[10:20])
    np.testing.assert_array_equal(other.numpy(), np.zeros(1000))


def test_a_view_keeps_the_memory_when_the_base_is_dropped(device):
    view = ab.array(values(1000), device=device)[10:20]
    gc.collect()
    other = ab.zeros(1000, device=device)
    np.testing.assert_array_equal(view.numpy(), values(1000)[10:20])
    np.testing.assert_array_equal(other.numpy(), np.zeros(1000))


def test_closing_a_view_leaves_its_base_open(device):
    array = ab.array(values(4), device=device)
    array[1:].close()
    np.testing.assert_array_equal(array.numpy(), values(4))
