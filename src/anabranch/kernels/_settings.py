"""Settings of the compilers outside the code: environment, file, and packages that extend Numba."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import warnings
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from anabranch.kernels._digest import UncacheableError

_FILE: Final = ".numba_config.yaml"  # Numba reads it from the working directory
_VARIABLES: Final = {
    "cpu": ("VS_PROFILER",),
    "cuda": ("CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "LIBLLVM7", "VS_PROFILER"),
}
_PREFIXES: Final = ("LLVMLITE_", "NUMBA_")
_CONFIGS: Final = {"cpu": "numba.core.config", "cuda": "numba_cuda_mlir.numba_cuda.core.config"}
# Settings that change at run time or are set by the compilers themselves, without effect on our code.
_FREE: Final = frozenset(
    {
        *("CUDA_DEFAULT_PTX_CC", "GDB_BINARY", "NUMBA_DEFAULT_NUM_THREADS", "NUMBA_NUM_THREADS"),
        *("THREADING_LAYER", "THREADING_LAYER_PRIORITY"),
    }
)


class Extension(NamedTuple):
    """A package that Numba loads before compiling: top-level name, distribution and version."""

    package: str
    distribution: str
    version: str


def settings(backend: str) -> tuple[object, ...]:
    """Return the settings of a backend's compiler, "cpu" or "cuda".

    Raises
    ------
    UncacheableError
        The compiler is loaded, and the program has changed its settings.
    """
    names = _VARIABLES[backend]
    variables = tuple(sorted(item for item in os.environ.items() if item[0] in names or item[0].startswith(_PREFIXES)))
    file = _file()
    config = sys.modules.get(_CONFIGS[backend])
    if config is not None:
        values = _values(config, backend)
        for name, value in _fresh_values(config, backend, variables, file).items():
            if values.get(name) != value:
                raise UncacheableError(f"{config.__name__}.{name} is {values.get(name)}")
    return variables, file


def _file() -> tuple[bytes, bool] | None:
    """Return the file's contents, and whether Numba can read it."""
    try:
        return Path(_FILE).read_bytes(), importlib.util.find_spec("yaml") is not None
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise UncacheableError(f"{_FILE}: {error}") from None


def _values(config: ModuleType, backend: str) -> dict[str, str]:
    return {
        name: repr(value)
        for name, value in dict(vars(config)).items()  # an import in another thread may be filling it
        if name.isupper() and name not in _FREE and not (backend == "cpu" and name.startswith("CUDA_"))
    }


@lru_cache(maxsize=4)
def _fresh_values(
    config: ModuleType, backend: str, variables: tuple[Any, ...], file: tuple[bytes, bool] | None
) -> dict[str, str]:
    """Return the settings of a new process: those of the module, executed once more."""
    spec = config.__spec__
    if spec is None or spec.loader is None:
        raise UncacheableError(f"{config.__name__} has no source")
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's import already warned of invalid variables
        spec.loader.exec_module(module)
    return _values(module, backend)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the packages that extend Numba.

    Raises
    ------
    UncacheableError
        An editable install, whose version does not identify its code.
    """
    found = set()
    for entry in metadata.entry_points(group="numba_extensions", name="init"):
        distribution = entry.dist
        if distribution is None or _is_in_place(distribution):
            raise UncacheableError(f"{entry.module}, which extends Numba, is installed in place")
        found.add(Extension(entry.module.partition(".")[0], distribution.name, distribution.version))
    return tuple(sorted(found))


def _is_in_place(distribution: metadata.Distribution) -> bool:
    origin = distribution.read_text("direct_url.json")
    return origin is not None and bool(json.loads(origin).get("dir_info", {}).get("editable"))
