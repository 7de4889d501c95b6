"""Arguments of launches: checked, named in messages, and packed for kernels."""

from cpython.float cimport PyFloat_AS_DOUBLE
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from anabranch._core.core cimport CStream, Point
from anabranch._core.explore cimport observing
from anabranch._core.graph cimport tell_origin
from anabranch._device.device cimport DeviceBase
from anabranch._hazards.ordering cimport Submission, commit
from anabranch._launch.call_args cimport CallArgs, args_of
from anabranch._launch.loaded cimport architecture_of
from anabranch._memory.array cimport Array
from anabranch._memory.traced_scalar cimport marks_of
from anabranch._task.context cimport TaskState

# -- of either sort of kernel --

# A parameter as messages name it.
cdef object parameter_of(object kernel, Py_ssize_t position)
# An integer as messages name it.
cdef object shown(value)
cdef int refuse_elsewhere(object kernel, Py_ssize_t position, Array array, DeviceBase where) except -1
# Raises ClosedError for an array that is closed, DeviceError for one of another device than the launch is on.
cdef inline int check_array(object kernel, Py_ssize_t position, Array array, DeviceBase where) except -1:
    array.check()
    if array._device is not where:
        return refuse_elsewhere(kernel, position, array, where)
    return 0

# Raises ClosedError if one of the first `count` arguments is an array that is closed. For after Python code has run, in
# which anybody may close one that was looked at: until the launch is enqueued and noted none may run then.
cdef int check_again(const CallArgs* given, Py_ssize_t count) except -1

# `commit_launch` while operations are observed.
cdef int commit_observed_launch(
    Submission* submission, TaskState state, CStream* queue, Point point, object kernel,
    const CallArgs* given) except -1

# The launch was enqueued: that ends its submission.
cdef inline int commit_launch(
        Submission* submission, TaskState state, CStream* queue, Point point, object kernel,
        const CallArgs* given) except -1:
    if queue.capture() != NULL:
        tell_origin(deref(queue), point, (kernel, marks_of(args_of(given))) if queue.capture().exclusive() else kernel)
    elif observing():
        return commit_observed_launch(submission, state, queue, point, kernel, given)
    return commit(submission, state, point)


# -- of Python kernels, compiled for the kinds of their arguments --

cdef enum:
    most_arguments = 128
    scalar_tag = 0x80   # in a key: what follows is a scalar's kind, not an array's dtype
    head = 3            # bytes of a key before the arguments
    float64_code = 11   # a position in dtype_names

cdef struct Packed:
    # The launch's dimensions, the device, then a pair of bytes per argument; and the slots that the kernel reads.
    uint8_t key[head + 2 * most_arguments]
    uint64_t* slots
    size_t key_length
    size_t slot_count
    size_t capacity
    uint64_t wide           # not 0 where a size, a stride or an offset, in elements, is too large for 32 bits
    const CallArgs* given      # NULL: a number alone


cdef inline uint64_t* room(Packed* packed, size_t count) except NULL:
    cdef uint64_t* slots = &packed.slots[packed.slot_count]
    packed.slot_count += count
    if packed.slot_count > packed.capacity:
        refuse_slots()
    return slots

cdef int refuse_slots() except -1

cdef inline int put_array(Packed* packed, Array array) except -1:
    cdef int ndim = array.layout.ndim
    cdef uint64_t* slots = room(packed, 1 + 2 * ndim)
    cdef int d
    slots[0] = <uint64_t>array.data
    # Not by memcpy, which costs more for so few.
    for d in range(ndim):
        slots[1 + d] = array.layout.shape[d]
        slots[1 + ndim + d] = array.layout.strides[d]
    if architecture_of(deref(array._device.backend)) != 0:
        count_in_elements(packed, array)
    packed.key[packed.key_length] = array.code
    packed.key[packed.key_length + 1] = ndim | (0x40 if array.contiguous else 0) | (
        0x20 if array._read_only else 0)
    packed.key_length += 2
    return 0

cdef int count_in_elements(Packed* packed, Array array) except -1


cdef inline int put_number(Packed* packed, object value, object kernel, Py_ssize_t position) except -1:
    cdef double number
    if type(value) is not float:
        return put_other_number(packed, value, kernel, position)
    number = PyFloat_AS_DOUBLE(value)
    memcpy(room(packed, 1), &number, sizeof(number))
    packed.key[packed.key_length] = scalar_tag
    packed.key[packed.key_length + 1] = float64_code
    packed.key_length += 2
    return 0

cdef int put_other_number(Packed* packed, object value, object kernel, Py_ssize_t position) except -1

# Puts a number into one or two slots, as arguments of Python kernels are. What tells the kinds of numbers apart.
cdef int pack_number(object kernel, Py_ssize_t position, object value, uint64_t* slots) except -1
# How many slots numbers of that kind take.
cdef int words_of(int kind) noexcept
