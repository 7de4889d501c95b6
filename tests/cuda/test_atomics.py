"""Atomics and random numbers as code for CUDA. What they compute is in the contract tests, which need a device."""

import numpy as np
import pytest

import anabranch as ab

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from anabranch._launch.target import Target

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def array(dtype, ndim=1):
    return "array", dtype, ndim, True, False


@ab.kernel
def swap(i, y: ab.InOut, old: ab.Out):
    old[0] = ab.atomic_exchange(y, 1, 7)
    old[1] = ab.atomic_cas(y, 1, 7, 9)
    old[2] = ab.atomic_add(y, i, 2)


@ab.kernel
def swap_in_plane(i, y: ab.InOut, old: ab.Out):
    old[0, 0] = ab.atomic_cas(y, (1, i), y[0, 0], old[0, 2])
    old[0, 1] = ab.atomic_exchange(y, (0, -1), old[0, 2])


@ab.kernel
def draw(i, seed, y: ab.Out):
    y[i] = ab.random(seed, i)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", [Target((8, 0)), Target((9, 0), checked=True)], ids=["sm_80", "sm_90, checked"])
def test_atomics_become_machine_code_for_every_dtype(monkeypatch, tmp_path, dtype, target):
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path))
    for kernel, ndim in (swap, 1), (swap_in_plane, 2):
        image = kernel.compile_cuda((1, (array(dtype, ndim), array(dtype, ndim))), target).image
        assert image.startswith(b"\x7fELF")


def test_random_numbers_become_machine_code(monkeypatch, tmp_path):
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path))
    assert draw.compile_cuda((1, (("scalar", "int64"), array("float64"))), Target((9, 0))).image.startswith(b"\x7fELF")


@ab.kernel
def binned(i, x: ab.In, bins: ab.InOut):
    ab.atomic_add(bins, x[i], 1)


@pytest.mark.parametrize("wide", [False, True])
def test_offsets_are_computed_in_32_bits_where_they_fit(wide):
    from anabranch.kernels._cuda import codegen

    signature = 1, (array("int32"), array("int32"))
    ptx = codegen.build(binned._function, binned.parameters, signature, "symbol", Target((9, 0), wide=wide, flat=wide))
    assert ("mul.lo.s64" in ptx.text) == wide


@pytest.mark.parametrize("coarse", [False, True])
def test_negative_indices_count_from_the_end(cuda, coarse):
    x = np.random.default_rng(0).integers(-16, 16, 1_500_001 if coarse else 5000).astype("int32")
    bins = ab.zeros(16, "int32", device=cuda)
    ab.launch(binned, x.size, ab.array(x, device=cuda), bins)
    np.testing.assert_array_equal(bins.numpy(), np.bincount(x % 16, minlength=16))
