"""What a bridge has to know of another library."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from contextlib import ExitStack

    from anabranch._stream import Stream


class Library(ABC):
    """One library: how its current stream is found, and made another."""

    name: ClassVar[str]
    module: ClassVar[str]  # what is imported
    package: ClassVar[str]  # what is installed
    has_current_stream: ClassVar[bool] = True

    @property
    def imported(self) -> bool:
        """Whether the program has imported it."""
        return self.module in sys.modules

    def require(self) -> None:
        """Raise ModuleNotFoundError if it is not installed. Imports no more than the packages around it."""
        if self.imported:
            return
        try:
            found = importlib.util.find_spec(self.module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(
                f"a bridge to {self.name!r} needs the module {self.module}: pip install {self.package}",
                name=self.module,
            )

    def load(self) -> Any:
        """Import it."""
        return importlib.import_module(self.module)

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
