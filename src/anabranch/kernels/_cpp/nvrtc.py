"""CUDA C++ to machine code and PTX, through NVRTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from anabranch._core.errors import CompileError

_PLACE: Final = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?:catastrophic )?error", re.MULTILINE)
_ARCHITECTURE: Final = re.compile(r"-{1,2}(?:gpu-architecture|arch)\b")
SOURCE_NAME: Final = "module.cu"


class Program(NamedTuple):
    """The compiled form of a source for one architecture.

    Attributes
    ----------
    image : bytes
        Machine code, or PTX if the options name a virtual architecture.
    ptx : str
        PTX, which describes the kernels' parameters.
    symbols : dict
        Symbols of name expressions.
    log : str
        The compiler's messages.
    """

    image: bytes
    ptx: str
    symbols: dict[str, str]
    log: str


def compile_source(source: str, options: Sequence[str], expressions: Sequence[str], architecture: int) -> Program:
    """Compile CUDA C++. No device is required.

    Parameters
    ----------
    source : str
        The text.
    options : sequence of str
        Options of NVRTC, such as ``--std=c++20``.
    expressions : sequence of str
        Name expressions of kernels that the program must contain, such as ``scale<float>``.
    architecture : int
        90 for sm_90; the options take precedence if they name one.

    Raises
    ------
    anabranch.CompileError
        With the compiler's messages, and the source line of the first one.
    """
    nvrtc = _nvrtc()
    handle = _checked(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), SOURCE_NAME.encode(), 0, [], []))
    try:
        for expression in expressions:
            _checked(nvrtc, nvrtc.nvrtcAddNameExpression(handle, expression.encode()))
        given = [*options, *_includes()]
        if not any(_ARCHITECTURE.match(option) for option in options):
            given.append(f"--gpu-architecture=sm_{architecture}")
        status = nvrtc.nvrtcCompileProgram(handle, len(given), [option.encode() for option in given])[0]
        log = _text(nvrtc, handle, "ProgramLog")
        if status.value:
            raise CompileError(_message(nvrtc, source, options, log, status))
        names = {
            expression: _checked(nvrtc, nvrtc.nvrtcGetLoweredName(handle, expression.encode())).decode()
            for expression in expressions
        }
        ptx = _text(nvrtc, handle, "PTX")
        return Program(_bytes(nvrtc, handle, "CUBIN") or ptx.encode() + b"\0", ptx, names, log)
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _message(nvrtc: Any, source: str, options: Sequence[str], log: str, status: Any) -> str:
    if not log:
        log = _checked(nvrtc, nvrtc.nvrtcGetErrorString(status)).decode()
    text = ["the source cannot be compiled"]
    place = _PLACE.search(log)
    if place is not None and place["file"] == SOURCE_NAME:
        lines = source.splitlines()
        number = int(place["line"])
        text.append(f'  File "{SOURCE_NAME}", line {number}')
        if 0 < number <= len(lines):
            text.append(f"    {lines[number - 1].strip()}")
    text.append(log)
    if options:
        text.append(f"with the options {' '.join(options)}")
    return "\n".join(text)


@cache
def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise ModuleNotFoundError(
            "ab.Module compiles with NVRTC, which comes with cuda-core; install it, for the driver's version, with: "
            'pip install "anabranch[cu13]", or "anabranch[cu12]"',
            name="cuda",
        ) from error
    return nvrtc


@cache
def _includes() -> tuple[str, ...]:
    """Return the include folders of installed CUDA headers, such as cuda_fp16.h."""
    from cuda.pathfinder import find_nvidia_header_directory

    found = []
    for name in ("cudart", "cccl"):
        try:
            path = find_nvidia_header_directory(name)
        except Exception:  # versions know different names and reject others with different errors
            path = None
        if path:
            found.append(f"--include-path={path}")
    return tuple(found)


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    status, *values = result
    if status.value:
        raise CompileError(f"NVRTC: {nvrtc.nvrtcGetErrorString(status)[1].decode()}")
    return values[0] if values else None


def _bytes(nvrtc: Any, handle: Any, what: str) -> bytes:
    size: int = _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(handle))
    # NVRTC writes into an object that is immutable elsewhere. One byte longer, it is never CPython's only b" ".
    buffer = b" " * (size + 1)
    if size:
        _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(handle, buffer))
    return buffer[:size]


def _text(nvrtc: Any, handle: Any, what: str) -> str:
    return _bytes(nvrtc, handle, what).rstrip(b"\0").decode(errors="replace").strip()
