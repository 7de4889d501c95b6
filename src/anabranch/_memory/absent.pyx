"""Names that arrays of other libraries have and `Array` lacks: asking for one says what stands for it."""

from cpython.object cimport PyTypeObject

cdef extern from "Python.h":
    void PyType_Modified(PyTypeObject*)

_DTYPE = "write x.astype(dtype)"
_FILL = "write ab.fill(x, value), or x[...] = value"
_GRADIENTS = "arrays have no gradients; leave it out"
_JOINED = "write x[...] = other, or ab.copy(x, other)"
_LAYOUT = "compare x.strides, or write x.contiguous(), which copies only what is not"
_PART = "of a complex64 array, real parts are x.view('float32')[..., ::2] and imaginary ones [..., 1::2]"
_PRODUCT = "write (x * y).sum() for vectors; for matrices, lend it to a library, as by torch.from_dlpack(x)"
_STREAMS = "each stream that uses an array is known; for another library's work, write x.mark(stream, access)"

_INSTEAD = {
    "assign": _JOINED,
    "backward": _GRADIENTS,
    "clip": "write ab.where(x < low, low, x), or a function of an element with @ab.kernel",
    "clone": "write x.copy()",
    "copy_": _JOINED,
    "cpu": 'write x.to("cpu"), or x.numpy() for a NumPy array',
    "cuda": 'write x.to("cuda")',
    "data_ptr": "write x.ptr",
    "detach": _GRADIENTS,
    "dim": "write x.ndim",
    "dot": _PRODUCT,
    "double": 'write x.astype("float64")',
    "element_size": "write x.dtype.itemsize",
    "fill": _FILL,
    "fill_": _FILL,
    "flatten": "write x.ravel() for a view, x.copy().ravel() for a copy",
    "float": 'write x.astype("float32")',
    "get": "write x.numpy()",
    "grad": _GRADIENTS,
    "half": 'write x.astype("float16")',
    "imag": _PART,
    "int": 'write x.astype("int32")',
    "is_contiguous": _LAYOUT,
    "is_cuda": 'write x.device.kind == "cuda"',
    "itemsize": "write x.dtype.itemsize",
    "list": "write x.tolist()",
    "long": 'write x.astype("int64")',
    "matmul": _PRODUCT,
    "mm": _PRODUCT,
    "numel": "write x.size",
    "permute": "write x.transpose(*axes)",
    "pin_memory": 'write ab.empty(..., device="cpu", pinned=True), and ab.copy into it',
    "real": _PART,
    "record_stream": _STREAMS,
    "requires_grad": _GRADIENTS,
    "requires_grad_": _GRADIENTS,
    "set": _JOINED,
    "stride": "write x.strides, which is in bytes",
    "swapaxes": "write x.transpose(*axes)",
    "tobytes": "write x.numpy().tobytes()",
    "toDlpack": "other libraries take the array itself, as in torch.from_dlpack(x)",
    "type": _DTYPE,
    "unsqueeze": "write x[..., None], or x[None]",
    "zero_": "write ab.fill(x, 0), or x[...] = 0",
}


class Absent:
    """An attribute that is not there: of a class and of its objects."""

    def __init__(self, name, hint):
        self._name = name
        self._hint = hint

    def __get__(self, instance, owner):
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}; {self._hint}")

    def __set__(self, instance, value):
        self.__get__(instance, type(instance))

    def __repr__(self):
        return f"<absent; {self._hint}>"


def _present(instance):
    return sorted(set(object.__dir__(instance)) - set(absent))


absent = {name: Absent(name, hint) for name, hint in _INSTEAD.items()}


# A class of Cython takes no new attributes but through its dictionary.
cdef int add_absent(type cls) except -1:
    attributes = <dict>(<PyTypeObject*>cls).tp_dict
    attributes.update(absent)
    attributes["__dir__"] = _present
    PyType_Modified(<PyTypeObject*>cls)
    return 0
