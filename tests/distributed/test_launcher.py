"""What launchers say, read from environment variables."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import anabranch as ab
from anabranch.distributed._launcher import Launch, find_launch, rank_among

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node0", "MASTER_PORT": "29500", "LOCAL_RANK": "1"}


@pytest.mark.parametrize(
    ("environ", "launch"),
    [
        ({}, Launch("nobody", 0, 1)),
        ({"RANK": "3"}, Launch("nobody", 0, 1)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, Launch("mpi", 2, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, Launch("mpi", 0, 2)),
        ({"PMIX_RANK": "1"}, Launch("mpi")),
        (TORCHRUN, Launch("address", 1, 4, "node0:29500")),
        ({**TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE": "True"}, Launch("address", 1, 4, "node0:29501")),
        ({**TORCHRUN, "PMI_RANK": "1", "PMI_SIZE": "4"}, Launch("mpi", 1, 4)),
    ],
)
def test_a_launch_is_known_by_its_variables(environ, launch):
    assert find_launch(environ) == launch


@pytest.mark.parametrize(
    ("environ", "rank"),
    [
        ({}, None),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, 2),
        ({"PMIX_RANK": "1"}, 1),
        ({"PMIX_RANK": "one"}, None),
        (TORCHRUN, 1),
        ({**TORCHRUN, "RANK": "4"}, None),
    ],
)
def test_the_rank_among_several_is_known_by_its_variables(environ, rank):
    assert rank_among(environ) == rank


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({**TORCHRUN, "PMI_RANK": "0", "PMI_SIZE": "4"}, "calls this rank 0 of 4, but RANK=1 and WORLD_SIZE=4"),
        ({**TORCHRUN, "RANK": "one"}, "RANK='one' is not a number"),
        ({**TORCHRUN, "RANK": "4"}, "RANK is from 0 to 3 with WORLD_SIZE 4, not 4"),
        ({**TORCHRUN, "MASTER_PORT": "0"}, "MASTER_ADDR:MASTER_PORT is host:port"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "are set, without MASTER_ADDR and MASTER_PORT"),
        ({"PMI_RANK": "0", "PMI_SIZE": "0"}, "PMI_SIZE is at least 1"),
    ],
)
def test_variables_that_make_no_sense_are_refused(environ, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        find_launch(environ)


def test_a_launch_has_a_text():
    assert str(find_launch({})) == "alone"
    assert str(find_launch({"PMIX_RANK": "1"})) == "a rank of MPI"
    assert str(find_launch({"PMI_RANK": "2", "PMI_SIZE": "4"})) == "rank 2 of 4 at MPI"
    assert str(find_launch({}, 0, 2, "here:1234")) == "rank 0 of 2 at here:1234"


def test_arguments_come_before_variables():
    assert find_launch(TORCHRUN, 0, 2, "here:1234") == Launch("address", 0, 2, "here:1234")
    with pytest.raises(ValueError, match="given rank, without size and address"):
        find_launch({}, 0)
    with pytest.raises(ValueError, match="address is host:port"):
        find_launch({}, 0, 2, "here")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": "0", "size": 1, "address": "localhost:29500"}, "rank is an int, not '0'"),
        ({"rank": 0, "size": "1", "address": "localhost:29500"}, "size is an int, not '1'"),
        ({"rank": 0, "size": 1, "address": 29500}, "address is a text, host:port, not 29500"),
        ({"rank": 0, "size": 1, "address": ("localhost", 29500)}, "address is a text"),
    ],
)
def test_arguments_of_other_types_are_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        ab.distributed.init(**arguments)


@pytest.mark.mpi
def test_the_launcher_of_another_mpi_is_named():
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI"))}
    # Each MPI is started by itself, under the variables of the other's launcher.
    code = (
        "import os, mpi4py; mpi4py.rc.finalize = False; from mpi4py import MPI\n"
        "os.environ.update(OMPI_COMM_WORLD_RANK='1', OMPI_COMM_WORLD_SIZE='4')\n"
        "import anabranch as ab; ab.distributed.init()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert "calls this rank 1 of 4, but " in done.stderr
    assert "knows of no other rank" in done.stderr


def test_is_launched(monkeypatch):
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", *TORCHRUN):
        monkeypatch.delenv(name, raising=False)
    assert not ab.distributed.is_launched()
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert ab.distributed.is_launched()


def test_importing_brings_in_no_engine():
    code = "import sys, anabranch as ab; ab.distributed; print({'mpi4py', 'nccl', 'distributed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    code = "import sys, anabranch as ab; print('anabranch.distributed' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(("missing", "extra"), [("mpi4py", "mpi"), pytest.param("nccl", "nccl", marks=pytest.mark.mpi)])
def test_a_missing_engine_is_named_with_its_extra(missing, extra):
    code = (
        f"import sys; sys.modules[{missing!r}] = None; import anabranch as ab; ab.distributed.init(backend={extra!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install anabranch[{extra}]" in done.stderr
