"""What crosses to another process, and what says that it does not."""

import copy
import pickle

import pytest

import anabranch as ab

from .accesses import ready, streams, write


@ab.kernel
def put(i, x: ab.Out):
    x[i] = 1


BOUND = {
    "stream": ab.Stream,
    "default stream": ab.legacy_stream,
    "event": ab.Event,
    "gate": lambda: ab.testing.Gate(ab.Stream()),
    "readback": lambda: ab.to_host(ab.zeros(3)),
}


@pytest.mark.parametrize("make", BOUND.values(), ids=BOUND)
def test_what_lives_in_this_process_says_so(make):
    thing = make()
    with pytest.raises(TypeError, match="lives in this process; ") as caught:
        pickle.dumps(thing)
    assert str(caught.value).startswith(repr(thing))


@pytest.mark.parametrize("again", [lambda it: pickle.loads(pickle.dumps(it)), copy.copy, copy.deepcopy])
def test_a_kernel_goes_by_its_name(again):
    assert again(put) is put


def test_a_kernel_that_has_no_name_elsewhere_says_so():
    @ab.kernel
    def inner(i, x):
        x[i] = 1

    assert copy.deepcopy([inner])[0] is inner
    with pytest.raises(TypeError, match=r"<kernel .*inner\(i, x\)> is not found as .*inner, by which another process"):
        pickle.dumps(inner)


def test_a_device_goes_by_its_name(device):
    assert pickle.loads(pickle.dumps(device)) is device


def race(device):
    (a, b), array = streams(device), ready(device)
    write(array, a)
    with ab.hazards("check"), pytest.raises(ab.RaceError) as caught:
        write(array, b)
    return caught.value


def test_a_race_crosses_whole(device):
    error = race(device)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ab.RaceError
    assert (str(again), again.kind, again.array, again.fix) == (str(error), error.kind, error.array, error.fix)
    for side, here in (again.first, error.first), (again.second, error.second):
        assert (side.file, side.line, side.access, str(side)) == (here.file, here.line, here.access, str(here))
        assert side.stream == repr(here.stream)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_race_has_the_streams(device, duplicate):
    error = race(device)
    again = duplicate(error)
    assert (again.first.stream, again.second.stream) == (error.first.stream, error.second.stream)


def test_a_race_with_the_host_has_no_stream_there_either():
    array, stream = ready("cpu:0"), ab.Stream("cpu:0")
    with ab.hazards("check"), array.host(write=True), pytest.raises(ab.RaceError) as caught:
        write(array, stream)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.kind, again.first.stream) == ("HOST", None)
