"""Launches with blocks that the caller chose, of kernels found in loaded code."""

from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from anabranch._core.core cimport CBackend, CKernel, CStream, Point, Ref, Touch, translate
from anabranch._core.kernel cimport LaunchGrid
from anabranch._device.device cimport DeviceBase
from anabranch._hazards.ordering cimport Submission, access_of, begin
from anabranch._launch.call_args cimport CallArgs, named_device, stream_of
from anabranch._launch.configuration cimport LaunchConfig
from anabranch._launch.loaded cimport KernelForm, LoadedCode, ParameterPlace
from anabranch._launch.packing cimport check_again, check_array, commit_launch
from anabranch._launch.parameters cimport (
    ParameterRule, bits_kind, bool_kind, float_kind, integer_kind, pointer_kind, put_declared, put_pointer, signed_kind,
    struct_kind, unsigned_kind)
from anabranch._memory.array cimport Array
from anabranch._memory.traced_scalar cimport TracedScalar
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state

from anabranch._device.device import devices
from anabranch._memory.dtype import names as dtype_names

cdef extern from "anabranch/kernel/kernel.hpp" namespace "anabranch" nogil:
    cppclass KernelAttributes:
        int registers
        int max_threads
        size_t shared_memory
        size_t local_memory
        size_t constant_memory
        size_t max_shared_memory
        int binary_version

cdef extern from *:
    """
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
    Point enqueue_grid(
        CBackend&, CStream&, CKernel&, const LaunchGrid&, const uint64_t*, size_t) except +translate
    KernelAttributes attributes_of(CKernel&) except +translate
    vector[ParameterPlace] places_of(CKernel&) except +translate
    int resident_blocks_of "resident_blocks"(CKernel&, int, size_t) except +translate

cdef enum:
    most_slots = 4096   # 32 KiB of parameters, the most since CUDA 12.1
    few_slots = 64
    few_touches = 16
    any_dtype = 0xFFFF

_KINDS = {
    "bits": bits_kind, "pointer": pointer_kind, "float": float_kind, "signed": signed_kind,
    "unsigned": unsigned_kind, "integer": integer_kind, "struct": struct_kind, "bool": bool_kind,
}


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


cdef int launch_grid(GridKernel kernel, LaunchConfig config, const CallArgs* given) except -1:
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
            if type(<object>arg) is TracedScalar:
                arg = <PyObject*>(<TracedScalar>arg).value
            if put_declared(kernel, &kernel.rules[i], i, <object>arg, slots) != 0:
                check_again(given, i)
            continue
        if where is None:
            where = (<Array>arg)._device
        check_array(kernel, i, <Array>arg, where)
        access = kernel.array_access[arrays] if arrays < kernel.array_access.size() else kernel.rules[i].access
        put_pointer(kernel, &kernel.rules[i], i, <Array>arg, access, slots)
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
    return commit_launch(&submission, state, queue, point, kernel, given)
