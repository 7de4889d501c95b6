"""The public trace."""

from __future__ import annotations

import os
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Self

from anabranch._device.device import devices
from anabranch._trace.cupti import Activities, activities
from anabranch._trace.operation import Operation
from anabranch._trace.overlap import Shares, overlap
from anabranch._trace.page import page
from anabranch._trace.recording import Recording
from anabranch._trace.save import check_target, save
from anabranch._trace.text import text

if TYPE_CHECKING:
    from anabranch.distributed import Communicator


class trace:  # noqa: N801
    """Record the operations that all threads enqueue, for the length of a ``with`` block.

    While a trace is on, each operation costs two events more on a GPU, and a few hundred nanoseconds on the CPU. On the
    CPU the times are those at which workers began and ended; on a GPU those of events just before and after, which for
    a single operation in an idle stream includes the few microseconds until the GPU starts it. If NVIDIA's package
    ``cupti-python`` is installed and has no other subscriber, kernels, copies and fills have the GPU's own times,
    except work that was held when it was enqueued. A trace keeps the streams in it alive.

    Traces may be nested, also one within itself, and be on in several threads at once; each records everything. Any
    thread may read a trace; one thread enters and leaves the block.

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
        """The operations so far, in the order in which they were enqueued.

        Blocks the host until they have completed or failed, as `save`, `overlap` and ``print`` do. After the block,
        each access returns the same objects.
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

    def save(self, path: str | os.PathLike[str], *, comm: Communicator | None = None) -> None:
        """Write the trace to a file, as its suffix says.

        Parameters
        ----------
        path : str or path-like
            ``.html``: a page of its own, for any browser; ``.svg``: a picture; ``.json``: Chrome's trace events;
            ``.pftrace``: Perfetto's format, which needs the package ``perfetto``. The last two open in
            https://ui.perfetto.dev.
        comm : anabranch.distributed.Communicator, optional
            Then all of its ranks call this, and rank 0 writes one file with the traces of them all. Their clocks are
            aligned; how far they may be off stands beside the ranks. A collective begins when the last rank has come
            to it, and the others show a wait for that one before. Only on rank 0 need the folder be there.

        Raises
        ------
        ValueError
            For another suffix.
        FileNotFoundError
            There is no such folder. With `comm`, every rank raises what rank 0 finds wrong with the path.
        """
        if comm is None:
            check_target(path)
            save(self.operations, path)
        elif (operations := self._joint(path, comm)) is not None:
            save(operations, path)

    def _joint(self, path: str | os.PathLike[str], comm: Communicator) -> list[Operation] | None:
        # Rank 0 alone writes. What keeps it from that goes to the others, which would wait for it otherwise.
        found: list[Operation] | Exception = self.operations
        if comm.rank == 0:
            try:
                check_target(path)
            except Exception as error:
                found = error
        return comm._joint(found, self._recording.began)

    def overlap(self) -> Shares:
        """Return, per device, the time in which two or more streams were busy, as a share of the time in which any was.

        The alias of a device is a key, too: ``t.overlap()["cuda:0"]``.
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
