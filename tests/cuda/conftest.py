"""The GPU, delays that run on it, and the libraries beside us. What is missing skips the test, by name."""

import ctypes
import gc
import shutil
import subprocess
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

import anabranch as ab

from .gpu import KERNELS, checked, installed

SIMULATED_DRIVER = Path(__file__).parents[2] / "core" / "tests" / "cuda" / "simulated_driver.c"


def imported(name, title):
    # Other libraries warn about what is no concern of these tests.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip(name, reason=f"{title} is not installed")
    # So that a collection in a test takes less than the delays, whatever the library brought along.
    gc.collect()
    gc.freeze()
    return package


@pytest.fixture
def cuda():
    """The first GPU, current."""
    found = ab.devices("cuda")
    if not found:
        pytest.skip("there is no CUDA device")
    with found[0]:
        yield found[0]


@pytest.fixture
def pair():
    """Two GPUs, the first of them current."""
    found = ab.devices("cuda")
    if len(found) < 2:
        pytest.skip(f"two GPUs are needed; there are {len(found)}")
    with found[0]:
        yield found[0], found[1]


@pytest.fixture(scope="session")
def kernels():
    """The kernels of `gpu.KERNELS`, by name."""
    if not ab.devices("cuda"):
        pytest.skip("there is no CUDA device")
    if ab.Device("cuda:0").name == "Simulated GPU":
        pytest.skip("a simulated GPU runs no kernels")
    imported("cuda.core", "cuda-core, which compiles the kernels,")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ab.Module(KERNELS)
    return SimpleNamespace(**{name: module.get_kernel(name) for name in ("spin", "add")})


@pytest.fixture
def delay(kernels):
    """Keep a stream busy from now: `delay(stream)`."""

    def start(stream, milliseconds=60):
        ab.launch(kernels.spin, ab.LaunchConfig(1, 1), milliseconds * 1_000_000, stream=stream)

    return start


@pytest.fixture
def driver(cuda):
    """The functions of the driver, by cuda.bindings, with the first GPU's context current."""
    driver = imported("cuda.bindings.driver", "cuda-bindings")
    checked(driver.cuInit(0))
    before = checked(driver.cuCtxGetCurrent())
    context = checked(driver.cuDevicePrimaryCtxRetain(checked(driver.cuDeviceGet(cuda.index))))
    checked(driver.cuCtxSetCurrent(context))
    yield driver
    checked(driver.cuCtxSetCurrent(before))
    checked(driver.cuDevicePrimaryCtxRelease(checked(driver.cuDeviceGet(cuda.index))))


@pytest.fixture
def current_gpu(pair):
    """A function that tells the index of the GPU whose context is current on this thread, or None."""
    library = ctypes.CDLL("libcuda.so.1")
    context, contexts = ctypes.c_void_p(), {}

    def call(name, *arguments):
        found = ctypes.c_void_p()
        assert library.cuGetProcAddress_v2(name, ctypes.byref(found), 12000, ctypes.c_uint64(0), None) == 0
        assert ctypes.CFUNCTYPE(ctypes.c_int)(found.value)(*arguments) == 0

    for device in pair:
        call(b"cuDevicePrimaryCtxRetain", ctypes.byref(context), device.index)
        contexts[context.value] = device.index

    def find():
        call(b"cuCtxGetCurrent", ctypes.byref(context))
        return contexts.get(context.value)

    return find


@pytest.fixture(scope="session")
def spin_image(kernels):
    """Machine code with the kernel `spin`, to be launched by others."""
    from anabranch._launch.loaded import architecture
    from anabranch.kernels._cpp import nvrtc

    return nvrtc.compile_source(KERNELS, [], [], architecture(ab.devices("cuda")[0])).image


@pytest.fixture
def foreign(driver, spin_image):
    """Work put into streams by others, past us: each takes a handle.

    `torch.cuda._sleep` is no substitute for `delay`: it counts a multiprocessor's cycles, and where several processes
    share the GPU it has not ended within a minute.
    """
    module = checked(driver.cuModuleLoadData(spin_image))
    spin = checked(driver.cuModuleGetFunction(module, b"spin"))

    def delay(handle, milliseconds=60):
        arguments = ((milliseconds * 1_000_000,), (ctypes.c_longlong,))
        checked(driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, handle, arguments, 0))

    def fill(handle, array, byte):
        checked(driver.cuMemsetD8Async(array.ptr, byte, array.nbytes, handle))

    def copy(handle, dst, src):
        checked(driver.cuMemcpyDtoDAsync(dst.ptr, src.ptr, dst.nbytes, handle))

    def idle(handle):
        (status,) = driver.cuStreamQuery(handle)
        assert status in (driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_NOT_READY)
        return status == driver.CUresult.CUDA_SUCCESS

    def synchronize(handle):
        checked(driver.cuStreamSynchronize(handle))

    yield SimpleNamespace(delay=delay, fill=fill, copy=copy, idle=idle, synchronize=synchronize)
    checked(driver.cuCtxSynchronize())
    checked(driver.cuModuleUnload(module))


@pytest.fixture
def torch(cuda):
    """PyTorch, with its part of the GPU opened."""
    torch = imported("torch", "PyTorch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_device(cuda.index)
        torch.zeros(1, device="cuda")
    return torch


@pytest.fixture
def cupy(cuda):
    """CuPy, with its part of the GPU opened."""
    cupy = imported("cupy", "CuPy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not cupy.cuda.is_available():
            pytest.skip("CuPy finds no GPU")
        cupy.cuda.Device(cuda.index).use()
        cupy.zeros(1, "uint8")
    return cupy


@pytest.fixture
def cuda_core(cuda):
    """The cuda.core package, with its device chosen."""
    core = imported("cuda.core", "cuda-core")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        core.Device(cuda.index).set_current()
    return core


@pytest.fixture
def numba(cuda):
    """Numba for CUDA, whichever of its packages is there."""
    name = "numba_cuda_mlir.cuda" if installed("numba_cuda_mlir") else "numba.cuda"
    if installed("torch"):
        # It imports PyTorch in turn, which fails there if nobody has imported that before.
        imported("torch", "PyTorch")
    numba = imported(name, "Numba for CUDA")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            numba.default_stream()
        except Exception as error:  # of a class that differs between its packages
            pytest.skip(f"Numba cannot use the GPU: {error}")
    return numba


@pytest.fixture
def warp(cuda):
    """Warp, with its part of the GPU opened."""
    warp = imported("warp", "Warp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warp.config.quiet = True
        warp.init()
        if not warp.is_cuda_available():
            pytest.skip("this Warp finds no GPU")
    return warp


@pytest.fixture(scope="session")
def simulated_driver(tmp_path_factory):
    """A folder with the simulated driver."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    command = [compiler, "-std=gnu11", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", folder / "libcuda.so.1", SIMULATED_DRIVER], check=True)
    return folder


@pytest.fixture
def run_with(simulated_driver, run_python):
    """Run a script with that driver, which the variables FAKE_… tell what to do."""

    def run(script, **settings):
        env = {"LD_LIBRARY_PATH": str(simulated_driver), "ANABRANCH_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": None}
        # Scripts set it while the driver's thread reads it: a variable that is new may move the whole environment.
        env["FAKE_FAILS"] = ""
        return run_python(script, env={**env, **settings})

    return run
