"""What configures the compilers beside the code: environment, file, and packages that extend Numba."""

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
# What is set while programs run, or by the compilers themselves, and decides no code of ours.
_FREE: Final = frozenset(
    {
        *("CUDA_DEFAULT_PTX_CC", "GDB_BINARY", "NUMBA_DEFAULT_NUM_THREADS", "NUMBA_NUM_THREADS"),
        *("THREADING_LAYER", "THREADING_LAYER_PRIORITY"),
    }
)


class Extension(NamedTuple):
    """A package that Numba loads before it compiles: its top-level name, and its distribution and version."""

    package: str
    distribution: str
    version: str


def settings(backend: str) -> tuple[object, ...]:
    """Return what configures the compiler of a backend, "cpu" or "cuda".

    Raises
    ------
    UncacheableError
        The compiler is loaded and is configured otherwise, by the program.
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
    """Return the file's contents, and whether Numba can read them."""
    try:
        return Path(_FILE).read_bytes(), importlib.util.find_spec("yaml") is not None
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise UncacheableError(f"{_FILE}: {error}") from None


def _values(config: ModuleType, backend: str) -> dict[str, str]:
    return {
        name: repr(value)
        for name, value in dict(vars(config)).items()  # which an import in another thread fills
        if name.isupper() and name not in _FREE and not (backend == "cpu" and name.startswith("CUDA_"))
    }


@lru_cache(maxsize=4)
def _fresh_values(
    config: ModuleType, backend: str, variables: tuple[Any, ...], file: tuple[bytes, bool] | None
) -> dict[str, str]:
    """Return the values that a new process would begin with, which are those of the module run once more."""
    spec = config.__spec__
    if spec is None or spec.loader is None:
        raise UncacheableError(f"{config.__name__} has no source")
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a variable that makes no sense was warned of when the compiler was imported
        spec.loader.exec_module(module)
    return _values(module, backend)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the packages that extend Numba.

    Raises
    ------
    UncacheableError
        One is installed in place, so that its version says nothing of its code.
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
