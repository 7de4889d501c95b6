"""Programs of several ranks, run with ``mpiexec``."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
# Processes of several ranks share few cores here, with the machine's other work.
PATIENCE = 60.0
# In the environment of all that a command starts, by the command's process.
marks: dict[int, str] = {}

# Open MPI asks for these on a small machine and for root; MPICH ignores them.
SMALL_MACHINE = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@dataclass
class Finished:
    """What a program of several ranks has come to."""

    code: int
    output: str
    errors: str


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("mpi") and importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **SMALL_MACHINE, "ANABRANCH_DEVICE": "cpu", "OMP_NUM_THREADS": "1", **more}


def start(command: list[str], **more: str) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, which `left_over` finds whatever it starts."""
    mark = secrets.token_hex(8)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(**more, ANABRANCH_TEST_MARK=mark), start_new_session=True,
    )  # fmt: skip
    marks[process.pid] = mark
    return process


def left_over(process: subprocess.Popen[str], patience: float = 10.0) -> list[int]:
    """Return the processes that a command has started and that have not ended a while after it."""
    mark = f"ANABRANCH_TEST_MARK={marks[process.pid]}".encode()
    until = time.monotonic() + patience
    while (found := [pid for pid in map(Path, glob("/proc/[0-9]*")) if mark in environment_of(pid)]) and (
        time.monotonic() < until
    ):
        time.sleep(0.05)
    return [int(each.name) for each in found]


def environment_of(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:  # it has ended, or is another user's
        return b""


def finish(process: subprocess.Popen[str], timeout: float = PATIENCE) -> Finished:
    """Wait for a process; one that hangs is killed, with its group, and fails the test."""
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        pytest.fail(f"the program hung:\n{output}\n{errors}")
    assert left_over(process) == []
    return Finished(process.returncode, output, errors)


@pytest.fixture
def ranks() -> Callable[..., Finished]:
    """Run a program of `programs` with so many ranks under ``mpiexec``; returns what it printed, having ended well."""

    def run(number: int, program: str, *arguments: object, **more: str) -> Finished:
        mpiexec = Path(sys.executable).with_name("mpiexec")
        command = [str(mpiexec), "-n", str(number), sys.executable, str(PROGRAMS / program), *map(str, arguments)]
        done = finish(start(command, **more))
        assert done.code == 0, f"{done.output}\n{done.errors}"
        return done

    return run


@pytest.fixture
def torchrun(free_port: int) -> Callable[..., list[Finished]]:
    """Run a program with the variables of ``torchrun``; returns what each rank has come to. Nobody kills the others."""

    def run(number: int, program: str, *arguments: object, **more: str) -> list[Finished]:
        command = [sys.executable, str(PROGRAMS / program), *map(str, arguments)]
        shared = {"WORLD_SIZE": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port), **more}
        processes = [start(command, RANK=str(rank), LOCAL_RANK=str(rank), **shared) for rank in range(number)]
        return [finish(process) for process in processes]

    return run


@pytest.fixture
def free_port() -> int:
    """Find a port that nobody has, nor the next, which a rank takes beside torchrun's agent.

    It is below those that Linux gives to connections: one of these may get a port between the search and its use.
    """
    while True:
        port = random.randrange(20000, 32000)
        with contextlib.ExitStack() as servers:
            try:
                for number in (port, port + 1):
                    servers.enter_context(socket.create_server(("127.0.0.1", number)))
            except OSError:
                continue
            return port


@pytest.fixture(scope="session")
def client():
    """A client of two workers of Dask, which are processes of their own and have two threads each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client
