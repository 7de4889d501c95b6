"""The compiler of our Python kernels for CUDA, with its own launches."""

from collections.abc import Iterator
from typing import Any

from gpu import BLOCK, PAGE, on_gpu
from harness import Case, Timed, repeat

twin = on_gpu("numba-cuda-mlir", "numba_cuda_mlir", "numpy")


@twin("launch.kernel4")
def launch(numba_cuda_mlir: Any, numpy: Any) -> Iterator[Case]:
    from numba_cuda_mlir import cuda

    @cuda.jit
    def scaled_sum(alpha, x, y, z):
        i = cuda.grid(1)
        z[i] = alpha * x[i] + y[i]

    stream = cuda.stream()
    x, y, z = (cuda.device_array(PAGE, numpy.float32, stream=stream) for _ in range(3))

    def batch(calls: int) -> None:
        kernel = scaled_sum
        for _ in repeat(calls):
            kernel[1, BLOCK, stream](2.0, x, y, z)

    yield Timed(batch, stream.synchronize)
