"""Make the PTX in core/src/cuda from the .cu files beside it, which is needed only after one was changed.

Needs the wheel nvidia-cuda-nvrtc-cu12, and no GPU.
"""

import ctypes
import re
from pathlib import Path

import nvidia.cuda_nvrtc

FOLDER = Path(__file__).parents[1] / "core" / "src" / "cuda"
# What condition.cu calls is linked by the driver.
OPTIONS = (
    b"--gpu-architecture=compute_50",
    b"-std=c++17",
    b"--relocatable-device-code=true",
    f"--include-path={FOLDER}".encode(),
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
    folder = Path(next(iter(nvidia.cuda_nvrtc.__path__))) / "lib"
    nvrtc = ctypes.CDLL(str(next(folder.glob("libnvrtc.so.*"))))
    program = ctypes.c_void_p()
    source, name = path.read_bytes(), path.name.encode()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name, 0, None, None), "creation")
    status = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    print(text(nvrtc, program, "ProgramLog").strip())
    check(status, "compilation")
    return text(nvrtc, program, "PTX")


def main() -> None:
    for source in (FOLDER / name for name in ("elements.cu", "convert.cu", "run.cu", "condition.cu")):
        ptx = compile_ptx(source)
        # Nothing in it is newer than this version, and a driver refuses a version that is newer than itself.
        ptx = re.sub(r"^\.version .*$", ".version 7.0", ptx, flags=re.MULTILINE)
        ptx = re.sub(r"^//.*\n|^\t// .*\n|^\n", "", ptx, flags=re.MULTILINE)
        source.with_suffix(".ptx").write_text(ptx)


if __name__ == "__main__":
    main()
