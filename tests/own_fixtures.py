"""Fixtures of its own for each thread in which pytest-run-parallel calls a test.

It hands all of them those of the main thread. But what is current is a thread's own, and what a test is about, such as
a stream that it fails, is to be its own as well: so that the test means in each thread what it means alone.
"""

import contextlib
import functools
import inspect
import tempfile
from pathlib import Path
from types import SimpleNamespace

# Those that begin before all threads do and end after them.
SHARED = {"gates_opened", "failures_forgotten"}


class OwnFixtures(contextlib.ExitStack):
    """The fixtures of one thread, by name: made when first asked for, in the thread that leaves the block."""

    def __init__(self, item):
        super().__init__()
        self.item, self.values = item, {}

    def __getitem__(self, name):
        if name not in self.values:
            self.values[name] = self._make(name)
        return self.values[name]

    def _make(self, name):
        if name == "tmp_path":
            return Path(tempfile.mkdtemp(dir=self.item.funcargs[name]))
        definition = self.item._fixtureinfo.name2fixturedefs.get(name, [None])[-1]
        # Pytest's fixtures, and its plugins', have no place; neither have the values of `parametrize`.
        if definition is None or not definition.baseid or definition.scope != "function" or name in SHARED:
            return self.item.funcargs[name]
        arguments = {each: self._request(name) if each == "request" else self[each] for each in definition.argnames}
        if not inspect.isgeneratorfunction(definition.func):
            return definition.func(**arguments)
        return self.enter_context(contextlib.contextmanager(definition.func)(**arguments))

    def _request(self, name):
        return SimpleNamespace(
            param=self.item.callspec.params.get(name),
            fixturenames=self.item.fixturenames,
            getfixturevalue=self.__getitem__,
        )


def with_own_fixtures(item):
    """Let the test of an item make its fixtures itself, in the thread that calls it."""
    test, uses = item.obj, list(item.fixturenames)

    @functools.wraps(test)
    def call(**given):
        with OwnFixtures(item) as own:
            for name in uses:
                if name != "request":
                    own[name]
            test(**given | {name: own[name] for name in given if name in uses})

    item.obj = call
