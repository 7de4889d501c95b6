"""Views of all elements of an array, in another shape, order or dtype."""

from libc.stdint cimport int64_t, uintptr_t

from anabranch._core.core cimport Layout, max_dimensions, row_major
from anabranch._memory.alloc cimport layout_of
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport ElementType, element_type
from anabranch._memory.slice cimport begun_view


cdef Array _with_layout(Array array, const Layout& layout):
    cdef Array view = begun_view(array)
    view.layout = layout
    view.contiguous = view.layout.contiguous()
    return view


cdef int64_t _axis(object axis, int ndim) except -1:
    if isinstance(axis, bool) or not hasattr(type(axis), "__index__"):
        raise TypeError(f"an axis is an int, not {type(axis).__name__}")
    number = axis.__index__()
    if not -ndim <= number < ndim:
        raise ValueError(f"axis {number} is out of range for {ndim} dimensions")
    return number + ndim if number < 0 else number


cdef Array transposed(Array array, tuple axes):
    cdef Layout layout
    cdef int ndim = array.layout.ndim
    cdef int d
    cdef int64_t axis
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = () if axes[0] is None else tuple(axes[0])
        if not axes and ndim != 0:
            axes = tuple(range(ndim - 1, -1, -1))
    elif not axes:
        axes = tuple(range(ndim - 1, -1, -1))
    order = [_axis(each, ndim) for each in axes]
    if len(order) != ndim or len(set(order)) != ndim:
        raise ValueError(f"the axes {axes} do not name each of the array's {ndim} dimensions once")
    layout.ndim = ndim
    layout.itemsize = array.layout.itemsize
    for d in range(ndim):
        axis = order[d]
        layout.shape[d] = array.layout.shape[axis]
        layout.strides[d] = array.layout.strides[axis]
    return _with_layout(array, layout)


cdef Array reshaped(Array array, tuple shape):
    cdef Layout layout
    cdef int64_t size = array.layout.size()
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    layout = layout_of(_completed(shape, size), array.layout.itemsize)
    if layout.size() != size:
        raise ValueError(f"an array of {size} elements cannot have the shape {shape}")
    if size == 0 or array.contiguous:
        return _with_layout(array, layout)
    if not _keep_strides(array.layout, &layout):
        raise ValueError(
            f"an array of shape {array.shape} with strides of {array.strides} bytes cannot be seen in the shape "
            f"{shape} without a copy; copy it first, with contiguous().reshape(...)")
    return _with_layout(array, layout)


