"""Readbacks that go on while the program does: they conflict with what writes to the array."""

import asyncio

import numpy as np
import pytest

import anabranch as ab


def read(*, wait):
    """Read an array back while another stream fills it, and return the values that were read in all runs."""
    seen = set()

    def program():
        one, other = ab.Stream("cpu"), ab.Stream("cpu")
        array = ab.array(np.ones(4), device="cpu", stream=one)
        one.synchronize()

        async def main():
            values = ab.to_host(array)
            if wait:
                await values
            ab.fill(array, 5, stream=other)
            return await values

        seen.add(tuple(asyncio.run(main())))

    return ab.testing.explore(program), seen


def test_a_write_comes_before_or_after_a_readback_that_it_does_not_wait_for():
    with ab.hazards("off"):
        report, seen = read(wait=False)
    assert (report.ok, report.complete) == (True, True), report
    assert (report.classes, report.runs) == (2, 2)
    assert seen == {(1,) * 4, (5,) * 4}


@pytest.mark.parametrize(("mode", "wait"), [("auto", False), ("auto", True), ("off", True)])
def test_a_write_that_waits_comes_after_the_readback(mode, wait):
    with ab.hazards(mode):
        report, seen = read(wait=wait)
    assert (report.ok, report.complete) == (True, True), report
    assert (report.classes, report.runs) == (1, 1)
    assert seen == {(1,) * 4}


def test_a_write_before_a_readback_is_no_choice():
    def program():
        stream = ab.Stream("cpu")
        array = ab.zeros(4, device="cpu", stream=stream)
        ab.fill(array, 1, stream=stream)

        async def main():
            return await ab.to_host(array)

        assert asyncio.run(main()).tolist() == [1] * 4

    with ab.hazards("off"):
        report = ab.testing.explore(program)
    assert (report.ok, report.complete, report.classes) == (True, True, 1), report


def test_a_readback_in_a_block_of_the_host_comes_before_or_after_what_the_block_writes():
    seen = set()

    def program():
        array = ab.zeros(4, device="cpu")

        async def main():
            with array.host(write=True) as view:
                values = ab.to_host(array)
                view[:] = 2
            return await values

        seen.add(tuple(asyncio.run(main())))

    with ab.hazards("off"):
        report = ab.testing.explore(program)
    assert report.ok, report
    assert (report.classes, report.runs) == (2, 2)
    assert seen == {(0,) * 4, (2,) * 4}
