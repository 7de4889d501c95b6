"""Launches over an index space: arguments are checked and packed, and the kernel enqueued."""

from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from anabranch._array cimport Array
from anabranch._context cimport TaskState, current_state
from anabranch._core cimport (
    CKernel, CStream, HazardMode, LaunchShape, OperationKind, Point, Ref, Site, Slots, Touch, max_dimensions, tracing)
from anabranch._core_graph cimport tell_origin
from anabranch._device cimport DeviceBase
from anabranch._dtype cimport dtype_code
from anabranch._given cimport Given, args_of, named_device, stream_of
from anabranch._grid cimport KernelForm, architecture_of, check_again, check_array, load_kernel, parameter_of, shown
from anabranch._hazard cimport Submission, access_of, begin, commit
from anabranch._kernel_failure cimport launch_site_slots, make_kernel, places_of
from anabranch._launch_config cimport most_indices, read_dimensions
from anabranch._scalar cimport Scalar, marks_of
from anabranch._site cimport current_site
from anabranch._stream cimport Stream
from anabranch._traced cimport show

from anabranch._dtype import names as dtype_names
from anabranch.kernels._signature import Target

cdef enum:
    most_arguments = 128
    most_slots = 1024
    few_slots = 256
    few_touches = 16
    scalar_tag = 0x80   # in a key: what follows is a scalar's kind, not an array's dtype
    head = 3            # bytes of a key before the arguments
    # Beside the number of dimensions in a key: indices are checked; the launch or an array is too large for 32 bits.
    checked_bit = 0x10
    wide_bit = 0x20
    # Positions in dtype_names.
    bool_code = 0
    int64_code = 4
    uint64_code = 8
    float64_code = 11
    complex64_code = 12
    complex128_code = 13

cdef extern from *:
    """
    // A process has more devices than a byte can tell apart.
    static void set_device(uint8_t* key, uint16_t ordinal) { memcpy(key + 1, &ordinal, sizeof(ordinal)); }
    static void set_block(anabranch::LaunchShape& shape, int threads) { shape.block = threads; }
    // Sizes of elements are powers of two.
    static int64_t in_elements(int64_t stride, int64_t itemsize) { return stride >> __builtin_ctzll(itemsize); }
    // Not 0 where 32 bits with a sign do not hold it.
    static uint64_t beyond_32_bits(int64_t value) { return (static_cast<uint64_t>(value) + 0x80000000u) >> 32; }
    static bool fits_grid(const anabranch::LaunchShape& shape) { return shape.fits_grid(); }
    """
    uint64_t beyond_32_bits(int64_t) nogil
    bint fits_grid(const LaunchShape&) nogil
    void set_device(uint8_t*, int) nogil
    void set_block(LaunchShape&, int) nogil
    int64_t in_elements(int64_t, int64_t) nogil

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1

cdef object _numpy_scalar = None


cdef class KernelBase:
    def _bind(self, codes):
        """Take over the access code of each parameter. Called once, when the kernel is made."""
        if len(codes) > most_arguments:
            raise TypeError(f"a kernel has at most {most_arguments} parameters after the index, not {len(codes)}")
        for code in codes:
            self.access_codes.push_back(code)


cdef struct Packed:
    # The launch's dimensions, the device, then a pair of bytes per argument; and the slots that the kernel reads.
    uint8_t key[head + 2 * most_arguments]
    uint64_t* slots
    size_t key_length
    size_t slot_count
    size_t capacity
    uint64_t wide           # not 0 where a size, a stride or an offset, in elements, is too large for 32 bits
    const Given* given      # NULL: a number alone


cdef inline uint64_t* _room(Packed* packed, size_t count) except NULL:
    cdef uint64_t* slots = &packed.slots[packed.slot_count]
    packed.slot_count += count
    if packed.slot_count > packed.capacity:
        raise TypeError("the arguments have too many dimensions in total for one launch")
    return slots


cdef inline int _put(Packed* packed, const void* value, size_t count) except -1:
    memcpy(_room(packed, count), value, count * sizeof(uint64_t))
    return 0


