"""Reductions over all axes of an array or some: dtypes, axes, and the launches that a result takes."""

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t

from anabranch._core.core cimport Layout, max_dimensions, row_major
from anabranch._launch.loaded cimport architecture_of
from anabranch._math.broadcast cimport Axes, add_operand, flat_view, launch_dim, merge_axes, most_axes, view_over
from anabranch._math.run cimport contiguous_copy, result_array, run, stream_on
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport ElementType, element_type
from anabranch._memory.operators cimport (
    greatest_reduction, least_position_reduction, least_reduction, mean_reduction)
from anabranch._stream.stream cimport Stream

from anabranch._core.errors import Error
from anabranch._memory.dtype import names as dtype_names
from anabranch._memory.factories import full

_names = ("sum", "prod", "min", "max", "mean", "any", "all", "argmin", "argmax")

cdef enum:
    row_range = 16384       # elements of a row that one index reduces
    position_range = 512    # the same, to find a position
    columns = 512           # inner elements of one index, as in the kernels
    plane_range = 65536     # elements that one index reduces across rows
    enough = 64             # indices that keep a machine's workers busy

cdef dict _reductions = {}


@cython.final
cdef class Reduction:
    cdef object kernel(self, str name, tuple given):
        found = self.kernels.get(name)
        if found is None:
            from anabranch._math import reduction_kernels

            made = getattr(reduction_kernels, name.rpartition("_")[2])(self.name, *given)
            found = self.kernels.setdefault(name, made)
        return found


cdef Reduction _reduction(int number, int code):
    found = _reductions.get((number, code))
    if found is not None:
        return <Reduction>found
    from anabranch._math.rules import reduction_dtypes

    cdef Reduction made = Reduction.__new__(Reduction)
    made.number = number
    made.name = _names[number]
    made.source = dtype_names[code]
    accumulator, result = reduction_dtypes(made.name, made.source)
    made.accumulator = element_type(accumulator)
    made.result = element_type(result)
    made.kernels = {}
    return _reductions.setdefault((number, code), made)


cdef int _read_axes(Array array, object axis, bint* reduced, bint one) except -1:
    cdef int d
    for d in range(array.layout.ndim):
        reduced[d] = axis is None
    if axis is None:
        return 0
    if isinstance(axis, tuple) and one:
        raise TypeError(f"axis is an int or None, not {axis!r}: a position along several axes is not one number")
    for each in axis if isinstance(axis, tuple) else (axis,):
        if not hasattr(type(each), "__index__") or isinstance(each, bool):
            raise TypeError(f"axis is an int, a tuple of ints or None, not {axis!r}")
        number = each.__index__()
        if array.layout.ndim == 0 and each is axis and number in (0, -1):
            continue  # as NumPy's reductions take it
        if not -array.layout.ndim <= number < array.layout.ndim:
            from numpy.exceptions import AxisError

            raise AxisError(number, array.layout.ndim)
        d = number % array.layout.ndim
        if reduced[d]:
            raise ValueError(f"axis {number} is named twice in {axis!r}")
        reduced[d] = True
    return 0


cdef object reduce_array(int reduction, Array array, object axis, bint keepdims, object stream):
    cdef bint[max_dimensions] reduced
    cdef Reduction rule = _reduction(reduction, array.code)
    cdef Stream target = stream_on(stream, array, rule.name)
    cdef Layout kept
    cdef int64_t count = 1
    cdef int d
    _read_axes(array, axis, reduced, reduction >= least_position_reduction)
    kept.ndim = 0
    for d in range(array.layout.ndim):
        if reduced[d]:
            count *= array.layout.shape[d]
            if not keepdims:
                continue
        kept.shape[kept.ndim] = 1 if reduced[d] else array.layout.shape[d]
        kept.ndim += 1
    if count == 0:
        return _of_nothing(rule, kept, target)
    cdef Array out = result_array(kept, rule.result, target)
    if out.layout.size() == 0:
        return out
    cdef bint on_cpu = architecture_of(deref(target.device.backend)) == 0
    if count == 1 and on_cpu:
        _reduce_ones(rule, array, out, target)
        return out
    cdef Extent extent
    cdef Array x = _three_axes(array, reduced, &extent, reduction >= least_position_reduction, target)
    if not on_cpu:
        from anabranch._math.cuda_reduction import reduce_on_cuda

        try:
            reduce_on_cuda(
                rule.name, rule.source, rule.accumulator.name, rule.result.name, x, out,
                (extent.outer, extent.reduced, extent.inner), target)
        except Error as error:
            raise error.with_traceback(None)  # which ends in the program
    elif reduction >= least_position_reduction:
        _find_position(rule, x, out, &extent, target)
    elif extent.inner == 1:
        _reduce_rows(rule, x, out, &extent, target)
    else:
        _reduce_columns(rule, x, out, &extent, target)
    return out


