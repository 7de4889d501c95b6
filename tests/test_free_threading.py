"""On a free-threaded interpreter nothing that Anabranch loads may switch the interpreter lock back on."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import pytest

import anabranch as ab

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
PACKAGE = Path(__file__).parents[1] / "src" / "anabranch"
SOURCES = [file.relative_to(PACKAGE).with_suffix("") for file in PACKAGE.rglob("*.pyx")]
MODULES = sorted(".".join(("anabranch", *source.parts)) for source in SOURCES)


without_lock = pytest.mark.skipif(not FREE_THREADED, reason="this interpreter always has its lock")


@without_lock
def test_no_module_switches_the_lock_on() -> None:
    code = f"import sys, numpy, anabranch, {', '.join(MODULES)}; print(sys._is_gil_enabled())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
    assert not sys._is_gil_enabled()


def is_counted(thing: object) -> bool:
    # CPython shows this count of what is never freed.
    return sys.getrefcount(thing) < 2**32 - 1


@without_lock
@pytest.mark.parametrize("name", [name for name in ab.__all__ if not isinstance(getattr(ab, name), str)])
def test_what_all_threads_name_is_not_counted(name: str) -> None:
    assert not is_counted(getattr(ab, name))


@without_lock
def test_devices_and_their_default_streams_are_not_counted() -> None:
    for device in ab.devices():
        assert not is_counted(device)
        assert not is_counted(ab.legacy_stream(device))
        assert not is_counted(ab.per_thread_stream(device))
    assert is_counted(ab.Stream())


@without_lock
def test_a_kernel_is_not_counted_from_when_a_second_thread_launches_it() -> None:
    @ab.kernel
    def nothing(i, source: ab.In):  # type: ignore[no-untyped-def]
        pass

    def launch() -> None:
        # No index: nothing is run, but the launch is checked and its kernel compiled as any.
        ab.launch(nothing, 0, ab.zeros(1, device="cpu"))

    class Compiled:
        address, keepalive, places, block = 1, None, (), ()

    nothing.compile_cpu = lambda signature, checked: Compiled  # type: ignore[assignment, method-assign]
    launch()
    assert is_counted(nothing)
    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    assert not is_counted(nothing)
