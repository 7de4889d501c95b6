"""The tests of order run on a device of each kind."""

import pytest

import anabranch as ab
from anabranch._hazards.ordering import added_waits


def kinds():
    return [pytest.param(ab.devices(kind), id=kind) for kind in ("cpu", "cuda") if ab.devices(kind)]


@pytest.fixture(params=kinds())
def devices_pair(request):
    """Two devices of a kind; twice the same one where there is only one."""
    return (request.param * 2)[:2]


@pytest.fixture
def streams(devices_pair):
    """Four streams, one of them of another device."""
    ab.synchronize()
    here, there = devices_pair
    return [ab.Stream(here, name=name) for name in "abc"] + [ab.Stream(there, name="d")]


@pytest.fixture
def added():
    """Give how many waits were added since the last call."""
    seen = [added_waits()]

    def since():
        seen.append(added_waits())
        return seen[-1] - seen[-2]

    return since
