"""The photographs of the demonstration on the workers of a Dask cluster."""

import os
import signal
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.numba
for package in ("distributed", "numba", "PIL", "rich", "scipy", "skimage"):
    pytest.importorskip(package, reason=f"{package} is not installed, and the demonstration on a cluster needs it")

from PIL import Image  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = 12


@pytest.fixture(scope="module")
def programs():
    """The two programs of the demonstration, as modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        yield import_module("photo_pipeline"), import_module("photo_cluster")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number in range(NUMBER):
        pixels = random.integers(0, 256, (40 + number, 60, 3), "uint8")
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


@pytest.fixture
def photos(programs, files, tmp_path):
    pipeline, _ = programs
    return pipeline.find(files, tmp_path)


@pytest.fixture
def ready(programs, client, photos):
    """The client of a cluster that has what the program gives it."""
    pipeline, on_cluster = programs
    with on_cluster.ExitStack() as stack:
        own = on_cluster.connect(client.scheduler.address, 2, stack)
        own.register_plugin(on_cluster.Lanes(pipeline.largest_of(photos), pipeline.weights_of_blur()))
        yield own


def test_a_worker_that_dies_loses_no_picture(programs, ready, photos, files, tmp_path, monkeypatch):
    pipeline, on_cluster = programs
    died, alone, written = tmp_path / "died", tmp_path / "alone", []

    def plant():
        import photo_pipeline

        encode = photo_pipeline.encode

        def encode_or_die(decoded, pictures):
            try:
                os.close(os.open(died, os.O_CREAT | os.O_EXCL))  # by one alone
            except FileExistsError:
                encode(decoded, pictures)
            else:
                os.kill(os.getpid(), signal.SIGKILL)

        photo_pipeline.encode = encode_or_die

    def write(path, contents):
        written.append(path)
        original(path, contents)

    original = on_cluster.write
    monkeypatch.setattr(on_cluster, "write", write)
    before = ready.run(os.getpid)
    ready.run(plant)
    done_by = on_cluster.run(ready, photos, lambda: None)

    assert died.exists()
    ready.wait_for_workers(2)
    assert set(before.values()) != set(ready.run(os.getpid).values())
    assert sum(done_by.values()) == NUMBER
    assert len(written) == len(set(written)) == 2 * NUMBER
    alone.mkdir()
    pipeline.run(pipeline.find(files, alone), 1, lambda: None)
    expected = {path.name: path.read_bytes() for path in alone.iterdir()}
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == expected


def test_a_picture_that_cannot_be_read_is_named(programs, ready, photos, tmp_path):
    _, on_cluster = programs
    photos[0].path = tmp_path / "broken.png"
    photos[0].path.write_bytes(b"no picture")
    with pytest.raises(OSError, match=r"broken\.png cannot be read: cannot identify image file '.*broken\.png'"):
        on_cluster.run(ready, photos, lambda: None)


def test_a_cluster_without_a_worker_is_an_error(programs, client, ready, photos, monkeypatch):
    _, on_cluster = programs
    monkeypatch.setattr(on_cluster, "PATIENCE", 0.1)

    def never(client, number, timeout):
        raise TimeoutError

    with monkeypatch.context() as patch, on_cluster.ExitStack() as stack:
        patch.setattr(on_cluster.Client, "wait_for_workers", never)
        with pytest.raises(OSError, match=r"has had no worker for 0\.1 seconds"):
            on_cluster.connect(client.scheduler.address, 1, stack)
    # No worker can take the tasks, and soon there is none.
    threads, submit = iter([{"one": 2}, {"one": 2}]), on_cluster.submit
    monkeypatch.setattr(ready, "nthreads", lambda: next(threads, {}))
    monkeypatch.setattr(on_cluster, "submit", lambda *args: submit(*args, resources={"none has it": 1}))
    with pytest.raises(OSError, match="has had no worker for some time, and 4 photographs have begun"):
        on_cluster.run(ready, photos, lambda: None)


def test_workers_keep_their_streams(programs, ready, photos):
    _, on_cluster = programs
    on_cluster.run(ready, photos, lambda: None)

    def lanes():
        free = on_worker().plugins["lanes"].free
        found = [free.get() for _ in range(free.qsize())]
        return sorted((lane.stream.name, len(lane.marks)) for lane in found)

    from distributed import get_worker as on_worker

    told = [ready.submit(lanes, workers=[worker], pure=False).result() for worker in ready.nthreads()]
    assert [[name for name, _ in of_worker] for of_worker in told] == [["lane 1", "lane 2"]] * 2
    assert sum(number for of_worker in told for _, number in of_worker) == NUMBER
