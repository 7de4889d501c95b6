"""What distinguishes the captures of a function: the properties of its arguments, as bytes."""

from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t

from anabranch._core.core cimport MemoryKind, Storage
from anabranch._core.graph cimport share_bytes
from anabranch._core.small_vector cimport Addresses, Text
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport dtype_code
from anabranch._task.context cimport TaskState

cdef enum:
    # Codes of arguments in a key, above those of dtypes.
    int_kind = 0x80
    large_int_kind
    float_kind
    bool_kind
    complex_kind
    numpy_kind = 0xA0
    # Precedes the description of two storages that share bytes.
    overlap = 0xF0

cdef object _numpy_scalar = None


cdef int kind_of_number(object value) except -1:
    # 0: not a number.
    global _numpy_scalar
    kind = type(value)
    if kind is float:
        return float_kind
    if kind is int:
        return int_kind if -(2**63) <= value < 2**63 else large_int_kind
    if kind is bool:
        return bool_kind
    if kind is complex:
        return complex_kind
    if _numpy_scalar is None:
        import numpy

        _numpy_scalar = numpy.number | numpy.bool_
    if isinstance(value, _numpy_scalar):
        try:
            return numpy_kind + dtype_code(value.dtype)
        except KeyError:
            return 0
    return 0


cdef tuple describe(Text* key, TaskState state, tuple args):
    cdef Addresses seen
    cdef Addresses first
    cdef Array array
    cdef Storage* storage
    cdef size_t group
    cdef int64_t offset
    cdef int d
    cdef int code
    cdef bint foreign = False
    others = None
    key.push_back(<char>(state.mode | (0x10 if state.bounds else 0)))
    key.push_back(state.device)
    for each in args:
        if type(each) is not Array:
            code = kind_of_number(each)
            key.push_back(code)
            if code == 0:
                hash(each)
                others = [] if others is None else others
                # Items of equal tuples may differ in type.
                others.append((type(each), each, repr(each) if isinstance(each, tuple | frozenset) else None))
            continue
        array = <Array>each
        array.check()
        storage = array.storage.get()
        group = 0
        while group < seen.size() and seen[group] != storage:
            group += 1
        key.push_back(1 + array.code)
        key.push_back(array._device.ordinal)
        key.push_back(<char>group)
        key.push_back(<char>(array.layout.ndim | (0x40 if array.contiguous else 0)))
        key.push_back(<char>((2 if array._read_only else 0) | (<int>storage.kind() << 2)))
        for d in range(array.layout.ndim):
            _put(key, array.layout.shape[d])
            if not array.contiguous:
                _put(key, array.layout.strides[d])
        if group < seen.size():
            offset = array.data - <const char*>first[group]
            _put(key, offset)
        else:
            seen.push_back(storage)
            first.push_back(array.data)
        foreign = foreign or storage.kind() == MemoryKind.foreign
    if foreign and seen.size() > 1:
        _describe_overlaps(key, args)
    return None if others is None else tuple(others)


cdef int _describe_overlaps(Text* key, tuple args) except -1:
    # Of memory that others handed in, which may have several handles.
    cdef Array array
    cdef Array other
    cdef Py_ssize_t i
    cdef Py_ssize_t k
    for i in range(len(args)):
        if type(args[i]) is not Array:
            continue
        array = <Array>args[i]
        array.check()  # the hash of another argument may have closed it
        for k in range(i):
            if type(args[k]) is not Array:
                continue
            other = <Array>args[k]
            if array.storage.get() != other.storage.get() and share_bytes(
                    deref(array.storage.get()), deref(other.storage.get())):
                key.push_back(<char>overlap)
                _put(key, i)
                _put(key, k)
                _put(key, array.data - other.data)
    return 0


cdef inline int _put(Text* key, int64_t value) except -1:
    key.append(<char*>&value, sizeof(value))
    return 0
