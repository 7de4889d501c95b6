"""What stands here for names that NumPy, CuPy and PyTorch have."""

from __future__ import annotations

from typing import Final

_COPY: Final = "ab.array copies data, ab.asarray takes memory as it is"
_JOIN: Final = "make an array for all, and assign to its parts"
_KERNEL: Final = "write a function of an element with @ab.kernel"
_LENT: Final = "lend it to a library, as by torch.from_dlpack(x)"
_PASSED: Final = "ab.random, in a kernel, makes a number of a seed and a counter"
_PRODUCT: Final = f"write (x * y).sum() for vectors; for matrices, {_LENT}"

_INSTEAD: Final = {
    "ElementwiseKernel": _KERNEL,
    "RawKernel": "CUDA C++ goes to ab.Module",
    "RawModule": "CUDA C++ goes to ab.Module",
    "Tensor": "it is ab.Array",
    "abs": "write abs(x)",
    "argsort": f"write np.argsort(x.numpy()), or {_LENT}",
    "as_tensor": _COPY,
    "asnumpy": "write x.numpy()",
    "cat": _JOIN,
    "clip": f"{_KERNEL}, or ab.where(x < low, low, x)",
    "concatenate": _JOIN,
    "copyto": "write ab.copy(dst, src)",
    "cuda": "streams, events and devices of any kind are ab.Stream, ab.Event and ab.Device",
    "cumsum": f"write np.cumsum(x.numpy()), or {_LENT}",
    "device": "it is ab.Device",
    "device_count": 'write len(ab.devices("cuda"))',
    "dot": _PRODUCT,
    "eye": "write ab.array(np.eye(n))",
    "from_numpy": _COPY,
    "hstack": _JOIN,
    "is_available": 'ab.devices("cuda") is empty where there is no GPU',
    "jit": _KERNEL,
    "load": "write ab.array(np.load(file))",
    "manual_seed": _PASSED,
    "matmul": _PRODUCT,
    "ndarray": "it is ab.Array",
    "newaxis": "write None, as in x[:, None]",
    "ones_like": "write ab.full_like(x, 1)",
    "rand": _PASSED,
    "randn": _PASSED,
    "save": "write np.save(file, x.numpy())",
    "set_device": "write with ab.Device(...):",
    "set_stream": "write stream.use()",
    "sort": f"write np.sort(x.numpy()), or {_LENT}",
    "split": "write slices, as in x[:n], x[n:]",
    "stack": _JOIN,
    "stream": "a stream is current in with stream:",
    "tensor": _COPY,
    "vstack": _JOIN,
}


def instead_of(name: str) -> str:
    """Return what to write instead of a name that the package lacks; an empty string if nothing is known."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    import numpy

    theirs = getattr(numpy, name, None)
    if isinstance(theirs, numpy.ufunc) and theirs.signature is None:
        return f"in a kernel, np.{name} takes elements"
    if isinstance(theirs, type) and issubclass(theirs, numpy.number):
        return f"dtypes are NumPy's, np.{name}, or their names"
    return ""
