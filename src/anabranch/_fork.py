"""`fork`: several streams that start after one and are joined to it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anabranch._current import current_stream
from anabranch._device import Device
from anabranch._stream import Stream

if TYPE_CHECKING:
    from types import TracebackType

    from anabranch._device import DeviceLike


class Fork:
    """What `fork` returns. Each ``with`` makes new branches."""

    __slots__ = ("_devices", "_open", "_stream")

    def __init__(self, stream: Stream | None, devices: list[Device | None]) -> None:
        self._stream = stream
        self._devices = devices
        self._open: list[tuple[Stream, tuple[Stream, ...], list[Stream]]] = []

    def __enter__(self) -> tuple[Stream, ...]:
        parent = current_stream() if self._stream is None else self._stream
        label = parent.name or "fork"
        branches = tuple(
            Stream(device or parent.device, priority=parent.priority, name=f"{label}.{number}")
            for number, device in enumerate(self._devices)
        )
        for branch in branches:
            branch.wait_stream(parent)
        # Wrappers of our own, so that a branch which the user closes is joined all the same.
        self._open.append((parent, branches, [Stream.from_external(branch) for branch in branches]))
        return branches

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        parent, branches, joined = self._open.pop()
        for branch, own in zip(branches, joined, strict=True):
            parent.wait_stream(own)
            own.close()
            branch.close()

    def __repr__(self) -> str:
        return f"<fork into {len(self._devices)} streams>"


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
        stream stays as it is.

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
        count = operator.index(n)
        if count < 1:
            raise ValueError(f"fork needs at least one branch, not {count}")
        return Fork(stream, [None] * count)
    if isinstance(devices, str):
        raise TypeError("devices is a sequence of devices, not one str")
    chosen: list[Device | None] = [Device(device) for device in devices]
    if not chosen or (n is not None and operator.index(n) != len(chosen)):
        raise ValueError(f"fork into {n} branches, but on {len(chosen)} devices")
    return Fork(stream, chosen)
