"""Compiled kernels on disk, shared by processes.

One file per kernel and signature, named by everything that decides its contents, so an entry is
never stale and needs no index and no lock. A file is written beside its place and moved there, and
carries its own checksum. A cache that cannot be read or written is silently not one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final

_MAGIC: Final = b"anabranch kernel 1\n"
_CHECKSUM_BYTES: Final = 32


def directory() -> Path:
    """Return where compiled kernels are kept; it need not exist.

    ``ANABRANCH_CACHE_DIR``, else ``$XDG_CACHE_HOME/anabranch``, else ``~/.cache/anabranch``.
    """
    chosen = os.environ.get("ANABRANCH_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "anabranch"


def read(backend: str, key: str) -> bytes | None:
    """Return what was stored under `key`, or None if nothing usable is there."""
    try:
        raw = _path(backend, key).read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: nobody's home is known
        return None
    checksum = raw[len(_MAGIC) : len(_MAGIC) + _CHECKSUM_BYTES]
    data = raw[len(_MAGIC) + _CHECKSUM_BYTES :]
    if not raw.startswith(_MAGIC) or hashlib.sha256(data).digest() != checksum:
        return None
    return data


def write(backend: str, key: str, data: bytes) -> None:
    """Store `data` under `key`, or do nothing where that is impossible."""
    try:
        path = _path(backend, key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
        try:
            with open(descriptor, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(data).digest() + data)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
    except (OSError, RuntimeError):
        return


def _path(backend: str, key: str) -> Path:
    return directory() / backend / key[:2] / key[2:]
