"""Communicators: the calls that ranks make together."""

cimport cython

from anabranch._memory.array cimport Array
from anabranch.distributed._engine cimport Verb, op_number
from anabranch.distributed._ranks cimport Group, Ranks

import operator


@cython.final
cdef class Communicator(Ranks):
    """A group of ranks that carry out collectives together. `init` and `split` create it.

    Every method that takes ``stream=`` enqueues one operation on that stream (None: the current stream of `device`) and
    returns at once. The operation reads and writes the arrays that it is given: hazards order it, traces show it as a
    ``"collective"``. All ranks must make the same calls in the same order, on whichever streams; messages (`send`,
    `recv`) concern two ranks only. Arrays must be on `device` and may be strided. Only one thread at a time may make
    calls. Each method raises the errors of `all_reduce`.

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
    error : CollectiveError or None
        Why the communicator is broken, if it is.
    """

    cdef int splits

    # Collectives

    def all_reduce(self, x, op="sum", out=None, *, stream=None):
        """Reduce the arrays of all ranks, element by element; every rank gets the result.

        The other collectives raise the same errors.

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
        self.reduction(Verb.all_reduce, x, op, 0, x if out is None else out, stream)

    def reduce(self, x, op="sum", root=0, out=None, *, stream=None):
        """Reduce the arrays of all ranks; the rank `root` gets the result.

        Parameters
        ----------
        x, op, stream
            As of `all_reduce`.
        root : int
        out : Array, optional
            None: `x` itself. Used only on rank `root`.
        """
        cdef int at = self.rank_of(root, "root")
        self.reduction(Verb.reduce, x, op, at, None if at != self.rank else x if out is None else out, stream)

    def broadcast(self, x, root=0, *, stream=None):
        """Copy the array of rank `root` to the arrays of the other ranks.

        Parameters
        ----------
        x : Array
            Has the same shape and dtype on every rank; read on `root`, written elsewhere.
        root : int
        stream : Stream, optional
        """
        self.check("broadcast", False)
        cdef int at = self.rank_of(root, "root")
        cdef bint mine = at == self.rank
        self.check_array(x, "x", not mine)
        self.transfer(
            Verb.broadcast, x if mine else None, None if mine else x, (<Array>x).layout.size(), -1, at, stream)

    def all_gather(self, out, x, *, stream=None):
        """Concatenate the arrays of all ranks on every rank.

        Parameters
        ----------
        out : Array
            With `size` times as many elements as `x`, in the order of the ranks.
        x : Array
            Of the same shape and dtype on every rank.
        stream : Stream, optional
        """
        self.check("all_gather", False)
        self.check_parts(out, x, "out", "x", True)
        self.transfer(Verb.all_gather, x, out, (<Array>x).layout.size(), -1, 0, stream)

    def reduce_scatter(self, out, x, op="sum", *, stream=None):
        """Reduce the arrays of all ranks and give rank ``i`` the part ``i`` of the result.

        Parameters
        ----------
        out : Array
        x : Array
            With `size` times as many elements as `out`.
        op : {"sum", "prod", "min", "max", "avg"}
        stream : Stream, optional
        """
        self.check("reduce_scatter", False)
        self.check_parts(x, out, "x", "out", False)
        self.transfer(Verb.reduce_scatter, x, out, (<Array>out).layout.size(), op_number(op), 0, stream)

    def all_to_all(self, out, x, *, stream=None):
        """Send part ``i`` of `x` to rank ``i``; `out` holds the parts from all ranks, in rank order.

        Parameters
        ----------
        out, x : Array
            Of the same size and dtype, a multiple of `size` elements.
        stream : Stream, optional
        """
        self.check("all_to_all", False)
        self.check_array(x, "x", False)
        self.check_array(out, "out", True)
        if out.size != x.size or out.dtype != x.dtype:
            raise ValueError(f"out is {out.size} elements of {out.dtype}, x {x.size} of {x.dtype}: they must be equal")
        if x.size % self.size:
            raise ValueError(f"x has {x.size} elements, which {self.size} ranks cannot share equally")
        self.transfer(Verb.all_to_all, x, out, x.size // self.size, -1, 0, stream)

    def gather(self, out, x, root=0, *, stream=None):
        """Concatenate the arrays of all ranks on rank `root`.

        Parameters
        ----------
        out : Array or None
            With `size` times as many elements as `x`. Used only on rank `root`.
        x : Array
        root : int
        stream : Stream, optional
        """
        self.check("gather", False)
        cdef int at = self.rank_of(root, "root")
        if at == self.rank:
            if out is None:
                raise ValueError(f"out is None on rank {at}, the root of the gather")
            self.check_parts(out, x, "out", "x", True)
        else:
            self.check_array(x, "x", False)
            out = None
        self.transfer(Verb.gather, x, out, (<Array>x).layout.size(), -1, at, stream)

    def scatter(self, out, x, root=0, *, stream=None):
        """Give each rank ``i`` the part ``i`` of an array of rank `root`.

        Parameters
        ----------
        out : Array
        x : Array or None
            With `size` times as many elements as `out`. Used only on rank `root`.
        root : int
        stream : Stream, optional
        """
        self.check("scatter", False)
        cdef int at = self.rank_of(root, "root")
        if at == self.rank:
            if x is None:
                raise ValueError(f"x is None on rank {at}, the root of the scatter")
            self.check_parts(x, out, "x", "out", False)
        else:
            self.check_array(out, "out", True)
            x = None
        self.transfer(Verb.scatter, x, out, (<Array>out).layout.size(), -1, at, stream)

    def barrier(self, *, stream=None):
        """Hold a stream until the streams of all ranks have reached the barrier. Does not block the host."""
        self.check("barrier", False)
        self.transfer(Verb.barrier, None, None, 0, -1, 0, stream)

    # Messages

    def send(self, x, to, *, stream=None):
        """Send an array to another rank, which calls `recv`. The stream goes on once `x` may be written again.

        Two ranks that send to each other do so in a `group`, or on two streams.
        """
        self.message(Verb.send, x, self.rank_of(to, "to"), stream)

    def recv(self, x, source, *, stream=None):
        """Receive an array of the same size and dtype from another rank, which calls `send`.

        Messages between two ranks arrive in the order in which they were sent.
        """
        self.message(Verb.receive, x, self.rank_of(source, "source"), stream)

    def group(self):
        """Return a ``with`` block that makes its `send` and `recv` calls one operation, so that none waits for another.

        All calls must name the same stream. The operation is enqueued when the block ends: what is sent is what the
        arrays hold by then, so an array that is filled anew within the block is sent as it was filled last, and what
        is received cannot be read before. For several messages of one buffer, fill parts of it.

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
        self.check("group", False)
        return Group(self)

    # Communicators

    def split(self, color, key=None):
        """Return a communicator of the ranks that give the same color. Every rank must call it; it blocks the host.

        MPI has room for several hundred communicators: close those that are done, on all ranks. Dropping one does not
        close it.

        Parameters
        ----------
        color : int or None
            Not negative. None: this rank joins no communicator, and gets None.
        key : int, optional
            Orders the ranks of the new communicator; equal keys keep the order of the ranks in this one.

        Raises
        ------
        CollectiveError
            Other ranks do not call it in the communicator's time, or call something else that blocks the host.
        Error
            MPI has no more communicators.
        """
        self.check("split", False)
        from anabranch.distributed._init import split

        for name, given in (("color", color), ("key", key)):
            if given is not None and not hasattr(type(given), "__index__"):
                raise TypeError(f"{name} is an int or None, not {type(given).__name__}")
        if color is not None and (color := operator.index(color)) < 0:
            raise ValueError(f"color is not negative, not {color}")
        self.meet("split")
        self.splits += 1
        return split(self, self.control, color, self.rank if key is None else operator.index(key), self.splits)

    def _joint(self, operations, began):
        # For `trace.save`: the operations of all ranks, on rank 0.
        self.check("trace.save", False)
        self.meet("trace.save")
        from anabranch.distributed._timeline import joint

        return joint(self.control, operations, began)

    def close(self):
        """Close the communicator. What was enqueued completes. Closing again does nothing."""
        self.close_engine()

    def __enter__(self):
        self.check("with", False)
        return self

    def __exit__(self, kind, value, traceback):
        self.close()

    def __repr__(self):
        state = ", closed" if self.closed else ", broken" if self.error is not None else ""
        return f"<Communicator, rank {self.rank} of {self.size}, on {self.device.alias} over {self.backend}{state}>"

    def __reduce__(self):
        raise TypeError(f"{self!r} lives in this process; other processes call ab.distributed.init")
