"""What a scope and a current object cost when written in Python."""

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar, Token
from typing import Self

from harness import Case, Timed, implementation, repeat

context_variable = implementation("contextvars")
thread_local = implementation("threading.local")
generator = implementation("contextlib")

_variable: ContextVar[object] = ContextVar("current")
_local = threading.local()


class Scope:
    def __enter__(self) -> Self:
        self.token: Token[object] = _variable.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _variable.reset(self.token)


class LocalScope:
    def __enter__(self) -> Self:
        self.before = getattr(_local, "stream", None)
        _local.stream = self
        return self

    def __exit__(self, *error: object) -> None:
        _local.stream = self.before


@contextlib.contextmanager
def generator_scope() -> Iterator[None]:
    token = _variable.set(None)
    try:
        yield
    finally:
        _variable.reset(token)


@context_variable("stream.with")
def scope() -> Iterator[Case]:
    stream = Scope()

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            with stream:
                pass

    yield Timed(batch)


@thread_local("stream.with")
def local_scope() -> Iterator[Case]:
    stream = LocalScope()

    def batch(calls: int) -> None:
        for _ in repeat(calls):
            with stream:
                pass

    yield Timed(batch)


@generator("stream.with")
def scope_of_generator() -> Iterator[Case]:
    def batch(calls: int) -> None:
        for _ in repeat(calls):
            with generator_scope():
                pass

    yield Timed(batch)


@context_variable("stream.current")
def current() -> Iterator[Case]:
    token = _variable.set(None)

    def batch(calls: int) -> None:
        get = _variable.get
        for _ in repeat(calls):
            get()

    yield Timed(batch, calls=1000)
    _variable.reset(token)


@thread_local("stream.current")
def local_current() -> Iterator[Case]:
    _local.stream = None

    def batch(calls: int) -> None:
        local = _local
        for _ in repeat(calls):
            local.stream  # noqa: B018  the look-up is what is timed

    yield Timed(batch, calls=1000)
