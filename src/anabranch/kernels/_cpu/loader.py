"""Loads a compiled kernel into the process. Requires llvmlite but, as a rule, not Numba."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import binding as llvm

from anabranch._launch.kernel_failure import fault_functions
from anabranch.kernels._elf import undefined_symbols
from anabranch.kernels._failure import Place


class MissingSymbolError(Exception):
    """An object file needs functions that this process lacks; `names` lists them."""

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
        Keeps the code alive: hold it while work that uses the address may run.
    places : tuple of Place
        Places where it may fail; empty if it cannot.
    block : tuple of int
        Indices per block along each axis; empty if the kernel does not run in blocks.
    """

    address: int
    keepalive: Any
    places: tuple[Place, ...] = ()
    block: tuple[int, ...] = ()


def load(code: bytes, symbol: str) -> Compiled:
    """Load an object file and find `symbol` in it.

    Each kernel has its own engine, so its code is freed with the last reference to it.

    Raises
    ------
    MissingSymbolError
        The object needs a function that nothing in the process defines. LLVM would end the process, so this is checked
        first.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.load_library_permanently("")  # the process itself: LLVM needs it to find the C library's functions
    for name, address in fault_functions().items():
        llvm.add_symbol(name, address)
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
    """Make the functions of Numba's C library visible to LLVM; few kernels use them."""
    from numba.core.registry import cpu_target

    context: Any = cpu_target.target_context
    context.refresh()


def _missing(code: bytes) -> list[str]:
    return [name for name in undefined_symbols(code) if llvm.address_of_symbol(name) is None]
