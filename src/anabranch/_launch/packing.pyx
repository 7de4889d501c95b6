"""Arguments of launches: checked, named in messages, and packed for kernels."""

from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport CStream, OperationKind, Point, tracing
from anabranch._core.explore cimport exploring, name_parameters, pass_views
from anabranch._core.tracing cimport show
from anabranch._device.device cimport DeviceBase
from anabranch._launch.call_args cimport CallArgs
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport dtype_code
from anabranch._memory.traced_scalar cimport TracedScalar

from anabranch._core.errors import DeviceError

cdef enum:
    # Positions in dtype_names.
    bool_code = 0
    int64_code = 4
    uint64_code = 8
    complex64_code = 12
    complex128_code = 13

cdef extern from *:
    """
    // Sizes of elements are powers of two.
    static int64_t in_elements(int64_t stride, int64_t itemsize) { return stride >> __builtin_ctzll(itemsize); }
    // Not 0 where 32 bits with a sign do not hold it.
    static uint64_t beyond_32_bits(int64_t value) { return (static_cast<uint64_t>(value) + 0x80000000u) >> 32; }
    """
    int64_t in_elements(int64_t, int64_t) nogil
    uint64_t beyond_32_bits(int64_t) nogil

cdef object _numpy_scalar = None


# -- of either sort of kernel --

cdef object parameter_of(kernel, Py_ssize_t position):
    return f"kernel {kernel.name!r}, parameter {kernel.parameters[position].name!r}"


cdef object shown(value):
    # Of thousands of digits Python makes no text.
    return value if value.bit_length() < 4096 else f"an int of {value.bit_length()} bits"


cdef int refuse_elsewhere(kernel, Py_ssize_t position, Array array, DeviceBase where) except -1:
    raise DeviceError(
        f"{parameter_of(kernel, position)}: {array._described()} is on {array._device.alias}, but the launch is on "
        f"{where.alias}; copy it there first")


cdef int commit_observed_launch(
        Submission* submission, TaskState state, CStream* queue, Point point, object kernel,
        const CallArgs* given) except -1:
    cdef vector[string] names
    cdef Py_ssize_t i
    if tracing():
        show(queue, point, OperationKind.kernel, kernel.name, 0)
    if exploring():
        for i in range(given.count):
            if type(<object>given.args[i]) is Array:
                names.push_back(kernel.parameters[i].name.encode())
        name_parameters(deref(queue), names)
    commit(submission, state, point)
    if exploring():
        with nogil:
            pass_views(deref(queue))
    return 0


cdef int check_again(const CallArgs* given, Py_ssize_t count) except -1:
    cdef Py_ssize_t i
    for i in range(count):
        if type(<object>given.args[i]) is Array:
            (<Array>given.args[i]).check()
    return 0


# -- of Python kernels --

cdef int refuse_slots() except -1:
    raise TypeError("the arguments have too many dimensions in total for one launch")


cdef inline int _put(Packed* packed, const void* value, size_t count) except -1:
    memcpy(room(packed, count), value, count * sizeof(uint64_t))
    return 0


cdef int count_in_elements(Packed* packed, Array array) except -1:
    # Compilers for GPUs count strides in elements, the others in bytes.
    cdef int64_t itemsize = array.layout.itemsize
    cdef int ndim = array.layout.ndim
    cdef int64_t extent = 0
    cdef uint64_t* strides = &packed.slots[packed.slot_count - ndim]
    cdef int d
    for d in range(ndim):
        if <int64_t>strides[d] & (itemsize - 1):
            raise ValueError(
                f"{array._described()} has strides that are no multiple of its elements' size, which kernels on "
                f"{array._device.alias} need")
        strides[d] = <uint64_t>in_elements(<int64_t>strides[d], itemsize)
        extent += (array.layout.shape[d] - 1) * <int64_t>abs(<int64_t>strides[d])
        packed.wide |= beyond_32_bits(<int64_t>strides[d]) | beyond_32_bits(array.layout.shape[d])
    packed.wide |= beyond_32_bits(extent)
    return 0


cdef int put_other_number(Packed* packed, object value, object kernel, Py_ssize_t position) except -1:
    cdef int64_t integer
    cdef uint64_t unsigned
    cdef double[2] number
    cdef int code
    global _numpy_scalar
    if PyBool_Check(value):
        code = bool_code
        integer = value
        _put(packed, &integer, 1)
    elif type(value) is int:
        code = _put_integer(packed, value, kernel, position)
    elif type(value) is complex:
        code = complex128_code
        number[0] = PyComplex_RealAsDouble(value)
        number[1] = PyComplex_ImagAsDouble(value)
        _put(packed, number, 2)
    elif type(value) is TracedScalar:
        return put_number(packed, (<TracedScalar>value).value, kernel, position)
    else:
        if _numpy_scalar is None:
            import numpy

            _numpy_scalar = numpy.generic
        if not isinstance(value, _numpy_scalar):
            return _put_other(packed, value, kernel, position)
        try:
            code = dtype_code(value.dtype)
        except KeyError:
            raise TypeError(
                f"{parameter_of(kernel, position)}: kernels take no scalars of dtype {value.dtype}") from None
        if code == complex64_code or code == complex128_code:
            number[0] = value.real
            number[1] = value.imag
            _put(packed, number, 2)
        elif value.dtype.kind == "f":
            number[0] = value
            _put(packed, number, 1)
        elif code == uint64_code:
            unsigned = int(value)
            _put(packed, &unsigned, 1)
        else:
            integer = int(value)
            _put(packed, &integer, 1)
        _look_again(packed, position)
    packed.key[packed.key_length] = scalar_tag
    packed.key[packed.key_length + 1] = code
    packed.key_length += 2
    return 0


cdef int words_of(int kind) noexcept:
    return 2 if kind == complex64_code or kind == complex128_code else 1


cdef int pack_number(object kernel, Py_ssize_t position, object value, uint64_t* slots) except -1:
    cdef Packed packed
    packed.slots = slots
    packed.key_length = 0
    packed.slot_count = 0
    packed.capacity = 2
    packed.given = NULL
    put_number(&packed, value, kernel, position)
    return packed.key[1]


cdef int _put_integer(Packed* packed, object value, object kernel, Py_ssize_t position) except -1:
    cdef int64_t integer
    cdef uint64_t unsigned
    if -(2**63) <= value < 2**63:
        integer = value
        _put(packed, &integer, 1)
        return int64_code
    if value < 2**64 and value > 0:
        unsigned = value
        _put(packed, &unsigned, 1)
        return uint64_code
    raise ValueError(f"{parameter_of(kernel, position)}: {shown(value)} does not fit 64 bits")


cdef int _put_other(Packed* packed, object value, object kernel, Py_ssize_t position) except -1:
    # Subclasses of Python's numbers, enumerations among them, count as what they derive from.
    for kind in (int, float, complex):
        if isinstance(value, kind):
            put_number(packed, kind.__call__(value), kernel, position)
            return _look_again(packed, position)
    shares = hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")
    if isinstance(value, (list, tuple)):
        hint = "; make an array of its numbers with ab.array, or pass each array by itself"
    else:
        hint = "; wrap it with anabranch.asarray" if shares else ""
    raise TypeError(
        f"{parameter_of(kernel, position)}: kernels take arrays and numbers, not {type(value).__name__}{hint}")


cdef int _look_again(Packed* packed, Py_ssize_t position) except -1:
    # A number that converts itself may close the arrays before it; those after it are still to be looked at.
    return 0 if packed.given == NULL else check_again(packed.given, position)
