"""Views of arrays, as indices and slices select them."""

from libc.stdint cimport int64_t

from anabranch._core.core cimport max_dimensions
from anabranch._memory.array cimport Array


cdef Array begun_view(Array array):
    cdef Array view = Array.__new__(Array)
    # Check after creating the object: creating it may run a collection, whose finalizers may close the array.
    array.check()
    view.storage = array.storage
    view._device = array._device
    view._dtype = array._dtype
    view.code = array.code
    view.data = array.data
    view._read_only = array._read_only
    view._open = True
    return view


cdef Array whole_of(Array array):
    cdef Array view = begun_view(array)
    view.layout = array.layout
    view.contiguous = array.contiguous
    return view


cdef Array view_of(Array array, object key):
    cdef Array view = begun_view(array)
    view.layout.itemsize = array.layout.itemsize
    view.layout.ndim = 0
    cdef tuple parts = key if isinstance(key, tuple) else (key,)
    cdef int64_t size
    cdef int dimension = 0
    cdef int missing = array.layout.ndim
    cdef int ellipses = 0
    cdef int added = 0
    for part in parts:
        if part is Ellipsis:
            ellipses += 1
        elif part is None:
            added += 1
        else:
            missing -= 1
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if missing < 0:
        raise IndexError(
            f"too many indices: the array has {array.layout.ndim} dimensions, "
            f"{array.layout.ndim - missing} were indexed")
    if array.layout.ndim + added > max_dimensions:
        raise IndexError(f"an array has at most {max_dimensions} dimensions, not {array.layout.ndim + added}")
    if ellipses == 0:
        parts += (Ellipsis,)
    for part in parts:
        if part is Ellipsis:
            for _ in range(missing):
                _keep(view, array.layout.shape[dimension], array.layout.strides[dimension])
                dimension += 1
            continue
        if part is None:
            _keep(view, 1, 0)
            continue
        size = array.layout.shape[dimension]
        if isinstance(part, slice):
            _slice(view, size, array.layout.strides[dimension], part)
        else:
            view.data += _position(part, size, dimension) * array.layout.strides[dimension]
        dimension += 1
    view.contiguous = view.layout.contiguous()
    return view


cdef Array element_of(Array array, tuple index):
    if len(index) == 1 and isinstance(index[0], tuple):
        index = index[0]
    if len(index) == 1 and array.layout.ndim != 1:
        import numpy

        index = numpy.unravel_index(_position(index[0], array.layout.size(), 0), array.shape)
    elif len(index) != array.layout.ndim:
        raise ValueError(f"{array._described()} takes {array.layout.ndim} indices, or one, not {len(index)}")
    return view_of(array, index)


cdef int _slice(Array view, int64_t size, int64_t stride, slice part) except -1:
    # Python integers, since a step may have any size. It is irrelevant without a second element.
    start, stop, step = part.indices(size)
    count = len(range(start, stop, step))
    if count > 0:
        view.data += <int64_t>start * stride
    return _keep(view, count, <int64_t>step * stride if count > 1 else stride)


cdef str _refused(object part):
    said = f"arrays are indexed with integers, slices, ... and None, not {type(part).__name__}"
    if isinstance(part, (Array, list)) or hasattr(type(part), "__array__"):
        said += "; ab.where chooses by a condition, and a kernel gathers by an array of indices"
    return said


cdef int64_t _position(object part, int64_t size, int dimension) except -1:
    if isinstance(part, bool) or not hasattr(type(part), "__index__") or (
            type(part) is Array and (<Array>part).layout.ndim != 0):
        raise TypeError(_refused(part))
    try:
        index = part.__index__()
    except TypeError:
        # A NumPy array has `__index__`, but it only works without dimensions.
        raise TypeError(_refused(part)) from None
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range for dimension {dimension} of size {size}")
    return index + size if index < 0 else index


cdef int _keep(Array view, int64_t size, int64_t stride) except -1:
    view.layout.shape[view.layout.ndim] = size
    view.layout.strides[view.layout.ndim] = stride
    view.layout.ndim += 1
    return 0
