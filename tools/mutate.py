"""Plant bugs in the hazard engine, in captures and in replays, one at a time, and see whether the tests notice.

Works in copies of the repository below build/, of which each bug builds again what it changes. The random programs run
first; what they miss the engine's other tests may notice. Then random programs are explored, whoever has noticed, so
that the report says which bugs it finds, and which it alone does. A test that hangs or crashes has noticed, too.

    make mutate, or
    .venv/bin/python tools/mutate.py [--only random|exploration] [--workers N] [--list] [PART OF FILE OR BUG]...

The bugs are in mutations.txt. The exit status is 0 if each was noticed, or is declared there to change nothing.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
COPIES = ROOT / "build" / "mutate"  # one for each worker
CORE_TESTS = [
    *("hazard_clock_test", "hazard_history_test", "hazard_hazard_test", "hazard_shared_stream_test"),
    *("hazard_submission_test", "memory_copy_path_test", "memory_layout_test", "graph_graph_test"),
    *("cpu_contract_test", "cpu_graph_test", "cpu_replay_test", "cpu_random_graph_test", "cuda_legacy_test_simulated"),
    "cuda_graph_update_test_simulated",
]
# Tests that ANABRANCH_EXAMPLES makes run as many programs, the same each time.
RANDOM_TESTS = [
    "tests/hazards/test_random_auto.py",
    "tests/hazards/test_random_check.py::test_a_race_is_raised_exactly_where_there_is_one",
    "tests/hazards/test_random_check.py::test_with_modes_that_change_nothing_wrong_is_reported",
    "tests/hazards/test_random_check.py::test_auto_comes_after_what_was_off",
    "tests/hazards/test_random_graph.py",
]
CONTRACT_TESTS = ["tests/contract/hazards", "tests/contract/graphs", "tests/contract/stream/test_errors_async.py"]
EXPLORATION_TESTS = [
    "tests/explore/test_classes.py::test_with_added_order_only_the_answers_differ",
    "tests/explore/test_classes.py::test_a_failure_is_found_where_a_class_has_it",
    "tests/explore/test_hazard_programs.py",
]
OTHER_TESTS = [["tests/hazards/test_waits.py"], ["tests/hazards/test_random_check.py"], CONTRACT_TESTS]
TESTS_FAILED = 1  # what pytest returns then; other positive numbers mean that it could not run them


@dataclass(eq=False)
class Mutation:
    """A text of a file that is replaced by another."""

    file: str
    breaks: str
    by: list[str] = field(default_factory=list)  # all sources that call what changes in a header; none: not known
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    equivalent: str = ""  # why nobody can notice

    def __str__(self) -> str:
        return f"{Path(self.file).name}: {self.breaks}"

    def planted(self, text: str) -> str:
        """Return a file's text with the bug in it; how the file breaks and indents its lines does not matter."""
        found = list(re.finditer(same_tokens("\n".join(self.old)), text))
        if len(found) != 1:
            raise SystemExit(f"{self}: its text is in {self.file} {len(found)} times")
        start, end = found[0].span()
        # All lines but the first are indented as in the file, which may have moved them since.
        moved = 0
        if len(self.old) > 1 and "\n" in found[0][0]:
            moved = depth(found[0][0].split("\n")[1]) - depth(self.old[1])
        first, *others = self.new or [""]
        lines = [first.lstrip(), *(" " * (depth(line) + moved) + line.lstrip() for line in others)]
        return text[:start] + "\n".join(lines) + text[end:]


def depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def same_tokens(text: str) -> str:
    """Return a pattern that finds a text's tokens, whatever space is between them."""
    pattern = r"\s*".join(re.escape(token) for token in re.findall(r"\w+|[^\w\s]", text))
    pattern = re.sub(r"(?<=\w)\\s\*(?=\w)", r"\\s+", pattern)  # two words stay two
    return (r"\b" if text.lstrip()[0].isalnum() else "") + pattern


def read_mutations() -> list[Mutation]:
    mutations: list[Mutation] = []
    file, by = "", list[str]()
    for number, line in enumerate(Path(__file__).with_name("mutations.txt").read_text().splitlines(), 1):
        indent, text = depth(line), line.strip()
        if not text or text.startswith("#"):
            continue
        if indent == 0:
            file, *by = text.replace(" by ", " ").split()
        elif indent == 2:
            mutations.append(Mutation(file, text, by))
        elif indent == 4 and text[0] in "-+":
            (mutations[-1].old if text[0] == "-" else mutations[-1].new).append(line[6:])
        elif indent == 4 and text[0] == "=":
            mutations[-1].equivalent = text[2:]
        else:
            raise SystemExit(f"mutations.txt:{number} is none of what the file is made of")
    return mutations


