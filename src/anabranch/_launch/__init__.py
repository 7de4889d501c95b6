"""Launches of kernels."""
