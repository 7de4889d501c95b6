"""Times of GPU work by CUPTI, where NVIDIA's package for it is installed.

Events around an operation tell when the stream came to it and when it was through, which for a short kernel in an idle
stream is mostly the way to the GPU. CUPTI tells when the GPU began and ended. The calls of the driver that an operation
makes are given its number (external correlation); what CUPTI records of them is collected by that.
"""

from __future__ import annotations

import os
import threading
import time
from importlib.util import find_spec
from typing import Any

from anabranch._trace.recording import correlate

_lock = threading.Lock()
_activities: Activities | None = None
_tried = False


class Activities:
    """The records of this process. One subscriber is all that CUPTI has."""

    def __init__(self, cupti: Any) -> None:
        kinds = cupti.ActivityKind
        self._cupti = cupti
        self._work = {kinds.CONCURRENT_KERNEL, kinds.KERNEL, kinds.MEMCPY, kinds.MEMCPY2, kinds.MEMSET}
        self._kinds = [
            kinds.CONCURRENT_KERNEL,
            kinds.MEMCPY,
            kinds.MEMCPY2,
            kinds.MEMSET,
            # Without it, what is pushed comes with no record.
            kinds.DRIVER,
            kinds.EXTERNAL_CORRELATION,
        ]
        self._users = 0
        self._found: dict[int, tuple[int, int]] = {}  # by number, in nanoseconds of the steady clock
        # By what CUPTI calls them, as they come:
        self._numbers: dict[int, int] = {}
        self._times: dict[int, tuple[int, int]] = {}
        cupti.activity_register_callbacks(lambda: (1 << 20, 0), self._completed)
        for kind in self._kinds:
            cupti.activity_enable(kind)
        self._enabled = True
        self._offset = _offset(cupti.get_timestamp)

    def start(self) -> None:
        """Record from now on, as often as it is called before `stop`."""
        with _lock:
            self._users += 1
            if not self._enabled:
                self._enabled = True
                self._offset = _offset(self._cupti.get_timestamp)
                for kind in self._kinds:
                    self._cupti.activity_enable(kind)
            correlate(self._mark)

    def stop(self) -> None:
        """Record nothing new, once it was called as often as `start`. What is under way still counts."""
        with _lock:
            self._users -= 1
            if self._users == 0:
                correlate(None)

    def times(self) -> dict[int, tuple[int, int]]:
        """Return when operations began and ended, by their numbers, in nanoseconds of the steady clock.

        Of what is over by now: the rest is lost.
        """
        with _lock:
            self._cupti.activity_flush_all(1)
            if self._users == 0 and self._enabled:
                self._enabled = False
                for kind in self._kinds:
                    self._cupti.activity_disable(kind)
            for correlation, (begin, end) in self._times.items():
                number = self._numbers.get(correlation)
                if number is not None:
                    first, last = self._found.get(number, (begin + self._offset, end + self._offset))
                    self._found[number] = min(first, begin + self._offset), max(last, end + self._offset)
            self._times.clear()
            self._numbers.clear()
            return dict(self._found)

    def _mark(self, number: int) -> None:
        # 0 ends what another number began.
        kind = self._cupti.ExternalCorrelationKind.CUSTOM0
        if number:
            self._cupti.activity_push_external_correlation_id(kind, number)
        else:
            self._cupti.activity_pop_external_correlation_id(kind)

    def _completed(self, records: list[Any]) -> None:
        for record in records:
            if record.kind == self._cupti.ActivityKind.EXTERNAL_CORRELATION:
                self._numbers[record.correlation_id] = record.external_id
            elif record.kind in self._work and record.end:
                begin, end = self._times.get(record.correlation_id, (record.start, record.end))
                self._times[record.correlation_id] = min(begin, record.start), max(end, record.end)


def activities() -> Activities | None:
    """Return the process's records; None without CUPTI, or where somebody else has subscribed to it."""
    global _activities, _tried
    with _lock:
        if not _tried:
            _tried = True
            # compute-sanitizer does not go with it.
            if find_spec("cupti") is not None and os.environ.get("ANABRANCH_CUDA_SANITIZER") != "1":
                try:
                    from cupti import cupti

                    _activities = Activities(cupti)
                except Exception:  # CUPTI's own errors have no base of a name that lasts
                    _activities = None
    return _activities


def _offset(timestamp: Any) -> int:
    # From CUPTI's clock to the steady one: by the shortest of a few looks at both.
    looks: list[tuple[int, int]] = []
    for _ in range(10):
        before = time.monotonic_ns()
        theirs = timestamp()
        after = time.monotonic_ns()
        looks.append((after - before, (before + after) // 2 - theirs))
    _, offset = min(looks)
    return offset
