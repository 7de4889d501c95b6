"""Import and environment variables. Each test in a fresh interpreter."""

import sysconfig

import pytest

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
VARIABLE = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"
NO_VARIABLES = dict.fromkeys(
    [
        "ANABRANCH_DEVICE",
        "ANABRANCH_CPU_DEVICES",
        "ANABRANCH_CPU_WORKERS",
        VARIABLE,
    ]
)

# -- import --


def test_import_touches_no_driver_and_starts_no_thread(run_python):
    script = """
        import os
        threads = len(os.listdir("/proc/self/task"))
        import anabranch
        with open("/proc/self/maps") as maps:
            assert "libcuda" not in maps.read()
        assert not any("nvidia" in os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
        assert len(os.listdir("/proc/self/task")) == threads
        """
    assert run_python(script) == ""


def test_import_imports_neither_numpy_nor_numba(run_python):
    script = """
        import sys
        import anabranch
        print(sorted({"numpy", "numba", "llvmlite", "cuda", "cupy", "torch"} & set(sys.modules)))
        """
    assert run_python(script) == "[]\n"


def test_testing_needs_no_import_of_its_own(run_python):
    script = """
        import anabranch
        with anabranch.testing.Gate(anabranch.Stream("cpu")):
            pass
        """
    assert run_python(script) == ""


# -- environment --


def test_without_variables_there_is_one_cpu_device(run_python):
    script = """
        import anabranch as ab
        print([device.alias for device in ab.devices("cpu")])
        """
    assert run_python(script, env=NO_VARIABLES) == "['cpu:0']\n"


def test_the_first_current_device_is_the_gpu_if_there_is_one_else_the_cpu(run_python):
    script = """
        import anabranch as ab
        print(ab.current_device().alias == ("cuda:0" if ab.devices("cuda") else "cpu:0"))
        """
    assert run_python(script, env=NO_VARIABLES) == "True\n"


@pytest.mark.parametrize(("value", "alias"), [("cpu", "cpu:0"), ("cpu:0", "cpu:0"), ("cpu:1", "cpu:1")])
def test_a_variable_names_the_first_current_device(value, alias, run_python):
    script = """
        import threading
        import anabranch as ab
        print(ab.current_device().alias, ab.Stream().device.alias, ab.current_stream().device.alias)
        threading.Thread(target=lambda: print(ab.current_device().alias)).start()
        """
    output = run_python(script, env={"ANABRANCH_DEVICE": value, "ANABRANCH_CPU_DEVICES": "2"})
    assert set(output.split()) == {alias}


@pytest.mark.parametrize("value", ["cpu:5", "tpu"])
def test_a_variable_that_names_no_device_is_an_error_at_first_use(value, run_python):
    script = f"""
        import anabranch as ab
        try:
            ab.current_device()
        except ab.DeviceError as error:
            assert f'ANABRANCH_DEVICE names no device "{value}"; there are cpu:0' in str(error), error
            print("raised")
        """
    assert run_python(script, env={"ANABRANCH_DEVICE": value}) == "raised\n"


def test_a_variable_gives_the_number_of_cpu_devices(run_python):
    script = """
        import anabranch as ab
        devices = ab.devices("cpu")
        print([device.alias for device in devices])
        for device in devices:
            with device:
                array = ab.full(4, device.index)
                assert array.device is ab.current_stream().device is device
                assert array.numpy().tolist() == [device.index] * 4
        """
    assert run_python(script, env={"ANABRANCH_CPU_DEVICES": "4"}) == "['cpu:0', 'cpu:1', 'cpu:2', 'cpu:3']\n"


@pytest.mark.parametrize("workers", ["1", "2", "17"])
def test_programs_run_with_any_number_of_workers(workers, run_python):
    script = """
        import anabranch as ab
        array = ab.zeros(1 << 20, device="cpu")
        with ab.fork(4, stream=ab.current_stream("cpu")) as branches:
            for branch in branches:
                ab.fill(ab.empty(1 << 20, device="cpu", stream=branch), 1, stream=branch)
                branch.submit(int)
        ab.fill(array, 1)
        print(array.numpy().sum())
        """
    assert float(run_python(script, env={"ANABRANCH_CPU_WORKERS": workers})) == 1 << 20


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("0", "legacy_stream"),
        ("1", "per_thread_stream"),
        (None, "per_thread_stream" if FREE_THREADED else "legacy_stream"),
    ],
)
def test_a_variable_or_else_the_build_decides_which_stream_is_the_default(value, name, run_python):
    script = f"""
        import threading
        import anabranch as ab

        def show():
            print(ab.default_stream() is ab.{name}(), ab.current_stream() == ab.{name}())

        show()
        thread = threading.Thread(target=show)
        thread.start()
        thread.join()
        """
    output = run_python(script, env={VARIABLE: value})
    assert output.split() == ["True"] * 4


