"""Mixed work from 16 threads. `ANABRANCH_STRESS` is how many operations each does: 200, or for an hour's run more."""

import gc
import os
import threading
import time
from pathlib import Path

import pytest

import anabranch as ab

from .mixed_work import TIMEOUT, Mixed
from .shared_work import Shared

THREADS, ROUNDS = 16, 4
OPERATIONS = int(os.environ.get("ANABRANCH_STRESS", "200"))
LIVING = (ab.Stream, ab.Event, ab.Array, ab.Graph)
GROWTH = 64 << 20


def resident():
    """Return the bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def settled(count, bound):
    """Collect garbage until a count has come down to a bound, for as long as other threads may still let go."""
    deadline = time.monotonic() + TIMEOUT
    while count() > bound and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    return count()


def living():
    # By type: asked for its class, a proxy of something that is gone raises.
    return sum(type(thing) in LIVING for thing in gc.get_objects())


def work_in_threads(shared, round_number):
    """Let each thread do its part of a round; what any of them met is raised."""
    errors = []

    def body(number):
        seed = f"{round_number}/{number}"
        mixed = None
        try:
            mixed = Mixed(shared, seed)
            mixed.run(OPERATIONS // ROUNDS)
            mixed.end()
        except BaseException as error:
            error.add_note(f"seed {seed}, after {', '.join(mixed.done if mixed else ())}")
            errors.append(error)

    opener = threading.Thread(target=shared.open_gates)
    opener.start()
    threads = [threading.Thread(target=body, args=[number]) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.gates.put(None)
    opener.join()
    if errors:
        raise errors[0]


@pytest.mark.timeout(120 + OPERATIONS)
def test_mixed_work_of_many_threads(device):
    ab.legacy_stream(device), ab.per_thread_stream(device)  # which stay
    gc.collect()
    before, sizes = living(), []
    for number in range(ROUNDS):
        shared = Shared(device)
        work_in_threads(shared, number)
        for stream in shared.streams:
            stream.synchronize()
            assert stream.query()
        assert not any(stream.is_capturing for stream in shared.streams)
        del shared, stream
        assert settled(living, before) <= before
        sizes.append(resident())
    # The first round fills what is kept for later.
    assert sizes[-1] - sizes[1] < GROWTH, sizes
