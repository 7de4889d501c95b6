"""The command line, ``anabranch`` or ``python -m anabranch``."""

from anabranch.cli._commands import main

__all__ = ["main"]