cdef int _put_array(Packed* packed, Array array) except -1:
    cdef int ndim = array.layout.ndim
    cdef uint64_t* slots = _room(packed, 1 + 2 * ndim)
    cdef int d
    slots[0] = <uint64_t>array.data
    # Not by memcpy, which costs more for so few.
    for d in range(ndim):
        slots[1 + d] = array.layout.shape[d]
        slots[1 + ndim + d] = array.layout.strides[d]
    if architecture_of(deref(array._device.backend)) != 0:
        _count_in_elements(packed, array)
    packed.key[packed.key_length] = array.code
    packed.key[packed.key_length + 1] = ndim | (0x40 if array.contiguous else 0) | (
        0x20 if array._read_only else 0)
    packed.key_length += 2
    return 0


cdef int _count_in_elements(Packed* packed, Array array) except -1:
    # Compilers for GPUs count strides in elements, the others in bytes.
    cdef int64_t itemsize = array.layout.itemsize
    cdef int ndim = array.layout.ndim
    cdef int64_t extent = 0
    cdef uint64_t* strides = &packed.slots[packed.slot_count - ndim]
    cdef int d
    for d in range(ndim):
        if <int64_t>strides[d] & (itemsize - 1):
            raise ValueError(
                f"{array!r} has strides that are no multiple of its elements' size, which kernels on "
                f"{array._device.alias} need")
        strides[d] = <uint64_t>in_elements(<int64_t>strides[d], itemsize)
        extent += (array.layout.shape[d] - 1) * <int64_t>abs(<int64_t>strides[d])
        packed.wide |= beyond_32_bits(<int64_t>strides[d]) | beyond_32_bits(array.layout.shape[d])
    packed.wide |= beyond_32_bits(extent)
    return 0


cdef int _put_scalar(Packed* packed, object value, object kernel, Py_ssize_t position) except -1:
    cdef int64_t integer
    cdef uint64_t unsigned
    cdef double[2] number
    cdef int code
    global _numpy_scalar
    if type(value) is float:
        code = float64_code
        number[0] = PyFloat_AS_DOUBLE(value)
        _put(packed, number, 1)
    elif PyBool_Check(value):
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
    elif type(value) is Scalar:
        return _put_scalar(packed, (<Scalar>value).value, kernel, position)
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
    _put_scalar(&packed, value, kernel, position)
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
            _put_scalar(packed, kind.__call__(value), kernel, position)
            return _look_again(packed, position)
    shares = hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")
    hint = "; wrap it with anabranch.asarray" if shares else ""
    raise TypeError(
        f"{parameter_of(kernel, position)}: kernels take arrays and numbers, not {type(value).__name__}{hint}")


cdef int _look_again(Packed* packed, Py_ssize_t position) except -1:
    # A number that converts itself may close the arrays before it; those after it are still to be looked at.
    return 0 if packed.given == NULL else check_again(packed.given, position)


cdef int _put_site(Packed* packed) except -1:
    # Kept for good, since the code object that it names is.
    cdef Site site = current_site()
    cdef uint64_t* slots = _room(packed, launch_site_slots)
    slots[0] = site.code
    slots[1] = site.instruction
    return 0


cdef inline int _read_shape(object dim, LaunchShape* shape) except -1:
    cdef int overflow = 0
    cdef long long one
    if type(dim) is int:
        one = PyLong_AsLongLongAndOverflow(dim, &overflow)
        if overflow == 0 and 0 <= one < most_indices:
            shape.ndim = 1
            shape.dims[0] = one
            return 0
    return read_dimensions(dim, shape)


cdef Ref[CKernel] _compile(KernelBase kernel, Packed* packed, DeviceBase device) except *:
    # Not seen before: tell the compiler what the key says.
    cdef Ref[CKernel] compiled
    cdef size_t position = head
    cdef int architecture = architecture_of(deref(device.backend))
    codes = []
    while position < packed.key_length:
        first, second = packed.key[position], packed.key[position + 1]
        if first == scalar_tag:
            codes.append(("scalar", dtype_names[second]))
        else:
            codes.append(("array", dtype_names[first], second & 0x1F, bool(second & 0x40), bool(second & 0x20)))
        position += 2
    signature = packed.key[0] & 0xF, tuple(codes)
    checked = bool(packed.key[0] & checked_bit)
    cdef KernelForm form
    if architecture != 0:
        form.wide = packed.key[0] & wide_bit
        code = kernel.compile_cuda(signature, Target(divmod(architecture, 10), checked, form.wide))
        form.across = code.across
        form.slots = code.slots
        form.places = places_of(code.places)
        compiled = load_kernel(device, code.image, code.symbol, kernel.name, form)
    else:
        code = kernel.compile_cpu(signature, checked)
        compiled = make_kernel(<void*><size_t>code.address, kernel.name.encode(), places_of(code.places), code)
    kernel.plans.add(packed.key, packed.key_length, compiled)
    return compiled


