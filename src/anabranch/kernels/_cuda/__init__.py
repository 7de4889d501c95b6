"""Python kernels as GPU code, through numba-cuda-mlir."""
