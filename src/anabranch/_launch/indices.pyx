"""Launches over an index space: arguments are checked and packed, and the kernel enqueued."""

from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    CBackend, CKernel, CStream, HazardMode, LaunchShape, Point, Ref, Site, Slots, Touch, max_dimensions,
    now_nanoseconds, tracing)
from anabranch._core.tracing cimport show_compilation
from anabranch._device.device cimport DeviceBase
from anabranch._hazards.ordering cimport Submission, access_of, begin
from anabranch._launch.call_args cimport CallArgs, named_device, stream_of
from anabranch._launch.constants cimport check_constants
from anabranch._launch.configuration cimport most_indices, read_dimensions
from anabranch._launch.kernel_failure cimport launch_site_slots, make_kernel, places_of
from anabranch._launch.loaded cimport BlockSizes, KernelForm, architecture_of, load_kernel
from anabranch._launch.packing cimport (
    Packed, check_again, check_array, commit_launch, head, most_arguments, parameter_of, put_array, put_number, room,
    scalar_tag)
from anabranch._memory.array cimport Array
from anabranch._stream.host_threads cimport ensure_host_thread
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state
from anabranch._task.site cimport current_site

from anabranch._memory.dtype import names as dtype_names
from anabranch._launch.target import Target

cdef enum:
    most_slots = 1024
    few_slots = 256
    few_touches = 16
    # CUDA's limits: along x, which is the last axis, and along the others.
    most_blocks_along_x = 0x7FFFFFFF
    most_blocks = 65535
    # Beside the number of dimensions in a key: indices are checked; the launch or an array is too large for 32 bits;
    # the threads of the launch run several indices each; a grid of one dimension counts the indices.
    checked_bit = 0x10
    wide_bit = 0x20
    coarse_bit = 0x40
    flat_bit = 0x80

cdef extern from *:
    """
    // A process has more devices than a byte can tell apart.
    static void set_device(uint8_t* key, uint16_t ordinal) { memcpy(key + 1, &ordinal, sizeof(ordinal)); }
    static void set_block(anabranch::LaunchShape& shape, int threads) { shape.block = threads; }
    static bool fits_grid(const anabranch::LaunchShape& shape) { return shape.fits_grid(); }
    static bool fits_line(const anabranch::LaunchShape& shape) { return shape.fits_line(); }
    static bool fits_axes(const anabranch::LaunchShape& shape) { return shape.fits_axes(); }
    static const int64_t* block_of(const anabranch::Kernel& kernel) { return kernel.block.data(); }
    static bool is_large(const anabranch::LaunchShape& shape, const anabranch::Backend& backend, bool loops) {
      return shape.is_large(backend.capabilities().resident_threads, loops);
    }
    """
    bint fits_grid(const LaunchShape&) nogil
    bint fits_line(const LaunchShape&) nogil
    bint fits_axes(const LaunchShape&) nogil
    const int64_t* block_of(const CKernel&) nogil
    bint is_large(const LaunchShape&, const CBackend&, bint loops) nogil
    void set_device(uint8_t*, int) nogil
    void set_block(LaunchShape&, int) nogil

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1


cdef class KernelBase:
    def _bind(self, codes, bint loops, bint in_blocks):
        """Take over the access code of each parameter, and whether the kernel has loops and runs in blocks.

        Called once, when it is made.
        """
        self.loops = loops
        self.in_blocks = in_blocks
        if len(codes) > most_arguments:
            raise TypeError(f"a kernel has at most {most_arguments} parameters after the index, not {len(codes)}")
        for code in codes:
            self.access_codes.push_back(code)


