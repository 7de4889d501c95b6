"""More CPU devices than a byte can tell apart, beside a GPU that is simulated."""

import pytest


@pytest.mark.numba
def test_a_kernel_compiled_for_a_cpu_device_is_not_taken_for_a_gpu_s(run_with):
    # The GPU comes after 256 CPU devices.
    script = """
        import anabranch as ab

        @ab.kernel
        def count(i, target):
            target[i] += 1

        def compile_cuda(signature, target):
            raise RuntimeError("compiled for the GPU")

        count.compile_cuda = compile_cuda
        x, y = ab.zeros(4, device="cpu:0"), ab.zeros(4, device="cuda:0")
        ab.launch(count, 4, x)
        print(len(ab.devices()), x.numpy())
        try:
            ab.launch(count, 4, y)
        except RuntimeError as error:
            print(error, y.numpy())
        """
    lines = run_with(script, ANABRANCH_CPU_DEVICES="256").splitlines()
    assert lines == ["257 [1. 1. 1. 1.]", "compiled for the GPU [0. 0. 0. 0.]"]
