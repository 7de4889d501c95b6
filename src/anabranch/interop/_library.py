"""The interface between a bridge and another library."""

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
    """One library: how to find and replace its current stream."""

    name: ClassVar[str]
    module: ClassVar[str]  # name to import
    package: ClassVar[str]  # name to install
    has_current_stream: ClassVar[bool] = True
    known_by: ClassVar[tuple[str, ...]]  # attributes that a program's own module of that name lacks

    def require(self, user: str) -> None:
        """Raise ModuleNotFoundError if it is not installed. Imports only the enclosing packages."""
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
        """Import it. Raises ModuleNotFoundError, also for a different module of the same name."""
        self.require(user)
        module = importlib.import_module(self.module)
        if not self.recognizes(module):
            raise ModuleNotFoundError(
                f"{user} needs {self.package}, but {module!r} lacks {' or '.join(self.known_by)}", name=self.module
            )
        return module

    def recognizes(self, module: Any) -> bool:
        """Whether a module of that name is the library, and its import has finished far enough."""
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
        """Return the handle of this thread's current stream of a GPU.

        0 is the legacy stream. None: the library has no current stream.
        """

    @abstractmethod
    def enter(self, module: Any, stream: Stream, stack: ExitStack) -> Any:
        """Make a stream and its GPU current until the stack unwinds. Return the library's own stream object.

        On an error nothing has changed, or the stack restores it.
        """