cdef int _put_site(Packed* packed) except -1:
    # Kept for good, since the code object that it names is.
    cdef Site site = current_site()
    cdef uint64_t* slots = room(packed, launch_site_slots)
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
    cdef int64_t since = now_nanoseconds()
    checked = bool(packed.key[0] & checked_bit)
    cdef KernelForm form
    if architecture != 0:
        wide = bool(packed.key[0] & wide_bit)
        form.flat = packed.key[0] & flat_bit
        form.coarse = packed.key[0] & coarse_bit
        code = kernel.compile_cuda(
            signature, Target(divmod(architecture, 10), checked, wide, form.flat, form.coarse))
        form.across = code.across
        form.slots = code.slots
        form.places = places_of(code.places)
        _put_block(code.block, &form.block)
        compiled = load_kernel(device, code.image, code.symbol, kernel.name, form)
    else:
        code = kernel.compile_cpu(signature, checked)
        _put_block(code.block, &form.block)
        compiled = make_kernel(
            <void*><size_t>code.address, kernel.name.encode(), places_of(code.places), form.block, code)
    if tracing():
        show_compilation(deref(device.backend), kernel.name, since)
    with kernel._compiling:
        if kernel.constants is None:
            kernel.constants = kernel._constants()
    kernel.plans.add(packed.key, packed.key_length, compiled)
    # The thread that a worker leaves its references to kernels and their code to.
    try:
        ensure_host_thread()
    except RuntimeError:  # the interpreter is exiting, which releases all of them
        pass
    return compiled


cdef inline void _choose_form(
        Packed* packed, const LaunchShape& shape, TaskState state, DeviceBase device, KernelBase kernel) noexcept:
    set_device(packed.key, device.ordinal)
    if state.bounds or state.mode == <int>HazardMode.check:
        packed.key[0] |= checked_bit
    if architecture_of(deref(device.backend)) != 0:
        if kernel.in_blocks:
            if packed.wide != 0 or not fits_axes(shape):
                packed.key[0] |= wide_bit
        elif packed.wide != 0:
            packed.key[0] |= wide_bit | flat_bit
        elif not fits_grid(shape):
            packed.key[0] |= flat_bit if fits_line(shape) else wide_bit | flat_bit
        elif not packed.key[0] & checked_bit and is_large(shape, deref(device.backend), kernel.loops):
            packed.key[0] |= coarse_bit


cdef inline void _begin_packing(
        Packed* packed, const CallArgs* given, uint64_t* few, vector[uint64_t]& many) except *:
    packed.key_length = head
    packed.slot_count = 0
    packed.wide = 0
    packed.given = given
    packed.slots = few
    packed.capacity = few_slots
    if given.count * (1 + 2 * max_dimensions) > few_slots:
        many.resize(most_slots)
        packed.slots = many.data()
        packed.capacity = most_slots


cdef int launch_indices(KernelBase kernel, object dim, const CallArgs* given) except -1:
    cdef Packed packed
    # Few on the stack, as in a launch with blocks.
    cdef uint64_t[few_slots] few
    cdef vector[uint64_t] many
    cdef Touch[few_touches] some
    cdef vector[Touch] all_touches
    cdef Touch* touches = some
    cdef size_t touched = 0
    cdef Py_ssize_t i, count = given.count
    cdef LaunchShape shape
    # Before anything is looked at that Python code might change.
    if kernel.constants is not None:
        check_constants(kernel.constants)
    _read_shape(dim, &shape)
    if given.block != NULL:
        set_block(shape, _read_block(<object>given.block))
    cdef DeviceBase where = named_device(given)
    if count != <Py_ssize_t>kernel.access_codes.size():
        _wrong_count(kernel, count, shape.ndim)
    packed.key[0] = shape.ndim
    _begin_packing(&packed, given, few, many)
    if count > few_touches:
        all_touches.resize(count)
        touches = all_touches.data()
    cdef PyObject* arg
    for i in range(count):
        arg = given.args[i]
        if type(<object>arg) is not Array:
            put_number(&packed, <object>arg, kernel, i)
            continue
        if where is None:
            where = (<Array>arg)._device
        _check_touched(kernel, i, <Array>arg, where)
        put_array(&packed, <Array>arg)
        touches[touched] = (<Array>arg).touch(access_of(kernel.access_codes[i]))
        touched += 1
    cdef TaskState state = current_state()
    cdef PyObject* target = stream_of(given, state, where)
    _choose_form(&packed, shape, state, (<Stream>target).device, kernel)
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
    if kernel.in_blocks:
        _check_blocks(kernel, shape, block_of(deref(compiled)), given, (<Stream>target).device)
    if compiled.may_fail():
        _put_site(&packed)
    cdef Submission submission
    begin(&submission, state, queue, touches, touched)
    cdef Point point = queue.backend().launch(
        deref(queue), deref(compiled), shape, Slots(packed.slots, packed.slot_count))
    return commit_launch(&submission, state, queue, point, kernel, given)


