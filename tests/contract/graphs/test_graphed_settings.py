"""Graphed functions under other settings than those of their first call: checked indices, collected races, devices."""

import warnings

import pytest

import anabranch as ab

from ..arrays import TIMEOUT


@ab.kernel
def put(i, k: ab.In, x: ab.InOut):
    x[k[i]] = 9


@ab.kernel
def increase(i, x: ab.InOut):
    x[i] += 1


@pytest.mark.numba
@pytest.mark.usefixtures("failures_forgotten")
def test_a_capture_without_checked_indices_is_not_taken_where_they_are(device):
    @ab.graphed
    def step(k, x):
        ab.launch(put, 1, k, x)

    memory, k = ab.zeros(8, device=device), ab.zeros(1, "int64", device=device)
    step(k, memory[:4])
    ab.fill(k, 6)
    memory.numpy()
    stream = ab.Stream(device)
    with stream, ab.hazards("auto", bounds=True):
        step(k, memory[:4])
        with pytest.raises(ab.KernelError, match="put"):
            stream.synchronize()
    assert step.graphs == 2


@pytest.mark.numba
@pytest.mark.thread_unsafe(reason="it counts the captures of a function")
def test_a_capture_with_races_is_not_kept(device, a, b):
    @ab.graphed
    def step(x):
        with ab.fork(2) as (one, other):
            ab.launch(increase, 4, x, stream=one)
            ab.launch(increase, 4, x, stream=other)

    x = ab.zeros(4, device=device)
    ab.synchronize(device)
    for _ in range(2):
        with ab.collect_races() as races:
            step(x)
        assert len(races) == 1
    with ab.hazards("check"), pytest.raises(ab.RaceError):
        step(x)
    assert step.graphs == 0


@pytest.mark.numba
def test_a_result_that_was_closed_is_given_anew(device):
    @ab.graphed
    def twice(x):
        return [x * 2, x[1:]]

    x = ab.ones(4, device=device)
    twice(x)[0].close()
    for value in 3, 4:
        ab.fill(x, value)
        result, view = twice(x)
        assert result.tolist() == [2 * value] * 4
        view.close()
        result.close()


def test_the_current_device_is_that_of_the_call(device, other_device, in_thread):
    def make(x):
        made = ab.zeros(4)
        made[...] = x
        return made

    def call():
        x = ab.ones(4, device=other_device)
        x.numpy()
        with ab.Stream(device), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the work of another device is not captured
            made = ab.graphed(make)(x)
        return made.device, made.tolist()

    assert in_thread(call).result(TIMEOUT) == (device, [1] * 4)
