"""The C twins: what each operation costs a program in C on the driver API. Compiled when first needed."""

import ctypes
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpu import CHUNKS, GRAPH_CALLS, GRAPH_ROUNDS, PIPELINE_ROUNDS, PREFIX, PTX, on_gpu, streams
from harness import FOLDER, ROUNDS, THREAD_CALLS, AbsentError, Case, Counted

SOURCES = [Path(__file__).with_name(name) for name in ("driver.c", "driver_event.c", "driver_graph.c")]
HEADER = Path(__file__).with_suffix(".h")
BUILD = FOLDER.parent / "build" / "benchmarks"
OPTIONS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread")

# Each ID with its calls in a batch and its rounds.
SAMPLES = {
    "launch.4args": (200, ROUNDS),
    "launch.kernel4": (200, ROUNDS),
    "launch.threads1": (THREAD_CALLS, ROUNDS),
    "launch.threads2": (THREAD_CALLS, ROUNDS),
    "launch.threads4": (THREAD_CALLS, ROUNDS),
    "launch.threads8": (THREAD_CALLS, ROUNDS),
    "event.record": (200, ROUNDS),
    "event.record_own_thread": (THREAD_CALLS, ROUNDS),
    "event.record_wait": (200, ROUNDS),
    "event.query": (200, ROUNDS),
    "event.elapsed_time": (200, ROUNDS),
    "event.create_destroy": (200, ROUNDS),
    "event.create_record_destroy": (200, ROUNDS),
    "stream.create_destroy": (200, ROUNDS),
    "stream.with": (200, ROUNDS),
    "stream.current": (1000, ROUNDS),
    "stream.synchronize_idle": (200, ROUNDS),
    "memory.alloc_free_4k": (200, ROUNDS),
    "memory.zeros_free_4k": (200, ROUNDS),
    "copy.pinned_4k": (200, ROUNDS),
    "copy.device_4k": (200, ROUNDS),
    "graph.replay10": (200, ROUNDS),
    "graph.replay1000": (GRAPH_CALLS, GRAPH_ROUNDS),
    "graph.update10": (200, ROUNDS),
    "graph.capture1000": (GRAPH_CALLS, GRAPH_ROUNDS),
    "graph.record1000": (GRAPH_CALLS, GRAPH_ROUNDS),
    "pipeline.overlap": (CHUNKS, PIPELINE_ROUNDS),
}


def headers() -> Path:
    """The folder of cudaTypedefs.h: NVIDIA's wheel of it, else a toolkit."""
    folders = []
    for name in ("nvidia.cuda_runtime", "nvidia.cu13"):
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            continue
        if spec is not None:
            folders += spec.submodule_search_locations or []
    folders += [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    for folder in folders:
        if folder and Path(folder, "include", "cudaTypedefs.h").is_file():
            return Path(folder, "include")
    raise AbsentError("there are no CUDA headers: pip install nvidia-cuda-runtime-cu12")


def build(folder: Path, *options: str) -> Path:
    """Compile the twins into a folder, if they are not there, and return the library."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        raise AbsentError("there is no C compiler; on Debian: apt-get install gcc")
    command = [compiler, *OPTIONS, *options, "-isystem", str(headers()), *map(str, SOURCES), "-ldl"]
    texts = b"".join(path.read_bytes() for path in (HEADER, *SOURCES))
    key = hashlib.sha256(repr(command).encode() + texts).hexdigest()[:16]
    library = folder / f"driver-{key}.so"
    if not library.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        # Under another name first: another process may be at it too.
        unfinished = library.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*command, "-o", str(unfinished)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the C twins do not compile:\n{done.stderr}")
        unfinished.replace(library)
    return library


def load(path: Path) -> Any:
    """Open the library and declare its functions."""
    library = ctypes.CDLL(str(path))
    text = ctypes.c_char_p
    for name, arguments in {
        "twin_id": (ctypes.c_int,),
        "twin_start": (text, ctypes.c_void_p, ctypes.c_void_p),
        "twin_open": (text,),
        "twin_measure": (text, ctypes.c_long, ctypes.POINTER(ctypes.c_double)),
        "twin_close": (text,),
    }.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, text
    return library


@functools.cache
def started() -> Any:
    library = load(build(BUILD))
    check(library.twin_start(PTX.read_bytes(), *(stream.handle for stream in streams())))
    return library


def check(wrong: bytes | None) -> None:
    if wrong is not None:
        raise RuntimeError(wrong.decode())


def register(identifier: str, calls: int, rounds: int) -> None:
    name = f"{PREFIX}{identifier}".encode()

    @on_gpu("driver")(identifier)
    def set_up() -> Iterator[Case]:
        library = started()
        value = ctypes.c_double()

        def measure(calls: int) -> float:
            check(library.twin_measure(name, calls, ctypes.byref(value)))
            return value.value

        check(library.twin_open(name))
        yield Counted(measure, calls, "ns", rounds=rounds, warms_up=True)
        check(library.twin_close(name))


for _identifier, (_calls, _rounds) in SAMPLES.items():
    register(_identifier, _calls, _rounds)
