"""Operands of different shapes: the common axes, with as few of them as possible."""

from libc.stdint cimport int64_t

from anabranch._core.core cimport Layout
from anabranch._memory.array cimport Array
from anabranch._memory.slice cimport whole_of


cdef int add_operand(Axes* axes, const Layout& layout) except -1:
    cdef int operand = axes.operands
    cdef int more = layout.ndim - axes.ndim
    cdef int shift
    cdef int d, k
    if more > 0:
        # The axes so far are the last ones.
        for d in range(axes.ndim - 1, -1, -1):
            axes.shape[d + more] = axes.shape[d]
            for k in range(operand):
                axes.strides[k][d + more] = axes.strides[k][d]
        for d in range(more):
            axes.shape[d] = 1
            for k in range(operand):
                axes.strides[k][d] = 0
        axes.ndim = layout.ndim
    shift = axes.ndim - layout.ndim
    for d in range(axes.ndim):
        axes.strides[operand][d] = 0
        if d < shift:
            continue
        if axes.shape[d] == 1:
            axes.shape[d] = layout.shape[d - shift]
        elif layout.shape[d - shift] not in (1, axes.shape[d]):
            given = tuple([layout.shape[k] for k in range(layout.ndim)])
            raise ValueError(f"shapes {shape_of(axes)} and {given} cannot be broadcast together")
        if layout.shape[d - shift] != 1:
            axes.strides[operand][d] = layout.strides[d - shift]
    axes.operands += 1
    return 0


cdef tuple shape_of(const Axes* axes):
    return tuple([axes.shape[d] for d in range(axes.ndim)])


cdef bint _joins(const Axes* axes, int outer, int inner) noexcept:
    cdef int k
    for k in range(axes.operands):
        if axes.strides[k][outer] != axes.strides[k][inner] * axes.shape[inner]:
            return False
    return True


cdef int merge_axes(Axes* axes) noexcept:
    cdef int kept = 0
    cdef int d, k
    for d in range(axes.ndim):
        if axes.shape[d] == 1:
            continue
        if kept > 0 and _joins(axes, kept - 1, d):
            axes.shape[kept - 1] *= axes.shape[d]
            for k in range(axes.operands):
                axes.strides[k][kept - 1] = axes.strides[k][d]
            continue
        axes.shape[kept] = axes.shape[d]
        for k in range(axes.operands):
            axes.strides[k][kept] = axes.strides[k][d]
        kept += 1
    if kept == 0:
        axes.shape[0] = 1
        for k in range(axes.operands):
            axes.strides[k][0] = 0
        kept = 1
    axes.ndim = kept
    return 0


cdef int place_of(const Axes* axes, int operand) noexcept:
    cdef int d
    for d in range(axes.ndim):
        if axes.strides[operand][d] != 0:
            if axes.strides[operand][axes.ndim - 1] == 0:
                return outer_place + axes.ndim
            return all_place
    return one_place


cdef Array operand_view(const Axes* axes, Array array, int operand, int place):
    cdef int64_t one = 1
    if place == one_place:
        return view_over(array, 1, &one, &array.layout.itemsize)
    return view_over(
        array, axes.ndim if place == all_place else axes.ndim - 1, axes.shape, axes.strides[operand])


cdef Array view_over(Array array, int ndim, const int64_t* shape, const int64_t* strides):
    cdef Array view = whole_of(array)
    cdef int d
    view.layout.ndim = ndim
    for d in range(ndim):
        view.layout.shape[d] = shape[d]
        view.layout.strides[d] = strides[d]
    view.contiguous = view.layout.contiguous()
    return view


cdef Array flat_view(Array array):
    cdef int64_t size = array.layout.size()
    if array.layout.ndim == 1:
        return array
    return view_over(array, 1, &size, &array.layout.itemsize)


cdef object launch_dim(const Axes* axes):
    return axes.shape[0] if axes.ndim == 1 else shape_of(axes)
