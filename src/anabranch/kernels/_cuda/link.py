"""From PTX or LTO-IR to machine code, with the linker of the toolkit that made them.

A driver older than the toolkit would not read its PTX; machine code it runs. It also makes the first
launch after a start cheap, since nothing is left to compile.
"""

from __future__ import annotations


def link(ptx: str, architecture: int, name: str) -> bytes:
    """Return the cubin for `ptx` on devices of an architecture, such as 90 for sm_90."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(name=name, arch=f"sm_{architecture}")
    return bytes(Linker(ObjectCode.from_ptx(ptx.encode(), name=name), options=options).link("cubin").code)


def link_ltoir(code: bytes, architecture: int) -> bytes:
    """Return the cubin for LTO-IR."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=f"sm_{architecture}", link_time_optimization=True)
    return bytes(Linker(ObjectCode.from_ltoir(code), options=options).link("cubin").code)
