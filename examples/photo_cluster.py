"""Photographs on the workers of a Dask cluster, each of which has several streams.

A task is a photograph. Its file goes to a worker, the pictures made of it come back, and this process writes them. So
workers need no folder in common, and when one dies, Dask has another do what it had begun: a picture is written once,
as a whole. On a worker, photographs go through the lanes of photo_pipeline.py, one at a time through each; a lane is a
stream. The weights of the blur are an array, which crosses to the workers as it is.

    python photo_pipeline.py --cluster local:2
    dask worker tcp://HOST:PORT --nthreads 4    # for --cluster tcp://HOST:PORT: a stream for each thread
"""

import io
import os
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

import dask
from distributed import Client, LocalCluster, WorkerPlugin, as_completed, get_worker, wait
from photo_pipeline import Lane, check, device_of_kernels, largest_of, streams_in_words, weights_of_blur
from rich.progress import Progress
from rich.table import Table

import anabranch as ab

# Seconds without a worker after which the job is given up.
PATIENCE = 30.0

# -- on the workers --


class File(io.BytesIO):
    """The contents of a file, with its name for messages."""

    def __init__(self, name, contents=b""):
        super().__init__(contents)
        self.name = str(name)

    def __repr__(self):
        return repr(self.name)

    def __str__(self):
        return self.name


class PhotoInMemory:
    """What a lane wants to know about a photograph, with files that are in memory."""

    def __init__(self, name, contents, shape):
        self.path, self.shape, self.size = File(name, contents), shape, shape[0] * shape[1]
        self.edges, self.sharpened = File(f"{name}, edges"), File(f"{name}, sharpened")


class Lanes(WorkerPlugin):
    """Gives each worker its lanes, as many as it has threads. One that starts again gets new ones."""

    name = "lanes"

    def __init__(self, largest, weights):
        self.largest, self.weights = largest, weights

    def setup(self, worker):
        """Make the lanes; the workers of one machine share its GPUs."""
        device = device_of_kernels(print)
        if isinstance(worker.name, int):  # one of a LocalCluster
            alike = ab.devices(device.kind)
            device = alike[(alike.index(device) + worker.name) % len(alike)]
        self.free = SimpleQueue()
        with device:
            weights = self.weights.to(device)
            for number in range(1, worker.state.nthreads + 1):
                self.free.put(Lane(f"lane {number}", self.largest, weights))


def develop_one(name, contents, shape):
    """Return a worker's name, and the files with the edges and the sharpened photograph."""
    worker, photo = get_worker(), PhotoInMemory(name, contents, shape)
    lanes = worker.plugins[Lanes.name].free
    lane = lanes.get()
    try:
        lane.enqueue(photo).result()
    finally:
        lanes.put(lane)
    return worker.name, photo.edges.getvalue(), photo.sharpened.getvalue()


# -- here --


def connect(cluster, streams, stack):
    """Return a client of a cluster, which is this program's own and ends with the stack if it is local."""
    kind, _, number = cluster.partition(":")
    if kind == "local":
        # Each worker has the whole machine for its kernels, if nobody says otherwise.
        share = max((os.cpu_count() or 1) // int(number), 1)
        env = {"ANABRANCH_CPU_WORKERS": os.environ.get("ANABRANCH_CPU_WORKERS", str(share))}
        cluster = LocalCluster(n_workers=int(number), threads_per_worker=streams, dashboard_address=None, env=env)
        stack.enter_context(cluster)
    # A photograph may be larger than what Dask takes for a mistake.
    stack.enter_context(dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}))
    client = stack.enter_context(Client(cluster))
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise OSError(f"the cluster has had no worker for {PATIENCE:g} seconds") from None
    for module in ("photo_pipeline.py", "photo_cluster.py"):
        client.upload_file(str(Path(__file__).with_name(module)))
    return client


def submit(client, photo, **where):
    """Have a worker make pictures of a photograph; returns a future."""
    # The scheduler keeps the file, for another worker if this one dies.
    contents = photo.path.read_bytes()
    return client.submit(develop_one, str(photo.path), contents, photo.shape, pure=False, **where)


def write(path, contents):
    """Write a file that is there as a whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(contents)
    part.replace(path)


def finished(client, pending):
    """Wait for one of the futures; return those that are over."""
    while True:
        try:
            return wait(list(pending), PATIENCE, "FIRST_COMPLETED").done
        except TimeoutError:
            if not client.nthreads():
                left = f"{len(pending)} photographs have begun and are not done"
                raise OSError(f"the cluster has had no worker for some time, and {left}") from None


def run(client, photos, advance):
    """Do the job on a cluster; return how many photographs each worker has done. Calls `advance` for each of them."""
    in_order = iter(sorted(photos, key=lambda photo: photo.size, reverse=True))
    done_by = Counter()
    # Every thread has the next photograph at hand, and the scheduler no more than that.
    pending = {submit(client, photo): photo for photo in islice(in_order, 2 * sum(client.nthreads().values()))}
    while pending:
        for future in finished(client, pending):
            photo, (worker, edges, sharpened) = pending.pop(future), future.result()
            write(photo.edges, edges)
            write(photo.sharpened, sharpened)
            done_by[worker] += 1
            advance()
            pending.update((submit(client, other), other) for other in islice(in_order, 1))
    return done_by


def develop(photos, cluster, streams, rounds, console):
    """Do the job on a cluster several times, and check what comes of it; print the best time."""
    with ExitStack() as stack:
        client = connect(cluster, streams, stack)
        client.register_plugin(Lanes(largest_of(photos), weights_of_blur()))
        workers = client.nthreads()
        in_words = f"{len(workers)} worker{'s' * (len(workers) > 1)}"
        progress = stack.enter_context(Progress(console=console))
        warming = progress.add_task("warming up", total=len(workers))
        timed = progress.add_task(in_words, total=rounds * len(photos))
        checking = progress.add_task("comparing with SciPy", total=rounds * len(photos))

        smallest = min(photos, key=lambda photo: photo.size)
        for _ in as_completed([submit(client, smallest, workers=[worker]) for worker in workers]):
            progress.advance(warming)

        best, differences = None, []
        for _ in range(rounds):
            begin = time.perf_counter()
            done_by = run(client, photos, partial(progress.advance, timed))
            best = min(best or (float("inf"),), (time.perf_counter() - begin, done_by), key=lambda each: each[0])
            for photo in photos:
                differences.append(check(photo))
                progress.advance(checking)
    console.print(summary(in_words, streams_in_words(max(workers.values())), *best))
    console.print(f"Every picture is within {max(differences):.3f} levels of SciPy's.")


def summary(workers, streams, seconds, done_by):
    """Return the closing table."""
    table = Table("", "photos", "time")
    table.add_row(f"{workers}, {streams} each", str(sum(done_by.values())), f"{seconds:.2f} s", style="bold")
    for name, number in sorted(done_by.items(), key=str):
        table.add_row(f"  worker {name}", str(number), "")
    return table
