"""A kernel for the CPU: from the disk cache, or compiled by Numba."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import re
import sys
import threading
from collections.abc import Sequence
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Final

from anabranch.kernels import _cache
from anabranch.kernels._block_rule import check_block
from anabranch.kernels._cache_key import cache_key, sources
from anabranch.kernels._compile_error import (
    NO_MEMORY,
    compile_error,
    definition,
    find_place,
    from_compiler,
)
from anabranch.kernels._elf import check_object, undefined_symbols, without_unwind_tables
from anabranch.kernels._failure import Spot, pack, places_of, unpack
from anabranch.kernels._parameter import Parameter
from anabranch.kernels._progress import told
from anabranch.kernels._reference import constants
from anabranch.kernels._restriction import check_restrictions
from anabranch.kernels._signature import Signature, describe

if TYPE_CHECKING:
    from anabranch._core.errors import CompileError
    from anabranch.kernels._cpu.codegen import Built
    from anabranch.kernels._cpu.loader import Compiled

# Number of kernels that this process has compiled, without those loaded from the disk cache.
compilations = 0

_counting: Final = threading.Lock()
# Allocation functions, which no kernel may need, by their names in an object file.
_ALLOCATION: Final = re.compile(r"NRT_\w*(?:[Aa]lloc|new|varsize)|numba_(?:list|dict)_")
_PYTHON: Final = re.compile(r"_?Py|numba_(?:gil|unpickle|do_raise)")


def compile_kernel(
    function: FunctionType, parameters: tuple[Parameter, ...], signature: Signature, checked: bool
) -> Compiled:
    """Return native code of `function` for a valid `signature`; with `checked`, the code checks indices.

    Raises
    ------
    anabranch.CompileError
        Numba rejects the function, or the function violates a restriction on kernels.
    ModuleNotFoundError
        Numba is not installed.
    """
    if importlib.util.find_spec("numba") is None:
        raise ModuleNotFoundError(
            'kernels written in Python need Numba; install it with: pip install "anabranch[kernels]"', name="numba"
        )
    from anabranch.kernels._cpu import loader

    symbol = "anabranch_" + re.sub(r"[^A-Za-z0-9_]", "_", function.__qualname__)
    key = _key(function, parameters, signature, symbol, checked)
    stored = _cache.read("cpu", key) if key else None
    if stored is not None:
        try:
            spots, block, code = unpack(stored)
            check_object(code, symbol)
            return _load(code, function, signature, symbol, spots, block)
        except (ValueError, loader.MissingSymbolError):
            pass  # not an entry of ours, or an optional library that it needs is gone
    with told(function.__name__):
        built = _compile(function, parameters, signature, symbol, checked)
    try:
        compiled = _load(built.code, function, signature, symbol, built.spots, built.block)
    except loader.MissingSymbolError as error:
        raise _missing_symbols(function, parameters, signature, error.names) from None
    if built.has_addresses:
        return compiled._replace(keepalive=(compiled.keepalive, constants(function)))
    if key and key == _key(function, parameters, signature, symbol, checked):  # unchanged during compilation
        _cache.write("cpu", key, pack(built.spots, built.block, built.code))
    return compiled


def _load(
    code: bytes,
    function: FunctionType,
    signature: Signature,
    symbol: str,
    spots: Sequence[Spot],
    block: Sequence[int],
) -> Compiled:
    from anabranch.kernels._cpu import loader

    check_block(block, function, signature)
    return loader.load(code, symbol)._replace(places=places_of(spots, function, signature), block=tuple(block))


def _compile(
    function: FunctionType, parameters: tuple[Parameter, ...], signature: Signature, symbol: str, checked: bool
) -> Built:
    global compilations
    check_restrictions(function)
    _import_whole("anabranch.kernels._cpu.codegen")
    from anabranch.kernels._cpu import codegen

    with _counting:
        compilations += 1
    try:
        built: Built = codegen.build(function, parameters, signature, symbol, checked)
    except codegen.ReturnsValueError as error:
        reason = f"a kernel returns nothing; this one returns {error.kind}"
        arguments = describe(parameters, signature)
        raise compile_error(function, reason, definition(function), arguments) from None
    except Exception as error:
        # For a rejection the traceback adds nothing to the message; for a bug it does.
        cause = None if type(error).__module__.startswith("numba.") else error
        raise from_compiler(function, parameters, signature, error) from cause
    unwanted = [name for name in undefined_symbols(built.code) if _ALLOCATION.match(name) or _PYTHON.match(name)]
    if unwanted:
        raise _missing_symbols(function, parameters, signature, unwanted)
    return built._replace(code=without_unwind_tables(built.code))


def _import_whole(name: str) -> None:
    """Import a module in a thread, where Ctrl-C does not end it halfway: Numba cannot be imported again after that.

    An error of the import is the caller's, who imports the module after this.
    """

    def load() -> None:
        with contextlib.suppress(BaseException):
            importlib.import_module(name)

    if name not in sys.modules and threading.current_thread() is threading.main_thread():
        thread = threading.Thread(target=load, name="anabranch-import")
        try:
            thread.start()
        except RuntimeError:  # the interpreter is exiting
            return
        thread.join()


def _missing_symbols(
    function: FunctionType, parameters: tuple[Parameter, ...], signature: Signature, names: list[str]
) -> CompileError:
    from anabranch.kernels._cpu.codegen import find_allocation

    place = definition(function)
    if any(map(_ALLOCATION.match, names)):
        place = find_place(function, find_allocation(function, parameters, signature))
        reason = NO_MEMORY
    elif any(map(_PYTHON.match, names)):
        reason = "a kernel cannot print or use Python objects: no interpreter runs where it does"
    elif any(".numba.unresolved$" in name for name in names):
        reason = "a kernel cannot call a function that calls itself"
    else:
        reason = f"this CPU or system has no function {', '.join(names)}"
    return compile_error(function, reason, place, describe(parameters, signature))


def _key(
    function: FunctionType, parameters: tuple[Parameter, ...], signature: Signature, symbol: str, checked: bool
) -> str | None:
    return cache_key("cpu", function, parameters, signature, (_platform(), symbol, checked))


@cache
def _platform() -> tuple[object, ...]:
    """Return everything but the kernel that decides the compiler's output."""
    from llvmlite import binding as llvm

    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot query this architecture
        features = ""
    packages = tuple(importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy"))
    return (
        sys.version,
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        features,
        _has_svml(),
        packages,
        sources(),
    )


def _has_svml() -> bool:
    """Whether Numba lets LLVM use Intel's vector math library."""
    from llvmlite import binding as llvm

    if not llvm.targets.has_svml():
        return False
    try:
        llvm.load_library_permanently("libsvml.so")
    except RuntimeError:
        return False
    return True
