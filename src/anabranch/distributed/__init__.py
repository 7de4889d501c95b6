"""Collectives as operations of streams, between the processes that a launcher started.

The engines are MPI (``pip install anabranch[mpi]``) and NCCL (``anabranch[nccl]``).
"""

import typing as _typing

from anabranch._core.absent import add_absent as _add_absent
from anabranch.distributed._absent import INSTEAD as _INSTEAD
from anabranch.distributed._communicator import Communicator
from anabranch.distributed._init import init
from anabranch.distributed._launcher import is_launched
from anabranch.distributed._ranks import Group

__all__ = ["Communicator", "Group", "init", "is_launched"]

_add_absent(Communicator, _INSTEAD)

if not _typing.TYPE_CHECKING:

    def __getattr__(name):
        hint = ""
        if not name.startswith("_"):
            from anabranch.distributed._elsewhere import instead_of

            hint = instead_of(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint and '; ' + hint}")
