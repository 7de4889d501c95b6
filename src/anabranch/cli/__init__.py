"""The command line, ``anabranch`` or ``python -m anabranch``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that ``sys.argv`` names.

    Raises
    ------
    SystemExit
        At the end of the command.
    """
    try:
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("The command line needs typer: pip install 'anabranch[cli]'")
    from anabranch.cli._commands import run_command

    run_command()