cdef int launch_indices(KernelBase kernel, object dim, const Given* given) except -1:
    cdef Packed packed
    # Few on the stack, as in a launch with blocks.
    cdef uint64_t[few_slots] few
    cdef vector[uint64_t] many
    cdef Touch[few_touches] some
    cdef vector[Touch] all_touches
    cdef Touch* touches = some
    cdef size_t touched = 0
    cdef Py_ssize_t count = given.count
    cdef Py_ssize_t i
    cdef LaunchShape shape
    _read_shape(dim, &shape)
    if given.block != NULL:
        set_block(shape, _read_block(<object>given.block))
    cdef DeviceBase where = named_device(given)
    if count != <Py_ssize_t>kernel.access_codes.size():
        _wrong_count(kernel, count)
    packed.key[0] = shape.ndim
    packed.key_length = head
    packed.slot_count = 0
    packed.wide = 0
    packed.given = given
    packed.slots = few
    packed.capacity = few_slots
    if count * (1 + 2 * max_dimensions) > few_slots:
        many.resize(most_slots)
        packed.slots = many.data()
        packed.capacity = most_slots
    if count > few_touches:
        all_touches.resize(count)
        touches = all_touches.data()
    cdef PyObject* arg
    for i in range(count):
        arg = given.args[i]
        if type(<object>arg) is not Array:
            _put_scalar(&packed, <object>arg, kernel, i)
            continue
        if where is None:
            where = (<Array>arg)._device
        _check_touched(kernel, i, <Array>arg, where)
        _put_array(&packed, <Array>arg)
        touches[touched] = (<Array>arg).touch(access_of(kernel.access_codes[i]))
        touched += 1
    cdef TaskState state = current_state()
    cdef PyObject* target = stream_of(given, state, where)
    set_device(packed.key, (<Stream>target).device.ordinal)
    if state.bounds or state.mode == <int>HazardMode.check:
        packed.key[0] |= checked_bit
    if architecture_of(deref((<Stream>target).device.backend)) != 0 and (packed.wide != 0 or not fits_grid(shape)):
        packed.key[0] |= wide_bit
    cdef CStream* queue = (<Stream>target).get()
    cdef Ref[CKernel] fresh
    cdef CKernel* compiled = kernel.plans.find(packed.key, packed.key_length)
    if compiled == NULL:
        fresh = _compile(kernel, &packed, (<Stream>target).device)
        compiled = fresh.get()
        # Other threads ran meanwhile.
        queue = (<Stream>target).get()
        check_again(given, count)
    if shape.size() == 0:
        return 0
    if compiled.may_fail():
        _put_site(&packed)
    cdef Submission submission
    begin(&submission, state, queue, touches, touched)
    cdef Point point = queue.backend().launch(
        deref(queue), deref(compiled), shape, Slots(packed.slots, packed.slot_count))
    if queue.capture() != NULL:
        tell_origin(deref(queue), point, (kernel, marks_of(args_of(given))) if queue.capture().exclusive() else kernel)
    elif tracing():
        show(queue, point, OperationKind.kernel, kernel.name, 0)
    return commit(&submission, state, point)


cdef int _read_block(object block) except -1:
    if type(block) is not int or not 1 <= block <= 1024:
        raise ValueError(f"block is a number of threads from 1 to 1024, not {block!r}")
    return block


cdef inline int _check_touched(KernelBase kernel, Py_ssize_t i, Array array, DeviceBase where) except -1:
    check_array(kernel, i, array, where)
    if kernel.access_codes[i] != 1 and array._read_only:
        raise ValueError(
            f"{parameter_of(kernel, i)} may write, but {array!r} is read-only memory; declare the parameter ab.In")
    return 0


cdef int _wrong_count(KernelBase kernel, Py_ssize_t count) except -1:
    names = [parameter.name for parameter in kernel.parameters]
    detail = f"missing {', '.join(names[count:])}" if count < len(names) else f"{count - len(names)} too many"
    raise TypeError(
        f"kernel {kernel.name!r} takes {len(names)} arguments after the index ({', '.join(names)}), "
        f"not {count}: {detail}")
