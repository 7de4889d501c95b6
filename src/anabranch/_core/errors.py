"""The exceptions. All derive from `Error`, except those that a built-in type describes better."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CaptureError",
    "ClosedError",
    "CollectiveError",
    "CompileError",
    "DeviceError",
    "DriverError",
    "Error",
    "EventError",
    "ForkError",
    "KernelError",
    "OutOfMemoryError",
    "RaceError",
]


def text_of(error: BaseException) -> str:
    """Return the text of an exception. Its own `__str__` may be the program's code and may raise."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return type(error).__name__


def place_of(error: BaseException) -> str:
    """Return the innermost place that an exception passed, in brackets, or nothing if no Python code ran."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return f" ({code.co_filename}:{trace.tb_lineno}, in {code.co_name})"


class Error(Exception):
    """Base class of all errors of this library."""


class DeviceError(Error):
    """An unknown device, or things of two devices where one was needed."""


class ClosedError(Error):
    """A stream, event, array or graph was used after it was closed."""


class EventError(Error):
    """An event cannot answer: for instance, a time asked of an event made without timing."""


class CaptureError(Error):
    """Something that a graph capture forbids."""


class RaceError(Error):
    """Two accesses to the same memory, one of them a write, with no order between them.

    Attributes
    ----------
    kind : str
        ``"RAW"``, ``"WAR"`` or ``"WAW"``, the second access named first; ``"HOST"`` if the host makes one of the two;
        ``"FREE"`` if memory of another library is returned to its owner, by `Array.close`, while work may use it.
    array : str
        Which memory: its size, and where it was allocated if that is known.
    first, second : object
        With the attributes ``file``, ``line``, ``stream`` (None: the host) and ``access`` (``"read"`` or ``"write"``).
        Of an error that comes from another process, ``stream`` is what it is called there.
    fix : str
        One line that orders the two.
    """

    def __init__(
        self, message: str, *, kind: str = "", array: str = "", first: Any = None, second: Any = None, fix: str = ""
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.array = array
        self.first = first
        self.second = second
        self.fix = fix


class CollectiveError(Error):
    """A collective that the ranks of a communicator did not carry out together.

    Ranks disagreed about a call, one of them has died, or did not arrive in time.

    Attributes
    ----------
    operation : str
        Which: ``"all_reduce"`` and so on; empty where none was waited for.
    file, line : str, int
        Where it was enqueued; None where no Python code did.
    ranks : tuple of int
        Those that are the cause, as far as that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str = "",
        file: str | None = None,
        line: int | None = None,
        ranks: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.file = file
        self.line = line
        self.ranks = ranks


class CompileError(Error):
    """A kernel could not be compiled. The message shows the line at fault."""


class ForkError(Error):
    """A device was used in a forked child whose parent had used one."""


class KernelError(Error):
    """An operation failed while it ran in its stream. Raised by every call that observes the stream from then on."""


class OutOfMemoryError(Error, MemoryError):
    """A device has too little memory left for an allocation."""


class DriverError(Error):
    """The CUDA driver returned an error.

    Attributes
    ----------
    code : int
        The driver's number of the error, a `CUresult`.
    name : str
        Its name, such as ``"CUDA_ERROR_ILLEGAL_ADDRESS"``.
    """

    def __init__(self, code: int, name: str, message: str = "") -> None:
        super().__init__(code, name, message)
        self.code = code
        self.name = name
        self.message = message

    def __str__(self) -> str:
        return f"{self.name} ({self.code})" + (f": {self.message}" if self.message else "")


# Users know these as anabranch.Error and so on, so the module that defines them stays hidden.
for _name in __all__:
    globals()[_name].__module__ = "anabranch"
