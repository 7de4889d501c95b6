"""The line on a terminal while a kernel compiles."""

import io
import sys
import threading

import pytest

import anabranch as ab
from anabranch.kernels import _progress

pytestmark = pytest.mark.thread_unsafe


class Terminal(io.StringIO):
    def __init__(self, is_terminal=True):
        super().__init__()
        self.is_terminal = is_terminal
        self.written = threading.Event()

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        super().write(text)
        self.written.set()


def test_a_long_compilation_is_told_and_its_line_goes(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with _progress.told("smooth", patience=0):
        assert terminal.written.wait(30)
        assert terminal.getvalue() == "compiling kernel 'smooth' ..."
    assert terminal.getvalue() == "compiling kernel 'smooth' ...\r\x1b[K"


def test_a_short_one_is_not_told(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with _progress.told("smooth", patience=1000):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("other", [Terminal(is_terminal=False), None])
def test_what_is_no_terminal_gets_nothing(monkeypatch, other):
    monkeypatch.setattr(sys, "stderr", other)
    threads = threading.active_count()
    with _progress.told("smooth", patience=0):
        assert threading.active_count() == threads
    assert other is None or other.getvalue() == ""


@pytest.mark.numba
def test_a_launch_tells_of_the_kernel_that_it_compiles(monkeypatch, tmp_path):
    told = []
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_progress, "threading", recording := type("Recording", (), dict(vars(threading))))
    recording.Timer = lambda seconds, show: told.append(seconds) or threading.Timer(1000, show)
    monkeypatch.setattr(sys, "stderr", Terminal())

    @ab.kernel
    def fresh(i, x):
        x[i] = 1

    for size in 2, 3:
        ab.launch(fresh, size, ab.zeros(3, device="cpu"))
    assert told == [_progress.PATIENCE]
