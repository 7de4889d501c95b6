"""Launches with blocks that the caller chose, of kernels found in loaded code."""

from cpython.exc cimport PyErr_Clear, PyErr_Occurred
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_Check
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from anabranch._array cimport Array
from anabranch._context cimport TaskState, current_state
from anabranch._core cimport CBackend, CKernel, CStream, OperationKind, Point, Ref, Touch, tracing
from anabranch._core_graph cimport tell_origin
from anabranch._device cimport DeviceBase
from anabranch._given cimport Given, args_of, named_device, stream_of
from anabranch._hazard cimport Submission, access_of, begin, commit
from anabranch._launch_config cimport LaunchConfig, LaunchGrid
from anabranch._scalar cimport Scalar, marks_of
from anabranch._stream cimport Stream
from anabranch._traced cimport show

from anabranch._device import devices
from anabranch._dtype import names as dtype_names
from anabranch._errors import DeviceError

cdef extern from *:
    """
    static std::span<const std::byte> as_bytes(const char* data, size_t size) {
      return {reinterpret_cast<const std::byte*>(data), size};
    }
    static anabranch::Ref<anabranch::Library> load(anabranch::Backend& backend, const char* data, size_t size) {
      return backend.load_library(as_bytes(data, size));
    }
    static anabranch::Point enqueue_grid(anabranch::Backend& backend, anabranch::Stream& stream,
                                         anabranch::Kernel& kernel, const anabranch::LaunchGrid& grid,
                                         const uint64_t* slots, size_t count) {
      return backend.launch_grid(stream, kernel, grid, {slots, count});
    }
    static anabranch::KernelAttributes attributes_of(anabranch::Kernel& kernel) { return kernel.attributes(); }
    static std::vector<anabranch::ParameterPlace> places_of(anabranch::Kernel& kernel) { return kernel.parameters(); }
    static int resident_blocks(anabranch::Kernel& kernel, int threads, size_t shared) {
      return kernel.resident_blocks(threads, shared);
    }
    """
    Ref[Library] load(CBackend&, const char*, size_t) except +translate
    Point enqueue_grid(
        CBackend&, CStream&, CKernel&, const LaunchGrid&, const uint64_t*, size_t) except +translate
    KernelAttributes attributes_of(CKernel&) except +translate
    vector[ParameterPlace] places_of(CKernel&) except +translate
    int resident_blocks_of "resident_blocks"(CKernel&, int, size_t) except +translate

cdef extern from "Python.h":
    double PyLong_AsDouble(object)

cdef enum ParameterKind:
    bits_kind       # of the given size; a pointer, if that is what an address takes and an array is given
    pointer_kind
    float_kind
    signed_kind
    unsigned_kind
    integer_kind    # of unknown sign
    struct_kind
    bool_kind

cdef enum:
    most_slots = 4096   # 32 KiB of parameters, the most since CUDA 12.1
    few_slots = 64
    few_touches = 16
    any_dtype = 0xFFFF

_KINDS = {
    "bits": bits_kind, "pointer": pointer_kind, "float": float_kind, "signed": signed_kind,
    "unsigned": unsigned_kind, "integer": integer_kind, "struct": struct_kind, "bool": bool_kind,
}


cdef class LoadedCode:
    def __init__(self, DeviceBase device not None, bytes image not None):
        """Load machine code, or PTX that ends in a zero byte. Raises ValueError with the driver's words."""
        self.device = device
        self.library = load(deref(device.backend), <const char*>image, len(image))


def architecture(DeviceBase device not None):
    """Return which machine code a device runs: 90 for sm_90; 0 if it loads none."""
    return architecture_of(deref(device.backend))


cdef Ref[CKernel] load_kernel(
        DeviceBase device, bytes image, str symbol, str name, const KernelForm& form) except *:
    cdef LoadedCode code = LoadedCode(device, image)
    return code.library.get().find(symbol.encode(), name.encode(), form)


