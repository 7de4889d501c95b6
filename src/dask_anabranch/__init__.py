"""What Dask loads when it is imported: lets arrays cross between workers, in whichever order the two are imported.

A module of its own, so that programs that use Dask and no arrays import nothing of the package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def register(_sizeof: object) -> None:
    """Register serializers once ``distributed`` can take them; the entry point of the group ``dask.sizeof``.

    It is the one group that is loaded in every process of Dask, and long before serializers can be registered.
    """
    sys.meta_path.insert(0, _Watch())


class _Watch:
    """Sees each import that follows, and finds no module itself."""

    def find_spec(
        self, _name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if hasattr(sys.modules.get("distributed.protocol.serialize"), "dask_deserialize"):
            sys.meta_path.remove(self)
            # Imported later, the package does it itself.
            if "anabranch" in sys.modules:
                from anabranch.interop._dask import register_serializers

                register_serializers()
        return None
