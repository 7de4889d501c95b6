"""Compile a file of CUDA C++ to PTX, and write it as a string into a C++ header.

    python core/embed_ptx.py SOURCE.cu HEADER.hpp

Uses NVRTC of CUDA 12, the last that compiles for GPUs of compute capability 5.0: from the wheel nvidia-cuda-nvrtc-cu12,
or from the toolkit in $CUDA_HOME or /usr/local/cuda. Needs no GPU.
"""

import ctypes
import importlib.util
import os
import re
import sys
from pathlib import Path

LIBRARY = "libnvrtc.so.12"
HEADER = """\
#pragma once

namespace anabranch::cuda {{

constexpr char {name}_ptx[] = R"ptx({ptx})ptx";

}}  // namespace anabranch::cuda
"""


def open_nvrtc() -> ctypes.CDLL:
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    folders = [Path(place) / "lib" for place in spec.submodule_search_locations or ()] if spec else []
    folders += [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64"]
    for folder in folders:
        if (folder / LIBRARY).exists():
            return ctypes.CDLL(str(folder / LIBRARY))
    raise SystemExit(
        f"{LIBRARY} is not found: pip install nvidia-cuda-nvrtc-cu12, or set CUDA_HOME to a CUDA 12 toolkit"
    )


def check(status: int, what: str) -> None:
    if status != 0:
        raise SystemExit(f"{what} failed with NVRTC status {status}")


def text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, kind: str) -> str:
    size = ctypes.c_size_t()
    check(nvrtc[f"nvrtcGet{kind}Size"](program, ctypes.byref(size)), kind)
    buffer = ctypes.create_string_buffer(size.value)
    check(nvrtc[f"nvrtcGet{kind}"](program, buffer), kind)
    return buffer.value.decode()


def compile_ptx(path: Path) -> str:
    nvrtc = open_nvrtc()
    options = [
        "--gpu-architecture=compute_50",
        "-std=c++17",
        "--relocatable-device-code=true",  # what condition.cu calls is linked by the driver
        f"--include-path={path.parent}",
        "-w",  # NVRTC warns that the architecture is old
    ]
    program = ctypes.c_void_p()
    source, name = path.read_bytes(), path.name.encode()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name, 0, None, None), "creation")
    encoded = [option.encode() for option in options]
    status = nvrtc.nvrtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
    if status != 0:
        print(text(nvrtc, program, "ProgramLog").strip(), file=sys.stderr)
    check(status, f"compilation of {path}")
    # Nothing in it is newer than this version, and a driver refuses a version that is newer than itself.
    ptx = re.sub(r"^\.version .*$", ".version 7.0", text(nvrtc, program, "PTX"), flags=re.MULTILINE)
    return re.sub(r"^//.*\n|^\t// .*\n|^\n", "", ptx, flags=re.MULTILINE)


def main(source: Path, header: Path) -> None:
    header.write_text(HEADER.format(name=source.stem, ptx=compile_ptx(source)))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
