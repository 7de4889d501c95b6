"""The operators of arrays, element by element, each a launch of one kernel."""

cimport cython
from libcpp cimport bool as cbool

from anabranch._core.core cimport Layout, byte_t
from anabranch._math.broadcast cimport (
    Axes, add_operand, all_place, flat_view, launch_dim, merge_axes, most_axes, operand_view, place_of, scalar_place,
    view_over)
from anabranch._math.scalars cimport kind_of, number_for
from anabranch._math.reduction cimport reduce_array
from anabranch._math.run cimport contiguous_copy, copy_to, result_array, run, stream_on
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport element_type
from anabranch._memory.operators cimport (
    Operators, add_operator, equal_operator, positive_operator, power_operator, provide_operators, reciprocal_operator,
    root_operator, square_operator)
from anabranch._stream.stream cimport Stream

from anabranch._core.errors import DeviceError
from anabranch._memory.factories import full

cdef extern from "anabranch/memory/layout.hpp" namespace "anabranch" nogil:
    cbool overlap(const byte_t*, const Layout&, const byte_t*, const Layout&)

cdef enum:
    no_kind = 31    # of the second operand of an operation with one
    in_place = 1 << 16
    int64_code = 4
    uint64_code = 8
    float16_code = 9
    float64_code = 11
    no_operation = -1

_names = (
    "less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "add", "subtract", "multiply",
    "true_divide", "floor_divide", "remainder", "power", "bitwise_and", "bitwise_or", "bitwise_xor", "negative",
    "positive", "absolute", "invert", "square", "sqrt", "reciprocal",
)
place_names = ("scalar", "one", "all", "", "", "outer2", "outer3", "outer4")

cdef dict _rules = {}


@cython.final
cdef class Rule:
    pass


cdef Rule _rule(int operation, int first, int second):
    key = (operation << 10) | (first << 5) | second
    found = _rules.get(key)
    return <Rule>found if found is not None else _new_rule(key, operation, first, second)


cdef Rule _new_rule(object key, int operation, int first, int second):
    from anabranch._math import rules

    cdef Rule rule = Rule.__new__(Rule)
    if second == no_kind:
        rule.loop = rules.loop_of(_names[operation], first)
    else:
        rule.loop = rules.loop_of(_names[operation], first, second)
    operands = rule.loop.operands
    rule.result = element_type(rule.loop.result)
    rule.kernels = {}
    rule.first = element_type(operands[0]).code
    rule.second = element_type(operands[len(operands) - 1]).code
    return _rules.setdefault(key, rule)


cdef object _kernel(Rule rule, int first, int second):
    key = (first << 8) | second
    found = rule.kernels.get(key)
    if found is None:
        if first == in_place:
            found = rule.loop.kernel_in_place(place_names[second])
        else:
            found = rule.loop.kernel(place_names[first], place_names[second])
        found = rule.kernels.setdefault(key, found)
    return found


cdef int _same_device(Array left, Array right, str name) except -1:
    if left._device is not right._device:
        raise DeviceError(
            f"{name} of arrays on two devices: {left._described()} and {right._described()}; copy one to the other's "
            "device first")
    return 0


cdef bint _same_shape(const Layout& a, const Layout& b) noexcept:
    cdef int d
    if a.ndim != b.ndim:
        return False
    for d in range(a.ndim):
        if a.shape[d] != b.shape[d]:
            return False
    return True


cdef Array _of_two_arrays(Rule rule, Array left, Array right):
    cdef Stream stream = stream_on(None, left, rule.loop.name)
    cdef Array out
    cdef Axes axes
    cdef Layout layout
    cdef int first, second
    if left.contiguous and right.contiguous and _same_shape(left.layout, right.layout):
        out = result_array(left.layout, rule.result, stream)
        if out.layout.size() != 0:
            run(_kernel(rule, all_place, all_place), out.layout.size(),
                (flat_view(left), flat_view(right), flat_view(out)), stream)
        return out
    axes.ndim = axes.operands = 0
    add_operand(&axes, left.layout)
    add_operand(&axes, right.layout)
    layout.ndim = axes.ndim
    for d in range(axes.ndim):
        layout.shape[d] = axes.shape[d]
    out = result_array(layout, rule.result, stream)
    if out.layout.size() == 0:
        return out
    add_operand(&axes, out.layout)
    if _has_too_many_axes(axes):
        return _of_two_arrays(rule, _spread(left, out, stream), _spread(right, out, stream))
    merge_axes(&axes)
    first = place_of(&axes, 0)
    second = place_of(&axes, 1)
    run(_kernel(rule, first, second), launch_dim(&axes),
        (operand_view(&axes, left, 0, first), operand_view(&axes, right, 1, second),
         operand_view(&axes, out, 2, place_of(&axes, 2))), stream)
    return out