cdef int _put_block(object block, BlockSizes* sizes) except -1:
    for axis, size in enumerate(block):
        deref(sizes)[axis] = size
    return 0


cdef int _check_blocks(
        KernelBase kernel, const LaunchShape& shape, const int64_t* block, const CallArgs* given,
        DeviceBase device) except -1:
    # A launch of a kernel that runs in blocks consists of whole ones.
    cdef int axis
    sizes = [block[axis] for axis in range(shape.ndim)]
    dims = [shape.dims[axis] for axis in range(shape.ndim)]
    if given.block != NULL:
        raise ValueError(
            f"kernel {kernel.name!r} sets its own blocks, of {_shown_sizes(sizes)} indices; launch it without block=")
    if any(dim % size for dim, size in zip(dims, sizes)):
        padded = [-(-dim // size) * size for dim, size in zip(dims, sizes)]
        raise ValueError(
            f"kernel {kernel.name!r} runs in blocks of {_shown_sizes(sizes)} indices, and dim {_shown_sizes(dims)} is "
            f"no whole number of them: launch it over {_shown_sizes(padded)}, and compare the index in the kernel")
    if architecture_of(deref(device.backend)) != 0:
        for axis in range(shape.ndim):
            most = most_blocks if axis < shape.ndim - 1 else most_blocks_along_x
            if dims[axis] // sizes[axis] > most:
                raise ValueError(
                    f"kernel {kernel.name!r}: {dims[axis] // sizes[axis]} blocks along axis {axis}; "
                    f"{device.alias} runs at most {most} there")
    return 0


cdef object _shown_sizes(sizes):
    return str(sizes[0]) if len(sizes) == 1 else str(tuple(sizes))


cdef int _read_block(object block) except -1:
    if type(block) is not int or not 1 <= block <= 1024:
        raise ValueError(f"block is a number of threads from 1 to 1024, not {block!r}")
    return block


cdef inline int _check_touched(KernelBase kernel, Py_ssize_t i, Array array, DeviceBase where) except -1:
    check_array(kernel, i, array, where)
    if kernel.access_codes[i] != 1 and array._read_only:
        raise ValueError(
            f"{parameter_of(kernel, i)} may write, but {array._described()} is read-only memory; "
            "declare the parameter ab.In")
    return 0


cdef int _wrong_count(KernelBase kernel, Py_ssize_t count, int ndim) except -1:
    names = [parameter.name for parameter in kernel.parameters]
    if ndim > 1 and count == <Py_ssize_t>len(names) - (ndim - 1):
        # One parameter for each dimension, it seems.
        first = kernel._function.__code__.co_varnames[0]
        indices = (first, *names[:ndim - 1])
        index = "".join(indices)
        raise TypeError(
            f"kernel {kernel.name!r} has the parameters ({first}, {', '.join(names)}); of a launch over {ndim} "
            f"dimensions the index is one tuple: def {kernel.name}({index}, {', '.join(names[ndim - 1:])}), and then "
            f"{', '.join(indices)} = {index}")
    detail = f"missing {', '.join(names[count:])}" if count < len(names) else f"{count - len(names)} too many"
    raise TypeError(
        f"kernel {kernel.name!r} takes {len(names)} arguments after the index ({', '.join(names)}), "
        f"not {count}: {detail}")
