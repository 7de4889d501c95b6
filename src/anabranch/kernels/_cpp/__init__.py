"""Kernels written in CUDA C++, and kernels in compiled code."""
