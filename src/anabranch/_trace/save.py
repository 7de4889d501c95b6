"""Writing traces to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

from anabranch._trace.chrome import chrome
from anabranch._trace.operation import Operation
from anabranch._trace.page import page
from anabranch._trace.perfetto import perfetto
from anabranch._trace.svg import svg

_FORMATS: dict[str, Callable[[Sequence[Operation]], str | bytes]] = {
    ".html": page,
    ".json": chrome,
    ".pftrace": perfetto,
    ".svg": svg,
}


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise what `save` would raise, as far as that is known before there are operations."""
    _renderer(Path(path))([])
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(Path(path).parent)!r}")


def save(operations: Sequence[Operation], path: str | os.PathLike[str]) -> None:
    """Write operations, in the order of enqueueing, to a file in the format that its suffix names.

    The file is replaced atomically: a concurrent reader sees the old content or all of the new.

    Raises
    ------
    ValueError
        The suffix names no format.
    ModuleNotFoundError
        The format needs a package that is not installed.
    """
    file = Path(path)
    content = _renderer(file)(operations)
    data = content.encode() if isinstance(content, str) else content
    # In the same folder, since a file is replaced atomically only within one file system.
    temporary = file.with_name(f".anabranch-{uuid4().hex}")
    try:
        temporary.write_bytes(data)
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _renderer(file: Path) -> Callable[[Sequence[Operation]], str | bytes]:
    render = _FORMATS.get(file.suffix.lower())
    if render is None:
        raise ValueError(
            f"a timeline is saved as {', '.join(_FORMATS)}, by the suffix of the file, not as {file.name!r}"
        )
    return render