cdef object _completed(tuple shape, int64_t size):
    # The shape with the size that -1 stands for.
    unknown = [d for d, each in enumerate(shape) if type(each) is int and each == -1]
    if not unknown:
        return shape
    known = 1
    for each in shape:
        if not hasattr(type(each), "__index__") or isinstance(each, bool):
            raise TypeError(f"a shape is an int or a tuple of ints; {each!r} is not an int")
        known *= each.__index__()
    known = -known
    if len(unknown) > 1 or known <= 0 or size % known != 0:
        raise ValueError(f"an array of {size} elements cannot have the shape {shape}")
    return shape[:unknown[0]] + (size // known,) + shape[unknown[0] + 1:]


cdef bint _keep_strides(const Layout& old, Layout* new) noexcept:
    # Sets the strides of a new shape over the same elements. Dimensions are matched in groups of equal size; within a
    # group, the old ones must lie as in a contiguous array. Returns whether they do.
    cdef int64_t[max_dimensions] shape
    cdef int64_t[max_dimensions] strides
    cdef int ndim = 0
    cdef int first_old = 0
    cdef int last_old, d
    cdef int first_new = 0
    cdef int last_new
    cdef int64_t old_size, new_size
    for d in range(old.ndim):
        if old.shape[d] != 1:
            shape[ndim] = old.shape[d]
            strides[ndim] = old.strides[d]
            ndim += 1
    while first_new < new.ndim and first_old < ndim:
        last_new = first_new + 1
        last_old = first_old + 1
        new_size = new.shape[first_new]
        old_size = shape[first_old]
        while new_size != old_size:
            if new_size < old_size:
                new_size *= new.shape[last_new]
                last_new += 1
            else:
                old_size *= shape[last_old]
                last_old += 1
        for d in range(first_old, last_old - 1):
            if strides[d] != shape[d + 1] * strides[d + 1]:
                return False
        new.strides[last_new - 1] = strides[last_old - 1]
        for d in range(last_new - 1, first_new, -1):
            new.strides[d - 1] = new.strides[d] * new.shape[d]
        first_new = last_new
        first_old = last_old
    # What is left has size 1.
    for d in range(first_new, new.ndim):
        new.strides[d] = new.strides[first_new - 1] if first_new > 0 else old.itemsize
    return True


cdef Array squeezed(Array array, object axis):
    cdef Layout layout
    cdef int d
    gone = None
    if axis is not None:
        axes = axis if isinstance(axis, tuple) else (axis,)
        gone = {_axis(each, array.layout.ndim) for each in axes}
        for each in gone:
            if array.layout.shape[<int>each] != 1:
                raise ValueError(f"axis {each} has the size {array.layout.shape[<int>each]}, not 1")
    layout.ndim = 0
    layout.itemsize = array.layout.itemsize
    for d in range(array.layout.ndim):
        if array.layout.shape[d] == 1 if gone is None else d in gone:
            continue
        layout.shape[layout.ndim] = array.layout.shape[d]
        layout.strides[layout.ndim] = array.layout.strides[d]
        layout.ndim += 1
    return _with_layout(array, layout)


cdef Array retyped(Array array, object dtype):
    cdef ElementType type_ = element_type(dtype)
    cdef Layout layout = array.layout
    cdef int64_t old = layout.itemsize
    cdef int64_t new = type_.itemsize
    cdef int last = layout.ndim - 1
    cdef int64_t row
    cdef uintptr_t misplaced
    cdef int d
    if new != old:
        if last < 0:
            raise ValueError(
                f"an array of no dimension cannot be seen as {type_.dtype}, whose elements have another size")
        if layout.shape[last] != 1 and layout.size() != 0 and layout.strides[last] != old:
            raise ValueError(
                f"elements that are not adjacent along the last axis cannot be seen as {type_.dtype}, whose elements "
                "have another size; copy the array first, with contiguous().view(...)")
        row = layout.shape[last] * old
        if row % new != 0:
            raise ValueError(f"rows of {row} bytes are no whole number of {type_.dtype} elements, of {new} bytes")
        layout.shape[last] = row // new
        layout.strides[last] = new
    layout.itemsize = new
    misplaced = <uintptr_t>array.data
    for d in range(layout.ndim):
        if layout.shape[d] > 1:
            misplaced |= <uintptr_t>layout.strides[d]
    if layout.size() != 0 and misplaced & <uintptr_t>(min(new, 8) - 1):
        raise ValueError(f"the memory is not aligned for {type_.dtype}; copy the array first, with copy().view(...)")
    cdef Array view = _with_layout(array, layout)
    view._dtype = type_.dtype
    view.code = type_.code
    return view


cdef Array broadcast(Array array, const Layout& like):
    cdef Layout layout
    cdef int extra = array.layout.ndim - like.ndim
    cdef int d, source
    cdef bint fits = True
    # As NumPy assigns: leading dimensions of size 1 do not count.
    for d in range(extra):
        fits = fits and array.layout.shape[d] == 1
    layout = row_major(like.ndim, like.shape, array.layout.itemsize)
    for d in range(like.ndim):
        source = d + extra
        if source >= 0 and array.layout.shape[source] == like.shape[d]:
            layout.strides[d] = array.layout.strides[source]
        elif source < 0 or array.layout.shape[source] == 1:
            layout.strides[d] = 0
        else:
            fits = False
    if not fits:
        shape = tuple([like.shape[d] for d in range(like.ndim)])
        raise ValueError(f"cannot assign elements of shape {array.shape} to elements of shape {shape}")
    return _with_layout(array, layout)
