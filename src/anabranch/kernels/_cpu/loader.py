"""Loads a compiled kernel into the process. Needs llvmlite and, as a rule, no Numba."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import binding as llvm

from anabranch._launch.kernel_failure import fault_function
from anabranch.kernels._elf import undefined_symbols
from anabranch.kernels._failure import Place


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
    llvm.load_library_permanently("")  # the process itself: else LLVM finds none of the C library's functions
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
