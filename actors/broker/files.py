"""A small file replaced whole, so that a reader (or the next start) sees the old content or the new, never half.

A process killed between the two steps leaves at worst a `.tmp` beside an intact file. Upstream: `ConfigManager`,
which writes in place and keeps a `.bak`.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Make `path` hold exactly `data`. Raises OSError (a full disk, say); the old content is then still there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def read_whole(path: Path) -> bytes | None:
    """The content, or None when the file does not exist."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
