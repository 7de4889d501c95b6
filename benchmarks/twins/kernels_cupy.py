"""The kernels as users of CuPy write them: elementwise wherever an element depends on no other thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from harness import Case
from kernels import LIMIT, Problem
from kernels.cuda_source import BLOCKS, SOURCE, grid_of, numbers_of
from kernels.device_time import gpu_arrays, gpu_case, gpu_stream
from kernels.registration import LARGE, on_cuda

STENCILS = {
    "five_point": "v = 0.25f * (u[i - m] + u[i + m] + u[i - 1] + u[i + 1]);",
    "nine_point": """
        const T straight = u[i - m] + u[i + m] + u[i - 1] + u[i + 1];
        const T diagonal = u[i - m - 1] + u[i - m + 1] + u[i + m - 1] + u[i + m + 1];
        v = 0.125f * (straight + diagonal);""",
    "seven_point": """
        const T around = u[i - m * p] + u[i + m * p] + u[i - p] + u[i + p] + u[i - 1] + u[i + 1];
        v = 0.125f * (around + u[i] + u[i]);""",
}
IN_PLANE = "const int row = i / m, column = i % m; if (row > 0 && row < n - 1 && column > 0 && column < m - 1)"
IN_BOX = """
    const int rest = i / p, layer = rest / m, row = rest % m, column = i % p;
    if (layer > 0 && layer < n - 1 && row > 0 && row < m - 1 && column > 0 && column < p - 1)"""
MANDELBROT = f"""
    const double x0 = 3.0 * (i % m) / m - 2.0, y0 = 2.0 * (i / m) / n - 1.0;
    double x = 0, y = 0;
    int found = 0;
    while (found < {LIMIT} && x * x + y * y <= 4.0) {{
      const double next = x * x - y * y + x0;
      y = 2.0 * x * y + y0;
      x = next;
      ++found;
    }}
    count = found;"""


@on_cuda("cupy", "cupy", sizes=LARGE)
def cupy(problem: Problem, cupy: Any) -> Iterator[Case]:
    ours = gpu_arrays(problem)
    stream = cupy.cuda.ExternalStream(gpu_stream().handle)
    with stream:
        run = _launch(cupy, problem, tuple(map(cupy.asarray, ours)))

    def launch() -> None:
        with stream:
            run()

    yield from gpu_case(problem, launch, ours[-1].numpy)


def _launch(cupy: Any, problem: Problem, arrays: tuple[Any, ...]) -> Callable[[], object]:
    import numpy

    elementwise = functools.partial(cupy.ElementwiseKernel, name=problem.name)
    name, (first, *_), written = problem.name, arrays, arrays[-1]
    if name.startswith("saxpy"):
        # A letter in place of a type is found from arrays alone.
        kind = numpy.asarray(problem.scalars[0]).dtype.name
        saxpy = elementwise(f"{kind} alpha, T x, T y", "T z", "z = alpha * x + y")
        return functools.partial(saxpy, problem.scalars[0], first, written, written)
    if name in STENCILS:
        plane = len(problem.dim) == 2
        sizes = "int32 n, int32 m" if plane else "int32 n, int32 m, int32 p"
        body = f"{IN_PLANE if plane else IN_BOX} {{ {STENCILS[name]} }}"
        return functools.partial(elementwise(f"raw T u, {sizes}", "T v", body), first, *problem.dim, written)
    if name.startswith("gather"):
        return functools.partial(elementwise("raw T x, I place", "T y", "y = x[place]"), *arrays)
    if name == "mandelbrot":
        return functools.partial(elementwise("int32 n, int32 m", "int32 count", MANDELBROT), *problem.dim, written)
    if name == "histogram":
        (block, *_), numbers = BLOCKS[1], numbers_of(problem, arrays)
        kernel = cupy.RawKernel(SOURCE, name)
        counts = tuple(map(cupy.int32, numbers))
        return functools.partial(kernel, grid_of(problem.dim, block), block, (*counts, *arrays))
    src = first.T if name == "transposed" else first
    return functools.partial(elementwise("T x", "T y", "y = x"), src, written)
