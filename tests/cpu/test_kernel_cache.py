"""The folder of compiled kernels: whose it must be, and that what is found there is looked over before it is used."""

import os
import stat
import struct
import threading
import warnings

import pytest

import anabranch as ab
from anabranch._launch.target import Target
from anabranch.kernels import _cache
from anabranch.kernels._cpu import compiler

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


ARRAY = ("array", "float32", 1, True, False)

# Nothing that is stored passes for code: not even with a checksum that fits.
SCRIPT = """
import warnings
import anabranch as ab
from anabranch.kernels._cpu import compiler

@ab.kernel
def kernel(i, y: ab.Out):
    y[i] = i + 1

y = ab.zeros(3, "float32", device="cpu:0")
ab.launch(kernel, 3, y)
print(y.numpy(), compiler.compilations)
"""


def contents(good):
    """What may lie behind a valid header; `good` is what belongs there."""
    head, _, code = good.partition(b"\n")
    yield from (b"", b"\0" * 200, b"\x7fELF" * 50, b"[]", b"[]\n", b"[1]\n" + code, b"[[0, 1e9, 2, 3, 4]]\n" + code)
    yield b'[[99, 0, "", "", -1]]\n' + code
    yield b"[" * 100_000 + b"\n" + code
    yield from (head + b"\n" + code[:size] for size in (0, 10, 64, 100, len(code) // 2, len(code) - 1))
    yield head + b"\n" + code[:40] + b"\xff" * 8 + code[48:]


@pytest.mark.numba
def test_what_does_not_parse_is_compiled_anew(folder, run_python, monkeypatch):
    env = {"ANABRANCH_DEVICE": "cpu"}
    assert run_python(SCRIPT, env=env) == "[1. 2. 3.] 1\n"
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    key = path.parent.name + path.name
    good = _cache.read("cpu", key)
    assert run_python(SCRIPT, env=env) == "[1. 2. 3.] 0\n"

    @ab.kernel
    def kernel(i, y: ab.Out):
        y[i] = i + 1

    monkeypatch.setattr(compiler, "_key", lambda *_: key)
    for bad in contents(good):
        _cache.write("cpu", key, bad)
        before = compiler.compilations
        assert ab.kernel(kernel._function).compile_cpu((1, (ARRAY,))).address
        assert compiler.compilations == before + 1
        assert _cache.read("cpu", key) != bad


def test_what_does_not_parse_for_cuda_is_compiled_anew(folder, monkeypatch):
    pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
    from anabranch.kernels._cuda import compiler

    @ab.kernel
    def kernel(i, y: ab.Out):
        y[i] = i + 1

    def compiled():
        return ab.kernel(kernel._function).compile_cuda((1, (ARRAY,)), Target((9, 0)))

    good = compiled()
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    key = path.parent.name + path.name
    stored = _cache.read("cuda", key)
    head, spots, image = stored.split(b"\n", 2)
    assert compiled() == good
    changed = bytearray(image)
    changed[struct.unpack_from("<Q", image, 40)[0] + 64 + 32] ^= 0xFF  # the size of a section
    bad = [b"", b"\n", head, head + b"\n" + spots, b"[[7777], false]\n" + spots + b"\n" + image]
    bad += [
        b"[[[0]], false]\n" + spots + b"\n" + image,
        b"{}\n" + spots + b"\n" + image,
        b"[" * 100_000 + b"\n" + stored,
    ]
    bad += [head + b"\n" + spots + b"\n" + code for code in (image[:-1], image[: len(image) // 2], bytes(changed))]
    done = []
    monkeypatch.setattr(compiler, "_compile", lambda *_: done.append(1) or (good, []))
    for entry in bad:
        _cache.write("cuda", key, entry)
        assert compiled() == good
    assert len(done) == len(bad)


@pytest.mark.numba
def test_a_launch_takes_no_notice_of_a_queue_or_a_link(folder, run_python):
    env = {"ANABRANCH_DEVICE": "cpu"}
    assert run_python(SCRIPT, env=env) == "[1. 2. 3.] 1\n"
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    path.unlink()
    os.mkfifo(path)
    assert run_python(SCRIPT, env=env) == "[1. 2. 3.] 1\n"
    assert run_python(SCRIPT, env=env) == "[1. 2. 3.] 0\n"
