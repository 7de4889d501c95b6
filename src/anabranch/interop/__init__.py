"""Interoperation with other libraries: their streams and their memory."""

from anabranch.interop._bridge import Bridge, Bridged
from anabranch.interop._memory import cupy_allocator, rmm_resource, torch_allocator

__all__ = ["Bridge", "Bridged", "cupy_allocator", "rmm_resource", "torch_allocator"]
