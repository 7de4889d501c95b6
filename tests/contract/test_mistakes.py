"""What first programs get wrong without a kernel, and what the errors say."""

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
