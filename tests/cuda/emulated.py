"""Runs the code that is compiled for CUDA on the host, one index after the other, so without a GPU.

The compiler's LLVM code is taken before it becomes PTX, and compiled for the host. It is that for sm_100, since older
GPUs get a dialect that nothing here reads. Atomics, which are PTX from the start, are refused; a failure that the code
would report ends the process.
The threads of a block that shares memory are threads of Python, which wait for each other at a `threading.Barrier`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import llvmlite.binding as llvm
import numba_cuda_mlir.mlir_optimization as pipeline
import numpy as np
import pytest

import anabranch as ab
from anabranch._launch.target import Target
from anabranch.kernels._cuda import codegen

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

_MATH = ctypes.CDLL(ctypes.util.find_library("m"))
# Functions of NVIDIA's library that the host's has not, or under another name.
_OWN_MATH = {
    "isinfd": ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double)(math.isinf),
    "isinff": ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_float)(math.isinf),
    "isnand": ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double)(math.isnan),
    "isnanf": ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_float)(math.isnan),
    "isfinited": ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double)(math.isfinite),
    "finitef": ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_float)(math.isfinite),
    "powi": ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int32)(lambda x, n: np.float64(x) ** n),
    "powif": ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float, ctypes.c_int32)(lambda x, n: np.float64(x) ** n),
}
_C = {"i64": ctypes.c_int64, "ptr": ctypes.c_void_p, "double": ctypes.c_double}
_BLOCK = "llvm.nvvm.read.ptx.sreg.ctaid.{axis}"
# A block of one thread for each index, where a kernel does not say otherwise.
_OTHERS = {"ntid": 1, "tid": 0}
_PLACE = threading.local()


def emulate(kernel: Any, dims: tuple[int, ...], *arguments: Any, **target: bool) -> None:
    """Run a kernel for each index of `dims`, with arrays of a CPU device that nothing else uses, and numbers."""
    code = [_code_of(argument) for argument in arguments]
    engine, run, blocks, sizes = _compiled(kernel, (len(dims), tuple(code)), target)
    words: list[Any] = list(dims)
    for argument in arguments:
        if isinstance(argument, ab.Array):
            words += [argument.ptr, argument.ptr, 0, *argument.shape]
            words += [stride // argument.dtype.itemsize for stride in argument.strides]
        else:
            words.append(argument)
    for dim, size in zip(dims, sizes, strict=False):
        assert dim % size == 0
    counts = [dim // size for dim, size in zip(dims, sizes, strict=True)] if sizes else dims
    for position, index in enumerate(itertools.product(*map(range, counts))):
        # Blocks have three axes, of which the last one counts the first two of four.
        places = index if len(dims) < 4 else (index[0] * dims[1] + index[1], *index[2:])
        places = (position,) if target.get("flat") else places
        for axis, place in zip("xyz", reversed(places), strict=False):
            if axis in blocks:
                blocks[axis].value = place
        if sizes:
            _run_block(run, words, sizes)
        else:
            run(*words)
    del engine


def _run_block(run: Any, words: list[Any], sizes: tuple[int, ...]) -> None:
    """Run the threads of a block."""
    waiting = threading.Barrier(math.prod(sizes), timeout=30)

    def run_thread(place: tuple[int, ...]) -> None:
        _PLACE.axes = (*reversed(place), 0, 0)
        _PLACE.barrier = waiting
        run(*words)

    with ThreadPoolExecutor(math.prod(sizes)) as threads:
        list(threads.map(run_thread, itertools.product(*map(range, sizes))))


_CALLED = {
    "block_barrier": ctypes.CFUNCTYPE(None)(lambda: _PLACE.barrier.wait() and None),
    **{
        f"thread_{axis}": ctypes.CFUNCTYPE(ctypes.c_int32)(lambda number=number: _PLACE.axes[number])
        for number, axis in enumerate("xyz")
    },
}
for _name, _function in _CALLED.items():
    llvm.add_symbol(_name, ctypes.cast(_function, ctypes.c_void_p).value)


def _code_of(argument: Any) -> tuple[Any, ...]:
    if not isinstance(argument, ab.Array):
        return ("scalar", "float64" if isinstance(argument, float) else "int64")
    strides, size = [], argument.dtype.itemsize
    for length in reversed(argument.shape):
        strides.insert(0, size)
        size *= length
    return ("array", argument.dtype.name, argument.ndim, tuple(strides) == argument.strides, False)


def _compiled(kernel: Any, signature: Any, target: dict[str, bool]) -> tuple[Any, Any, dict[str, Any], tuple[int, ...]]:
    code, sizes = _llvm_code(kernel, signature, Target((10, 0), **target))
    text = _host_code(code, bool(sizes))
    name, parameters = re.search(r"define void @(_Z\w+)\(([^)]*)\)", text).groups()
    module = llvm.parse_assembly(text)
    module.verify()
    _link(module)
    # With the host's features, conversions of half precision are instructions, not calls.
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kinds = [_C[parameter.split()[0]] for parameter in parameters.split(",")]
    function = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(name))
    places = {axis: engine.get_global_value_address(f"block.{axis}") for axis in "xyz" if f"@block.{axis} =" in text}
    return engine, function, {axis: ctypes.c_int32.from_address(place) for axis, place in places.items()}, sizes


def _link(module: Any) -> None:
    """Have functions of NVIDIA's library found in that of the host."""
    for function in module.functions:
        if function.name.startswith("__nv_"):
            name = function.name.removeprefix("__nv_")
            own = _OWN_MATH.get(name) or getattr(_MATH, name)
            llvm.add_symbol(function.name, ctypes.cast(own, ctypes.c_void_p).value)


