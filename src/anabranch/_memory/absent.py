"""What stands for the names that arrays of other libraries have and `Array` lacks."""

from __future__ import annotations

from typing import Final

_DTYPE: Final = "write x.astype(dtype)"
_FILL: Final = "write ab.fill(x, value), or x[...] = value"
_GRADIENTS: Final = "arrays have no gradients; leave it out"
_JOINED: Final = "write x[...] = other, or ab.copy(x, other)"
_LAYOUT: Final = "compare x.strides, or write x.contiguous(), which copies only what is not"
_PART: Final = "of a complex64 array, real parts are x.view('float32')[..., ::2] and imaginary ones [..., 1::2]"
_PRODUCT: Final = "write (x * y).sum() for vectors; for matrices, lend it to a library, as by torch.from_dlpack(x)"
_STREAMS: Final = "each stream that uses an array is known; for another library's work, write x.mark(stream, access)"

INSTEAD: Final = {
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