PER_THREAD = "per-thread"
LEGACY = "legacy"
DEFAULTS = [("1", PER_THREAD), ("0", LEGACY), (None, PER_THREAD if FREE_THREADED else LEGACY)]


@pytest.mark.parametrize(("value", "kind"), DEFAULTS)
def test_threads_without_a_stream_wait_for_each_other_only_on_the_legacy_stream(value, kind, run_python):
    script = """
        import queue, threading
        import anabranch as ab

        held, answers, over = queue.Queue(), queue.Queue(), threading.Event()

        def hold():
            held.put(ab.testing.Gate(ab.current_stream()))
            array = ab.zeros(4)
            ab.fill(array, 1)
            answers.put(ab.current_stream().query())
            over.wait(20)
            ab.current_stream().synchronize()
            answers.put(array.numpy().tolist())

        def work():
            array = ab.zeros(4)
            ab.fill(array, 2)
            function = ab.current_stream().submit(int, 5)
            try:
                print(function.result(0 if LEGACY else 20))
            except TimeoutError:
                print("held")
            answers.put((function, array))

        first = threading.Thread(target=hold)
        first.start()
        gate = held.get(timeout=20)
        assert answers.get(timeout=20) is False
        second = threading.Thread(target=work)
        second.start()
        function, array = answers.get(timeout=20)
        print(ab.current_stream().query())
        gate.open()
        over.set()
        assert answers.get(timeout=20) == [1] * 4
        assert (function.result(20), array.numpy().tolist()) == (5, [2] * 4)
        first.join()
        second.join()
        """
    output = run_python(
        script.replace("LEGACY", str(kind == LEGACY)), env={**NO_VARIABLES, VARIABLE: value, "ANABRANCH_DEVICE": "cpu"}
    )
    assert output == ("held\nFalse\n" if kind == LEGACY else "5\nTrue\n")


def test_threads_without_a_stream_overlap_when_the_default_is_per_thread(run_python):
    script = """
        import threading
        import anabranch as ab

        meet, results = threading.Barrier(4, timeout=20), []

        def body():
            results.append(ab.current_stream().submit(meet.wait).result(20))

        threads = [threading.Thread(target=body) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(sorted(results))
        """
    assert run_python(script, env={VARIABLE: "1"}) == "[0, 1, 2, 3]\n"


def test_variables_that_are_empty_count_as_not_set(run_python):
    script = """
        import anabranch as ab
        from anabranch.kernels import _cache

        default = ab.default_stream()
        print(ab.current_device(), ab.devices("cpu"), ab.devices("cpu")[0].workers, default is ab.legacy_stream())
        a, b = ab.Stream("cpu"), ab.Stream("cpu")
        array = ab.zeros(3, stream=a)
        with ab.testing.Gate(a):
            ab.fill(array, 1, stream=a)
            ab.fill(array, 2, stream=b)
        print(array.numpy(), _cache.directory())
        """
    empty = dict.fromkeys([*NO_VARIABLES, "ANABRANCH_HAZARDS", "ANABRANCH_CACHE_DIR", "ANABRANCH_CUDA_SANITIZER"], "")
    unset = run_python(script, env=dict.fromkeys(empty))
    assert "[2. 2. 2.]" in unset
    assert run_python(script, env=empty) == unset


@pytest.mark.parametrize(("value", "looked_for"), [(None, True), ("", True), ("0", True), ("1", False)])
def test_cupti_is_left_alone_under_the_sanitizer(value, looked_for, run_python, tmp_path):
    (tmp_path / "cupti.py").write_text("print('imported')")
    script = """
        from anabranch._trace.cupti import activities
        assert activities() is None
        """
    output = run_python(script, env={"ANABRANCH_CUDA_SANITIZER": value})
    assert output == ("imported\n" if looked_for else "")


def test_variables_are_read_at_first_use_and_then_kept(run_python):
    script = """
        import os
        import anabranch as ab

        os.environ["ANABRANCH_CPU_DEVICES"] = "3"
        os.environ["ANABRANCH_DEVICE"] = "cpu:2"
        os.environ["CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"] = "1"
        for _ in range(2):
            print(len(ab.devices("cpu")), ab.current_device().alias, ab.default_stream() is ab.per_thread_stream())
            os.environ["ANABRANCH_CPU_DEVICES"] = "5"
            os.environ["ANABRANCH_DEVICE"] = "cpu:1"
            os.environ["CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"] = "0"
        """
    assert run_python(script, env=NO_VARIABLES) == "3 cpu:2 True\n" * 2
