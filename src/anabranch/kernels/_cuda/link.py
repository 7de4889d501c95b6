"""Linking of PTX or LTO-IR to machine code, by the linker of the toolkit that produced them.

A driver older than the toolkit cannot read its PTX but runs the machine code. The first launch of a process is also
cheaper, since nothing is left to compile.
"""

from __future__ import annotations


def link(ptx: str, architecture: int, name: str) -> bytes:
    """Return the cubin of `ptx` for devices of an architecture, such as 90 for sm_90."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(name=name, arch=f"sm_{architecture}")
    return bytes(Linker(ObjectCode.from_ptx(ptx.encode(), name=name), options=options).link("cubin").code)


def link_ltoir(code: bytes, architecture: int) -> bytes:
    """Return the cubin of LTO-IR."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=f"sm_{architecture}", link_time_optimization=True)
    return bytes(Linker(ObjectCode.from_ltoir(code), options=options).link("cubin").code)
