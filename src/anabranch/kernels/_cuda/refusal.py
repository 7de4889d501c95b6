"""Internal errors of numba-cuda-mlir that the user's code causes: its types allow more than it can translate.

It hides the cause and leaves a file with the traceback. The usual cause is a function that allocates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, NamedTuple

from numba_cuda_mlir.errors import UserFacingInternalCompilerError
from numba_cuda_mlir.numba_cuda.core.ir import Stmt

from anabranch.kernels._compile_error import NO_MEMORY, is_users

_LOG: Final = re.compile(r"saved to:\s+(\S+numba_cuda_mlir_error_\w+\.log)")
_ARRAY_RESULT: Final = re.compile(r"-> (?:array|list|dict|unicode|reflected)\b")
_CALL: Final = re.compile(r"call to <(?:[a-z-]+ )*?(?:ufunc|function|class|type|intrinsic) '?([\w.]+)")


class Refusal(NamedTuple):
    """The reason why a function cannot be translated, and its file and line, if known."""

    reason: str
    place: tuple[str, int] | None


class RefusedError(Exception):
    """Our own refusal of code that the compiler would translate; its text is the reason."""


def refusal(error: Exception) -> Refusal | None:
    """Return the cause behind such an error; None for any other error."""
    if isinstance(error, RefusedError):
        return Refusal(str(error), _place(error))
    if not isinstance(error, UserFacingInternalCompilerError):
        return None
    log = _LOG.search(str(error))
    if log is not None and os.path.exists(log[1]):
        os.unlink(log[1])
    cause = error.__context__ or error
    text = str(cause)
    place = _place(cause)
    if _ARRAY_RESULT.search(text):
        reason = NO_MEMORY
    elif call := _CALL.search(text):
        reason = f"numba-cuda-mlir has no {call[1]} on the GPU"
    else:
        reason = f"numba-cuda-mlir cannot translate this: {text.splitlines()[0] if text else type(cause).__name__}"
    return Refusal(reason, place)


def _place(error: BaseException) -> tuple[str, int] | None:
    """Return the line of the innermost statement of the user's code that the compiler had reached."""
    found = None
    for frame in _frames(error.__traceback__):
        for value in frame.values():
            if isinstance(value, Stmt) and is_users(value.loc.filename):
                found = value.loc.filename, value.loc.line
    return found


def _frames(traceback: TracebackType | None) -> Iterator[dict[str, Any]]:
    while traceback is not None:
        yield traceback.tb_frame.f_locals
        traceback = traceback.tb_next
