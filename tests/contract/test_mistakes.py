"""What first programs get wrong without a kernel, and what the errors say."""

import traceback

import pytest

import anabranch as ab


@pytest.mark.parametrize("make", [ab.empty, ab.zeros, ab.ones], ids=lambda make: make.__name__)
def test_a_shape_is_one_argument(device, make):
    with pytest.raises(TypeError, match=rf"a shape is one argument: ab.{make.__name__}\(\(3, 4\)\)"):
        make(3, 4)


def test_a_device_has_a_name():
    for make in ab.Device, ab.Stream, lambda device: ab.zeros(3, device=device):
        with pytest.raises(TypeError, match=r"a device is a Device, a str .*, not int; as a str: 'cuda:0'"):
            make(0)


def test_a_stream_takes_its_priority_by_name(device):
    with pytest.raises(TypeError, match=r"takes only the device by position; .*priority=-1\)"):
        ab.Stream(device, -1)


def raise_race(a, s):
    ab.fill(a, 2, stream=s)


@pytest.mark.races
def test_the_traceback_of_a_race_ends_at_the_line(device, a, s, other):
    array = ab.zeros(4, device=device, stream=other)
    with ab.hazards("check"), pytest.raises(ab.RaceError) as caught:
        raise_race(array, s)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.name, last.line) == (__file__, "raise_race", "ab.fill(a, 2, stream=s)")


def test_the_traceback_of_another_error_of_ours_ends_at_the_line(device):
    array = ab.zeros(4)
    array.close()
    with pytest.raises(ab.ClosedError) as caught:
        array.numpy()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__
