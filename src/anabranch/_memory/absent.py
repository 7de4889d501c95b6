"""What stands for the names that arrays of other libraries have and `Array` lacks."""

from __future__ import annotations

from typing import Final

_DTYPE: Final = "write x.astype(dtype)"
_FILL: Final = "write ab.fill(x, value), or x[...] = value"
_GRADIENTS: Final = "arrays have no gradients; leave it out"
_JOINED: Final = "write x[...] = other, or ab.copy(x, other)"
_KERNEL: Final = "a function of an element with @ab.kernel"
_LAYOUT: Final = "compare x.strides, or write x.contiguous(), which copies only what is not"
_LENT: Final = "lend it to a library, as by torch.from_dlpack(x)"
_PART: Final = "of a complex64 array, real parts are x.view('float32')[..., ::2] and imaginary ones [..., 1::2]"
_PRODUCT: Final = f"write (x * y).sum() for vectors; for matrices, {_LENT}"
_STREAMS: Final = "each stream that uses an array is known; for another library's work, write x.mark(stream, access)"

INSTEAD: Final = {
    "abs": "write abs(x)",
    "add": "write x + y",
    "add_": "write x += y",
    "argsort": f"write np.argsort(x.numpy()), or {_LENT}",
    "assign": _JOINED,
    "backward": _GRADIENTS,
    "clip": f"write ab.where(x < low, low, x), or {_KERNEL}",
    "clone": "write x.copy()",
    "conj": f"write {_KERNEL}, which computes np.conj(x[i])",
    "copy_": _JOINED,
    "cpu": 'write x.to("cpu"), or x.numpy() for a NumPy array',
    "cuda": 'write x.to("cuda")',
    "cumsum": f"write np.cumsum(x.numpy()), or {_LENT}",
    "data_ptr": "write x.ptr",
    "detach": _GRADIENTS,
    "dim": "write x.ndim",
    "div": "write x / y",
    "div_": "write x /= y",
    "dot": _PRODUCT,
    "double": 'write x.astype("float64")',
    "element_size": "write x.dtype.itemsize",
    "exp": f"write {_KERNEL}, which computes math.exp(x[i])",
    "expand": "operators broadcast; for a copy, write y[...] = x, with y of the larger shape",
    "fill": _FILL,
    "fill_": _FILL,
    "flat": "write x.ravel() for a view of one dimension, x[...] = value to assign",
    "flatten": "write x.ravel() for a view, x.copy().ravel() for a copy",
    "flip": "write x[::-1], with a slice for each axis",
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
    "masked_fill": "write ab.where(mask, value, x)",
    "matmul": _PRODUCT,
    "mm": _PRODUCT,
    "mul": "write x * y",
    "mul_": "write x *= y",
    "nonzero": f"write np.nonzero(x.numpy()), or {_LENT}",
    "numel": "write x.size",
    "permute": "write x.transpose(*axes)",
    "pin_memory": 'write ab.empty(..., device="cpu", pinned=True), and ab.copy into it',
    "real": _PART,
    "record_stream": _STREAMS,
    "repeat": "with an axis more in y, y[...] = x[..., None] repeats elements, y[...] = x the whole; then y.ravel()",
    "requires_grad": _GRADIENTS,
    "requires_grad_": _GRADIENTS,
    "roll": "write y[:n], y[n:] = x[-n:], x[:-n], with y = ab.empty_like(x)",
    "round": f"write {_KERNEL}, which computes round(x[i])",
    "set": _JOINED,
    "sort": f"write np.sort(x.numpy()), or {_LENT}",
    "split": "write slices, as in x[:n], x[n:]",
    "sqrt": "write x ** 0.5",
    "std": "write ((x - x.mean()) ** 2).mean() ** 0.5",
    "stride": "write x.strides, which is in bytes",
    "sub": "write x - y",
    "sub_": "write x -= y",
    "swapaxes": "write x.transpose(*axes)",
    "take": f"write {_KERNEL}, which reads x[indices[i]], or np.take(x.numpy(), indices)",
    "to_device": "write x.to(device)",
    "tobytes": "write x.numpy().tobytes()",
    "toDlpack": "other libraries take the array itself, as in torch.from_dlpack(x)",
    "type": _DTYPE,
    "unsqueeze": "write x[..., None], or x[None]",
    "var": "write ((x - x.mean()) ** 2).mean()",
    "zero_": "write ab.fill(x, 0), or x[...] = 0",
}
