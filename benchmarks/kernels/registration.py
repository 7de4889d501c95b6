"""Every implementation of the kernels is a function of the problem, and gets its IDs here, one for a name and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from gpu import guarded
from harness import Case, SetUp, implementation

from kernels import PLAIN, PREFIX, SIZES_OF, TITLES, problem_of

KernelSetUp = Callable[..., Iterator[Case]]


# What is measured beside ours and the best twin has only sizes that keep the device busy.
LARGE = ("1M", "64M")


def on_cpu(name: str, names: Iterable[str] = PLAIN) -> Callable[[KernelSetUp], KernelSetUp]:
    """Return a decorator that registers an implementation, given a problem, on the CPU device."""

    def register(set_up: KernelSetUp) -> KernelSetUp:
        _register(name, "cpu", names, SIZES_OF["cpu"], lambda problem: lambda: set_up(problem()))
        return set_up

    return register


def on_cuda(
    name: str, *packages: str, names: Iterable[str] = PLAIN, sizes: Sequence[str] = SIZES_OF["cuda"]
) -> Callable[[KernelSetUp], KernelSetUp]:
    """Return the same for the CUDA device; an implementation is given these packages, too."""

    def register(set_up: KernelSetUp) -> KernelSetUp:
        def where_possible(problem: Callable[[], Any]) -> SetUp:
            return guarded(lambda *modules: set_up(problem(), *modules), *packages)

        _register(name, "cuda", names, sizes, where_possible)
        return set_up

    return register


def _register(
    name: str, device: str, names: Iterable[str], sizes: Sequence[str], make: Callable[[Callable[[], Any]], SetUp]
) -> None:
    for kernel in names:
        for size in sizes:
            set_up = make(partial(problem_of, kernel, size))
            set_up.__doc__ = f"{TITLES[kernel]}; {size} elements."
            implementation(name)(f"{PREFIX}{device}.{kernel}.{size}")(set_up)