cdef bint _has_too_many_axes(Axes axes) noexcept:
    merge_axes(&axes)
    return axes.ndim > most_axes


cdef Array _spread(Array array, Array out, Stream stream):
    # A contiguous copy, broadcast to the shape of `out`.
    cdef Axes axes
    axes.ndim = axes.operands = 0
    add_operand(&axes, out.layout)
    add_operand(&axes, array.layout)
    return contiguous_copy(view_over(array, axes.ndim, axes.shape, axes.strides[1]), stream)


cdef Array _of_array_and_number(Rule rule, Array array, object number, bint reflected):
    cdef Stream stream = stream_on(None, array, rule.loop.name)
    cdef Array out = result_array(array.layout, rule.result, stream)
    cdef Array a
    cdef Array b
    cdef Axes axes
    cdef int place = all_place
    if out.layout.size() == 0:
        return out
    if array.contiguous:
        a = flat_view(array)
        b = flat_view(out)
        dim = out.layout.size()
    else:
        axes.ndim = axes.operands = 0
        add_operand(&axes, array.layout)
        add_operand(&axes, out.layout)
        if _has_too_many_axes(axes):
            return _of_array_and_number(rule, contiguous_copy(array, stream), number, reflected)
        merge_axes(&axes)
        place = place_of(&axes, 0)
        a = operand_view(&axes, array, 0, place)
        b = operand_view(&axes, out, 1, place_of(&axes, 1))
        dim = launch_dim(&axes)
    if reflected:
        run(_kernel(rule, scalar_place, place), dim, (number, a, b), stream)
    else:
        run(_kernel(rule, place, scalar_place), dim, (a, number, b), stream)
    return out


cdef object _binary(int operation, object left, object right):
    cdef int first = kind_of(left)
    cdef int second = kind_of(right)
    cdef Rule rule
    if first < 0 or second < 0:
        return _refused(operation, left, right)
    if type(left) is Array:
        if type(right) is Array:
            _same_device(<Array>left, <Array>right, _names[operation])
            return _of_two_arrays(_rule(operation, first, second), <Array>left, <Array>right)
        if operation == power_operator and _instead_of_power(right, first) != no_operation:
            return _unary(_rule(_instead_of_power(right, first), first, no_kind), <Array>left)
        rule = _rule(operation, first, second)
        try:
            number = number_for(right, second, rule.second)
        except OverflowError:
            return _beyond(operation, <Array>left, right)
        if operation == power_operator and rule.second <= int64_code and number < 0:
            raise ValueError("an integer to a negative integer power is no integer; convert the array to floats first")
        return _of_array_and_number(rule, <Array>left, number, False)
    rule = _rule(operation, first, second)
    return _of_array_and_number(rule, <Array>right, number_for(left, first, rule.first), True)


cdef int _instead_of_power(object power, int kind) noexcept:
    # NumPy computes the same for these numbers, in a twentieth of the time and less.
    cdef bint of_floats = float16_code <= kind <= float64_code
    if type(power) is int:
        if power == 2:
            return square_operator if kind != 0 else no_operation
    elif type(power) is not float or kind < float16_code:
        return no_operation
    elif power == 2.0:
        return square_operator
    if not of_floats:
        return no_operation
    if power == 1:
        return positive_operator
    if power == -1:
        return reciprocal_operator
    return root_operator if power == 0.5 else no_operation


cdef object _beyond(int operation, Array array, object number):
    # The comparison of integers with one beyond all integers of their dtype; other operations have no result.
    if operation >= add_operator:
        raise
    greater = number > 0
    truth = (greater, greater, False, True, not greater, not greater)[operation]
    return full(array.shape, truth, "bool", stream=stream_on(None, array, _names[operation]))


cdef object _refused(int operation, object left, object right):
    other = right if type(left) is Array else left
    name = type(other).__name__
    if operation < add_operator:
        # Python would compare identities.
        answer = type(other).__eq__(other, left) if operation == equal_operator else NotImplemented
        if answer is not NotImplemented:
            return answer
        raise TypeError(
            f"{_names[operation]} compares the elements of an array with numbers or another array, not with {name}; "
            "use anabranch.array for data, and `is` for identity")
    if hasattr(type(other), "__array__") or isinstance(other, (list, tuple)):
        raise TypeError(
            f"{_names[operation]} takes arrays and numbers, not {name}; copy it to the device with anabranch.array, or "
            "wrap it with anabranch.asarray")
    return NotImplemented


