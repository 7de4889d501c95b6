"""The element types of arrays. NumPy is imported here, when the first array or launch needs it."""

# The codes are positions in this list.
names = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)

cdef dict _known = {}       # what users pass -> numpy.dtype
cdef dict _codes = {}       # numpy.dtype -> code


cdef int _fill_codes() except -1:
    import numpy

    for code, name in enumerate(names):
        _codes[numpy.dtype(name)] = code
    return 0


cdef object as_dtype(object dtype):
    try:
        return _known[dtype]
    except (KeyError, TypeError):
        return _resolve(dtype)


cdef object _resolve(object dtype):
    import numpy

    if not _codes:
        _fill_codes()
    if dtype is None:
        raise TypeError("dtype is missing")
    resolved = numpy.dtype(dtype)
    if resolved not in _codes:
        raise TypeError(f"arrays cannot hold dtype {resolved}; they hold {', '.join(names)}")
    # The table stays small: only names, types and dtypes are kept, of which there are few.
    if isinstance(dtype, (str, type, numpy.dtype)):
        _known[dtype] = resolved
    return resolved


cdef int dtype_code(object dtype) except -1:
    if not _codes:
        _fill_codes()
    return _codes[dtype]
