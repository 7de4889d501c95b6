"""The public trace."""

from __future__ import annotations

import os
from html import escape
from types import TracebackType
from typing import Self

from anabranch._device.device import devices
from anabranch._trace.cupti import Activities, activities
from anabranch._trace.operation import Operation
from anabranch._trace.overlap import Shares, overlap
from anabranch._trace.page import page
from anabranch._trace.recording import Recording
from anabranch._trace.save import save
from anabranch._trace.text import text


class trace:  # noqa: N801
    """Record what is put into streams, by all threads, for as long as a block lasts.

    While a trace is on, each operation costs two events more on a GPU, and a few hundred nanoseconds on the CPU. On the
    CPU the times are those at which workers began and ended; on a GPU those of events just before and after, which for
    an operation of its own in an idle stream includes the few microseconds until the GPU starts on it. Where NVIDIA's
    package ``cupti-python`` is installed, and nobody else is its subscriber, the GPU's own times of kernels, copies and
    fills are taken; not of work that was held back when it was enqueued. The streams that were used stay until the
    trace goes.

    Traces may be nested, one within itself, too, and be on in several threads at once; each has everything. Any thread
    may read one; the block is one thread's.

    Examples
    --------
    >>> import anabranch as ab
    >>> with ab.trace() as t:
    ...     a = ab.zeros(1000)
    ...     ab.fill(a, 1)
    >>> [operation.kind for operation in t.operations]
    ['alloc', 'fill', 'fill']
    """

    __slots__ = ("_activities", "_depth", "_operations", "_recording")

    def __init__(self) -> None:
        self._recording = Recording()
        self._activities: Activities | None = None
        self._depth = 0  # nesting depth of its blocks
        self._operations: list[Operation] | None = None  # the final list, once complete

    def __enter__(self) -> Self:
        if self._depth > 0:
            self._depth += 1
            return self
        if devices("cuda"):
            self._activities = activities()
        if self._activities is not None:
            self._activities.start()
        self._depth = 1
        self._operations = None
        self._recording.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._depth > 1:
            self._depth -= 1
            return
        self._recording.stop()
        self._depth = 0
        if self._activities is not None:
            self._activities.stop()

    @property
    def operations(self) -> list[Operation]:
        """The operations by now, in the order in which they were enqueued.

        Blocks the host until they are over, as `save`, `overlap` and ``print`` do; work that failed is over, too. After
        the block they are the same objects each time.
        """
        if self._operations is not None:
            return list(self._operations)
        operations = self._so_far()
        if self._depth == 0:
            self._operations = operations
        return list(operations)

    def _so_far(self, patience: float = float("inf")) -> list[Operation]:
        # Waits for at most `patience` seconds; operations that are still pending are cut off there.
        return self._recording.operations(patience, self._activities.times if self._activities is not None else None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file, as its suffix says.

        Parameters
        ----------
        path : str or path-like
            ``.html``: a page of its own, for any browser; ``.svg``: a picture; ``.json``: Chrome's trace events;
            ``.pftrace``: Perfetto's format, which needs the package ``perfetto``. The last two open in
            https://ui.perfetto.dev.

        Raises
        ------
        ValueError
            For another suffix.
        """
        save(self.operations, path)

    def overlap(self) -> Shares:
        """Return the share of time in which two or more streams were at work, of that in which any was, per device.

        A device may be asked for by its alias, too: ``t.overlap()["cuda:0"]``.
        """
        return overlap(self.operations)

    def __str__(self) -> str:
        return text(self.operations)

    def _repr_html_(self) -> str:
        document = escape(page(self.operations), quote=True)
        return (
            f'<iframe srcdoc="{document}" sandbox="allow-scripts" width="100%" height="480" frameborder="0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<trace of {len(self._recording)} operations>"
