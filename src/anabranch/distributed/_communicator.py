"""Communicators: the calls that ranks make together."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from anabranch._memory.array import Array
from anabranch._stream.stream import Stream
from anabranch._trace.operation import Operation
from anabranch.distributed._ranks import OPS, Group, Ranks


class Communicator(Ranks):
    """A group of ranks that carry out collectives together. `init` and `split` create it.

    Every method that takes ``stream=`` enqueues one operation on that stream (None: the current stream of `device`) and
    returns at once. The operation reads and writes the arrays that it is given: hazards order it, traces show it as a
    ``"collective"``. All ranks must make the same calls in the same order, on whichever streams; messages (`send`,
    `recv`) concern two ranks only. Arrays must be on `device` and may be strided. Only one thread at a time may make
    calls.

    Attributes
    ----------
    rank, size : int
        This process among those of the communicator, from 0, and how many they are.
    local_rank, local_size : int
        The same among the processes of the machine.
    device : Device
        Where arrays are.
    backend : str
        ``"nccl"`` or ``"mpi"``.
    timeout : float
        Seconds that a collective may take on this rank.
    closed : bool
    """

    __slots__ = ()

    # Collectives

    def all_reduce(self, x: Array, op: str = "sum", out: Array | None = None, *, stream: Stream | None = None) -> None:
        """Reduce the arrays of all ranks, element by element; every rank gets the result.

        Parameters
        ----------
        x : Array
            Of the same shape and dtype on every rank.
        op : {"sum", "prod", "min", "max", "avg"}
            ``"avg"`` takes floating-point and complex dtypes. Booleans add by "or" and multiply by "and".
        out : Array, optional
            Of the same shape and dtype. None: `x` itself.
        stream : Stream, optional

        Raises
        ------
        TypeError
            The transport has no such operation of the dtype: MPI has none of float16.
        ValueError, DeviceError, ClosedError
            For arguments that do not fit; nothing is enqueued.
        CollectiveError
            The communicator is broken, or under ``hazards("check")``, the ranks' calls differ.

        Examples
        --------
        >>> import anabranch as ab
        >>> comm = ab.distributed.init()
        >>> x = ab.ones(3)
        >>> comm.all_reduce(x)
        >>> x.numpy().tolist() == [comm.size] * 3
        True
        """
        self._reduction("all_reduce", x, op, 0, x if out is None else out, stream)

    def reduce(
        self, x: Array, op: str = "sum", root: int = 0, out: Array | None = None, *, stream: Stream | None = None
    ) -> None:
        """Reduce the arrays of all ranks; the rank `root` gets the result.

        Parameters
        ----------
        x, op, stream
            As of `all_reduce`.
        root : int
        out : Array, optional
            None: `x` itself. Used only on rank `root`.
        """
        root = self._rank(root, "root")
        self._reduction("reduce", x, op, root, (x if out is None else out) if root == self.rank else None, stream)

    def broadcast(self, x: Array, root: int = 0, *, stream: Stream | None = None) -> None:
        """Copy the array of rank `root` to the arrays of the other ranks.

        Parameters
        ----------
        x : Array
            Has the same shape and dtype on every rank; read on `root`, written elsewhere.
        root : int
        stream : Stream, optional
        """
        self._check("broadcast")
        root = self._rank(root, "root")
        mine = root == self.rank
        self._array(x, "x", not mine)
        send, receive = (x, None) if mine else (None, x)
        self._transfer("broadcast", send, receive, x.size, "", root, stream, f"broadcast(root={root})")

    def all_gather(self, out: Array, x: Array, *, stream: Stream | None = None) -> None:
        """Concatenate the arrays of all ranks on every rank.

        Parameters
        ----------
        out : Array
            With `size` times as many elements as `x`, in the order of the ranks.
        x : Array
            Of the same shape and dtype on every rank.
        stream : Stream, optional
        """
        self._check("all_gather")
        self._parts(out, x, "out", "x", out)
        self._transfer("all_gather", x, out, x.size, "", 0, stream)

    def reduce_scatter(self, out: Array, x: Array, op: str = "sum", *, stream: Stream | None = None) -> None:
        """Reduce the arrays of all ranks and give rank ``i`` the part ``i`` of the result.

        Parameters
        ----------
        out : Array
        x : Array
            With `size` times as many elements as `out`.
        op : {"sum", "prod", "min", "max", "avg"}
        stream : Stream, optional
        """
        self._check("reduce_scatter")
        self._parts(x, out, "x", "out", out)
        if op not in OPS:
            raise ValueError(f"op is one of {', '.join(map(repr, OPS))}, not {op!r}")
        self._transfer("reduce_scatter", x, out, out.size, op, 0, stream, f"reduce_scatter({op!r})")

    def all_to_all(self, out: Array, x: Array, *, stream: Stream | None = None) -> None:
        """Send part ``i`` of `x` to rank ``i``; `out` holds the parts from all ranks, in rank order.

        Parameters
        ----------
        out, x : Array
            Of the same size and dtype, a multiple of `size` elements.
        stream : Stream, optional
        """
        self._check("all_to_all")
        self._array(x, "x", False)
        self._array(out, "out", True)
        if out.size != x.size or out.dtype != x.dtype:
            raise ValueError(f"out is {out.size} elements of {out.dtype}, x {x.size} of {x.dtype}: they must be equal")
        if x.size % self.size:
            raise ValueError(f"x has {x.size} elements, which {self.size} ranks cannot share equally")
        self._transfer("all_to_all", x, out, x.size // self.size, "", 0, stream)

    def gather(self, out: Array | None, x: Array, root: int = 0, *, stream: Stream | None = None) -> None:
        """Concatenate the arrays of all ranks on rank `root`.

        Parameters
        ----------
        out : Array or None
            With `size` times as many elements as `x`. Used only on rank `root`.
        x : Array
        root : int
        stream : Stream, optional
        """
        self._check("gather")
        root = self._rank(root, "root")
        if root == self.rank:
            if out is None:
                raise ValueError(f"out is None on rank {root}, the root of the gather")
            self._parts(out, x, "out", "x", out)
        else:
            self._array(x, "x", False)
            out = None
        self._transfer("gather", x, out, x.size, "", root, stream, f"gather(root={root})")

    def scatter(self, out: Array, x: Array | None, root: int = 0, *, stream: Stream | None = None) -> None:
        """Give each rank ``i`` the part ``i`` of an array of rank `root`.

        Parameters
        ----------
        out : Array
        x : Array or None
            With `size` times as many elements as `out`. Used only on rank `root`.
        root : int
        stream : Stream, optional
        """
        self._check("scatter")
        root = self._rank(root, "root")
        if root == self.rank:
            if x is None:
                raise ValueError(f"x is None on rank {root}, the root of the scatter")
            self._parts(x, out, "x", "out", out)
        else:
            self._array(out, "out", True)
            x = None
        self._transfer("scatter", x, out, out.size, "", root, stream, f"scatter(root={root})")

    def barrier(self, *, stream: Stream | None = None) -> None:
        """Hold a stream until the streams of all ranks have reached the barrier. Does not block the host."""
        self._check("barrier")
        self._transfer("barrier", None, None, 0, "", 0, stream)

    # Messages

    def send(self, x: Array, to: int, *, stream: Stream | None = None) -> None:
        """Send an array to another rank, which calls `recv`. The stream goes on once `x` may be written again.

        Two ranks that send to each other do so in a `group`, or on two streams.
        """
        self._message("send", x, self._rank(to, "to"), stream)

    def recv(self, x: Array, source: int, *, stream: Stream | None = None) -> None:
        """Receive an array of the same size and dtype from another rank, which calls `send`.

        Messages between two ranks arrive in the order in which they were sent.
        """
        self._message("recv", x, self._rank(source, "source"), stream)

    def group(self) -> Group:
        """Return a ``with`` block that makes its `send` and `recv` calls one operation, so that none waits for another.

        All calls must name the same stream.

        Examples
        --------
        >>> import anabranch as ab
        >>> comm = ab.distributed.init()
        >>> a, b = ab.ones(3), ab.zeros(3)
        >>> with comm.group():
        ...     comm.send(a, (comm.rank + 1) % comm.size)
        ...     comm.recv(b, (comm.rank - 1) % comm.size)
        >>> b.numpy().tolist()
        [1.0, 1.0, 1.0]
        """
        self._check("group")
        return Group(self)

    # Communicators

    def split(self, color: int | None, key: int | None = None) -> Communicator | None:
        """Return a communicator of the ranks that give the same color. Every rank must call it; it blocks the host.

        Parameters
        ----------
        color : int or None
            Not negative. None: this rank joins no communicator, and gets None.
        key : int, optional
            Orders the ranks of the new communicator; equal keys keep the order of the ranks in this one.
        """
        self._check("split")
        from anabranch.distributed._init import split

        if color is not None and (color := operator.index(color)) < 0:
            raise ValueError(f"color is not negative, not {color}")
        self._splits += 1
        return split(self, self._control, color, self.rank if key is None else operator.index(key), self._splits)

    def _joint(self, operations: Sequence[Operation], began: int) -> list[Operation] | None:
        # For `trace.save`: the operations of all ranks, on rank 0.
        self._check("trace.save")
        from anabranch.distributed._timeline import joint

        return joint(self._control, operations, began)

    def close(self) -> None:
        """Close the communicator. What was enqueued completes. Closing again does nothing."""
        if not self.closed:
            self.closed = True
            self._close()

    def __enter__(self) -> Self:
        self._check("with")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ", broken" if self.error is not None else ""
        return f"<Communicator, rank {self.rank} of {self.size}, on {self.device.alias} over {self.backend}{state}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} lives in this process; other processes call ab.distributed.init")
