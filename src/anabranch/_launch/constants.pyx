"""Globals and closure variables that compilation, or a capture, makes constants: a later change of one warns.

A change of another kind, within a list or a large array, is not seen.
"""

from cpython.buffer cimport PyBUF_ANY_CONTIGUOUS, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.string cimport memcmp

from anabranch._memory.array cimport Array

cdef extern from "Python.h":
    PyObject* PyCell_GET(object cell) noexcept
    PyObject* PyDict_GetItemWithError(object scope, object key) except? NULL

# A change in place is looked for at each launch, in arrays of at most so many bytes.
cdef enum:
    WATCHED = 16384


cdef class Constants:
    """The values that a kernel was compiled with, or a function captured.

    Parameters
    ----------
    made, keeps, advice : str
        For the message: what was made with them, what keeps the old values, and what to make of a name instead.
    reads : iterable
        ``(name, place, value)`` for each; the place is a cell, or the dictionary and the key that a global is under.
    in_place : bool
        Whether to look into small arrays, too.
    """

    def __init__(self, str made not None, str keeps not None, str advice not None, reads, bint in_place=True):
        self.made, self.keeps, self.advice = made, keeps, advice
        self.names, self.places, self.values, self.elements = [], [], [], []
        for name, place, value in reads:
            self.names.append(name)
            self.places.append(place)
            self.values.append(value)
            self.elements.append(_small_array(value) if in_place else None)


cdef int check_constants(Constants constants) except -1:
    # Compares addresses first: only a different object is compared by value, in `_is_same`.
    cdef Py_ssize_t i
    cdef PyObject* now
    if constants.told:
        return 0
    for i in range(len(constants.values)):
        place = constants.places[i]
        if type(place) is tuple:
            now = PyDict_GetItemWithError((<tuple>place)[0], (<tuple>place)[1])
        else:
            now = PyCell_GET(place)
        if now != <PyObject*>constants.values[i] and now != NULL:
            _tell_another(constants, i, <object>now)
        elif constants.elements[i] is not None and not _has(constants.values[i], <bytes>constants.elements[i]):
            _tell(constants, f"other elements of {constants.names[i]} than it has now; {constants.keeps} the old ones")
    return 0


cdef bytes _small_array(object value):
    """Return the bytes of a NumPy array that is watched for changes in place, or None."""
    cdef Py_buffer view
    if not hasattr(value, "__array_interface__") or not 0 < value.nbytes <= WATCHED:
        return None
    try:
        PyObject_GetBuffer(value, &view, PyBUF_ANY_CONTIGUOUS)
    except (BufferError, ValueError):  # strided, or of a dtype that buffers do not have
        return None
    try:
        return PyBytes_FromStringAndSize(<char*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef bint _has(object array, bytes elements) except -1:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_ANY_CONTIGUOUS)
    try:
        return view.len == len(elements) and memcmp(view.buf, PyBytes_AS_STRING(elements), view.len) == 0
    finally:
        PyBuffer_Release(&view)


cdef int _tell_another(Constants constants, Py_ssize_t i, object value) except -1:
    if not _is_same(constants.values[i], value):
        was, now = _shown(constants.values[i]), _shown(value)
        _tell(constants, f"{constants.names[i]} = {was}, which is {now} now; {constants.keeps} the old value")
    return 0


cdef int _tell(Constants constants, str what) except -1:
    if constants.told:
        return 0
    constants.told = True
    import warnings

    warnings.warn(f"{constants.made} with {what}: make it {constants.advice}", RuntimeWarning, stacklevel=1)
    return 0


cdef bint _is_same(object first, object second) except -1:
    if type(first) is not type(second) or type(first) is Array:
        return False
    from anabranch._launch.indices import KernelBase  # which needs this

    if isinstance(first, KernelBase):
        first, second = first.__wrapped__, second.__wrapped__
    if callable(first):
        return getattr(first, "__code__", first) == getattr(second, "__code__", second)
    import numpy

    try:
        if isinstance(first, numpy.ndarray):
            same_kind = first.dtype == second.dtype and first.shape == second.shape
            return same_kind and first.tobytes() == second.tobytes()
        return bool(first == second) or (first != first and second != second)
    except Exception:  # a comparison of the program's own
        return False


cdef str _shown(object value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
