"""Keys of compiled kernels in the disk cache: a digest of everything that decides the code."""

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
    """Return the key of a kernel for a signature; None if something in it cannot be identified exactly.

    Equal keys, in any processes, mean that the kernels compile to the same code.

    Parameters
    ----------
    backend : str
        "cpu" or "cuda".
    function, parameters, signature
        The kernel, its declarations, and the kinds of its arguments.
    facts : tuple
        Everything else that decides the code, as plain data: the target, the tools and their versions.
    """
    digest = Digest()
    try:
        # Numba loads its extensions in every process that compiles; numba-cuda-mlir does so only in some.
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
    """Return path, size and modification time of each source file of this package: all of them decide the code."""
    folder = Path(__file__).parent
    files = sorted(folder.rglob("*.py"))
    return tuple((str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