cdef Array _unary(Rule rule, Array array):
    cdef Stream stream = stream_on(None, array, rule.loop.name)
    cdef Array out = result_array(array.layout, rule.result, stream)
    cdef Axes axes
    if out.layout.size() == 0:
        return out
    if array.contiguous:
        run(_kernel(rule, all_place, all_place), out.layout.size(), (flat_view(array), flat_view(out)), stream)
        return out
    axes.ndim = axes.operands = 0
    add_operand(&axes, out.layout)
    add_operand(&axes, array.layout)
    if _has_too_many_axes(axes):
        return _unary(rule, contiguous_copy(array, stream))
    merge_axes(&axes)
    run(_kernel(rule, all_place, all_place), launch_dim(&axes),
        (view_over(array, axes.ndim, axes.shape, axes.strides[1]),
         operand_view(&axes, out, 0, place_of(&axes, 0))), stream)
    return out


cdef object _in_place(int operation, Array array, object other):
    cdef object given = other
    cdef int kind = kind_of(other)
    cdef Rule rule
    cdef Axes axes
    cdef Array right = None
    cdef int place = scalar_place
    if kind < 0:
        return _refused(operation, array, other)
    if array._read_only:
        raise ValueError(
            f"{array._described()} is read-only memory and cannot be the result of {_names[operation]} in place")
    rule = _rule(operation, array.code, kind)
    if rule.result.code != array.code:
        from anabranch._math.rules import check_in_place

        check_in_place(rule.loop, array._dtype.name)
    cdef Stream stream = stream_on(None, array, _names[operation])
    axes.ndim = axes.operands = 0
    add_operand(&axes, array.layout)
    if type(other) is Array:
        right = <Array>other
        _same_device(array, right, _names[operation])
        add_operand(&axes, right.layout)
        if axes.ndim != array.layout.ndim or not _has_shape(&axes, array.layout):
            raise ValueError(f"an array of shape {right.shape} does not fit into one of shape {array.shape}, in place")
        if _is_in_the_way(array, right):
            other = right = contiguous_copy(right, stream)
            axes.operands = 1
            add_operand(&axes, right.layout)
    else:
        other = number_for(other, kind, rule.second)
        if operation == power_operator and rule.second <= int64_code and other < 0:
            raise ValueError("an integer to a negative integer power is no integer")
    if array.layout.size() == 0:
        return array
    if _has_too_many_axes(axes):
        whole = contiguous_copy(array, stream)
        _in_place(operation, whole, _spread(right, whole, stream) if right is not None else other)
        copy_to(array, whole, stream)
        return array
    merge_axes(&axes)
    if right is not None:
        place = place_of(&axes, 1)
        other = operand_view(&axes, right, 1, place)
    elif operation == power_operator and _instead_of_power(given, array.code) != no_operation:
        rule = _rule(_instead_of_power(given, array.code), array.code, no_kind)
        run(_kernel(rule, in_place, all_place), launch_dim(&axes),
            (operand_view(&axes, array, 0, place_of(&axes, 0)),), stream)
        return array
    run(_kernel(rule, in_place, place), launch_dim(&axes),
        (operand_view(&axes, array, 0, place_of(&axes, 0)), other), stream)
    return array


cdef bint _has_shape(const Axes* axes, const Layout& layout) noexcept:
    cdef int d
    for d in range(layout.ndim):
        if axes.shape[d] != layout.shape[d]:
            return False
    return True


cdef bint _is_in_the_way(Array array, Array other):
    # Whether an index may write what the operand's element of another index is.
    cdef int d
    if array.data == other.data and _same_shape(array.layout, other.layout):
        for d in range(array.layout.ndim):
            if array.layout.shape[d] > 1 and array.layout.strides[d] != other.layout.strides[d]:
                break
        else:
            return False
    return overlap(<byte_t*>array.data, array.layout, <byte_t*>other.data, other.layout)


@cython.final
cdef class _Operators(Operators):
    cdef object binary(self, int operation, object left, object right):
        return _binary(operation, left, right)

    cdef object in_place(self, int operation, object array, object other):
        (<Array>array).check()
        return _in_place(operation, <Array>array, other)

    cdef object unary(self, int operation, object array):
        (<Array>array).check()
        return _unary(_rule(operation, (<Array>array).code, no_kind), <Array>array)

    cdef object reduce(
            self, int reduction, object array, object axis, bint keepdims, object stream, object other):
        (<Array>array).check()
        if other is not None:
            shown = (<Array>other)._described() if type(other) is Array else repr(other)
            raise TypeError(
                f"the result of a reduction is a new array of NumPy's dtype, not {shown}; for another dtype, convert "
                "the array first, with astype")
        return reduce_array(reduction, <Array>array, axis, keepdims, stream)


provide_operators(_Operators())
