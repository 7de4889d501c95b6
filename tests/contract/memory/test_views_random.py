"""Random views, fills and copies, with NumPy as the model of what they mean."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import anabranch as ab

from ..arrays import DTYPES, values

# The device is the same for all examples of a test, which is what the health check doubts.
examples = settings(suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture])

shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@st.composite
def indices(draw, shape):
    return draw(npst.basic_indices(shape, allow_newaxis=False))


def view_of(data, index):
    """Index as NumPy does, but give a view also where that gives a scalar."""
    index = index if isinstance(index, tuple) else (index,)
    return data[index if ... in index else (*index, ...)]


@st.composite
def views(draw, pair):
    """Draw the same view of an array and of its model."""
    array, model = pair
    for _ in range(draw(st.integers(0, 3))):
        index = draw(indices(model.shape))
        array, model = array[index], view_of(model, index)
    return array, model


@st.composite
def pairs(draw, device, dtype):
    model = values(draw(shapes), dtype)
    return ab.array(model, device=device), model


@examples
@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_any_view_is_that_of_numpy(device, data, dtype):
    base, model_base = data.draw(pairs(device, dtype))
    view, model = data.draw(views((base, model_base)))
    assert (view.shape, view.dtype, view.size, view.nbytes) == (model.shape, model.dtype, model.size, model.nbytes)
    if model.size:
        assert view.ptr - base.ptr == model.ctypes.data - model_base.ctypes.data
        steps = [
            (ours, theirs) for ours, theirs, n in zip(view.strides, model.strides, model.shape, strict=True) if n > 1
        ]
        assert all(ours == theirs for ours, theirs in steps)
    np.testing.assert_array_equal(view.numpy(), model)


@examples
@given(data=st.data(), shape=shapes)
def test_any_index_error_is_that_of_numpy(device, data, shape):
    numbers = st.integers(-6, 6) | st.slices(6) | st.just(...)
    index = tuple(data.draw(st.lists(numbers, max_size=5).filter(lambda parts: parts.count(...) < 2)))
    model = values(shape)
    array = ab.array(model, device=device)
    try:
        expected = view_of(model, index)
    except IndexError:
        expected = None
    try:
        result = array[index].numpy()
    except IndexError:
        result = None
    assert (result is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(result, expected)


@examples
@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_any_program_of_fills_and_copies_does_as_numpy_does(device, data, dtype):
    bases = [data.draw(pairs(device, dtype)) for _ in range(2)]
    for step in range(data.draw(st.integers(1, 8))):
        dst, model_dst = data.draw(views(data.draw(st.sampled_from(bases))))
        src, model_src = data.draw(views(data.draw(st.sampled_from(bases))))
        what = data.draw(st.sampled_from(["fill", "copy", "part"]))
        if what == "fill":
            ab.fill(dst, step % 2)
            model_dst[...] = step % 2
        elif what == "copy" and dst.shape == src.shape:
            ab.copy(dst, src)
            model_dst[...] = model_src.copy()
        else:
            dst_offset = data.draw(st.integers(0, dst.size))
            src_offset = data.draw(st.integers(0, src.size))
            count = data.draw(st.integers(0, min(dst.size - dst_offset, src.size - src_offset)))
            ab.copy(dst, src, dst_offset=dst_offset, src_offset=src_offset, count=count)
            model_dst.flat[dst_offset : dst_offset + count] = model_src.flatten()[src_offset : src_offset + count]
    for array, model in bases:
        np.testing.assert_array_equal(array.numpy(), model)


@examples
@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_any_copy_between_two_devices_does_as_numpy_does(device, other_device, data, dtype):
    here, there = data.draw(pairs(device, dtype)), data.draw(pairs(other_device, dtype))
    for of, to in [(here, there), (there, here)]:
        (dst, model_dst), (src, model_src) = data.draw(views(to)), data.draw(views(of))
        count = data.draw(st.integers(0, min(dst.size, src.size)))
        ab.copy(dst, src, count=count)
        ab.synchronize()
        model_dst.flat[:count] = model_src.flatten()[:count]
    for array, model in [here, there]:
        np.testing.assert_array_equal(array.numpy(), model)
