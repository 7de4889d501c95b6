"""Element types of arrays. Imports NumPy, so the first array or launch that needs it imports this module."""

cimport cython
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.math cimport fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy

cdef enum:
    # Positions in `names`.
    int8_code = 1
    int64_code = 4
    uint8_code = 5
    uint64_code = 8
    float32_code = 10
    float64_code = 11

cdef double largest_float32 = 3.4028234663852886e38

# Codes are positions in this list.
names = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)

cdef dict _known = {}       # user's argument -> ElementType
cdef dict _types = {}       # numpy.dtype -> ElementType
cdef ElementType _float32 = None


@cython.final
cdef class ElementType:
    pass


cdef int _fill_types() except -1:
    global _float32
    import numpy

    cdef ElementType type_
    for code, name in enumerate(names):
        type_ = ElementType.__new__(ElementType)
        type_.dtype = numpy.dtype(name)
        type_.name = name
        type_.code = code
        type_.itemsize = type_.dtype.itemsize
        _types.setdefault(type_.dtype, type_)
    # Set last: it marks the tables as complete. Every thread stores the same object, so none is freed while another
    # thread takes it.
    _float32 = _types[numpy.dtype("float32")]
    return 0


cdef ElementType element_type(object dtype):
    # The default, and the most common dtype.
    if dtype is "float32" and _float32 is not None:
        return _float32
    try:
        return <ElementType>_known[dtype]
    except (KeyError, TypeError):
        return _resolve(dtype)


cdef ElementType _resolve(object dtype):
    import numpy

    if _float32 is None:
        _fill_types()
    if dtype is None:
        raise TypeError("dtype is missing")
    of_torch = _torch_name(dtype)
    resolved = numpy.dtype(of_torch or dtype)
    if resolved not in _types:
        why = ", which NumPy takes for integers of over 64 bits and what is no number" if resolved.hasobject else ""
        raise TypeError(f"arrays cannot hold dtype {resolved}{why}; they hold {', '.join(names)}")
    # Only names, types and dtypes are cached: they are few, so the table stays small.
    if of_torch is not None or isinstance(dtype, (str, type, numpy.dtype)):
        _known[dtype] = _types[resolved]
    return _types[resolved]


cdef object _torch_name(object dtype):
    # The name of a dtype of PyTorch, which need not be imported here; else None.
    if type(dtype).__module__ != "torch" or type(dtype).__name__ != "dtype":
        return None
    name = str(dtype).removeprefix("torch.")
    if name not in names:
        raise TypeError(f"arrays cannot hold dtype {dtype}; they hold {', '.join(names)}")
    return name


cpdef object as_dtype(object dtype):
    return element_type(dtype).dtype


cdef int dtype_code(object dtype) except -1:
    if _float32 is None:
        _fill_types()
    return (<ElementType>_types[dtype]).code


cdef int encode(object value, ElementType type_, Item* item) except -1:
    item.bytes[0] = item.bytes[1] = 0
    cdef bytes encoded
    if not _encode_plain(value, type_, item):
        encoded = _encode_with_numpy(value, type_.dtype)
        memcpy(item, <const char*>encoded, type_.itemsize)
    return 0


cdef bint _encode_plain(object value, ElementType type_, Item* item) except -1:
    # Encodes common scalars without NumPy. Returns whether the value was one.
    cdef double number
    cdef float narrow
    cdef int64_t integer
    cdef int overflow = 0
    cdef int code = type_.code
    cdef int bits = 8 * type_.itemsize
    if type(value) is float:
        number = PyFloat_AS_DOUBLE(value)
    elif type(value) is int:
        integer = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow != 0:
            return False
        if int8_code <= code <= uint64_code:
            if code <= int64_code:
                # All bits from the sign bit upwards must equal the sign.
                if integer >> (bits - 1) not in (0, -1):
                    return False
            elif integer < 0 or (bits < 64 and integer >> bits != 0):
                return False
            # Little-endian: the low bytes come first.
            memcpy(item, &integer, type_.itemsize)
            return True
        number = <double>integer
        if <int64_t>number != integer or fabs(number) > 9e15:
            return False
    else:
        return False
    if code == float64_code:
        memcpy(item, &number, sizeof(number))
        return True
    if code == float32_code and fabs(number) <= largest_float32:
        narrow = <float>number
        memcpy(item, &narrow, sizeof(narrow))
        return True
    return False


cdef bytes _encode_with_numpy(object value, object dtype):
    import numpy

    if not isinstance(value, (int, float, complex)) or isinstance(value, numpy.generic):
        item = numpy.asarray(value)
        if item.ndim != 0:
            raise ValueError(f"the value must be a scalar, not of shape {item.shape}")
        if item.dtype.kind not in "biufc":
            raise TypeError(f"the value must be a number, not {value!r}")
        if item.dtype.kind in "fc" and dtype.kind in "c" + item.dtype.kind:
            return item.astype(dtype).tobytes()
        # NumPy wraps its own scalars where they do not fit, but rejects Python's.
        value = item.item()
    if isinstance(value, (complex, numpy.complexfloating)) and dtype.kind not in "bc":
        raise ValueError(f"{value!r} does not fit dtype {dtype}: it is complex")
    try:
        # A NumPy long double keeps its type.
        return numpy.asarray(int(value) if dtype.kind in "iu" else value, dtype).tobytes()
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{value!r} does not fit dtype {dtype}: {error}") from None
