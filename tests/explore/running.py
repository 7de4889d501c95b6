"""The library does what a program says, and tests run for many of them."""

import faulthandler
import os
import random
from dataclasses import replace

import numpy as np
import pytest

import anabranch as ab

from .program import SIZE, random_program
from .schedules import DeadlockError, outcomes

# A number in the environment is that of the programs of each test, from the first seed on.
MANY = int(os.environ.get("ANABRANCH_EXAMPLES", 0))
FIRST_SEED = int(os.environ.get("ANABRANCH_FIRST_SEED", 0))

Gate = ab.testing.Gate  # not what the tests' fixture puts there, which would keep the streams of all programs


@ab.kernel
def mix(i, value, x: ab.In, y: ab.InOut):
    y[i] = 3 * y[i] + x[i] + value


@ab.kernel
def put(i, value, y: ab.Out):
    y[i] = value


class Run:
    """One run of a program. `answers`: each query's step and answer."""

    def __init__(self, program):
        self.program, self.answers, self.made = program, [], {}
        devices = ab.devices("cpu")
        self.streams = [
            ab.legacy_stream(devices[device])
            if role == "legacy"
            else ab.Stream(devices[device], non_blocking=role == "non-blocking")
            for device, role in zip(program.devices, program.roles, strict=True)
        ]
        self.events = [ab.Event(device=devices[device]) for device in program.events]
        # Each on a stream of its own, so that no other one waits for its end.
        self.arrays = [
            ab.array(np.arange(SIZE) + 100 * number, device=devices[device], stream=ab.Stream(devices[device]))
            for number, device in enumerate(program.arrays)
        ]

    def steps(self):
        """Take all steps, and return the answers."""
        for number, step in enumerate(self.program.steps):
            if not step.only_if or step.only_if in self.answers:
                getattr(self, f"_{step.kind}")(number, step)
        return tuple(self.answers)

    def contents(self):
        """Wait, and return what the arrays contain, None for those that are dropped."""
        return tuple(None if array is None else tuple(array.numpy().tolist()) for array in self.arrays)

    def _views(self, parts):
        return [self.arrays[part.array][part.elements] for part in parts]

    def _on(self, step):
        """Return the stream of a step; None for a node: the current one."""
        return None if step.stream is None else self.streams[step.stream]

    def _nothing(self, number, step):
        pass

    def _mix(self, number, step):
        (source,), (to,) = self._views(step.reads[:1]), self._views(step.writes)
        ab.launch(mix, to.size, step.value, source, to, stream=self._on(step))

    def _put(self, number, step):
        (to,) = self._views(step.writes)
        ab.launch(put, to.size, step.value, to, stream=self._on(step))

    def _copy(self, number, step):
        ab.copy(*self._views(step.writes), *self._views(step.reads), stream=self._on(step))

    def _fill(self, number, step):
        ab.fill(*self._views(step.writes), step.value, stream=self._on(step))

    def _replay(self, number, step):
        to = self.streams[step.stream]
        origin, *others = (ab.Stream(to.device) for _ in range(len(step.nodes) + 1))
        with ab.capture(origin) as graph:
            for node, stream in zip(step.nodes, others, strict=True):
                stream.wait_stream(origin)
                for before in node.after:
                    stream.wait_stream(others[before])
                with stream:
                    getattr(self, f"_{node.kind}")(number, replace(node, stream=None))
            for stream in others:
                origin.wait_stream(stream)
        graph.launch(stream=to)

    def _submit(self, number, step):
        views = {"reads": self._views(step.reads), "writes": self._views(step.writes)}
        self.made[number] = self.streams[step.stream].submit(int, **views)

    def _record(self, number, step):
        self.events[step.other].record(self.streams[step.stream])

    def _wait_event(self, number, step):
        self.streams[step.stream].wait_event(self.events[step.other])

    def _wait_stream(self, number, step):
        self.streams[step.stream].wait_stream(self.streams[step.other])

    def _query(self, number, step):
        self.answers.append((number, self.streams[step.stream].query()))

    def _query_event(self, number, step):
        self.answers.append((number, self.events[step.other].query()))

    def _synchronize(self, number, step):
        self.streams[step.stream].synchronize()

    def _synchronize_event(self, number, step):
        self.events[step.other].synchronize()

    def _result(self, number, step):
        self.made[step.other].result()

    def _gate(self, number, step):
        self.made[number] = Gate(self.streams[step.stream])

    def _open(self, number, step):
        self.made[step.other].open()

    def _drop(self, number, step):
        self.arrays[step.other] = None


def for_each_program(count, check, *, added=False, most=200, operations=8):
    """Call `check` with as many random programs, and with what their classes come to.

    Left out are those that get stuck, and, unless many are asked for, those of more than `most` classes. The error of
    one that fails has its seed, and what of it fails when all else is left out.
    """
    if any(device >= len(ab.devices("cpu")) for device in (0, 1)):
        pytest.skip("there is only one CPU device")
    checked = 0
    for seed in range(FIRST_SEED, FIRST_SEED + (MANY or count)):
        program = random_program(random.Random(seed), operations)
        try:
            ends = outcomes(program, added)
        except DeadlockError:
            continue
        if MANY or len(ends) <= most:
            # One that hangs ends the process. With -s it is seen where.
            faulthandler.dump_traceback_later(600 if MANY else 60, exit=True)
            try:
                check(program, ends)
            except BaseException as error:
                error.add_note(f"ANABRANCH_FIRST_SEED={seed} ANABRANCH_EXAMPLES=1\n{_smallest(program, check, added)}")
                raise
            finally:
                faulthandler.cancel_dump_traceback_later()
            checked += 1
    assert checked > 0


def _smallest(program, check, added):
    def fails(smaller):
        try:
            check(smaller, outcomes(smaller, added))
        except DeadlockError:
            return False
        except Exception:
            return True
        return False

    return program.shrunk(fails)
