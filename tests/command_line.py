"""Commands of ours in processes of their own. As a program, the command `anabranch`."""

import os
import subprocess
import sys

OURS = (sys.executable, "-m", "anabranch")


def environment(env=()):
    """Return the environment of a command: variables of ours count only if they are in `env`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ANABRANCH_", "CUDA_"))}
    return {**inherited, "PYTHON_COLORS": "0", "COLUMNS": "100", **dict(env)}


def start(*command, env=(), cwd=None):
    """Run a command in its environment and give its result."""
    return subprocess.run(
        command,
        env=environment(env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def anabranch(*arguments, **options):
    return start(*OURS, *arguments, **options)


def altered(preparation, *arguments, **options):
    """Run the command line in an interpreter that has executed `preparation` before."""
    code = (
        f"import sys\n{preparation}\nsys.argv = ['anabranch', *{arguments!r}]\nfrom anabranch.cli import main\nmain()"
    )
    return start(sys.executable, "-c", code, **options)


if __name__ == "__main__":
    from anabranch.cli import main

    main()
