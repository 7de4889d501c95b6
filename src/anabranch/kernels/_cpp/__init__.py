"""Kernels written in CUDA C++ and kernels loaded from compiled code."""
