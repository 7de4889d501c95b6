"""Compiled kernels on disk, shared by processes.

Each kernel and signature has one file, whose name covers everything that decides its contents. An entry is therefore
never stale and needs neither an index nor a lock. A file is written under a temporary name and then renamed. Its
checksum guards against accidents; permissions guard against other users: entries are regular files of this user, in
folders of this user that nobody else may write. Without such a folder there is no cache, and a warning says so. A
folder that cannot be read or written disables the cache silently.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from anabranch._task.site import is_own

_MAGIC: Final = b"anabranch kernel 1\n"
_CHECKSUM_BYTES: Final = 32
_MAX_BYTES: Final = 1 << 28
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A FIFO in an entry's place would block the launch, and a link could lead elsewhere.
_ENTRY: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_ENTRY: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

_warning: Final = threading.Lock()
_warned: Final[set[str]] = set()


class _UnsafeError(Exception):
    """Other users may have written what was found. The message names it and the reason."""


def directory() -> Path:
    """Return the folder of compiled kernels, which need not exist.

    ``ANABRANCH_CACHE_DIR``, else ``$XDG_CACHE_HOME/anabranch``, else ``~/.cache/anabranch``.
    """
    chosen = os.environ.get("ANABRANCH_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "anabranch"


def read(backend: str, key: str) -> bytes | None:
    """Return the data stored under `key`, or None if there is none that is usable."""
    try:
        with _folder(backend, key, create=False) as folder:
            raw = _read_entry(folder, _name(key))
    except (OSError, RuntimeError):  # RuntimeError: no home directory is known
        return None
    except _UnsafeError as error:
        unsafe = str(error)
    else:
        checksum = raw[len(_MAGIC) : len(_MAGIC) + _CHECKSUM_BYTES]
        data = raw[len(_MAGIC) + _CHECKSUM_BYTES :]
        return data if raw.startswith(_MAGIC) and hashlib.sha256(data).digest() == checksum else None
    _warn(unsafe)
    return None


def write(backend: str, key: str, data: bytes) -> None:
    """Store `data` under `key` if possible."""
    try:
        with _folder(backend, key, create=True) as folder:
            _write_entry(folder, _name(key), _MAGIC + hashlib.sha256(data).digest() + data)
    except (OSError, RuntimeError):
        return
    except _UnsafeError as error:
        unsafe = str(error)
    else:
        return
    _warn(unsafe)


def _name(key: str) -> str:
    return key[2:]


def _read_entry(folder: int, name: str) -> bytes:
    """Return the contents of an entry; empty if other users may have written it."""
    descriptor = os.open(name, _ENTRY, dir_fd=folder)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or not _is_ours(found) or found.st_size > _MAX_BYTES:
            return b""
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _write_entry(folder: int, name: str, raw: bytes) -> None:
    temporary = f".writing-{os.urandom(8).hex()}"
    descriptor = os.open(temporary, _NEW_ENTRY, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(raw)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(temporary, dir_fd=folder)
        raise


def _warn(unsafe: str) -> None:
    """Warn at the program's line, once per folder, that there is no cache."""
    with _warning:
        is_known = unsafe in _warned
        _warned.add(unsafe)
    if is_known:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and is_own(frame.f_globals):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"compiled kernels are not kept: {unsafe}", RuntimeWarning, stacklevel=level)


@contextmanager
def _folder(backend: str, key: str, *, create: bool) -> Iterator[int]:
    """Open an entry's folder and yield its descriptor."""
    root = directory()
    descriptor = _open_root(root, create=create)
    path = root
    try:
        for part in (backend, key[:2]):
            path /= part
            inner = _open_within(descriptor, path, create=create)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _open_root(path: Path, *, create: bool) -> int:
    """Open the configured folder. Its path may contain links and foreign folders."""
    try:
        descriptor = os.open(path, _FOLDER)
    except FileNotFoundError:
        if not create or path == path.parent:
            raise
        return _create(path)
    return _checked(descriptor, path)


def _create(path: Path) -> int:
    """Create and open a folder and its missing parents."""
    try:
        above = os.open(path.parent, _FOLDER)
    except FileNotFoundError:
        above = _create(path.parent)
    try:
        return _open_within(above, path, create=True)
    finally:
        os.close(above)


def _open_within(above: int, path: Path, *, create: bool) -> int:
    """Open one of our folders inside `above`. Uses the last part of `path`; the rest serves messages."""
    if create:
        with suppress(FileExistsError):
            os.mkdir(path.name, 0o700, dir_fd=above)
    return _checked(os.open(path.name, _FOLDER | os.O_NOFOLLOW, dir_fd=above), path)


def _checked(descriptor: int, path: Path) -> int:
    found = os.fstat(descriptor)
    if _is_ours(found):
        return descriptor
    os.close(descriptor)
    whose = "may be written by others" if found.st_uid == os.geteuid() else f"belongs to user {found.st_uid}"
    raise _UnsafeError(
        f"the folder {str(path)!r} {whose}, whose code would run; "
        f"make it yours alone (chmod go-w), or set ANABRANCH_CACHE_DIR to another"
    )


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE
