"""CuPy's and PyTorch's strided and transposing copies on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench_cuda_copy import Copy, register, repeated
from gpu import DEVICE
from harness import Case


def cupy_copy(each: Copy, cupy: Any) -> Iterator[Case]:
    with cupy.cuda.Stream(non_blocking=True) as stream:
        src, dst = each.part(cupy.zeros(each.shape, each.dtype)), cupy.empty(each.copied, each.dtype)
        yield from repeated(lambda: cupy.copyto(dst, src), stream.synchronize)


def torch_copy(each: Copy, torch: Any) -> Iterator[Case]:
    stream, dtype = torch.cuda.Stream(), getattr(torch, each.dtype)
    with torch.cuda.stream(stream):
        src = each.part(torch.zeros(each.shape, dtype=dtype, device=DEVICE))
        dst = torch.empty(each.copied, dtype=dtype, device=DEVICE)
        yield from repeated(lambda: dst.copy_(src), stream.synchronize)


register("cupy", cupy_copy, "cupy")
register("torch", torch_copy, "torch")