class Copy:
    """The repository as it is now, built without optimizations that take long, and its tests.

    Parameters
    ----------
    folder : Path
        Where it is kept from one run to the next.
    programs : int
        Random programs of each kind.
    jobs : int
        Compilers to run at a time.
    """

    def __init__(self, folder: Path, programs: int, jobs: int) -> None:
        self.folder = folder
        self.programs = programs
        self.jobs = jobs
        self.limits: dict[str, float] = {}
        folder.mkdir(parents=True, exist_ok=True)
        tracked = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        names = {name for name in tracked.stdout.split("\0") if name and (ROOT / name).is_file()}
        for name in names:
            self.write(name, (ROOT / name).read_bytes())
        for part in ("core", "src", "tests"):
            for path in (folder / part).rglob("*.[chp]*"):
                if path.is_file() and str(path.relative_to(folder)) not in names:
                    path.unlink()
        python = ["-DSKBUILD=2", f"-DPython_EXECUTABLE={sys.executable}"]
        for part, options in (("core", []), ("package", python)):
            flags = [
                "-DCMAKE_BUILD_TYPE=Release",
                "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -w",
                "-DANABRANCH_UNITY=OFF",
                "--log-level=WARNING",
            ]
            self.must("cmake", "-S", ".", "-B", f"build/{part}", "-G", "Ninja", *flags, *options)

    def run(self, command: Sequence[str], limit: float, **environment: str) -> int | None:
        """Run in the copy, silently; the exit status, or None if it took too long."""
        with (self.folder / "log").open("w") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                # With all that it has started. One that is through has no group any more.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def must(self, *command: str) -> None:
        """Run what has to succeed."""
        if self.run(command, 1800) != 0:
            self.stop(" ".join(command))

    def stop(self, why: str) -> NoReturn:
        """End the program, with the end of the log."""
        raise SystemExit(f"{why}:\n{(self.folder / 'log').read_text()[-4000:]}")

    def write(self, name: str, content: bytes) -> None:
        # What does not change is not built again.
        path = self.folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def replace(self, mutation: Mutation, text: str) -> None:
        """Put a text in a mutation's file; what has to be built again is found by the times of files."""
        path = self.folder / mutation.file
        before = path.stat()
        path.write_text(text)
        if mutation.by:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            for name in mutation.by:
                (self.folder / name).touch()

    def fails(self, name: str, command: list[str], failures: tuple[int, ...] | None, **environment: str) -> bool:
        """Tell whether a test fails; without a bug, how long that takes is measured."""
        begin = time.monotonic()
        status = self.run(command, self.limits.get(name, 1800), **environment)
        self.limits.setdefault(name, 3 * (time.monotonic() - begin) + 10)
        if status is not None and status > 0 and failures is not None and status not in failures:
            self.stop(" ".join(command))
        return status != 0

    def pytest_fails(self, name: str, *arguments: str, programs: int | None = None) -> bool:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
        return self.fails(
            name,
            command,
            (TESTS_FAILED,),
            ANABRANCH_DEVICE="cpu",
            ANABRANCH_CPU_DEVICES="3",
            ANABRANCH_EXAMPLES=str(self.programs if programs is None else programs),
            ANABRANCH_FIRST_SEED="0",
            # The package that is installed for development must not be found, nor built.
            SKBUILD_EDITABLE_SKIP=":".join(map(str, (ROOT / "build").glob("editable-*"))),
            PYTHONPATH=str(self.folder / "src"),
        )

    def build(self) -> None:
        """Build what changed of the package."""
        self.compile("package")
        self.must("cmake", "--install", "build/package", "--prefix", "src")

    def compile(self, part: str, *targets: str) -> None:
        chosen = ["--target", *targets] if targets else []
        self.must("cmake", "--build", f"build/{part}", "--parallel", str(self.jobs), *chosen)

    def exploration_fails(self) -> bool:
        # A program is run once for each of its classes.
        return self.pytest_fails("exploration", *EXPLORATION_TESTS, programs=max(self.programs // 16, 1))

    def noticed_by(self, only_random: bool) -> str:
        """Return what noticed a bug first, exploration left out, or nothing."""
        if self.pytest_fails("random programs", *RANDOM_TESTS):
            return "random programs"
        if only_random:
            return ""
        targets = [name.removesuffix("_simulated") for name in CORE_TESTS]
        self.compile("core", *targets, "simulated_driver")
        for name in CORE_TESTS:
            if self.fails(name, ["ctest", "--test-dir", "build/core", "--no-tests=error", "-R", f"^{name}$"], None):
                return name
        deselected = [part for test in RANDOM_TESTS for part in ("--deselect", test)]
        for files in OTHER_TESTS:
            if self.pytest_fails(files[0], *files, *deselected):
                return files[0]
        return ""

    def test(self, only: str) -> tuple[str, bool]:
        """Build, and return what noticed a bug first, exploration left out, and whether exploration has."""
        self.build()
        by = "" if only == "exploration" else self.noticed_by(only == "random")
        return by, only != "random" and self.exploration_fails()

    def plant(self, mutation: Mutation, only: str) -> tuple[str, bool]:
        """Test with a bug."""
        original = (ROOT / mutation.file).read_text()
        self.replace(mutation, mutation.planted(original))
        try:
            return self.test(only)
        finally:
            self.replace(mutation, original)


def mutate(chosen: list[Mutation], workers: int, programs: int, only: str) -> bool:
    noticed: dict[Mutation, str] = {}  # by what first, exploration left out
    explored: list[Mutation] = []  # noticed by exploration
    jobs = max((os.cpu_count() or 1) // workers, 1)
    idle: SimpleQueue[Copy] = SimpleQueue()

    def prepare(number: int) -> None:
        copy = Copy(COPIES / str(number), programs, jobs)
        by, by_exploration = copy.test(only)
        if by or by_exploration:
            copy.stop(f"without a bug {by or 'exploration'} failed")
        idle.put(copy)

    def plant(mutation: Mutation) -> None:
        copy = idle.get()
        begin = time.monotonic()
        try:
            noticed[mutation], by_exploration = copy.plant(mutation, only)
        finally:
            idle.put(copy)
        if by_exploration:
            explored.append(mutation)
        by = noticed[mutation] or ("" if by_exploration else "NOBODY")
        too = "and exploration" if by_exploration else ""
        print(f"{by:>25} {too:15}  {mutation}  ({time.monotonic() - begin:.0f} s)", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(prepare, range(workers)))
        list(pool.map(plant, chosen))
    return report(chosen, noticed, explored, only)


def report(chosen: list[Mutation], noticed: dict[Mutation, str], explored: list[Mutation], only: str) -> bool:
    """Print who noticed how many; return whether all is as it should be."""
    real = [each for each in chosen if not each.equivalent]
    seen = {each for each in chosen if noticed[each] or each in explored}
    if only != "exploration":
        by_programs = sum(noticed[each] == "random programs" for each in real)
        print(f"the random programs alone noticed {by_programs} of {len(real)}")
    if only != "random":
        print(f"exploration alone noticed {sum(each in explored for each in real)} of {len(real)}")
    if not only:
        print(f"noticed {sum(each in seen for each in real)} of {len(real)}")
        for each in explored:
            if not noticed[each]:
                print(f"noticed by exploration and by nothing else: {each}")
    survivors = [each for each in real if each not in seen]
    mistaken = [each for each in chosen if each.equivalent and each in seen]
    for each in survivors:
        print(f"survived: {each}")
    for each in mistaken:
        print(f"noticed, though it is declared to change nothing: {each}")
    return not survivors and not mistaken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="only those whose file or description contains one of these")
    parser.add_argument("--only", choices=["random", "exploration"], help="run these random programs alone")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="bugs to test at a time, each in a copy of its own"
    )
    parser.add_argument("--list", action="store_true", help="say which bugs there are, and run nothing")
    parser.add_argument("--programs", type=int, default=8000, help="random programs of each kind")
    options = parser.parse_args()
    parts = options.parts or [""]
    chosen = [each for each in read_mutations() if any(part in f"{each.file}: {each.breaks}" for part in parts)]
    for each in chosen:
        each.planted((ROOT / each.file).read_text())
    if options.list:
        for each in chosen:
            print(each, f"(changes nothing: {each.equivalent})" if each.equivalent else "")
        return 0
    return 0 if mutate(chosen, options.workers, options.programs, options.only or "") else 1


if __name__ == "__main__":
    sys.exit(main())
