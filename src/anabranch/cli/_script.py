"""Running a script in this interpreter, as ``python SCRIPT`` would."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType, TracebackType


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
    module = ModuleType("__main__")
    loader = SourceFileLoader("__main__", path)
    module.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None, __loader__=loader)
    sys.modules["__main__"] = module
    sys.argv[:] = argv
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    code = None
    try:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, module.__dict__)
    except BaseException:
        _hide_frames_before(code)
        raise


def _hide_frames_before(code: CodeType | None) -> None:
    # Nothing catches the exception any more: the interpreter passes it to the hook, which may be the script's.
    hook = sys.excepthook

    def from_script(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        while traceback is not None and traceback.tb_frame.f_code is not code:
            traceback = traceback.tb_next
        hook(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = from_script
