"""The driver: none, one that sees no GPU, one that is there; when it is opened, and what its errors tell."""

import copy
import ctypes
import pickle

import pytest

import anabranch as ab

from .gpu import SCRIPT


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.fixture
def without_gpu(run_python):
    """Run a script in an interpreter that is shown no GPU; on a machine without a driver, without one."""

    def run(script, **variables):
        return run_python(script, env={"CUDA_VISIBLE_DEVICES": "", "ANABRANCH_DEVICE": None} | variables)

    return run


# Without a GPU


def test_without_a_gpu_there_are_no_cuda_devices(without_gpu):
    script = """
        import anabranch as ab
        print(ab.devices("cuda"), ab.current_device().alias, {device.kind for device in ab.devices()})
        """
    assert without_gpu(script) == "[] cpu:0 {'cpu'}\n"


USES = [
    'ab.Device("cuda:0")',
    'ab.Device("cuda")',
    'ab.zeros(4, device="cuda:0")',
    'ab.Stream("cuda:0")',
    'ab.Event(device="cuda:0")',
    'ab.current_stream("cuda:0")',
    'ab.Stream.from_external(1, "cuda:0")',
    'ab.synchronize("cuda:0")',
]


@pytest.mark.parametrize("use", USES)
def test_without_a_gpu_an_error_names_what_is_missing(without_gpu, use):
    script = f"""
        import anabranch as ab
        try:
            {use}
        except ab.DeviceError as error:
            print(error)
        """
    message = without_gpu(script)
    assert "cuda" in message
    assert "cpu:0" in message  # what there is
    assert ("sees no GPU" if has_driver() else "libcuda.so.1") in message


def test_a_first_device_that_is_missing_is_named(without_gpu):
    script = """
        import anabranch as ab
        try:
            ab.current_device()
        except ab.DeviceError as error:
            print(error)
        """
    assert "cuda:0" in without_gpu(script, ANABRANCH_DEVICE="cuda:0")


def test_without_a_gpu_the_rest_works(without_gpu):
    script = """
        import anabranch as ab
        with ab.Stream() as stream:
            pinned = ab.ones(1000, device="cpu", pinned=True)
            array = ab.zeros(1000)
            ab.copy(array, pinned)
            assert stream.submit(int, 3).result(10) == 3
        assert array.numpy().sum() == 1000
        try:
            ab.Module('extern "C" __global__ void f() {}').get_kernel("f")
        except ab.DeviceError as error:
            print(error)
        """
    assert "CUDA device" in without_gpu(script)


def test_a_module_of_compiled_code_needs_no_gpu_to_be_made(without_gpu):
    assert without_gpu("import anabranch as ab; print(ab.Module(b'\\x7fELF'))") == "<Module of 4 bytes of code>\n"


# When it is opened


def test_the_import_opens_no_driver(run_python):
    script = """
        import anabranch
        from pathlib import Path
        maps = Path("/proc/self/maps").read_text()
        print("libanabranch" in maps, "libcuda" in maps, "libnvidia" in maps)
        """
    assert run_python(script) == "True False False\n"


@pytest.mark.usefixtures("cuda")
def test_the_first_question_for_devices_opens_it_and_makes_no_context(run_python):
    script = """
        import anabranch as ab
        from pathlib import Path
        device = ab.devices("cuda")[0]
        print("libcuda.so" in Path("/proc/self/maps").read_text())
        import ctypes
        driver, active, flags = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(-1), ctypes.c_uint()
        def state():
            assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
            return active.value
        print(device.kind, device.index, device.priority_range, device.total_memory > 1 << 30, state())
        ab.zeros(4, device=device)
        print(state())
        """
    assert run_python(script) == "True\ncuda 0 (0, -5) True 0\n1\n"


# With a GPU


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("variable", "first"), [(None, "cuda:0"), ("cpu", "cpu:0"), ("cpu:1", "cpu:1"), ("cuda", "cuda:0")]
)
def test_the_first_current_device(run_python, variable, first):
    script = """
        import anabranch as ab
        print(ab.current_device().alias, ab.zeros(4).device.alias, ab.current_stream().device.alias)
        assert ab.devices("cuda")
        """
    assert run_python(script, env={"ANABRANCH_DEVICE": variable}) == f"{first} {first} {first}\n"


def test_a_gpu_tells_what_it_is(cuda, driver):
    assert cuda.alias == "cuda:0"
    assert ab.Device("cuda") is cuda
    status, name = driver.cuDeviceGetName(256, 0)
    assert (int(status), cuda.name) == (0, bytes(name).split(b"\0")[0].decode())
    status, total = driver.cuDeviceTotalMem(0)
    assert cuda.total_memory == total
    assert 0 < cuda.free_memory <= total


@pytest.mark.usefixtures("cuda")
def test_an_unknown_gpu_is_an_error_that_names_those_there_are():
    with pytest.raises(ab.DeviceError, match=r"cuda:99.*cuda:0"):
        ab.Device("cuda:99")


# Errors


def test_a_driver_error_tells_code_and_name():
    error = ab.DriverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "while copying")
    assert isinstance(error, ab.Error)
    assert (error.code, error.name) == (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert str(error) == "CUDA_ERROR_ILLEGAL_ADDRESS (700): while copying"
    for again in copy.copy(error), pickle.loads(pickle.dumps(error)):
        assert (type(again), again.code, again.name, str(again)) == (type(error), error.code, error.name, str(error))


@pytest.mark.usefixtures("kernels")
def test_an_error_of_the_driver_tells_code_and_name(run_python):
    # More blocks than run at once, which a cooperative launch needs: the driver refuses it.
    script = """
        meet = module.get_kernel("meet")
        try:
            ab.launch(meet, ab.LaunchConfig(1 << 20, 1024, cooperative=True), ab.zeros(1, "uint32"))
        except ab.DriverError as error:
            print(error.code, error.name, "'meet'" in str(error))
        """
    lines = "\n".join(line[8:] for line in script.splitlines())
    assert run_python(SCRIPT + lines) == "720 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE True\n"
