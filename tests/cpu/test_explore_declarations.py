"""Exploration: kernels that do what their parameters do not declare."""

from collections.abc import Callable
from typing import Any

import pytest

import anabranch as ab
from anabranch.testing import explore

from .test_explore_classes import streams, zeros

pytestmark = pytest.mark.numba


@ab.kernel
def honest(i, x: ab.In, y: ab.Out, z):
    y[i] = 2 * x[i]
    z[i] += x[i]


@ab.kernel
def reads_out(i, x: ab.In, y: ab.Out):
    y[i] += x[i]


@ab.kernel
def writes_half(i, y: ab.Out):
    if i % 2 == 0:
        y[i] = 1.0


@ab.kernel
def past_the_end(i, x: ab.In, y: ab.Out):
    y[i] = x[i + 1]


def launching(kernel: Any, *shapes: str) -> Callable[[], None]:
    def program() -> None:
        (a,) = streams(1)
        ab.launch(kernel, 4, *[zeros() for _ in shapes], stream=a)

    return program


def test_honest_declarations_pass() -> None:
    report = explore(launching(honest, "x", "y", "z"))
    assert report.ok, report
    assert explore(launching(writes_half, "y")).ok


def test_the_memory_is_as_without_the_trial() -> None:
    def program() -> None:
        (a,) = streams(1)
        x, y, z = zeros(), zeros(), zeros()
        ab.fill(x, 3, stream=a)
        ab.fill(z, 1, stream=a)
        ab.launch(honest, 4, x, y, z, stream=a)
        ab.launch(writes_half, 4, z, stream=a)
        assert (x.numpy()[0], y.numpy()[0], z.numpy()[0], z.numpy()[1]) == (3, 6, 1, 4)

    report = explore(program)
    assert report.ok, report


def test_an_out_that_is_read_is_named() -> None:
    def program() -> None:
        (a,) = streams(1)
        x, y = zeros(), zeros()
        ab.fill(x, 3, stream=a)
        ab.launch(reads_out, 4, x, y, stream=a)

    report = explore(program)
    assert not report.ok
    assert isinstance(report.error, ab.KernelError)
    text = str(report.error)
    assert "'reads_out' reads parameter 'y'" in text
    assert "test_explore_declarations.py" in text


def test_memory_that_is_handed_in_twice_is_written_by_either() -> None:
    def program() -> None:
        (a,) = streams(1)
        array = zeros(8)
        ab.launch(honest, 4, array[:4], array[4:], array[:4], stream=a)

    assert explore(program).ok


def test_an_index_past_the_end_is_named() -> None:
    report = explore(launching(past_the_end, "x", "y"))
    assert not report.ok
    assert "past_the_end" in str(report.error)
