"""What a bridge has to know of another library."""

from __future__ import annotations

import importlib
import importlib.util
import operator
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from contextlib import ExitStack

    from anabranch._stream.stream import Stream


class Library(ABC):
    """One library: how its current stream is found, and made another."""

    name: ClassVar[str]
    module: ClassVar[str]  # what is imported
    package: ClassVar[str]  # what is installed
    has_current_stream: ClassVar[bool] = True
    known_by: ClassVar[tuple[str, ...]]  # attributes that a module of the program's own by that name lacks

    def require(self, user: str) -> None:
        """Raise ModuleNotFoundError if it is not installed. Imports no more than the packages around it."""
        if sys.modules.get(self.module) is not None:
            return
        try:
            found = importlib.util.find_spec(self.module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(
                f"{user} needs the module {self.module}: pip install {self.package}",
                name=self.module,
            )

    def load(self, user: str) -> Any:
        """Import it. Raises ModuleNotFoundError, also for a module of the same name that is not the library."""
        self.require(user)
        module = importlib.import_module(self.module)
        if not self.recognizes(module):
            raise ModuleNotFoundError(
                f"{user} needs {self.package}, but {module!r} lacks {' or '.join(self.known_by)}", name=self.module
            )
        return module

    def recognizes(self, module: Any) -> bool:
        """Whether a module of that name is the library, and imported far enough to be used."""
        try:
            operator.attrgetter(*self.known_by)(module)
        except AttributeError:
            return False
        return True

    @abstractmethod
    def usable(self, module: Any) -> bool:
        """Whether it can use GPUs."""

    @abstractmethod
    def current(self, module: Any, index: int) -> int | None:
        """Return the handle of its current stream of a GPU for this thread.

        0 is the legacy stream. None: it has none, not even a default one.
        """

    @abstractmethod
    def enter(self, module: Any, stream: Stream, stack: ExitStack) -> Any:
        """Make a stream current, and its GPU, until the stack is left. Return the library's own object for it.

        Raises before anything has changed, or leaves to the stack what has.
        """