cdef class GridKernel:
    def _sizes_of(self, LoadedCode code not None, str symbol not None):
        """Return the sizes of the parameters, as the driver tells them; None where it cannot."""
        cdef KernelForm nothing
        cdef Ref[CKernel] found = code.library.get().find(symbol.encode(), self.name.encode(), nothing)
        cdef vector[ParameterPlace] places = places_of(deref(found))
        cdef size_t i
        return [places[i].size for i in range(places.size())]

    def _rule(self, rules, array_access):
        """Take over what each parameter is: ``(kind, size, access code, dtype names or None)``. Called once."""
        cdef ParameterRule rule
        for kind, size, access, dtypes in rules:
            rule.kind = _KINDS[kind]
            rule.access = access
            rule.accepted = any_dtype
            if dtypes is not None:
                rule.accepted = 0
                for dtype in dtypes:
                    rule.accepted |= 1 << dtype_names.index(dtype)
            rule.slot = self.slot_count
            rule.size = size
            self.slot_count += max(1, (size + 7) // 8)
            self.rules.push_back(rule)
        if self.slot_count > most_slots:
            raise TypeError(
                f"kernel {self.name!r}: its parameters take {8 * self.slot_count} bytes, over {8 * most_slots}")
        for access in array_access:
            self.array_access.push_back(access)
        # Never resized, so that launches read them with no lock.
        self.loaded.resize(len(devices()))
        self.most_threads.resize(len(devices()))
        self.most_shared_memory.resize(len(devices()))

    def _load(self, LoadedCode code not None, str symbol not None):
        """Find the kernel in code for one device."""
        cdef KernelForm form
        cdef size_t i
        cdef DeviceBase device = code.device
        if self.loaded[device.ordinal].get() != NULL:
            return  # another thread was first, and launches it
        for i in range(self.rules.size()):
            form.slots.push_back(self.rules[i].slot)
        cdef Ref[CKernel] found = code.library.get().find(symbol.encode(), self.name.encode(), form)
        cdef KernelAttributes attributes = attributes_of(deref(found))
        self.most_threads[device.ordinal] = attributes.max_threads
        self.most_shared_memory[device.ordinal] = attributes.max_shared_memory - attributes.shared_memory
        self.loaded[device.ordinal] = found

    def _attributes(self, DeviceBase device not None):
        cdef KernelAttributes found = attributes_of(deref(_loaded(self, device)))
        return {
            "registers": found.registers, "max_threads": found.max_threads, "shared_memory": found.shared_memory,
            "local_memory": found.local_memory, "constant_memory": found.constant_memory,
            "max_shared_memory": found.max_shared_memory, "binary_version": found.binary_version,
        }

    def _resident_blocks(self, DeviceBase device not None, int threads, size_t shared_memory):
        return resident_blocks_of(deref(_loaded(self, device)), threads, shared_memory)


cdef CKernel* _loaded(GridKernel kernel, DeviceBase device) except NULL:
    if kernel.loaded[device.ordinal].get() == NULL:
        kernel._load_for(device)
    return kernel.loaded[device.ordinal].get()


cdef int check_again(const Given* given, Py_ssize_t count) except -1:
    cdef Py_ssize_t i
    for i in range(count):
        if type(<object>given.args[i]) is Array:
            (<Array>given.args[i]).check()
    return 0


cdef object parameter_of(kernel, Py_ssize_t position):
    return f"kernel {kernel.name!r}, parameter {kernel.parameters[position].name!r}"


cdef int refuse_elsewhere(kernel, Py_ssize_t position, Array array, DeviceBase where) except -1:
    raise DeviceError(
        f"{parameter_of(kernel, position)}: {array!r} is on {array._device.alias}, but the launch is on "
        f"{where.alias}; copy it there first")


cdef int _put_array(GridKernel kernel, Py_ssize_t i, Array array, uint8_t access, uint64_t* slots) except -1:
    cdef ParameterRule* rule = &kernel.rules[i]
    if rule.kind != pointer_kind and (rule.size != 8 or rule.kind not in (bits_kind, integer_kind, unsigned_kind)):
        raise TypeError(
            f"{parameter_of(kernel, i)}: {kernel.parameters[i].describe()} is no array, {array!r} was given")
    if not (rule.accepted >> array.code) & 1:
        raise TypeError(
            f"{parameter_of(kernel, i)}: declared as {kernel.parameters[i].describe()}, "
            f"an array of {dtype_names[array.code]} was given")
    if access != 1 and array._read_only:
        raise ValueError(f"{parameter_of(kernel, i)} may write, but {array!r} is read-only memory")
    slots[rule.slot] = <uint64_t><size_t>array.data
    return 0


cdef int put_number(GridKernel kernel, Py_ssize_t i, object value, uint64_t* slots) except -1:
    cdef ParameterRule* rule = &kernel.rules[i]
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
        return _put_raw(kernel, i, value, slots)
    if rule.kind == pointer_kind:
        raise TypeError(
            f"{parameter_of(kernel, i)}: declared as {kernel.parameters[i].describe()}, which takes an array, not "
            f"{type(value).__name__}{_hint(value)}")
    # No number of C's is larger than 8 bytes.
    if rule.kind == bits_kind and (rule.size > 8 or not PyLong_Check(value)):
        return _put_raw(kernel, i, value, slots)
    return _put_integer(kernel, i, value, slots)


cdef object _hint(object value):
    protocols = "__array_interface__", "__cuda_array_interface__", "__dlpack__"
    wraps = any([hasattr(value, name) for name in protocols])
    return "; wrap it with anabranch.asarray" if wraps else ""


cdef object _refuse_number(GridKernel kernel, Py_ssize_t i, object value):
    return TypeError(
        f"{parameter_of(kernel, i)}: declared as {kernel.parameters[i].describe()}, "
        f"{type(value).__name__} was given{_hint(value)}")


cdef object _refuse_size(GridKernel kernel, Py_ssize_t i, object value):
    return ValueError(f"{parameter_of(kernel, i)}: {shown(value)} does not fit {kernel.parameters[i].describe()}")


cdef object shown(value):
    # Of thousands of digits Python makes no text.
    return value if value.bit_length() < 4096 else f"an int of {value.bit_length()} bits"


cdef double _real(GridKernel kernel, Py_ssize_t i, object value) except? -1:
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

    # What is too large becomes infinite, as with the other floats.
    with numpy.errstate(over="ignore"):
        half = numpy.float16(number).tobytes()
    memcpy(slot, <const char*>(<bytes>half), 2)
    return 1


cdef int _put_integer(GridKernel kernel, Py_ssize_t i, object value, uint64_t* slots) except -1:
    cdef ParameterRule* rule = &kernel.rules[i]
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


cdef object _integer(GridKernel kernel, Py_ssize_t i, object value):
    if not PyLong_Check(value):
        import numpy

        if not isinstance(value, numpy.integer | numpy.bool_):
            raise _refuse_number(kernel, i, value)
    return int(value)


cdef int _put_raw(GridKernel kernel, Py_ssize_t i, object value, uint64_t* slots) except -1:
    # A structure by value: its bytes, a NumPy scalar, complex ones and records among them, or anything with a buffer.
    cdef ParameterRule* rule = &kernel.rules[i]
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


cdef int launch_grid(GridKernel kernel, LaunchConfig config, const Given* given) except -1:
    # Few on the stack: compilers touch every page of a large frame, which costs more than the launch does otherwise.
    cdef uint64_t[few_slots] few
    cdef vector[uint64_t] many
    cdef Touch[few_touches] some
    cdef vector[Touch] all_touches
    cdef uint64_t* slots = few
    cdef Touch* touches = some
    cdef int access
    cdef Py_ssize_t count = given.count
    cdef Py_ssize_t i
    cdef size_t arrays = 0
    cdef PyObject* arg
    cdef DeviceBase where = named_device(given)
    if count != <Py_ssize_t>kernel.rules.size():
        raise kernel._wrong_count(count)
    if kernel.slot_count > few_slots:
        many.resize(kernel.slot_count)
        slots = many.data()
    if count > few_touches:
        all_touches.resize(count)
        touches = all_touches.data()
    for i in range(count):
        arg = given.args[i]
        if type(<object>arg) is not Array:
            if type(<object>arg) is Scalar:
                arg = <PyObject*>(<Scalar>arg).value
            if put_number(kernel, i, <object>arg, slots) != 0:
                check_again(given, i)
            continue
        if where is None:
            where = (<Array>arg)._device
        check_array(kernel, i, <Array>arg, where)
        access = kernel.array_access[arrays] if arrays < kernel.array_access.size() else kernel.rules[i].access
        _put_array(kernel, i, <Array>arg, access, slots)
        touches[arrays] = (<Array>arg).touch(access_of(access))
        arrays += 1
    cdef TaskState state = current_state()
    cdef PyObject* target = stream_of(given, state, where)
    where = (<Stream>target).device
    cdef CKernel* compiled = kernel.loaded[where.ordinal].get()
    if compiled == NULL:
        compiled = _loaded(kernel, where)
        check_again(given, count)
    if config.threads > kernel.most_threads[where.ordinal]:
        raise ValueError(
            f"kernel {kernel.name!r} runs in blocks of at most {kernel.most_threads[where.ordinal]} threads on "
            f"{where.alias}, not {config.threads}: it needs too many registers")
    if config.shape.shared_memory > kernel.most_shared_memory[where.ordinal]:
        raise ValueError(
            f"kernel {kernel.name!r} can have at most {kernel.most_shared_memory[where.ordinal]} bytes of dynamic "
            f"shared memory on {where.alias}, not {config.shape.shared_memory}")
    cdef CStream* queue = (<Stream>target).get()
    cdef Submission submission
    begin(&submission, state, queue, touches, arrays)
    cdef Point point = enqueue_grid(
        queue.backend(), deref(queue), deref(compiled), config.shape, slots, kernel.slot_count)
    if queue.capture() != NULL:
        tell_origin(deref(queue), point, (kernel, marks_of(args_of(given))) if queue.capture().exclusive() else kernel)
    elif tracing():
        show(queue, point, OperationKind.kernel, kernel.name, 0)
    return commit(&submission, state, point)
