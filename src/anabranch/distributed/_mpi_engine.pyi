from typing import Any

from anabranch.distributed._engine import Engine
from anabranch.distributed._mpi import Mpi

class MpiEngine(Engine):
    def __init__(self, mpi: Mpi, communicator: Any, title: str, timeout: float) -> None: ...
