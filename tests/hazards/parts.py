"""What random programs are made of, and how many of them are run."""

import contextvars
import faulthandler
import functools
import os
import random
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import anabranch as ab

SHAPE = 4, 6
SIZE = 24
# A number in the environment replaces Hypothesis by as many seeds, each of which takes less time.
MANY = int(os.environ.get("ANABRANCH_EXAMPLES", 0))
# The suite of a free-threaded interpreter is the second to run these programs, each in one thread.
SECOND_RUN = not getattr(sys, "_is_gil_enabled", lambda: True)()
FIRST_SEED = int(os.environ.get("ANABRANCH_FIRST_SEED", 0))


@functools.cache
def call_at(line):
    return compile("\n" * (line - 1) + "result = operation(*args, **kwargs)", "program", "exec")


def at_line(line, operation, *args, **kwargs):
    """Call from a given line of the file "program"."""
    names = {"operation": operation, "args": args, "kwargs": kwargs, "__name__": "program"}
    exec(call_at(line), names)
    return names["result"]


def device_groups(kinds):
    """Return the devices of each kind, up to three."""
    groups = [ab.devices(kind)[:3] for kind in kinds]
    return [pytest.param(group, id=group[0].kind) for group in groups if group]


def random_programs(examples, kinds=("cpu",)):
    """Run a test of `devices` and `rng` for random numbers, with the devices of some kinds.

    Each time as a host task of its own: one that has seen earlier programs end would know of every lane, and so would
    all streams by it.
    """

    def decorate(program):
        @functools.wraps(program)
        def test(devices, rng):
            contextvars.Context().run(program, devices, rng)

        each_kind = pytest.mark.parametrize("devices", device_groups(kinds))
        if not MANY:
            fewer = examples // 4 if SECOND_RUN else examples
            quick = settings(max_examples=fewer, deadline=None, suppress_health_check=list(HealthCheck))
            return each_kind(quick(given(rng=st.randoms(use_true_random=False))(test)))

        def run(devices):
            try:
                for seed in range(FIRST_SEED, FIRST_SEED + MANY):
                    # One that hangs ends the process. With -s it is seen where.
                    faulthandler.dump_traceback_later(10, exit=True)
                    test(devices, random.Random(seed))
            except BaseException as error:
                error.add_note(f"ANABRANCH_FIRST_SEED={seed}")
                raise
            finally:
                faulthandler.cancel_dump_traceback_later()

        run.__name__, run.__module__ = test.__name__, test.__module__
        return pytest.mark.timeout(0)(each_kind(run))

    return decorate


def window(rng, size, length):
    """Return a slice of `length` elements, with any step that fits."""
    step = rng.choice([step for step in (1, 1, 2, 3) if (length - 1) * step < size])
    start = rng.randrange(size - (length - 1) * step)
    last = start + (length - 1) * step
    return slice(start, last + 1, step) if rng.randrange(3) else slice(last, start - 1 if start else None, -step)


class Block:
    """An array with its model; views of one share its number."""

    def __init__(self, number, array, values, places=None):
        self.number, self.array, self.values = number, array, values
        self.index = np.arange(SIZE).reshape(SHAPE) if places is None else places
        self.places = frozenset(self.index.ravel().tolist())

    def view(self, rng, shape):
        if shape == SHAPE and rng.randrange(2):
            return self
        key = tuple(window(rng, size, length) for size, length in zip(SHAPE, shape, strict=True))
        return Block(self.number, self.array[key], self.values[key], self.index[key])

    def part(self, offset, count):
        return frozenset(self.index.ravel()[offset : offset + count].tolist())


class Slot:
    """A stream, whose key in the model is its own number."""

    def __init__(self, key, stream, role):
        self.key, self.stream, self.role, self.device = key, stream, role, stream.device
