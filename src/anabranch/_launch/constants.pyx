"""Globals and closure variables of kernels. Compilation makes them constants, so a later change of one warns."""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject* PyCell_GET(object cell) noexcept
    PyObject* PyDict_GetItemWithError(object scope, object key) except? NULL


cdef class Constants:
    """The values that a kernel was compiled with.

    Parameters
    ----------
    kernel : str
        The kernel's name.
    reads : iterable
        ``(name, place, value)`` for each; the place is a cell, or the dictionary and the key that a global is under.
    """

    def __init__(self, str kernel not None, reads):
        self.kernel = kernel
        self.names, self.places, self.values = [], [], []
        for name, place, value in reads:
            self.names.append(name)
            self.places.append(place)
            self.values.append(value)


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
            _tell(constants, i, <object>now)
    return 0


cdef int _tell(Constants constants, Py_ssize_t i, object value) except -1:
    if constants.told or _is_same(constants.values[i], value):
        return 0
    constants.told = True
    import warnings

    warnings.warn(
        f"kernel {constants.kernel!r} was compiled with {constants.names[i]} = {_shown(constants.values[i])}, which is "
        f"{_shown(value)} now; the kernel keeps the old value: make it a parameter, or decorate the function again",
        RuntimeWarning, stacklevel=1)
    return 0


cdef bint _is_same(object first, object second) except -1:
    if type(first) is not type(second):
        return False
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
