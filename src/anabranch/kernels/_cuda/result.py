"""Detection of kernel functions that return a value, which the compiler would accept."""

from __future__ import annotations

import dis
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any, Final

from numba_cuda_mlir import types
from numba_cuda_mlir.extending import lower_builtin, typing_registry
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature

_noted: Final = threading.local()


class ReturnsValueError(Exception):
    """The function returns a value; `kind` is its type."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def ignore(result: Any) -> None:
    """Accept the kernel function's result; used in the generated wrapper only."""
    raise NotImplementedError(result)


def may_return(function: FunctionType) -> bool:
    """Whether the function has a ``return`` of anything but the constant None."""
    previous = None
    for instruction in dis.get_instructions(function):
        if instruction.opname == "RETURN_CONST" and instruction.argval is not None:
            return True
        if instruction.opname == "RETURN_VALUE" and not (
            previous is not None and previous.opname == "LOAD_CONST" and previous.argval is None
        ):
            return True
        previous = instruction
    return False


@contextmanager
def nothing_returned() -> Iterator[None]:
    """Raise `ReturnsValueError`, and nothing else, if code compiled in the block passes `ignore` a value."""
    _noted.kind = None
    with suppress(Exception):  # the compiler cannot represent a returned None; without `ignore` it need not
        yield
    if _noted.kind is not None:
        raise ReturnsValueError(_noted.kind)


class _Template(AbstractTemplate):  # type: ignore[misc]  # Numba has no types
    key = ignore

    def generic(self, args: tuple[Any, ...], _: dict[str, Any]) -> Any:
        if args[0] != types.none:
            _noted.kind = str(args[0])
        return signature(types.none, args[0])


typing_registry.register(_Template)
typing_registry.register_global(ignore, types.Function(_Template))


@lower_builtin(ignore, types.Any)  # type: ignore[untyped-decorator]
def _lower(builder: Any, target: Any, _: Any, __: Any) -> None:
    builder.store_var(target, None)