cdef object _of_nothing(Reduction rule, const Layout& kept, Stream stream):
    shape = tuple([kept.shape[d] for d in range(kept.ndim)])
    if rule.number >= least_position_reduction or rule.number in (least_reduction, greatest_reduction):
        if kept.size() != 0:
            raise ValueError(f"{rule.name} of no elements: it has no value to begin with")
        return result_array(kept, rule.result, stream)
    import numpy

    value = numpy.nan if rule.number == mean_reduction else getattr(numpy, rule.name)(numpy.empty(0, rule.source))
    return full(shape, value, rule.result.dtype, stream=stream)


# -- the three axes --

cdef Array _three_axes(Array array, const bint* reduced, Extent* extent, bint in_rows, Stream stream):
    # A view of the elements as outer, reduced and inner axes; of a copy where one view cannot show them so. `in_rows`:
    # without inner axes.
    cdef int64_t[3] shape
    cdef int64_t[3] strides
    if not _group(array.layout, reduced, shape, strides) or (in_rows and shape[0] > 1 and shape[2] > 1):
        array = contiguous_copy(_reduced_last(array, reduced, shape), stream)
        strides[0] = shape[1] * array.layout.itemsize
        strides[1] = strides[2] = array.layout.itemsize
    elif shape[0] == 1 and shape[2] > 1 and (in_rows or abs(strides[1]) < abs(strides[2])):
        # Along memory instead of across it, or for positions.
        shape[0], shape[2] = shape[2], 1
        strides[0], strides[2] = strides[2], array.layout.itemsize
    extent.outer = shape[0]
    extent.reduced = shape[1]
    extent.inner = shape[2]
    return view_over(array, 3, shape, strides)


cdef bint _group(const Layout& layout, const bint* reduced, int64_t* shape, int64_t* strides) noexcept:
    cdef int group = 0
    cdef int d
    for d in range(3):
        shape[d] = 1
        strides[d] = layout.itemsize
    for d in range(layout.ndim):
        if layout.shape[d] == 1:
            continue
        if reduced[d] != (group == 1):
            if group == 2:
                return False
            group += 1
        if shape[group] != 1 and strides[group] != layout.strides[d] * layout.shape[d]:
            return False
        shape[group] *= layout.shape[d]
        strides[group] = layout.strides[d]
    return True


cdef Array _reduced_last(Array array, const bint* reduced, int64_t* sizes):
    cdef int64_t[max_dimensions] shape
    cdef int64_t[max_dimensions] strides
    cdef int ndim = 0
    cdef int d, group
    sizes[0] = sizes[1] = sizes[2] = 1
    for group in range(2):
        for d in range(array.layout.ndim):
            if reduced[d] == (group == 1):
                shape[ndim] = array.layout.shape[d]
                strides[ndim] = array.layout.strides[d]
                sizes[group] *= array.layout.shape[d]
                ndim += 1
    return view_over(array, ndim, shape, strides)


cdef Array _partial(int64_t first, int64_t second, int64_t third, ElementType type_, Stream stream):
    cdef int64_t[3] shape
    shape[0], shape[1], shape[2] = first, second, third
    return result_array(row_major(3, shape, type_.itemsize), type_, stream)


cdef Array _reshaped(Array array, int ndim, int64_t first, int64_t second, int64_t third):
    cdef int64_t[3] shape
    shape[0], shape[1], shape[2] = first, second, third
    cdef Layout layout = row_major(ndim, shape, array.layout.itemsize)
    return view_over(array, ndim, layout.shape, layout.strides)


# -- on a CPU --

cdef int _reduce_ones(Reduction rule, Array array, Array out, Stream stream) except -1:
    # One element for each result: an index of a row or of a column would have next to nothing to do.
    cdef Axes axes
    kernel = rule.kernel("ones", (rule.accumulator.name, rule.source))
    if array.contiguous:
        run(kernel, out.layout.size(), (flat_view(array), flat_view(out)), stream)
        return 0
    axes.ndim = axes.operands = 0
    add_operand(&axes, array.layout)
    add_operand(&axes, row_major(array.layout.ndim, array.layout.shape, out.layout.itemsize))
    merge_axes(&axes)
    if axes.ndim > most_axes:
        return _reduce_ones(rule, contiguous_copy(array, stream), out, stream)
    run(kernel, launch_dim(&axes),
        (view_over(array, axes.ndim, axes.shape, axes.strides[0]),
         view_over(out, axes.ndim, axes.shape, axes.strides[1])), stream)
    return 0


