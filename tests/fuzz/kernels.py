"""Runs random kernels on a CPU and in the code for CUDA, and compares."""

from __future__ import annotations

import importlib.util
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import anabranch as ab

from .programs import RESULTS, ROWS, Kernel, random_arguments, random_kernel

EMULATED = "emulated"  # the code for CUDA, run by the host


def difference(seed: int, device: str = EMULATED) -> str | None:
    """Run the kernel of a seed; return what differs between a CPU and the device, or None."""
    program = random_kernel(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"program_{seed}.py"
        path.write_text(program.source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        arguments = random_arguments(seed)
        expected = _results(program, module.program, arguments, "cpu")
        found = _results(program, module.program, arguments, device)
    return _report(program, expected, found, device)


def _results(program: Kernel, kernel: Any, arguments: Any, device: str) -> Any:
    """The result of each kind; or the message of what refused the kernel."""
    place = "cpu" if device == EMULATED else device
    arrays = [ab.array(array, device=place) for array in arguments[0]]
    results = [ab.zeros((ROWS, max(1, program.width(kind))), RESULTS[kind][1], device=place) for kind in RESULTS]
    ab.synchronize(place)
    try:
        if device == EMULATED:
            from ..cuda.emulated import emulate

            emulate(kernel, (ROWS,), *arrays, *arguments[1], *results)
        else:
            ab.launch(kernel, ROWS, *arrays, *arguments[1], *results)
        return [result.numpy() for result in results]
    except Exception as error:
        # The compiler's own errors become a CompileError only where a kernel is launched.
        if isinstance(error, ab.CompileError) or type(error).__module__.startswith("numba_cuda_mlir"):
            return str(error)
        raise


def _report(program: Kernel, expected: Any, found: Any, device: str) -> str | None:
    if isinstance(expected, str) or isinstance(found, str):
        if isinstance(expected, str) and isinstance(found, str):
            return None
        side, text = ("cpu", expected) if isinstance(expected, str) else (device, found)
        return f"refused on {side}:\n" + text.partition("  with ")[0]
    wrong = []
    for kind, left, right in zip(RESULTS, expected, found, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same = np.isclose(left, right, rtol=1e-5, atol=1e-5, equal_nan=True)
        wrong += [(kind, column, left[:, column], right[:, column]) for column in np.flatnonzero(~same.all(axis=0))]
    texts = {(kind, position): text for kind, position, text in program.probes}
    return (
        "\n".join(f"{texts[kind, column]}\n  cpu: {left}\n  {device}: {right}" for kind, column, left, right in wrong)
        or None
    )
