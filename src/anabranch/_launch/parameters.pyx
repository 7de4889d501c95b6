"""Arguments of kernels whose parameters are declared, packed as the declarations say."""

from cpython.exc cimport PyErr_Clear, PyErr_Occurred
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_Check
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from anabranch._launch.packing cimport parameter_of, shown
from anabranch._memory.array cimport Array

from anabranch._memory.dtype import names as dtype_names

cdef extern from "Python.h":
    double PyLong_AsDouble(object)


cdef int put_pointer(
        object kernel, const ParameterRule* rule, Py_ssize_t i, Array array, uint8_t access,
        uint64_t* slots) except -1:
    if rule.kind != pointer_kind and (rule.size != 8 or rule.kind not in (bits_kind, integer_kind, unsigned_kind)):
        raise TypeError(
            f"{parameter_of(kernel, i)}: {kernel.parameters[i].describe()} is no array, {array._described()} was given")
    if not (rule.accepted >> array.code) & 1:
        raise TypeError(
            f"{parameter_of(kernel, i)}: declared as {kernel.parameters[i].describe()}, "
            f"an array of {dtype_names[array.code]} was given")
    if access != 1 and array._read_only:
        raise ValueError(f"{parameter_of(kernel, i)} may write, but {array._described()} is read-only memory")
    slots[rule.slot] = <uint64_t><size_t>array.data
    return 0


cdef int put_declared(
        object kernel, const ParameterRule* rule, Py_ssize_t i, object value, uint64_t* slots) except -1:
    cdef double number
    cdef float narrow
    cdef int converted = 0
    if rule.kind == float_kind or (rule.kind == bits_kind and PyFloat_Check(value) and rule.size in (4, 8)):
        if type(value) is float:
            number = PyFloat_AS_DOUBLE(value)
        else:
            number = _real(kernel, i, value)
            converted = type(value) is not int
        if rule.size == 8:
            memcpy(&slots[rule.slot], &number, 8)
        elif rule.size == 4:
            narrow = <float>number
            memcpy(&slots[rule.slot], &narrow, 4)
        else:
            return _put_half(number, &slots[rule.slot])
        return converted
    if rule.kind == struct_kind:
        return _put_raw(kernel, rule, i, value, slots)
    if rule.kind == pointer_kind:
        raise TypeError(
            f"{parameter_of(kernel, i)}: declared as {kernel.parameters[i].describe()}, which takes an array, not "
            f"{type(value).__name__}{_hint(value)}")
    # No number of C's is larger than 8 bytes.
    if rule.kind == bits_kind and (rule.size > 8 or not PyLong_Check(value)):
        return _put_raw(kernel, rule, i, value, slots)
    return _put_integer(kernel, rule, i, value, slots)


cdef object _hint(object value):
    protocols = "__array_interface__", "__cuda_array_interface__", "__dlpack__"
    wraps = any([hasattr(value, name) for name in protocols])
    return "; wrap it with anabranch.asarray" if wraps else ""


cdef object _refuse_number(object kernel, Py_ssize_t i, object value):
    return TypeError(
        f"{parameter_of(kernel, i)}: declared as {kernel.parameters[i].describe()}, "
        f"{type(value).__name__} was given{_hint(value)}")


cdef object _refuse_size(object kernel, Py_ssize_t i, object value):
    return ValueError(f"{parameter_of(kernel, i)}: {shown(value)} does not fit {kernel.parameters[i].describe()}")


cdef double _real(object kernel, Py_ssize_t i, object value) except? -1:
    cdef double number
    if PyFloat_Check(value):
        return float.__call__(value)
    if not PyLong_Check(value):
        import numpy

        # Scalars only: an array of one element would turn into a number as well.
        if not isinstance(value, numpy.floating | numpy.integer | numpy.bool_):
            raise _refuse_number(kernel, i, value)
        return float(value)
    number = PyLong_AsDouble(value)
    if number == -1 and PyErr_Occurred():
        PyErr_Clear()
        raise _refuse_size(kernel, i, value)
    return number


cdef int _put_half(double number, uint64_t* slot) except -1:
    import numpy

    # Values that are too large become infinite, as with the other floats.
    with numpy.errstate(over="ignore"):
        half = numpy.float16(number).tobytes()
    memcpy(slot, <const char*>(<bytes>half), 2)
    return 1


cdef int _put_integer(
        object kernel, const ParameterRule* rule, Py_ssize_t i, object value, uint64_t* slots) except -1:
    cdef int64_t signed
    cdef uint64_t unsigned
    cdef int converted = 0
    if type(value) is not int:
        converted = 1
        value = _integer(kernel, i, value)
    width = 8 * rule.size
    if rule.kind == bool_kind:
        slots[rule.slot] = 1 if value else 0
        return converted
    low = 0 if rule.kind == unsigned_kind else -(1 << (width - 1))
    high = (1 << (width - 1)) if rule.kind == signed_kind else 1 << width
    if not low <= value < high:
        raise _refuse_size(kernel, i, value)
    if value < 0:
        signed = value
        memcpy(&slots[rule.slot], &signed, 8)
    else:
        unsigned = value
        memcpy(&slots[rule.slot], &unsigned, 8)
    return converted


cdef object _integer(object kernel, Py_ssize_t i, object value):
    if not PyLong_Check(value):
        import numpy

        if not isinstance(value, numpy.integer | numpy.bool_):
            raise _refuse_number(kernel, i, value)
    return int(value)


cdef int _put_raw(
        object kernel, const ParameterRule* rule, Py_ssize_t i, object value, uint64_t* slots) except -1:
    # A structure by value: its bytes, a NumPy scalar, complex ones and records among them, or anything with a buffer.
    cdef bytes raw
    if isinstance(value, complex) and type(value) is complex and rule.size == 16:
        import numpy

        value = numpy.complex128(value)
    try:
        raw = bytes(memoryview(value))
    except TypeError:
        raise _refuse_number(kernel, i, value) from None
    if <size_t>len(raw) != rule.size:
        raise TypeError(f"{parameter_of(kernel, i)}: it takes {rule.size} bytes, {type(value).__name__} has {len(raw)}")
    memcpy(&slots[rule.slot], <const char*>raw, rule.size)
    return 1
