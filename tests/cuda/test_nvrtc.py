"""Sources that NVRTC compiles, which needs no device."""

import pytest

import anabranch as ab
from anabranch.kernels._cpp import nvrtc
from anabranch.kernels._cuda import ptx

from .test_module import SOURCE

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")


@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_a_source_compiles_for_an_architecture_that_the_machine_need_not_have(architecture):
    program = nvrtc.compile_source(SOURCE, ["--std=c++17"], ["scale<float>", "plain"], architecture)
    assert program.image.startswith(b"\x7fELF")
    assert set(program.symbols) == {"scale<float>", "plain"}
    sizes = {name: [p.size for p in parameters] for name, parameters in ptx.entries(program.ptx).items()}
    assert sizes["saxpy"] == [4, 8, 8, 4]
    assert sizes["kinds"] == [1, 1, 2, 8, 8, 8, 8]
    assert sizes[program.symbols["scale<float>"]] == [8, 8, 4]


def test_an_empty_log_leaves_the_interpreter_s_bytes_alone():
    program = nvrtc.compile_source('extern "C" __global__ void f(int* y) { y[0] = 1; }', [], [], 90)
    assert program.log == ""
    assert bytes([ord(" ")])[0] == ord(" ")


def test_an_error_of_the_compiler_shows_the_line():
    with pytest.raises(ab.CompileError, match=r'line 2\n    int x = nowhere;(.|\n)*"nowhere" is undefined(.|\n)*-DN=4'):
        nvrtc.compile_source('extern "C" __global__ void f() {\n  int x = nowhere;\n}', ["-DN=4"], [], 90)
