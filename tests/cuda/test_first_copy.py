"""The first copies and fills of a process: a driver that has code to load may wait for the kernels that are running."""

from .simulated import BEGIN


def test_contiguous_copies_and_large_fills_load_no_code(run_with):
    script = (
        BEGIN
        + """
    x, y = ab.zeros(1000, device=device), ab.empty(1000, device=device)
    print(made(lambda: ab.copy(y, x), "cuLaunchKernel", "cuModuleLoadDataEx"))
    print(made(lambda: ab.zeros(1 << 20, device=device), "cuLaunchKernel", "cuModuleLoadDataEx"))
    """
    )
    assert run_with(script).splitlines() == ["[1, 0]", "[1, 0]"]
