"""Random kernels compute on a GPU what they compute on a CPU. Without a GPU, the host runs their code."""

import pytest

pytest.importorskip("numba", reason="Numba is not installed")
pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
pytest.importorskip("llvmlite")

from ..fuzz.kernels import EMULATED, difference

SEEDS = (1, 2, 3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_results_are_those_of_a_cpu(seed):
    assert difference(seed, EMULATED) is None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_results_on_a_gpu_are_those_of_a_cpu(seed, cuda):
    assert difference(seed, cuda.alias) is None
