"""The kernels in CUDA C++, and how they are launched: for the twin that counts and for who compiles the same text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import FOLDER

from kernels import BLOCK, IN_BLOCKS, LIMIT, Problem, parts

SOURCE = f"#define LIMIT {LIMIT}\n#define BLOCK {BLOCK}\n" + (FOLDER / "kernels" / "kernels.cu").read_text()

Size3 = tuple[int, int, int]

# The shapes of blocks that are tried, x first.
BLOCKS: dict[int, tuple[Size3, ...]] = {
    1: ((256, 1, 1), (128, 1, 1), (512, 1, 1), (1024, 1, 1)),
    2: ((32, 8, 1), (256, 1, 1), (128, 1, 1), (64, 4, 1), (32, 4, 1), (16, 16, 1), (8, 32, 1), (512, 1, 1)),
    3: ((32, 4, 2), (256, 1, 1), (128, 1, 1), (32, 8, 1), (64, 4, 1), (64, 2, 2), (32, 4, 4), (512, 1, 1)),
}


def blocks_of(problem: Problem) -> tuple[Size3, ...]:
    """Return the shapes of blocks to try: the only one of a kernel that shares memory."""
    own = IN_BLOCKS.get(problem.name)
    if own is None:
        return BLOCKS[len(problem.dim)]
    x, y, z = (*reversed(own), 1, 1)[:3]
    return ((x, y, z),)


def grid_of(dim: Sequence[int], block: Size3) -> Size3:
    """Return how many blocks cover the index space; its last axis is x."""
    x, y, z = (*reversed(dim), 1, 1)[:3]
    return -(-x // block[0]), -(-y // block[1]), -(-z // block[2])


def numbers_of(problem: Problem, arrays: Sequence[Any]) -> list[int | float]:
    """Return what a kernel takes before its arrays: the sizes, the strides of a view, and the scalars.

    `arrays` are those of the launch, of any library that has `strides` in bytes.
    """
    strides = [stride // 4 for stride in arrays[0].strides] if problem.name in ("step2", "backwards", "rows") else []
    scalars = [part for scalar in problem.scalars for part in parts(scalar)]
    return [*problem.dim, *strides, *scalars]
