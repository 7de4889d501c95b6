"""The name of a compiled kernel in the disk cache: a digest of everything that decides its code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import FunctionType

from anabranch.kernels._digest import Digest, UncacheableError
from anabranch.kernels._fingerprint import fingerprint
from anabranch.kernels._overload import overloads
from anabranch.kernels._parameter import Parameter
from anabranch.kernels._settings import extensions, settings
from anabranch.kernels._signature import Signature


def cache_key(
    backend: str,
    function: FunctionType,
    parameters: Sequence[Parameter],
    signature: Signature,
    facts: tuple[object, ...],
) -> str | None:
    """Return the key of a kernel for arguments of a signature; None if something in it cannot be pinned down.

    Two calls that give one key, in whichever processes, are of kernels that compile to the same code.

    Parameters
    ----------
    backend : str
        "cpu" or "cuda".
    function, parameters, signature
        The kernel, all that it declares, and the kinds of its arguments.
    facts : tuple
        Whatever else decides the code, as plain data: the target, the tools and their versions.
    """
    digest = Digest()
    try:
        # Numba loads its extensions in each process that compiles; numba-cuda-mlir in some.
        packages = extensions() if backend == "cpu" else ()
        known = frozenset(package.package for package in packages)
        digest.put("function", fingerprint(function, overloads(backend, known)))
        digest.add((settings(backend), tuple(map(tuple, packages))))
        digest.add((backend, tuple(map(tuple, parameters)), signature, facts))
    except UncacheableError:
        return None
    return digest.result().hex()


@cache
def sources() -> tuple[tuple[str, int, int], ...]:
    """Return each source file of this package, which all decide the code: its path, size and time of change."""
    folder = Path(__file__).parent
    files = sorted(folder.rglob("*.py"))
    return tuple((str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
