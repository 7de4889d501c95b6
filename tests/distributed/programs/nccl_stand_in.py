"""A stand-in for nccl4py, and the one for NCCL that it loads, which notes the calls."""

import ctypes
import sys
import types

library = ctypes.CDLL("libnccl.so.2")
library.nccl_calls.restype = ctypes.c_char_p
managed = []


class UniqueId(bytes):
    @staticmethod
    def from_bytes(data):
        return UniqueId(data)


class Communicator:
    ptr = 7

    @classmethod
    def init(cls, size, rank, identifier):
        managed.append(("init", size, rank, bytes(identifier)))
        return cls()

    def get_async_error(self):
        return 0

    def destroy(self):
        managed.append("destroy")

    def abort(self):
        managed.append("abort")


nccl, core = types.ModuleType("nccl"), types.ModuleType("nccl.core")
nccl.__spec__ = types.SimpleNamespace(name="nccl")
core.UniqueId, core.Communicator = UniqueId, Communicator
core.get_unique_id = lambda: UniqueId(b"identifier")
nccl.core = core
sys.modules.update({"nccl": nccl, "nccl.core": core})
