"""Real programs, explored as far as each test says: all classes, or as many runs as its limit has."""

import os
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab

pytestmark = [pytest.mark.numba, pytest.mark.timeout(300)]

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """Import a program of the examples."""
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    program = module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def complete(report, classes=None):
    """Assert that all classes have been run, each once, and are right."""
    assert report.ok, str(report)
    assert report.complete
    assert report.runs == report.classes
    if classes is not None:
        assert report.classes == classes


# -- the double buffer --


@pytest.mark.parametrize(("batches", "classes"), [(3, 2), (4, 4), (6, 21)])
def test_a_double_buffer_with_a_wait_missing_has_a_class_for_each_choice(batches, classes):
    """Kernels run in order, each after its own copy, and before or after later ones into its buffer."""
    program = example("double_buffer")
    given = [ab.array(np.full(4, 10.0**k), device="cpu") for k in range(batches)]
    sums = set()

    def fn(*, forget):
        with ab.hazards("off"):
            sums.add(tuple(program.sum_up(given, forget=forget)))

    complete(ab.testing.explore(lambda: fn(forget=True)), classes)
    assert len(sums) == classes
    sums.clear()
    complete(ab.testing.explore(lambda: fn(forget=False)), 1)
    assert sums == {(sum(10.0**k for k in range(batches)),) * 4}


def test_a_double_buffer_of_many_rounds_by_chance():
    """More classes than can be run: one of 300 schedules drawn at random has a copy that comes too early."""
    program = example("double_buffer")
    given = [ab.array(np.full(4, float(k)), device="cpu") for k in range(32)]

    def fn():
        with ab.hazards("off"):
            assert program.sum_up(given, forget=True)[0] == sum(range(32))

    report = ab.testing.explore(fn, schedules=300, seed=1)
    assert not report.ok
    assert not ab.testing.explore(fn, schedules=report.schedule).ok


# -- the heat solver --


@pytest.mark.parametrize("mode", ["auto", "off"])
@pytest.mark.parametrize("captured", [False, True])
def test_the_heat_solver_has_one_class(mode, captured):
    """All classes: a loop that the device ends is in one stream, and so in order."""
    program = example("heat")
    start = np.zeros((6, 6))
    start[0] = 1.0

    def fn():
        with ab.hazards(mode), ab.Device("cpu"):
            plate = program.plate_of(6, hot=1.0)
            if captured:
                with ab.capture() as graph:
                    program.settle(*plate)
                graph.launch()
            else:
                program.settle(*plate)
            rounds = int(plate[3].numpy()[0])
            np.testing.assert_allclose(plate[0].numpy(), program.expected(start, rounds), rtol=1e-10, atol=1e-12)

    complete(ab.testing.explore(fn), 1)


@ab.kernel
def spread(column, above: ab.In, now: ab.In, below: ab.In, after: ab.Out):
    after[column] = 0.25 * (above[column] + below[column] + now[column] + now[column])


def heat_in_halves(steps, *, forget=None):
    """Compute two rows, each on a stream of its own, that exchange their values after each step.

    A row's step of round k needs the other row's value of round k - 1, and writes over that of round k - 2, which the
    other row must have read. `forget` names the wait that is left out.
    """
    edge = ab.array(np.ones(4), device="cpu")
    streams = [ab.Stream("cpu", name=f"row {row}") for row in range(2)]
    rows = [[ab.array(np.full(4, 10.0 * row), device="cpu") for _ in range(2)] for row in range(2)]
    done = [[ab.Event(device="cpu") for _ in range(2)] for _ in range(2)]
    for step in range(steps):
        now, after = step % 2, 1 - step % 2
        for row, stream in enumerate(streams):
            other = 1 - row
            if forget != row:
                # The other row's newest step that this thread has enqueued: it wrote what is read here, and by then
                # had read what is overwritten.
                stream.wait_event(done[other][now])
            neighbours = (edge, rows[1][now]) if row == 0 else (rows[0][now], edge)
            ab.launch(spread, 4, neighbours[0], rows[row][now], neighbours[1], rows[row][after], stream=stream)
            stream.record_event(done[row][after])
    return [rows[row][steps % 2].numpy()[0] for row in range(2)]


def heat_by_numpy(steps):
    one, two = 0.0, 10.0
    for _ in range(steps):
        one, two = 0.25 * (1 + two + 2 * one), 0.25 * (one + 1 + 2 * two)
    return [one, two]


@pytest.mark.parametrize("forget", [None, 0, 1])
def test_rows_that_exchange_heat_wait_for_each_other(forget):
    """All classes of four steps: one if no wait is missing, and else several, of which some are wrong."""

    def fn():
        with ab.hazards("off"):
            assert heat_in_halves(4, forget=forget) == heat_by_numpy(4)

    report = ab.testing.explore(fn)
    if forget is None:
        complete(report, 1)
    else:
        assert not report.ok
        assert isinstance(report.error, AssertionError)


# -- the parameter server --


def test_the_parameter_server_loses_no_gradient():
    """All classes of two workers with three rounds each."""
    program = example("parameter_server")
    program.ROUNDS = 3
    seen = set()

    def fn():
        with ab.hazards("off"):
            parameters, applied = program.train()
        seen.add((*applied, *parameters))
        assert sorted(applied) == ["worker 0"] * 3 + ["worker 1"] * 3

    complete(ab.testing.explore(fn))
    assert len({ends[:6] for ends in seen}) > 5


# -- the image pipeline --


@pytest.mark.skipif(
    any(find_spec(package) is None for package in ("PIL", "rich", "scipy", "skimage")),
    reason="the image pipeline needs Pillow, rich, SciPy and scikit-image",
)
def test_the_image_pipeline_shares_nothing_between_lanes(tmp_path):
    """All classes of four photographs in two lanes: they differ in which of the four is found to be done when."""
    from PIL import Image

    program = example("photo_pipeline")
    random = np.random.default_rng(0)
    for number in range(4):
        pixels = random.integers(0, 256, (5 + number, 7, 3), "uint8")
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    output = tmp_path / "output"
    os.mkdir(output)
    photos = program.find(tmp_path, output)

    def fn():
        with ab.hazards("off"), ab.Device("cpu"):
            ab.synchronize()
            done = program.run(photos, 2, lambda: None)
        assert sorted(lane.pixels for lane in done.lanes) != [0, 0]
        assert all(program.check(photo) <= program.TOLERANCE for photo in photos)

    complete(ab.testing.explore(fn), 37)
