"""The folder of compiled kernels: whose it must be, and what is taken from there."""

import os
import stat
import threading
import warnings

import pytest

from anabranch.kernels import _cache

KEY = "ab" + "c" * 62


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where kernels are kept; nobody has been warned of anything yet."""
    folder = tmp_path / "made" / "on the way"
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(folder))
    monkeypatch.setattr(_cache, "_warned", set())
    return folder


def entry(folder):
    return folder / "cpu" / KEY[:2] / KEY[2:]


def test_what_is_written_is_read(folder):
    assert _cache.read("cpu", KEY) is None
    assert not folder.exists()
    _cache.write("cpu", KEY, b"code")
    assert _cache.read("cpu", KEY) == b"code"
    assert _cache.read("cuda", KEY) is None
    for path in (folder.parent, folder, *folder.rglob("*")):
        assert not path.stat().st_mode & 0o077


def test_a_folder_that_a_link_leads_to_will_do(folder):
    (folder.parent.parent / "elsewhere").mkdir(mode=0o700)
    folder.parent.symlink_to("elsewhere")
    _cache.write("cpu", KEY, b"code")
    assert _cache.read("cpu", KEY) == b"code"
    assert (folder.parent.parent / "elsewhere" / folder.name / "cpu").is_dir()


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o777])
@pytest.mark.parametrize("which", ["chosen", "backend", "part"])
def test_a_folder_that_others_may_write_is_none(folder, which, mode):
    _cache.write("cpu", KEY, b"code")
    unsafe = {"chosen": folder, "backend": folder / "cpu", "part": entry(folder).parent}[which]
    unsafe.chmod(mode)
    with pytest.warns(
        RuntimeWarning, match=f"'{unsafe}' may be written by others.*chmod go-w.*ANABRANCH_CACHE_DIR"
    ) as told:
        assert _cache.read("cpu", KEY) is None
    assert told[0].filename == __file__
    entry(folder).unlink()
    _cache.write("cpu", KEY, b"code")  # without another warning, which would be an error here
    assert not entry(folder).exists()
    unsafe.chmod(0o755)
    _cache.write("cpu", KEY, b"code")
    assert _cache.read("cpu", KEY) == b"code"


def test_a_folder_of_another_user_is_none(folder, monkeypatch):
    _cache.write("cpu", KEY, b"code")
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(RuntimeWarning, match=f"belongs to user {owner}"):
        assert _cache.read("cpu", KEY) is None


def test_a_link_in_the_place_of_a_folder_is_not_followed(folder):
    _cache.write("cpu", KEY, b"code")
    (folder / "cpu").rename(folder / "moved")
    (folder / "cpu").symlink_to("moved")
    assert _cache.read("cpu", KEY) is None
    _cache.write("cpu", KEY, b"other")
    assert _cache.read("cpu", KEY) is None


def as_queue(path):
    os.mkfifo(path)


def as_link(path):
    (path.parent / "target").write_bytes(path.read_bytes() if path.exists() else b"")
    path.unlink(missing_ok=True)
    path.symlink_to("target")


def as_writable(path):
    path.write_bytes(b"")
    path.chmod(0o666)


@pytest.mark.parametrize("put", [as_queue, as_link, as_writable])
def test_what_is_no_file_of_ours_is_replaced(folder, put):
    _cache.write("cpu", KEY, b"code")
    if put is not as_link:
        entry(folder).unlink()
    put(entry(folder))
    assert _cache.read("cpu", KEY) is None
    _cache.write("cpu", KEY, b"new")
    assert _cache.read("cpu", KEY) == b"new"
    assert stat.S_IMODE(entry(folder).lstat().st_mode) == 0o600


def test_a_file_that_others_may_write_is_not_read(folder):
    _cache.write("cpu", KEY, b"code")
    entry(folder).chmod(0o660)
    assert _cache.read("cpu", KEY) is None


def test_a_folder_in_the_place_of_an_entry_stays(folder):
    _cache.write("cpu", KEY, b"code")
    entry(folder).unlink()
    entry(folder).mkdir()
    open_before = set(os.listdir("/proc/self/fd"))
    assert _cache.read("cpu", KEY) is None
    _cache.write("cpu", KEY, b"code")
    assert entry(folder).is_dir()
    assert [path.name for path in entry(folder).parent.iterdir()] == [KEY[2:]]
    assert set(os.listdir("/proc/self/fd")) == open_before


@pytest.mark.parametrize(
    "change", [lambda raw: raw[:-1], lambda raw: b"", lambda raw: raw[:40], lambda raw: raw + b"x"]
)
def test_a_damaged_entry_is_none(folder, change):
    _cache.write("cpu", KEY, b"code")
    entry(folder).write_bytes(change(entry(folder).read_bytes()))
    assert _cache.read("cpu", KEY) is None


def test_a_folder_that_cannot_be_made_is_none(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path / "file" / "within"))
    _cache.write("cpu", KEY, b"code")
    assert _cache.read("cpu", KEY) is None


def test_an_unsafe_folder_is_told_of_once_by_threads(folder, in_threads):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    lock, told = threading.Lock(), []

    def show(message, *_, **__):
        with lock:
            told.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        in_threads(4, lambda _: [_cache.read("cpu", KEY), _cache.write("cpu", KEY, b"")])
    assert len(told) == 1


SCRIPT = """
import warnings
import anabranch as ab
from anabranch.kernels import _cpu

@ab.kernel
def kernel(i, y: ab.Out):
    y[i] = i + 1

y = ab.zeros(3, "float32", device="cpu:0")
ab.launch(kernel, 3, y)
print(y.numpy(), _cpu.compilations)
"""


@pytest.mark.numba
def test_a_launch_takes_no_notice_of_a_queue_or_a_link(folder, run_python):
    env = {"ANABRANCH_DEVICE": "cpu"}
    assert run_python(SCRIPT, env=env) == "[1. 2. 3.] 1\n"
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    path.unlink()
    os.mkfifo(path)
    assert run_python(SCRIPT, env=env) == "[1. 2. 3.] 1\n"
    assert run_python(SCRIPT, env=env) == "[1. 2. 3.] 0\n"
