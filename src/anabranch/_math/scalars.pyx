"""Numbers as operands of operations with arrays: their kinds, and what a launch is given for them."""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int64_t

from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport dtype_code
from anabranch._memory.traced_scalar cimport TracedScalar

from anabranch._memory.dtype import names

cdef enum:
    bool_kind = 0
    int8_code = 1
    uint8_code = 5
    uint64_code = 8
    int64_code = 4
    float32_code = 10
    float64_code = 11
    int_kind = 14
    float_kind
    complex_kind


cdef int kind_of(object operand) except -2:
    if type(operand) is Array:
        (<Array>operand).check()
        return (<Array>operand).code
    if type(operand) is TracedScalar:
        operand = (<TracedScalar>operand).value
    if type(operand) is float:
        return float_kind
    if type(operand) is int:
        return int_kind
    if type(operand) is bool:
        return bool_kind
    if type(operand) is complex:
        return complex_kind
    return _kind_of_other(operand)


cdef int _kind_of_other(object operand) except -2:
    import numpy

    if isinstance(operand, numpy.generic):
        try:
            return dtype_code(operand.dtype)
        except KeyError:
            return -1
    # Subclasses, enumerations among them.
    for python, kind in ((int, int_kind), (float, float_kind), (complex, complex_kind)):
        if isinstance(operand, python):
            return kind
    return -1


cdef object number_for(object number, int kind, int code):
    cdef object value = number
    if type(number) is TracedScalar:
        if (kind == float_kind and code >= float32_code) or (
                kind == int_kind and code in (int64_code, float32_code, float64_code)):
            return number
        value = (<TracedScalar>number).concretize()
    if code == float32_code or code == float64_code:
        if type(value) is float:
            return value
        if type(value) is int:
            return <double>value
    elif type(value) is int and int8_code <= code <= uint64_code:
        if _fits(value, code):
            return value
        raise OverflowError(f"Python integer {value} out of bounds for {names[code]}")
    return _converted(value, names[code])


cdef bint _fits(object value, int code) except -1:
    cdef int overflow = 0
    cdef int64_t integer = PyLong_AsLongLongAndOverflow(value, &overflow)
    cdef int bits
    if code <= int64_code:
        bits = 8 << (code - int8_code)
        return overflow == 0 and integer >> (bits - 1) in (0, -1)
    bits = 8 << (code - uint8_code)
    if bits == 64:
        return 0 <= value < 2**64
    return overflow == 0 and integer >= 0 and integer >> bits == 0


cdef object _converted(object value, str dtype):
    # As NumPy converts it, to a Python number for a kernel.
    import numpy

    type_ = numpy.dtype(dtype)
    if isinstance(value, int) and not isinstance(value, bool) and type_.kind in "iu":
        return number_for(int(value), int_kind, names.index(dtype))
    with numpy.errstate(all="ignore"):
        return type_.type(value).item()
