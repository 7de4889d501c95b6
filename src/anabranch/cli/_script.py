"""Running a script in this interpreter, as ``python SCRIPT`` would, once or under exploration."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import shlex
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

import anabranch as ab


def run_script(path: str, argv: Sequence[str]) -> None:
    """Run a file as the main module, with the module search path, exit codes and tracebacks of ``python SCRIPT``.

    Exceptions of the script propagate. `sys.argv`, ``sys.path[0]`` and the main module remain the script's, for code
    that runs at exit.

    Parameters
    ----------
    path : str
        The script.
    argv : sequence of str
        The new `sys.argv`, which starts with the script's name.
    """
    path = os.path.join(os.getcwd(), path)
    module = _become_main(path, argv)
    code = None
    try:
        code = _compiled(path)
        exec(code, module.__dict__)
    except BaseException:
        _hide_frames_before(code)
        raise


def explore_script(path: str, argv: Sequence[str], schedules: str | int, options: Sequence[str]) -> NoReturn:
    """Run a file as the main module under schedules of its operations, and exit with 1 if one of them fails.

    Modules that the script imports are loaded once. What it prints is shown for the first run alone, and the report
    goes to stderr. An exit status other than 0 is a failure.

    Parameters
    ----------
    path : str
        The script.
    argv : sequence of str
        `sys.argv` of each run, which starts with the script's name.
    schedules : str or int
        As for `anabranch.testing.explore`.
    options : sequence of str
        Further options of the command, for the one that replays a schedule.

    Raises
    ------
    SystemExit
        At the end.
    """
    path = os.path.join(os.getcwd(), path)
    code = _compiled(path)
    runs = 0

    def run() -> None:
        nonlocal runs
        runs += 1
        module = _become_main(path, argv)
        with contextlib.ExitStack() as output:
            if runs > 1:
                output.enter_context(contextlib.redirect_stdout(output.enter_context(open(os.devnull, "w"))))
            try:
                exec(code, module.__dict__)
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise RuntimeError(f"the script exits with {end.code!r}") from end
            finally:
                # What it holds is freed in this run, not in the next one.
                module.__dict__.clear()

    report = ab.testing.explore(run, schedules=schedules)
    print(report, file=sys.stderr)
    if report.schedule is not None:
        command = ["anabranch", "run", "--explore", f"--schedules={report.schedule}", *options, *argv]
        print(f"\nThis runs the schedule again:\n  {shlex.join(command)}", file=sys.stderr)
    sys.exit(0 if report.ok else 1)


def _become_main(path: str, argv: Sequence[str]) -> ModuleType:
    module = ModuleType("__main__")
    loader = SourceFileLoader("__main__", path)
    module.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None, __loader__=loader)
    sys.modules["__main__"] = module
    sys.argv[:] = argv
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    return module


def _compiled(path: str) -> CodeType:
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def _hide_frames_before(code: CodeType | None) -> None:
    # Nothing catches the exception any more: the interpreter passes it to the hook, which may be the script's.
    hook = sys.excepthook

    def from_script(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        while traceback is not None and traceback.tb_frame.f_code is not code:
            traceback = traceback.tb_next
        hook(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = from_script
