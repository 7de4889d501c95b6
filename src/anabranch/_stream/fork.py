"""`fork`: several streams that start after a parent and join it again."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from anabranch._device.device import Device
from anabranch._stream.current import current_stream
from anabranch._stream.stream import Stream

if TYPE_CHECKING:
    from types import TracebackType

    from anabranch._device.device import DeviceLike


class _Block:
    """An entered block. It refers to nothing, since contexts of other tasks may keep it alive."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = False


# Blocks that this task has entered. Tasks may share a `Fork`; each leaves only its own blocks.
_entered: ContextVar[tuple[_Block, ...]] = ContextVar("anabranch_forks", default=())


class Fork:
    """The result of `fork`. Each ``with`` makes new branches; several tasks and threads may be in one at a time."""

    __slots__ = ("_devices", "_open", "_stream")

    def __init__(self, stream: Stream | None, devices: list[Device | None]) -> None:
        self._stream = stream
        self._devices = devices
        self._open: dict[_Block, tuple[Stream, tuple[Stream, ...], list[Stream]]] = {}

    def __enter__(self) -> tuple[Stream, ...]:
        parent = current_stream() if self._stream is None else self._stream
        label = parent.name or "fork"
        branches = tuple(
            Stream(device or parent.device, priority=parent.priority, name=f"{label}.{number}")
            for number, device in enumerate(self._devices)
        )
        for branch in branches:
            branch.wait_stream(parent)
        block = _Block()
        # Private wrappers: a branch is joined even if the user closes its stream.
        self._open[block] = parent, branches, [Stream.from_external(branch) for branch in branches]
        _entered.set((*(other for other in _entered.get() if not other.left), block))
        return branches

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        own = [block for block in _entered.get() if block in self._open]
        # The context may have entered none, as when another task closes an asynchronous generator.
        blocks = own or list(self._open)
        if not blocks:
            raise RuntimeError(f"{self!r} is left, but has not been entered")
        block = blocks[-1]
        block.left = True
        parent, branches, joined = self._open.pop(block)
        for branch, wrapper in zip(branches, joined, strict=True):
            parent.wait_stream(wrapper)
            wrapper.close()
            branch.close()

    def __repr__(self) -> str:
        return f"<fork into {len(self._devices)} streams>"


def _number(n: object) -> int:
    if isinstance(n, bool) or not hasattr(type(n), "__index__"):
        raise TypeError(f"n is the number of branches, an int, not {n!r}")
    return operator.index(n)  # type: ignore[arg-type]


def fork(n: int | None = None, stream: Stream | None = None, devices: Sequence[DeviceLike] | None = None) -> Fork:
    """Return a context manager that forks a stream into several and joins them at the end of the block.

    Parameters
    ----------
    n : int
        How many branches. May be left out with `devices`.
    stream : Stream, optional
        The parent. None: the current stream when the block is entered.
    devices : sequence of Device or str, optional
        One branch on each. None: all on the parent's device.

    Returns
    -------
    context manager of tuple of Stream
        The branches: new streams, of the parent's priority. Each starts after what the parent had to do by
        then. At the end, also on error, the parent waits for all of them, and they are closed. The current
        stream stays as it is. One object may be entered again, also while it is open, and by several tasks and
        threads: each has branches of its own.

    Raises
    ------
    ValueError
        If `n` is below 1 or not the number of devices.

    Examples
    --------
    >>> import anabranch as ab
    >>> parent = ab.Stream("cpu")
    >>> with ab.fork(2, parent) as (a, b):
    ...     x = ab.zeros(10, stream=a)
    ...     y = ab.ones(10, stream=b)
    >>> parent.synchronize()
    """
    if stream is not None and not isinstance(stream, Stream):
        raise TypeError(f"stream is a Stream or None, not {type(stream).__name__}")
    if devices is None:
        if n is None:
            raise ValueError("fork needs the number of branches, or devices")
        count = _number(n)
        if count < 1:
            raise ValueError(f"fork needs at least one branch, not {count}")
        return Fork(stream, [None] * count)
    if isinstance(devices, str):
        raise TypeError("devices is a sequence of devices, not one str")
    chosen: list[Device | None] = [Device(device) for device in devices]
    if not chosen:
        raise ValueError("fork needs at least one device, and devices has none")
    if n is not None and _number(n) != len(chosen):
        raise ValueError(f"fork into {n} branches, but on {len(chosen)} devices")
    return Fork(stream, chosen)
