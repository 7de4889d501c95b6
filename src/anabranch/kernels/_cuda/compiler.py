"""A kernel for CUDA: from the disk cache, or compiled by numba-cuda-mlir."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import warnings
from functools import cache
from importlib import metadata
from types import FunctionType
from typing import Final, NamedTuple

from anabranch._launch.target import Target
from anabranch.kernels import _cache
from anabranch.kernels._block_rule import check_block
from anabranch.kernels._cache_key import cache_key, sources
from anabranch.kernels._compile_error import NO_MEMORY, compile_error, definition, from_compiler
from anabranch.kernels._cuda.entry import layout_of
from anabranch.kernels._cuda.ptx import RECORD_SLOT, externals
from anabranch.kernels._elf import check_cubin
from anabranch.kernels._failure import Place, Spot, pack, places_of, unpack
from anabranch.kernels._parameter import Parameter
from anabranch.kernels._progress import told
from anabranch.kernels._restriction import check_restrictions
from anabranch.kernels._signature import Signature, describe

# Packages that take part in compilation if installed. Their names differ between CUDA versions.
_TOOLS: Final = tuple(
    name + suffix
    for name in ("numba-cuda-mlir", "cuda-core", "cuda-bindings", "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-nvjitlink")
    for suffix in ("", "-cu12")
)
_LIBRARIES: Final = ("numba", "numpy")  # whose functions kernels call
# Slots, and whether the kernel moves across rows.
_HEAD: Final = re.compile(rb"\[\[(\d+(, \d+)*)?\], (true|false)\]")
_ALLOCATION: Final = re.compile(r"malloc|NRT_")


class CompiledPTX(NamedTuple):
    """A kernel as code for one compute capability.

    Attributes
    ----------
    image : bytes
        A cubin.
    symbol : str
        Name of the kernel in it.
    slots : tuple of int
        First 8-byte slot of each parameter after the sizes of the index space, which come first. For an array a launch
        packs its address, its sizes and its strides in elements; for a scalar it packs the same as on the CPU. Slot
        2^32 - 1 is the address of the launch's failure record.
    across : bool
        Whether it moves across the rows of an array, see `rows`.
    places : tuple of Place
        Places where it may fail; empty if it cannot.
    block : tuple of int
        Threads per block along each axis of the launch; empty if the kernel does not run in blocks.
    """

    image: bytes
    symbol: str
    slots: tuple[int, ...]
    across: bool = False
    places: tuple[Place, ...] = ()
    block: tuple[int, ...] = ()


def compile_kernel(
    function: FunctionType,
    parameters: tuple[Parameter, ...],
    signature: Signature,
    target: Target,
) -> CompiledPTX:
    """Return code of `function` for a valid `signature`.

    No device is required.

    Raises
    ------
    anabranch.CompileError
        The compiler rejects the function, or the function violates a restriction on kernels.
    ModuleNotFoundError
        numba-cuda-mlir is not installed.
    """
    if importlib.util.find_spec("numba_cuda_mlir") is None:
        raise ModuleNotFoundError(
            "kernels written in Python need numba-cuda-mlir to run on CUDA; install it, for the driver's version, "
            'with: pip install "anabranch[cu13]", or "anabranch[cu12]"',
            name="numba_cuda_mlir",
        )
    symbol = "anabranch_" + re.sub(r"[^A-Za-z0-9_]", "_", function.__qualname__)
    key = _key(function, parameters, signature, symbol, target)
    stored = _cache.read("cuda", key) if key else None
    if stored is not None:
        try:
            return _unpack(stored, symbol, function, signature, target)
        except ValueError:
            pass  # not an entry of ours
    with told(function.__name__):
        compiled, spots = _compile(function, parameters, signature, symbol, target)
    if key and key == _key(function, parameters, signature, symbol, target):  # unchanged during compilation
        _cache.write("cuda", key, _pack(compiled, spots))
    return compiled._replace(places=places_of(spots, function, signature))


def _compile(
    function: FunctionType,
    parameters: tuple[Parameter, ...],
    signature: Signature,
    symbol: str,
    target: Target,
) -> tuple[CompiledPTX, list[Spot]]:
    check_restrictions(function)
    with warnings.catch_warnings():
        # The compiler imports PyTorch where that is installed, and both trigger warnings. Users who turn warnings into
        # errors mean their own.
        warnings.simplefilter("ignore")
        from anabranch.kernels._cuda import codegen, link
    from anabranch.kernels._cuda.refusal import refusal
    from anabranch.kernels._cuda.result import ReturnsValueError

    arguments = describe(parameters, signature)
    try:
        ptx = codegen.build(function, parameters, signature, symbol, target)
    except ReturnsValueError as error:
        reason = f"a kernel returns nothing; this one returns {error.kind}"
        raise compile_error(function, reason, definition(function), arguments) from None
    except Exception as error:
        found = refusal(error)
        if found is not None:
            raise compile_error(function, found.reason, found.place or definition(function), arguments) from None
        # For a rejection the traceback adds nothing to the message; for a bug it does.
        cause = None if type(error).__module__.startswith("numba_cuda_mlir.") else error
        raise from_compiler(function, parameters, signature, error) from cause
    unwanted = externals(ptx.text)
    if unwanted:
        raise compile_error(function, _unwanted(unwanted), definition(function), arguments)
    architecture = 10 * target.capability[0] + target.capability[1]
    image = link.link(ptx.text, architecture, function.__qualname__)
    return CompiledPTX(image, symbol, ptx.slots, ptx.across, block=ptx.block), ptx.spots


def _unwanted(names: list[str]) -> str:
    if any(map(_ALLOCATION.search, names)):
        return NO_MEMORY
    if "vprintf" in names:
        return "a kernel cannot print or use Python objects: no interpreter runs where it does"
    return f"CUDA has no function {', '.join(names)}"


def _pack(compiled: CompiledPTX, spots: list[Spot]) -> bytes:
    return json.dumps([compiled.slots, compiled.across]).encode() + b"\n" + pack(spots, compiled.block, compiled.image)


def _unpack(stored: bytes, symbol: str, function: FunctionType, signature: Signature, target: Target) -> CompiledPTX:
    """Return the arguments of `_pack`; ValueError for any other format."""
    head, _, rest = stored.partition(b"\n")
    slots, across = json.loads(head) if _HEAD.fullmatch(head) else ((-1,), False)
    if not {*layout_of(signature, target).slots, RECORD_SLOT} >= set(slots):
        raise ValueError(f"slots of {function.__qualname__}")
    spots, block, image = unpack(rest)
    check_block(block, function, signature)
    check_cubin(image, symbol)
    return CompiledPTX(image, symbol, tuple(slots), across, places_of(spots, function, signature), tuple(block))


def _key(
    function: FunctionType,
    parameters: tuple[Parameter, ...],
    signature: Signature,
    symbol: str,
    target: Target,
) -> str | None:
    return cache_key("cuda", function, parameters, signature, (_tools(), symbol, tuple(target)))


@cache
def _tools() -> tuple[object, ...]:
    """Return everything but the kernel and its target that decides the compiler's output."""
    versions = []
    for name in (*_LIBRARIES, *_TOOLS):
        try:
            versions.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return sys.version, tuple(versions), sources()
