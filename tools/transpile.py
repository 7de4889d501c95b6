"""Turn the Cython modules of a folder of packages into C++.

    python tools/transpile.py SOURCES PACKAGE OUTPUT

SOURCES/PACKAGE/a/b.pyx becomes OUTPUT/a/b.cxx, unless that is newer than all it is made of.

Most of the time that Cython takes for a module goes into the declarations (.pxd files) that the module needs, and the
modules of a package need much the same. So they are read once, and a process is forked for each module, which has them.
The command `cython` reads them anew for every module; apart from the order of includes, the C++ is the same.
"""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import Cython
from Cython.Build.Dependencies import create_dependency_tree
from Cython.Compiler import Errors
from Cython.Compiler.Main import Context, run_pipeline
from Cython.Compiler.Options import CompilationOptions, default_options, get_directive_defaults

DIRECTIVES = {"freethreading_compatible": True, "boundscheck": False, "wraparound": False, "binding": True}


def with_options(root: Path, **more: object) -> CompilationOptions:
    directives = get_directive_defaults() | DIRECTIVES
    return CompilationOptions(
        default_options, cplus=True, language_level=3, include_path=[str(root)], compiler_directives=directives, **more
    )


class SharedContext(Context):
    """What has been read of declarations, and what each of them alone has changed in others."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.scopes: list[Any] = []
        self.used: dict[str, set[Any]] = {}  # by the declarations' path: what their inline functions use

    def process_pxd(self, source: Any, scope: Any, name: str) -> Any:
        self.scopes.append(scope)
        before = self._take_used()
        result = super().process_pxd(source, scope, name)
        own = self.used[source.filename] = self._take_used()
        self._set_used(before | own)
        return result

    def keep(self, needed: set[str]) -> None:
        """Forget all other declarations; those that are kept still name what they name."""
        # What declarations bring with them, such as an include, goes into the C++ of whoever needs them.
        self.pxds = {name: read for name, read in self.pxds.items() if self.find_pxd_file(name) in needed}
        self._take_used()
        self._set_used(set().union(*(used for path, used in self.used.items() if path in needed)))

    def _take_used(self) -> set[Any]:
        taken = {entry for scope in self.scopes for entry in scope.entries.values() if entry.used}
        for entry in taken:
            entry.used = False
        return taken

    def _set_used(self, entries: set[Any]) -> None:
        for entry in entries:
            entry.used = True


def is_current(output: Path, sources: Iterable[str]) -> bool:
    """Return whether this version of Cython, and this program, would make the same again."""
    if not output.exists():
        return False
    with output.open() as file:
        if Cython.__version__ not in file.readline():
            return False
    made = output.stat().st_mtime
    return all(os.stat(source).st_mtime <= made for source in (*sources, __file__))


def name_of(source: Path) -> str:
    return ".".join(source.relative_to(Path.cwd()).with_suffix("").parts)


def transpile(source: Path, output: Path, needed: set[str], context: SharedContext) -> bool:
    """Make one module, in a process of its own; return whether it has no errors."""
    context.keep(needed)
    part = output.with_suffix(".part.cxx")  # what an interrupted build leaves must not seem to be made
    context.options = options = with_options(Path.cwd(), output_file=str(part))
    output.parent.mkdir(parents=True, exist_ok=True)
    began = time.time()
    if run_pipeline(str(source), options, name_of(source), context).num_errors:
        part.unlink(missing_ok=True)
        return False
    os.utime(part, (began, began))  # what is edited from now on is newer
    part.rename(output)
    return True


def in_processes(calls: Iterable[Callable[[], bool]]) -> bool:
    """Fork a process for each call, as many at once as there are cores; return whether all returned True."""
    failures = running = 0
    cores = len(os.sched_getaffinity(0))
    for call in calls:
        if running == cores:
            failures += os.wait()[1] != 0
            running -= 1
        if not os.fork():
            status = 1
            try:
                status = 0 if call() else 1
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        running += 1
    for _ in range(running):
        failures += os.wait()[1] != 0
    return not failures


def main(sources: str, package: str, output: str) -> bool:
    root, folder = Path(sources).resolve(), Path(output).resolve()
    os.chdir(root)  # the C++, and tracebacks, name sources as seen from there
    context = SharedContext.from_options(with_options(root))
    tree = create_dependency_tree(context)
    work = []
    for source in (root / package).rglob("*.pyx"):
        needed = tree.all_dependencies(str(source))
        made = folder / source.relative_to(root / package).with_suffix(".cxx")
        if not is_current(made, needed):
            work.append((source, made, needed))
    Errors.init_thread()
    Errors.open_listing_file(None, echo_to_stderr=True)
    for each in sorted(set().union(*(needed for _, _, needed in work))):
        if each.endswith(".pxd") and Path(each).is_relative_to(root):
            context.find_module(name_of(Path(each)))
    if Errors.get_errors_count():
        return False
    work.sort(key=lambda task: -task[0].stat().st_size)  # the longest first
    return in_processes(partial(transpile, *task, context) for task in work)


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
