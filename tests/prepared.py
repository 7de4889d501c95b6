"""An interpreter that has imported packages of others, and runs programs in processes that it forks.

A program finds NumPy, Numba and the like imported, Numba's compiler ready, and nothing of ours, which saves it the
second or two that this takes in a fresh interpreter. What it prints, its environment, its folder and its end are its
own. Tests of what a program imports start a fresh interpreter.

As a program, this is that interpreter. It reads a request from each line of its input; to each it answers with two
lines, the number of the process and how it has ended.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType


class Prepared:
    """The interpreter, from its first program until `close()`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(
        self, program: Path, *arguments: object, env: Mapping[str, str], cwd: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as `python -W error` would, under the whole of an environment."""
        command = [str(program), *map(str, arguments)]
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            request = {"command": command, "env": dict(env), "cwd": str(cwd), "out": str(out), "err": str(err)}
            returncode = self._ask(json.dumps(request), command, timeout)
            return subprocess.CompletedProcess(command, returncode, out.read_text(), err.read_text())

    def _ask(self, request: str, command: list[str], timeout: float) -> int:
        process = self._process = self._process or self._start()
        assert process.stdin
        assert process.stdout
        print(request, file=process.stdin, flush=True)
        child = int(process.stdout.readline())
        over = not select.select([process.stdout], [], [], timeout)[0]
        if over:
            os.kill(child, signal.SIGKILL)
        returncode = int(process.stdout.readline())
        if over:
            raise subprocess.TimeoutExpired(command, timeout)
        return returncode

    def _start(self) -> subprocess.Popen[str]:
        # Without threads, which a fork would leave out.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "error", __file__]
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        if self._process:
            self._process.communicate()


def prepare() -> None:
    """Import what is there of what kernels and the demo need, and have Numba compile something."""
    for name in ("numpy", "numba", "PIL.Image", "rich.console", "scipy.ndimage"):
        if importlib.util.find_spec(name.split(".")[0]):
            importlib.import_module(name)
    if numba := sys.modules.get("numba"):
        numba.njit("float64(float64, int64)", error_model="numpy")(lambda x, i: x / i + i // 2)
    gc.collect()
    gc.freeze()


def serve() -> None:
    """Run programs until the input ends, or, in the process of a program, that one."""
    with os.fdopen(os.dup(0)) as requests, os.fdopen(os.dup(1), "w") as answers:
        for line in requests:
            request = json.loads(line)
            child = os.fork()
            if child == 0:
                break
            print(child, file=answers, flush=True)
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), file=answers, flush=True)
        else:
            return
    become(**request)


def become(command: list[str], env: dict[str, str], cwd: str, out: str, err: str) -> None:
    """Be the process of a program: its module is what `__main__` is until the interpreter ends."""
    for file, flags, descriptor in [(os.devnull, os.O_RDONLY, 0), (out, os.O_WRONLY, 1), (err, os.O_WRONLY, 2)]:
        os.dup2(os.open(file, flags | os.O_CREAT), descriptor)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    program = Path(command[0])
    sys.argv, sys.path[0] = command, str(program.parent)
    main = ModuleType("__main__")
    main.__file__ = command[0]
    sys.modules["__main__"] = main
    exec(compile(program.read_bytes(), command[0], "exec", dont_inherit=True), main.__dict__)


if __name__ == "__main__":
    prepare()
    serve()
