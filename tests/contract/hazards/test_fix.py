"""The line that mends a race: it names the streams as the program does, and it runs."""

import pytest

import anabranch as ab

from ..accesses import ready, write
from ..arrays import TIMEOUT

pytestmark = pytest.mark.unseen_order


@pytest.fixture(autouse=True)
def _checked(on_device):
    # What earlier tests left on the default streams is over, and known to be.
    ab.synchronize()
    with ab.hazards("check"):
        yield


def test_the_legacy_stream_is_named_by_its_function(array, s):
    write(array, ab.legacy_stream())
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 2, stream=s)
    assert caught.value.fix == "s.wait_stream(ab.legacy_stream())"
    exec(caught.value.fix)
    ab.fill(array, 2, stream=s)


def test_the_per_thread_stream_is_named_by_its_function(array, s):
    write(array, s)
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 2, stream=ab.per_thread_stream())
    assert caught.value.fix == "ab.per_thread_stream().wait_stream(s)"
    exec(caught.value.fix)
    ab.fill(array, 2, stream=ab.per_thread_stream())


def test_a_default_stream_in_a_variable_goes_by_that(device):
    array, s, default = ready(device), ab.Stream(), ab.legacy_stream()
    write(array, default)
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 2, stream=s)
    assert caught.value.fix == "s.wait_stream(default)"


def test_the_package_goes_by_the_name_that_the_program_has_for_it(array, s):
    write(array, ab.legacy_stream())
    scope = {"anabranch": ab, "array": array, "s": s}
    with pytest.raises(ab.RaceError) as caught:
        exec("anabranch.fill(array, 2, stream=s)", scope)
    assert caught.value.fix == "s.wait_stream(anabranch.legacy_stream())"


def test_a_default_stream_of_another_device_is_named_with_it(device, other_device):
    array, s = ready(other_device), ab.Stream(other_device)
    write(array, ab.legacy_stream(other_device))
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 2, stream=s)
    assert caught.value.fix == f's.wait_stream(ab.legacy_stream("{other_device.alias}"))'
    exec(caught.value.fix)
    ab.fill(array, 2, stream=s)


def test_the_host_synchronizes_a_default_stream_by_its_function(device):
    # Memory of the host, whatever the device is.
    array = ready("cpu:0")
    write(array, ab.legacy_stream("cpu:0"))
    with pytest.raises(ab.RaceError) as caught, array.host():
        pytest.fail("the block is not entered")
    argument = "" if device.alias == "cpu:0" else '"cpu:0"'
    assert caught.value.fix == f"ab.legacy_stream({argument}).synchronize()"
    exec(caught.value.fix)
    with array.host() as view:
        assert view[0] == 1


def test_another_thread_s_per_thread_stream_is_not_taken_for_this_one_s(device, in_thread, array, s):
    def use():
        stream = ab.per_thread_stream(device)
        write(array, stream)
        return stream.record_event()

    event = in_thread(use).result(TIMEOUT)
    with pytest.raises(ab.RaceError) as caught:
        ab.fill(array, 2, stream=s)
    assert caught.value.fix.startswith("record an event in the thread")
    s.wait_event(event)
    ab.fill(array, 2, stream=s)


class Pipeline:
    def __init__(self):
        self.up, self._down = ab.Stream(), ab.Stream()

    def run(self, array):
        ab.fill(array, 1, stream=self.up)
        with pytest.raises(ab.RaceError) as caught:
            ab.fill(array, 2, stream=self._down)
        assert caught.value.fix == "self._down.wait_stream(self.up)"
        exec(caught.value.fix)
        ab.fill(array, 2, stream=self._down)


def test_attributes_of_self_are_named_through_it(device):
    Pipeline().run(ready(device))


def test_a_name_that_means_another_stream_there_is_not_used(device, array):
    """As in a function with a parameter `s` that is called for one stream after the other."""

    def step(s):
        ab.fill(array, 1, stream=s)

    one, other = ab.Stream(device, name="s"), ab.Stream(device, name="out")
    step(one)
    with pytest.raises(ab.RaceError) as caught:
        step(other)
    assert caught.value.fix == "s.wait_stream(first)"
