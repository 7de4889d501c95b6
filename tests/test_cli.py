"""The command line. Each test in a process of its own."""

from __future__ import annotations

import io
import re
import signal
import sys
import sysconfig
from importlib.metadata import entry_points, version
from pathlib import Path
from textwrap import dedent

import pytest

from .command_line import OURS, altered, anabranch, start

# Plain Python, in a process for each test.
pytestmark = pytest.mark.source


def rows(text):
    """Return the cells of plain tables, which have two spaces or more between them."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines() if line.strip()]


# -- what there is --


def test_the_package_installs_the_command():
    (entry,) = [entry for entry in entry_points(group="console_scripts") if entry.name == "anabranch"]
    assert entry.value == "anabranch.cli:main"


def test_arguments_that_are_too_many_are_an_error_of_the_command():
    result = anabranch("info", "extra", "--more")
    assert result.returncode == 2
    assert "usage: anabranch info" in result.stderr
    assert "anabranch info: error: unrecognized arguments: extra --more" in result.stderr


def test_run_without_a_script_asks_for_the_script_only():
    result = anabranch("run", "--stats")
    assert result.returncode == 2
    assert result.stderr.endswith("arguments are required: SCRIPT\n")


@pytest.mark.parametrize("arguments", [["--help"], []], ids=["help", "nothing"])
def test_help_names_every_command(arguments):
    result = anabranch(*arguments)
    assert {"info", "doctor", "run", "demo", "bench"} <= set(re.findall(r"\w+", result.stdout + result.stderr))


@pytest.mark.parametrize("command", ["info", "run"])
def test_every_command_has_help(command):
    result = anabranch(command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"anabranch {command}" in result.stdout


def test_an_unknown_command_is_an_error():
    result = anabranch("swim")
    assert result.returncode == 2
    assert "swim" in result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["info"], ["run", "nothing.py"]])
def test_the_command_line_needs_no_package_but_ours(arguments, script, tmp_path):
    script("print(1)", "nothing.py")
    with_all = start(*OURS, *arguments, cwd=tmp_path)
    code = "import sys, runpy; sys.modules.update(dict.fromkeys(['typer', 'click', 'rich', 'perfetto', 'numba']))"
    code += f"; sys.argv = ['anabranch', *{arguments}]; runpy.run_module('anabranch', run_name='__main__')"
    result = start(sys.executable, "-c", code, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == with_all.stdout


def test_the_version_is_that_of_the_package():
    import anabranch as ab

    assert ab.__version__ == version("anabranch")
    assert anabranch("--version").stdout == f"anabranch {version('anabranch')}\n"


def test_importing_reads_no_version():
    code = "import sys, anabranch; print('importlib.metadata' in sys.modules, hasattr(anabranch, 'no_such_name'))"
    before = start(sys.executable, "-c", "import sys; print('importlib.metadata' in sys.modules)").stdout.strip()
    assert start(sys.executable, "-c", code).stdout == f"{before} False\n"


# -- info --


def test_info_shows_versions():
    table = rows(anabranch("info").stdout)
    lock = "off" if hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled() else "on"
    assert ["python", f"{sys.version.split()[0]}, interpreter lock {lock}"] in table
    assert ["anabranch", version("anabranch")] in table
    assert ["numpy", version("numpy")] in table
    assert {"numba", "numba-cuda-mlir", "cuda-core"} <= {row[0] for row in table}


def test_info_says_why_there_is_no_gpu():
    result = anabranch("info", env={"CUDA_VISIBLE_DEVICES": "", "ANABRANCH_DEVICE": "cpu"})
    assert (result.returncode, result.stderr) == (0, "")
    assert re.search(r'no device "cuda:0"; there are .*; the CUDA driver .*', result.stdout)


def test_info_imports_neither_numpy_nor_numba():
    preparation = "import atexit\natexit.register(lambda: print({'numpy', 'numba'} & set(sys.modules)))"
    assert altered(preparation, "info").stdout.endswith("set()\n")


def test_info_shows_devices():
    result = anabranch("info", env={"ANABRANCH_CPU_DEVICES": "2", "ANABRANCH_CPU_WORKERS": "3"})
    assert (result.returncode, result.stderr) == (0, "")
    devices = [row for row in rows(result.stdout) if row[0].startswith("cpu:")]
    assert [row[0] for row in devices] == ["cpu:0", "cpu:1"]
    for _, name, workers, memory, priorities in devices:
        assert name
        assert workers == "3"
        assert re.fullmatch(r"\d+\.\d of \d+\.\d GiB free", memory)
        assert priorities == "0 to -1"


def test_info_shows_the_variables_in_force():
    variables = {"ANABRANCH_CPU_DEVICES": "2", "ANABRANCH_DEVICE": "cpu:1"}
    table = rows(anabranch("info", env=variables).stdout)
    assert [row for row in table if row[0].startswith("ANABRANCH")] == [list(pair) for pair in variables.items()]
    assert ["device", "cpu:1", "ANABRANCH_DEVICE"] in table
    assert ["none is set"] in rows(anabranch("info").stdout)


@pytest.mark.parametrize(("value", "kind"), [("0", "legacy"), ("1", "per-thread")])
def test_info_says_why_the_default_stream_is_what_it_is(value, kind):
    name = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"
    assert ["stream", kind, f"{name}={value}"] in rows(anabranch("info", env={name: value}).stdout)


def test_info_says_which_build_of_python_makes_a_stream_the_default():
    (row,) = [row for row in rows(anabranch("info").stdout) if row[0] == "stream" and len(row) == 3]
    assert row[1] == ("per-thread" if sysconfig.get_config_var("Py_GIL_DISABLED") else "legacy")
    assert "Python" in row[2]


@pytest.mark.parametrize(("name", "value"), [("ANABRANCH_CPU_WORKERS", "many"), ("ANABRANCH_DEVICE", "cuda:7")])
def test_info_shows_what_it_can_when_no_device_can_be_used(name, value):
    result = anabranch("info", env={name: value})
    assert result.returncode == 1
    assert [name, value] in rows(result.stdout)
    assert result.stderr.startswith("No device can be used: ")
    assert value in result.stderr


# -- run: as python itself --

SCRIPTS = {
    "values": "import sys; print(__name__, __file__, __package__, __spec__, __cached__, sys.argv, sys.path[0])",
    "neighbour": "import beside; print(beside.answer)",
    "exit_code": "raise SystemExit(3)",
    "exit_message": "import sys; sys.exit('enough')",
    "exit_at_once": "import os; os._exit(7)",
    "exception": "def f():\n    1 / 0\n\nf()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    [][0]",
    "group": "raise ExceptionGroup('both', [ValueError(1), KeyError(2)])",
    "syntax": "x = = 1",
    "interrupt": "raise KeyboardInterrupt",
    "end_of_file": "raise EOFError",
    "broken_pipe": "import errno; raise OSError(errno.EPIPE, 'broken')",
    "latin1": "# coding: latin-1\nprint(ascii('\N{LATIN SMALL LETTER E WITH ACUTE}'))",
    "own_hook": "import sys\nsys.excepthook = lambda kind, error, trace: print(kind, trace.tb_lineno)\n1 / 0",
    "at_exit": "import atexit\nclass C: pass\natexit.register(lambda: print(__import__('__main__').C))\nprint(C)",
    "pickle": "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))))",
    "thread": "import threading\nthread = threading.Thread(target=lambda: print(1))\nthread.start()",
    "warning": "import warnings; warnings.warn('careful')",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_run_does_what_python_does(name, script):
    path = script(SCRIPTS[name])
    script("answer = 42", "beside.py")
    arguments = [path, "--stats", "-x", "--", "--help", "é", "--"]
    python, ours = start(sys.executable, *arguments), anabranch("run", *arguments)
    assert (ours.returncode, ours.stdout, ours.stderr) == (python.returncode, python.stdout, python.stderr)


def test_an_interrupted_script_ends_as_one_of_python(script):
    assert anabranch("run", script("raise KeyboardInterrupt")).returncode == -signal.SIGINT


def test_run_takes_a_relative_path_and_a_link(script, tmp_path):
    script("import sys; print(sys.argv[0], __file__, sys.path[0])", "folder/real.py")
    (tmp_path / "link.py").symlink_to("folder/real.py")
    for path in "link.py", "./folder/../link.py", "folder/real.py":
        assert anabranch("run", path, cwd=tmp_path).stdout == start(sys.executable, path, cwd=tmp_path).stdout


def test_run_respects_a_safe_path(script):
    path, env = script("import sys; print(sys.path[0])"), {"PYTHONSAFEPATH": "1"}
    assert anabranch("run", path, env=env).stdout == start(sys.executable, path, env=env).stdout


@pytest.mark.parametrize("path", ["missing.py", "."])
def test_a_script_that_is_no_file_is_an_error(path, tmp_path):
    result = anabranch("run", path, cwd=tmp_path)
    assert result.returncode == 2
    assert f"there is no file '{path}'" in result.stderr


# -- run --stats --

TWO_STREAMS = """
    import atexit
    import sys
    import anabranch as ab

    atexit.register(print, "the script's last words", file=sys.stderr)
    first, second = ab.Stream(name="first"), ab.Stream(name="second")
    for stream, times in (first, 3), (second, 5):
        with stream:
            array = ab.array([0.0] * 100_000)
            for _ in range(times):
                ab.fill(array, 1)
    first.synchronize()
    first.close()
    second.synchronize()
    """


def reported(text):
    """Return operations and milliseconds by stream."""
    table = rows(text)
    assert table[0] == ["device", "stream", "operations", "busy"]
    return {stream: (int(operations), float(busy.removesuffix(" ms"))) for _, stream, operations, busy in table[1:]}


def test_stats_tell_what_each_stream_did(script):
    result = anabranch("run", "--stats", script(TWO_STREAMS), "--no-option-of-ours")
    assert (result.returncode, result.stdout) == (0, "")
    last_words, report = result.stderr.split("\n", 1)
    assert last_words == "the script's last words"
    streams = reported(report)
    assert (streams["first"][0], streams["second"][0]) == (3, 5)
    assert all(busy > 0 for _, busy in streams.values())


@pytest.mark.parametrize("end", ["raise SystemExit(4)", "1 / 0"])
def test_stats_come_however_the_script_ends(end, script):
    result = anabranch("run", "--stats", script(dedent(TWO_STREAMS) + end))
    assert result.returncode == (4 if "4" in end else 1)
    assert reported(result.stderr[result.stderr.index("device") :])["second"][0] == 5


def test_stats_of_a_stream_whose_name_is_no_text(script):
    text = r"""
        import anabranch as ab
        with ab.Stream(name="a\udcff") as stream:
            ab.fill(ab.zeros(10), 1)
            stream.synchronize()
        """
    assert reported(anabranch("run", "--stats", script(text)).stderr)[r"a\udcff"][0] == 2


def test_stats_of_many_streams_are_summed_up(script):
    text = """
        import anabranch as ab
        for number in range(30):
            with ab.Stream(name=f"stream {number}") as stream:
                ab.fill(ab.array([0.0] * 10), 1)
                stream.synchronize()
        """
    streams = reported(anabranch("run", "--stats", script(text)).stderr)
    assert streams["10 others"][0] == 10
    assert len(streams) == 21


def test_stats_of_a_script_that_used_no_stream(script):
    result = anabranch("run", "--stats", script(""))
    assert rows(result.stderr)[1:] == [["none was used", "0", "0.000 ms"]]


def test_a_forked_child_reports_nothing(script):
    text = """
        import os
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        """
    assert anabranch("run", "--stats", script(text)).stderr.count("operations") == 1


# -- demo and bench; what the demo does is in test_examples.py --


def test_demo_says_what_to_install():
    result = altered("sys.modules['PIL'] = sys.modules['skimage'] = None", "demo")
    assert result.returncode == 1
    assert re.fullmatch(
        r"The demo needs (\w+, )*PIL, (\w+, )*skimage: pip install 'anabranch\[demo\]'\n", result.stderr
    )


def test_bench_says_where_benchmarks_are():
    preparation = "import pathlib; from anabranch.cli import _commands; _commands.BENCHMARKS = pathlib.Path('nowhere')"
    result = altered(preparation, "bench")
    assert result.returncode == 1
    assert "The benchmarks come with the source" in result.stderr

    result = altered(preparation, "bench", "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert "come with the source" in result.stdout


def test_bench_runs_the_benchmarks_of_a_checkout(script):
    path = script("import sys; print(sys.argv)", "compare.py")
    preparation = f"import pathlib; from anabranch.cli import _commands; _commands.BENCHMARKS = pathlib.Path({path!r})"
    result = altered(preparation, "bench", "--quick", "x", "--help")
    assert result.stdout == "['anabranch bench', '--quick', 'x', '--help']\n"


def test_tables_in_a_terminal_have_the_same_content():
    pytest.importorskip("rich", reason="rich is not installed, and it draws the tables")
    from anabranch.cli._table import show

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    show(["device", "name"], [("cpu:0", "[bold]x[/bold]"), ("cpu:1", "")], terminal)
    plain = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())
    assert rows(plain) == [["device", "name"], ["cpu:0", "[bold]x[/bold]"], ["cpu:1"]]


def test_the_commands_find_their_programs():
    import anabranch as ab
    from anabranch.cli._commands import BENCHMARKS, DEMO

    root = Path(__file__).parents[1]
    assert DEMO.read_text() == (root / "examples" / "photo_pipeline.py").read_text()
    # From the package in src, that is the checkout's; tests may run on a copy of it.
    place = BENCHMARKS.relative_to(Path(ab.__file__).resolve().parents[2])
    assert (root / place).is_file()
