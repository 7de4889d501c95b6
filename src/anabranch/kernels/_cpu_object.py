"""Loads a compiled kernel into the process. Needs llvmlite and, as a rule, no Numba."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from llvmlite import binding as llvm

from anabranch._kernel_failure import fault_function
from anabranch.kernels._failure import Place

_SYMBOL_TABLE: Final = 2
_SYMBOL_BYTES: Final = 24
_SECTION_BYTES: Final = 64


class MissingSymbolError(Exception):
    """An object file needs functions that this process does not have; `names` lists them."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


class Compiled(NamedTuple):
    """Native code of a kernel.

    Attributes
    ----------
    address : int
        Address of the C function.
    keepalive : object
        The code lives as long as this object: hold it for as long as work that uses the address
        may run.
    places : tuple of Place
        Where it may fail; empty if it cannot.
    """

    address: int
    keepalive: Any
    places: tuple[Place, ...] = ()


def load(code: bytes, symbol: str) -> Compiled:
    """Load an object file and find `symbol` in it.

    Each kernel gets an engine of its own, so that its code goes when nothing holds it any more.

    Raises
    ------
    MissingSymbolError
        The object needs a function that nothing in the process defines. LLVM would end the
        process, so this is found out first.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol("anabranch_fault", fault_function())
    missing = _missing(code)
    if missing:
        _define_numba_symbols()
        missing = _missing(code)
    if missing:
        raise MissingSymbolError(missing)
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Compiled(engine.get_function_address(symbol), engine)


def _define_numba_symbols() -> None:
    """Let LLVM find the functions of Numba's own C library, which few kernels use."""
    from numba.core.registry import cpu_target

    context: Any = cpu_target.target_context
    context.refresh()


def _missing(code: bytes) -> list[str]:
    return [name for name in undefined_symbols(code) if llvm.address_of_symbol(name) is None]


def undefined_symbols(code: bytes) -> list[str]:
    """List the names that a 64-bit little-endian ELF object uses and does not define.

    Other formats give an empty list.
    """
    if code[:6] != b"\x7fELF\x02\x01":
        return []
    (sections_at,) = struct.unpack_from("<Q", code, 40)
    count = struct.unpack_from("<H", code, 60)[0]
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections_at + i * _SECTION_BYTES) for i in range(count)]
    names = []
    for header in headers:
        kind, at, size, link = header[1], header[4], header[5], header[6]
        if kind != _SYMBOL_TABLE:
            continue
        strings_at = headers[link][4]
        for symbol in range(at, at + size, _SYMBOL_BYTES):
            name_at, _, _, section = struct.unpack_from("<IBBH", code, symbol)
            if name_at and not section:
                start = strings_at + name_at
                names.append(code[start : code.index(b"\0", start)].decode())
    return [name for name in names if name != "_GLOBAL_OFFSET_TABLE_"]
