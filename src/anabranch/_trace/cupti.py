"""GPU times from CUPTI, if NVIDIA's package for it is installed.

Events around an operation measure when the stream reached and left it. For a short kernel in an idle stream that is
mostly the latency of the launch. CUPTI measures when the GPU began and ended. Driver calls of an operation carry its
number (external correlation), and CUPTI's records are matched by that number.
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
    """The activity records of this process. CUPTI has a single subscriber."""

    def __init__(self, cupti: Any) -> None:
        kinds = cupti.ActivityKind
        self._cupti = cupti
        self._work = {kinds.CONCURRENT_KERNEL, kinds.KERNEL, kinds.MEMCPY, kinds.MEMCPY2, kinds.MEMSET}
        self._kinds = [
            kinds.CONCURRENT_KERNEL,
            kinds.MEMCPY,
            kinds.MEMCPY2,
            kinds.MEMSET,
            # Without driver records, CUPTI records no external correlation.
            kinds.DRIVER,
            kinds.EXTERNAL_CORRELATION,
        ]
        self._users = 0
        self._found: dict[int, tuple[int, int]] = {}  # by operation number, in nanoseconds of the steady clock
        # By CUPTI's correlation id, as records arrive:
        self._numbers: dict[int, int] = {}
        self._times: dict[int, tuple[int, int]] = {}
        cupti.activity_register_callbacks(lambda: (1 << 20, 0), self._completed)
        for kind in self._kinds:
            cupti.activity_enable(kind)
        self._enabled = True
        self._offset = _offset(cupti.get_timestamp)

    def start(self) -> None:
        """Start recording. Calls nest; each needs a `stop`."""
        with _lock:
            self._users += 1
            if not self._enabled:
                self._enabled = True
                self._offset = _offset(self._cupti.get_timestamp)
                for kind in self._kinds:
                    self._cupti.activity_enable(kind)
            correlate(self._mark)

    def stop(self) -> None:
        """Stop recording new operations with the last nested call. Operations already enqueued still count."""
        with _lock:
            self._users -= 1
            if self._users == 0:
                correlate(None)

    def times(self) -> dict[int, tuple[int, int]]:
        """Return begin and end of operations by their numbers, in nanoseconds of the steady clock.

        Includes the operations that are completed; later records are lost.
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
        # 0 ends the current number's range.
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
    """Return this process's activity records; None without CUPTI, or if it has another subscriber."""
    global _activities, _tried
    with _lock:
        if not _tried:
            _tried = True
            # CUPTI and compute-sanitizer exclude each other.
            if find_spec("cupti") is not None and os.environ.get("ANABRANCH_CUDA_SANITIZER") != "1":
                try:
                    from cupti import cupti

                    _activities = Activities(cupti)
                except Exception:  # CUPTI's errors have no stable base class
                    _activities = None
    return _activities


def _offset(timestamp: Any) -> int:
    # Offset from CUPTI's clock to the steady clock, from the tightest of several readings.
    looks: list[tuple[int, int]] = []
    for _ in range(10):
        before = time.monotonic_ns()
        theirs = timestamp()
        after = time.monotonic_ns()
        looks.append((after - before, (before + after) // 2 - theirs))
    _, offset = min(looks)
    return offset
