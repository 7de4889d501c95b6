"""The command line, ``anabranch`` or ``python -m anabranch``: what is installed, and how scripts run on it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that ``sys.argv`` names.

    Raises
    ------
    SystemExit
        When it is done.
    """
    try:
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("The command line needs typer: pip install 'anabranch[cli]'")
    from anabranch.cli._commands import run_command

    run_command()
