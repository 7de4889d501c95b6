"""Tries an installed wheel: what users do first, on every device that there is. Needs nothing but what the wheel needs.

    python -I smoke.py [MAJOR [PART...]]     # with what compiles for GPUs, which is to be of this CUDA: 12 or 13

Runs outside of the repository, and prints a line for each part. Without a GPU, code for one is compiled and not run.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import subprocess
import sys
import sysconfig
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import anabranch as ab

SOURCE = r"""
#include <cuda_fp16.h>
extern "C" __global__ void scale(float factor, const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __half2float(__float2half(factor)) * in[i];
}
"""


def raises(kind, words, action, *arguments, **options):
    """Call, and check that this raises an exception of exactly this class which says these words."""
    caught = None
    try:
        action(*arguments, **options)
    except Exception as error:
        caught = error
    assert type(caught) is kind, f"{action} raised {caught!r}, not a {kind.__name__}"
    assert words in str(caught), f"{words!r} is not in {str(caught)!r}"


def files(_major):
    package = Path(ab.__file__).parent
    found = [str(file) for file in distribution("anabranch").files or []]
    assert not [file for file in found if file.endswith((".pyx", ".pxd", ".hpp", ".cpp"))]
    assert "anabranch/py.typed" in found
    (for_dask,) = distribution("anabranch").entry_points.select(group="dask.sizeof")
    assert callable(for_dask.load())
    libraries = [file for file in package.rglob("*.so") if file.name != "libanabranch.so"]
    modules = {file.with_name(file.name.partition(".")[0]) for file in libraries}
    assert modules
    assert {file.with_suffix("") for file in package.rglob("*.pyi")} >= modules
    for module in sorted(modules):
        import_module(".".join(("anabranch", *module.relative_to(package).parts)))
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "importing has turned the interpreter lock on"
    return f"{len(modules)} extension modules in {package}"


def stubs(_major):
    """Editors read nothing else of an extension module, so its stub has the documentation too."""
    names = [*ab.__all__, *ab.testing.__all__]
    public = {name: getattr(ab, name, None) or getattr(ab.testing, name) for name in names}
    documented = 0
    for name, value in public.items():
        module = sys.modules.get(getattr(value, "__module__", ""))
        if not getattr(module, "__file__", "").endswith(".so"):
            continue
        stub = Path(module.__file__).with_name(module.__name__.rpartition(".")[2] + ".pyi")
        nodes = [node for node in ast.parse(stub.read_text()).body if getattr(node, "name", None) == name]
        assert inspect.getdoc(value) in map(ast.get_docstring, nodes), f"{stub} does not say what {name} is"
        documented += 1
    return f"of {documented} names, with documentation"


def errors(_major):
    """Of each kind that the core has: thrown by one library and caught in others."""
    stream, other = ab.Stream("cpu", name="one"), ab.Stream("cpu", name="other")
    raises(ValueError, "negative size", ab.empty, -1, device="cpu")
    raises(ab.DeviceError, "cpu:99", ab.Device, "cpu:99")
    raises(ab.OutOfMemoryError, "cannot allocate", ab.empty, 1 << 58, "int8", device="cpu")
    raises(ab.EventError, "enable_timing", stream.record_event().elapsed_time, other.record_event())
    raises(ab.CaptureError, "cannot wait", wait_in_capture, stream)
    failing = ab.Stream("cpu", name="failing")
    ab.testing.fail(failing, ZeroDivisionError("as planned"))
    other.wait_stream(failing)
    raises(ZeroDivisionError, "as planned", failing.synchronize)
    raises(ZeroDivisionError, "as planned", other.synchronize)
    with ab.hazards("check"):
        x = ab.ones(100, stream=stream)
        raises(ab.RaceError, "one", ab.fill, x, 2.0, stream=ab.Stream("cpu", name="racing"))
    return "each arrives as what it is"


def wait_in_capture(stream):
    with ab.capture(stream):
        stream.synchronize()


def streams(_major):
    for device in ab.devices():
        upload, compute = ab.Stream(device, name="upload"), ab.Stream(device, name="compute")
        x = ab.empty(1000, stream=upload)
        with ab.testing.Gate(upload) as gate:
            ab.fill(x, 2.0, stream=upload)
            event = upload.record_event()
            compute.wait_event(event)
            y = ab.empty(1000, stream=compute)
            ab.copy(y, x, stream=compute)
            assert not event.query()
            gate.open()
        assert float(y.numpy().sum()) == 2000.0
        begin, end = ab.Event(enable_timing=True, device=device), ab.Event(enable_timing=True, device=device)
        begin.record(compute)
        ab.fill(y[::2], 1.0, stream=compute)
        end.record(compute)
        end.synchronize()
        assert begin.elapsed_time(end) >= 0.0
        assert y.numpy().sum() == 1500.0
        assert compute.submit(divmod, 7, 2).result() == (3, 1)
        asyncio.run(awaited(compute))
    return ", ".join(device.alias for device in ab.devices())


async def awaited(stream):
    await stream


def graphs(_major):
    for device in ab.devices():
        stream = ab.Stream(device)
        a, b = ab.zeros(64, device=device), ab.zeros(64, device=device)
        with ab.capture(stream) as graph:
            ab.fill(a, 3.0, stream=stream)
            ab.copy(b, a, stream=stream)
        graph.launch(stream)
        assert float(b.numpy().sum()) == 192.0
    return "captured and replayed"


def protocols(_major):
    given = np.arange(12.0).reshape(3, 4)
    taken = ab.from_dlpack(given)
    assert taken.shape == (3, 4)
    assert np.array_equal(np.from_dlpack(ab.array(given, device="cpu")), given)
    return "DLPack, both ways"


def commands(_major):
    script = Path(sysconfig.get_path("scripts")) / "anabranch"
    command = [str(script)] if script.exists() else [sys.executable, "-m", "anabranch"]
    result = subprocess.run([*command, "info"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result
    assert "cpu:0" in result.stdout
    return "`anabranch info` tells of the devices"


def python_kernels(_major):
    if importlib.util.find_spec("numba") is None:
        return "no Numba: none"

    @ab.kernel
    def saxpy(i, alpha, x: ab.In, y: ab.InOut):
        y[i] = alpha * x[i] + y[i]

    compiles_for_gpus = importlib.util.find_spec("numba_cuda_mlir") is not None
    for device in ab.devices() if compiles_for_gpus else ab.devices("cpu"):
        with ab.Stream(device):
            x, y = ab.ones(1000), ab.ones(1000)
            ab.launch(saxpy, 1000, 2.0, x, y)
            assert float(y.numpy().sum()) == 3000.0
    if not compiles_for_gpus:
        return "on the CPU"
    from anabranch._launch.target import Target

    array = ("array", "float32", 1, True, False)
    compiled = saxpy.compile_cuda((1, (("scalar", "float32"), array, array)), Target((9, 0)))
    return f"on every device, and for sm_90: {type(compiled).__name__}"


def cuda_kernels(major):
    if major is None:
        return "nobody said which CUDA: none"
    from cuda.bindings import nvrtc

    from anabranch.kernels._cpp.nvrtc import compile_source

    _, *version = nvrtc.nvrtcVersion()
    assert version[0] == major, f"NVRTC is of CUDA {version[0]}, not {major}"
    # A virtual architecture gives PTX, a real one machine code.
    assert b".target sm_80" in compile_source(SOURCE, ["--gpu-architecture=compute_80"], (), 80).image
    assert compile_source(SOURCE, [], (), 90).image.startswith(b"\x7fELF")
    raises(ab.CompileError, "undefined", compile_source, "__global__ void f() { missing(); }", [], (), 90)
    for device in (device for device in ab.devices() if device.alias.startswith("cuda")):
        scale = ab.Module(SOURCE).get_kernel("scale")
        with ab.Stream(device):
            x, y = ab.ones(1000), ab.zeros(1000)
            ab.launch(scale, ab.LaunchConfig(4, 256), 3.0, x, y, 1000)
            assert float(y.numpy().sum()) == 3000.0
    return f"compiled by NVRTC {version[0]}.{version[1]}"


def main():
    major = int(sys.argv[1]) if len(sys.argv) > 1 else None
    for part in (files, stubs, errors, streams, graphs, protocols, commands, python_kernels, cuda_kernels):
        if not sys.argv[2:] or part.__name__ in sys.argv[2:]:
            print(f"{part.__name__:15} {part(major)}", flush=True)
    print(f"anabranch {distribution('anabranch').version} works on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
