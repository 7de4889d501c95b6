"""`block`, `shared` and `barrier` for numba-cuda-mlir: a block of threads, its shared memory, and its barrier."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin, typing_registry
from numba_cuda_mlir.lowering.cuda import T, arith, builtin, gpu, ir, llvm
from numba_cuda_mlir.numba_cuda.core import bytecode, errors, interpreter
from numba_cuda_mlir.numba_cuda.core import ir as numba_ir
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature

from anabranch.kernels._block import barrier, block, shared
from anabranch.kernels._block_rule import (
    NOT_IN_BLOCKS,
    SHARED_ALIGNMENT,
    TWO_BLOCKS,
    block_sizes,
    called,
    check_block_call,
    check_shared_bytes,
    check_shared_call,
    constants_of,
    shared_shape,
)
from anabranch.kernels._cuda.refusal import RefusedError

_SHARED: Final = 3  # PTX's address space
_active: Final = threading.local()


class Blocks:
    """The blocks of the kernel being compiled.

    Attributes
    ----------
    launch_ndim : int
        The number of axes of the launch.
    sizes : tuple of int
        Indices per block along each axis; empty until `block` was compiled.
    """

    def __init__(self, launch_ndim: int) -> None:
        self.launch_ndim = launch_ndim
        self.sizes: tuple[int, ...] = ()
        self._bytes = self._arrays = 0

    def set_sizes(self, sizes: tuple[int, ...]) -> None:
        """Set the sizes. Raises `RefusedError` if they were others before."""
        if self.sizes not in ((), sizes):
            raise RefusedError(TWO_BLOCKS.format(self.sizes, sizes))
        self.sizes = sizes

    def add_shared(self, size: int) -> str:
        """Return a symbol for a shared array of `size` bytes. Raises `RefusedError` if all have too many."""
        self._bytes += -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
        check_shared_bytes(RefusedError, self._bytes)
        self._arrays += 1
        return f"anabranch_shared_{self._arrays}"


@contextmanager
def in_blocks(launch_ndim: int) -> Iterator[Blocks]:
    """Compile a kernel that runs in blocks, which the value describes afterwards."""
    _active.blocks = blocks = Blocks(launch_ndim)
    try:
        yield blocks
    finally:
        _active.blocks = None


def declared_sizes(function: FunctionType) -> tuple[int, ...]:
    """Return the sizes of a kernel's blocks, as far as they follow from its bytecode; else an empty tuple."""
    try:
        identity = bytecode.FunctionIdentity.from_function(function)
        code = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity))
    except Exception:
        return ()  # the compiler reports the error
    for body in code.blocks.values():
        for statement in body.body:
            if isinstance(statement, numba_ir.Assign) and called(code, numba_ir, statement.value) is block:
                return constants_of(code, numba_ir, statement.value.args) or ()
    return ()


def has_blocks() -> bool:
    """Return whether the kernel being compiled runs in blocks, so that it may access shared arrays."""
    return _blocks() is not None


def _blocks() -> Blocks | None:
    return getattr(_active, "blocks", None)


@typing_registry.register
class _Block(AbstractTemplate):  # type: ignore[misc]  # the compiler has no types
    key = block

    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        blocks = _blocks()
        count = check_block_call(errors.TypingError, types, args, kws, blocks.launch_ndim if blocks else None)
        return signature(types.int64 if count == 1 else types.UniTuple(types.int64, count), *args)


@typing_registry.register
class _Shared(AbstractTemplate):  # type: ignore[misc]  # the compiler has no types
    key = shared

    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        ndim, element = check_shared_call(errors.TypingError, types, args, kws)
        return signature(types.Array(element, ndim, "C"), *args)


@typing_registry.register
class _Barrier(AbstractTemplate):  # type: ignore[misc]  # the compiler has no types
    key = barrier

    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        if args or kws:
            raise errors.TypingError("ab.barrier takes no arguments")
        return signature(types.none)


for _template in (_Block, _Shared, _Barrier):
    typing_registry.register_global(_template.key, types.Function(_template))


def _lower_block(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    blocks = _blocks()
    if blocks is None:
        raise RefusedError(NOT_IN_BLOCKS.format("block"))
    sizes = block_sizes(RefusedError, constants_of(builder.func_ir, numba_ir, args))
    blocks.set_sizes(sizes)
    # The last axis is x. From 32 bits without a sign, or a test whether an index is negative would remain.
    dimensions = [gpu.Dimension.x, gpu.Dimension.y, gpu.Dimension.z][: len(sizes)]
    place = [
        arith.extui(T.i64(), arith.index_cast(T.i32(), gpu.thread_id(dimension))) for dimension in reversed(dimensions)
    ]
    builder.store_var(target, place[0] if len(place) == 1 else tuple(place))


def _lower_shared(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    blocks = _blocks()
    if blocks is None:
        raise RefusedError(NOT_IN_BLOCKS.format("shared"))
    shape = shared_shape(RefusedError, constants_of(builder.func_ir, numba_ir, args[:1]))
    kind = builder.get_numba_type(target.name)
    itemsize = getattr(kind.dtype, "bitwidth", 8) // 8
    size = itemsize * math.prod(shape)
    name = blocks.add_shared(size)
    # Of the compiler's own kind of global, those in functions that it compiles separately are lost.
    with ir.InsertionPoint.at_block_begin(builder.mlir_gpu_module.bodyRegion.blocks[0]):
        llvm.GlobalOp(
            ir.Type.parse(f"!llvm.array<{size} x i8>"),
            name,
            ir.Attribute.parse("#llvm.linkage<internal>"),
            addr_space=_SHARED,
            alignment=SHARED_ALIGNMENT,
        )
    address = llvm.addrspacecast(llvm.PointerType.get(), llvm.mlir_addressof(llvm.PointerType.get(_SHARED), name))
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    descriptor = builder._build_memref_descriptor(address, shape, strides)
    builder.store_var(target, builtin.unrealized_conversion_cast([builder.get_mlir_type(kind)], [descriptor]))


def _lower_barrier(builder: Any, target: Any, args: Any, kwargs: Any) -> None:
    gpu.barrier()
    builder.store_var(target, None)


lower_builtin(block, types.VarArg(types.Any))(_lower_block)
lower_builtin(shared, types.Any, types.Any)(_lower_shared)
lower_builtin(barrier)(_lower_barrier)