def _llvm_code(kernel: Any, signature: Any, target: Target) -> tuple[str, tuple[int, ...]]:
    """Return the LLVM code of a kernel, and the sizes of its blocks if it runs in blocks."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        original = pipeline._compile_to_ptx
        patch.setattr(pipeline, "_compile_to_ptx", lambda code, *rest: found.append(code) or original(code, *rest))
        ptx = codegen.build(kernel._function, kernel.parameters, signature, "symbol", target)
    # The functions that the kernel calls come first, and are in its own code, too.
    return found[-1].decode(), ptx.block


def _host_code(text: str, in_blocks: bool) -> str:
    """Return LLVM code for the host; the place of a block is in global variables, functions return that of a thread."""
    # What reports a failure.
    text = re.sub(r'call void asm sideeffect "\{\\0A\.reg \.pred taken.*', "call void @llvm.trap()", text)
    if re.search(r"\basm\b", text):
        raise NotImplementedError("the kernel has PTX of its own")
    text = text.replace("define ptx_kernel void", "define void")
    text = re.sub(r"^(target |@llvm\.used|!|declare [^\n]*nvvm\.read).*\n", "", text, flags=re.MULTILINE)
    text = text.replace("speculatable", "")
    if "@llvm.trap()" in text and "declare void @llvm.trap()" not in text:
        text += "\ndeclare void @llvm.trap()\n"
    for axis in "xyz":
        if (register := _BLOCK.format(axis=axis)) in text:
            text = text.replace(register, f"block.{axis}.read") + (
                f"\n@block.{axis} = global i32 0\ndefine i32 @block.{axis}.read() {{\n"
                f"  %place = load volatile i32, ptr @block.{axis}\n  ret i32 %place\n}}\n"
            )
    if in_blocks:
        text = re.sub(r"^declare .*@llvm\.nvvm\.bar.*\n", "", text, flags=re.MULTILINE)
        text = text.replace("@llvm.nvvm.barrier0()", "@block_barrier()") + "\ndeclare void @block_barrier()\n"
        text = re.sub(r"@llvm\.nvvm\.read\.ptx\.sreg\.tid\.([xyz])\(\)", r"@thread_\1()", text)
        text += "".join(f"declare i32 @thread_{axis}()\n" for axis in "xyz")
    for name, value in _OTHERS.items():
        text = re.sub(rf"call i32 @llvm\.nvvm\.read\.ptx\.sreg\.{name}\.[xyz]\(\)", f"add i32 0, {value}", text)
    return text
