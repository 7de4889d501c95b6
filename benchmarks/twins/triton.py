"""Triton, which launches on PyTorch's current stream."""

from collections.abc import Iterator
from typing import Any

from gpu import BLOCK, DEVICE, PAGE, on_gpu
from harness import Case, Timed, repeat

twin = on_gpu("triton", "triton", "triton.language", "torch")


@twin("launch.kernel4")
def launch(triton: Any, language: Any, torch: Any) -> Iterator[Case]:
    # The compiler looks for names among the module's.
    global tl
    tl = language

    @triton.jit
    def scaled_sum(x, y, z, alpha, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        tl.store(z + at, alpha * tl.load(x + at) + tl.load(y + at))

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x, y, z = (torch.zeros(PAGE, device=DEVICE) for _ in range(3))

        def batch(calls: int) -> None:
            kernel, grid = scaled_sum, (1,)
            for _ in repeat(calls):
                kernel[grid](x, y, z, 2.0, BLOCK)

        yield Timed(batch, stream.synchronize)
