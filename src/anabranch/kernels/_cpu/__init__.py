"""Python kernels as native code for the CPU, through Numba."""
