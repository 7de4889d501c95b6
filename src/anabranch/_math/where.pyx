"""`where`: elements of one operand or of another."""

from anabranch._core.core cimport Layout
from anabranch._math.broadcast cimport (
    Axes, add_operand, launch_dim, merge_axes, most_axes, operand_view, place_of, scalar_place, view_over)
from anabranch._math.scalars cimport kind_of, number_for
from anabranch._math.run cimport contiguous_copy, result_array, run, stream_on
from anabranch._memory.array cimport Array, as_array
from anabranch._memory.dtype cimport ElementType, element_type
from anabranch._stream.stream cimport Stream

from anabranch._core.errors import DeviceError
from anabranch._math.elementwise import place_names
from anabranch._memory.dtype import names as dtype_names

cdef dict _kernels = {}


cdef object _kernel(str condition, str dtype, tuple places):
    key = condition, dtype, places
    found = _kernels.get(key)
    if found is None:
        from anabranch._math import kernels

        found = _kernels.setdefault(key, kernels.choice(condition, dtype, places))
    return found


def where(condition, a, b, /, *, stream=None):
    """Return a new array with the elements of `a` where a condition is true, else those of `b`.

    The three are broadcast together. Asynchronous on the stream.

    Parameters
    ----------
    condition : Array
        Of any dtype: what is not 0 is true.
    a, b : Array or scalar
        On the device of the condition. The result's dtype is NumPy's for the two; a Python number takes the dtype of
        the other.
    stream : Stream, optional
        None: the current stream of the device.

    Raises
    ------
    DeviceError
        For arrays of different devices, or a stream of another device.
    ValueError
        For shapes that cannot be broadcast together.
    TypeError
        For what is neither an array nor a number; `condition` is an array.
    """
    from anabranch._math.rules import common_dtype

    cdef Array test = as_array(condition, "condition")
    cdef int first = _kind(a)
    cdef int second = _kind(b)
    cdef Stream target = stream_on(stream, test, "where")
    cdef ElementType type_ = element_type(common_dtype(first, second))
    operands = [test, a, b]
    for position, kind in ((1, first), (2, second)):
        if type(operands[position]) is not Array:
            operands[position] = number_for(operands[position], kind, type_.code)
        elif (<Array>operands[position])._device is not test._device:
            raise DeviceError(
                f"where of arrays on two devices: {test._described()} and {operands[position]._described()}; copy one "
                "to the other's device first")
    return _chosen(operands, type_, target)


cdef int _kind(object operand) except -2:
    cdef int kind = kind_of(operand)
    if kind < 0:
        raise TypeError(f"where takes arrays and numbers, not {type(operand).__name__}; copy it with anabranch.array")
    return kind


cdef Array _chosen(list operands, ElementType type_, Stream stream):
    cdef Axes axes
    cdef Layout layout
    cdef Array out
    cdef int d
    cdef int place
    cdef int operand = 0
    axes.ndim = axes.operands = 0
    for each in operands:
        if type(each) is Array:
            add_operand(&axes, (<Array>each).layout)
    layout.ndim = axes.ndim
    for d in range(axes.ndim):
        layout.shape[d] = axes.shape[d]
    out = result_array(layout, type_, stream)
    if out.layout.size() == 0:
        return out
    add_operand(&axes, out.layout)
    cdef Axes whole = axes
    merge_axes(&axes)
    if axes.ndim > most_axes:
        return _chosen(_spread(operands, &whole, stream), type_, stream)
    places = []
    args = []
    for each in operands:
        place = scalar_place
        if type(each) is Array:
            place = place_of(&axes, operand)
            each = operand_view(&axes, each, operand, place)
            operand += 1
        places.append(place_names[place])
        args.append(each)
    args.append(operand_view(&axes, out, operand, place_of(&axes, operand)))
    run(
        _kernel(dtype_names[(<Array>operands[0]).code], type_.name, tuple(places)), launch_dim(&axes), tuple(args),
        stream)
    return out


cdef list _spread(list operands, const Axes* axes, Stream stream):
    # Contiguous copies, broadcast to the shape of the result.
    cdef int operand = 0
    copies = []
    for each in operands:
        if type(each) is Array:
            each = contiguous_copy(view_over(each, axes.ndim, axes.shape, axes.strides[operand]), stream)
            operand += 1
        copies.append(each)
    return copies
