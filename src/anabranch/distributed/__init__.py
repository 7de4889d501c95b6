"""Collectives as operations of streams, between the processes that a launcher started.

The engines are MPI (``pip install anabranch[mpi]``) and NCCL (``anabranch[nccl]``).
"""

from anabranch.distributed._communicator import Communicator
from anabranch.distributed._init import init
from anabranch.distributed._launcher import is_launched
from anabranch.distributed._ranks import Group

__all__ = ["Communicator", "Group", "init", "is_launched"]