cdef int _reduce_rows(Reduction rule, Array x, Array out, const Extent* extent, Stream stream) except -1:
    cdef int64_t ranges = 1
    cdef int64_t size = extent.reduced
    cdef bint divides = rule.number == mean_reduction
    cdef Array partial
    x = _matrix(x, extent)
    source = rule.source
    function = "rows"
    if extent.outer < enough and extent.reduced > row_range:
        ranges = (extent.reduced + row_range - 1) // row_range
        partial = _reshaped(
            _partial(1, extent.outer, ranges, rule.accumulator, stream), 2, extent.outer, ranges, 1)
        kernel = rule.kernel("rows", (rule.accumulator.name, source))
        run(kernel, (extent.outer, ranges), (x, row_range, 1.0, partial), stream)
        x = partial
        size = ranges
        source = rule.accumulator.name
        function = "last_rows"
    elif divides:
        function = "divided_rows"
    kernel = rule.kernel(function, (rule.accumulator.name, source, divides))
    run(kernel, (extent.outer, 1),
        (x, size, <double>extent.reduced, _reshaped(out, 2, extent.outer, 1, 1)), stream)
    return 0


cdef int _reduce_columns(Reduction rule, Array x, Array out, const Extent* extent, Stream stream) except -1:
    cdef int64_t parts = (extent.inner + columns - 1) // columns
    cdef int64_t size = extent.reduced
    cdef int64_t ranges = 1
    cdef bint divides = rule.number == mean_reduction
    cdef bint finishes = divides or rule.result is not rule.accumulator
    cdef Array sums = None
    accumulator = rule.accumulator.name
    if extent.outer * parts < enough and extent.reduced * min(extent.inner, <int64_t>columns) > plane_range:
        size = max(<int64_t>8, plane_range // min(extent.inner, <int64_t>columns))
        ranges = (extent.reduced + size - 1) // size
    kernel = rule.kernel("columns", (accumulator, rule.source))
    if ranges > 1:
        sums = _partial(extent.outer, ranges, extent.inner, rule.accumulator, stream)
        run(kernel, (extent.outer, ranges, parts), (x, size, sums), stream)
        x = sums
        size = ranges
        kernel = rule.kernel("last_columns", (accumulator, accumulator))
    if not finishes:
        run(kernel, (extent.outer, 1, parts), (x, size, _reshaped(out, 3, extent.outer, 1, extent.inner)), stream)
        return 0
    sums = _partial(extent.outer, 1, extent.inner, rule.accumulator, stream)
    run(kernel, (extent.outer, 1, parts), (x, size, sums), stream)
    run(rule.kernel("finish", (accumulator, divides)), out.layout.size(),
        (flat_view(sums), <double>extent.reduced, flat_view(out)), stream)
    return 0


cdef int _find_truth(Reduction rule, Array x, Array out, const Extent* extent, Stream stream) except -1:
    # The position of an extreme of truth values, which is the first of its value: the search stops there.
    cdef int64_t ranges = 1
    if extent.outer < enough:
        ranges = 1 + (extent.reduced - 1) // row_range
    kernel = rule.kernel("truths", ())
    x = _matrix(x, extent)
    if ranges == 1:
        run(kernel, (extent.outer, 1), (x, extent.reduced, 0, _reshaped(out, 2, extent.outer, 1, 1)), stream)
        return 0
    cdef Array found = _reshaped(
        _partial(1, extent.outer, ranges, rule.result, stream), 2, extent.outer, ranges, 1)
    run(kernel, (extent.outer, ranges), (x, row_range, extent.reduced, found), stream)
    run(rule.kernel("earliest", ()), extent.outer, (found, extent.reduced, flat_view(out)), stream)
    return 0


cdef int _find_position(Reduction rule, Array x, Array out, const Extent* extent, Stream stream) except -1:
    if x.code == 0:
        return _find_truth(rule, x, out, extent, stream)
    cdef Reduction extremes = _reduction(
        least_reduction if rule.number == least_position_reduction else greatest_reduction, x.code)
    cdef int64_t ranges = 1 + (extent.reduced - 1) // position_range
    cdef Array found = _reshaped(
        _partial(1, extent.outer, ranges, extremes.result, stream), 2, extent.outer, ranges, 1)
    x = _matrix(x, extent)
    kernel = extremes.kernel("rows", (extremes.accumulator.name, rule.source))
    run(kernel, (extent.outer, ranges), (x, position_range, 1.0, found), stream)
    run(rule.kernel("position", (rule.source,)), extent.outer, (x, found, position_range, flat_view(out)), stream)
    return 0


cdef Array _matrix(Array x, const Extent* extent):
    # Without inner axes.
    cdef int64_t[2] shape
    shape[0], shape[1] = extent.outer, extent.reduced
    return view_over(x, 2, shape, x.layout.strides)
