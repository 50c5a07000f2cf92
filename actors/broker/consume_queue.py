"""One queue of one topic: where its messages lie in the commit log, 20 bytes each, kept in memory.

    commitLogOffset 8 · size 4 · tagsCode 8          entry i belongs to queue offset first + i

It is rebuilt from the commit log at every start. Upstream: `ConsumeQueue`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

ENTRY = struct.Struct(">qiq")


class ConsumeQueue:
    """Entries of consecutive queue offsets, `first` to `end` (not included)."""

    __slots__ = ("_entries", "first")

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self._entries = bytearray()

    @property
    def end(self) -> int:
        """The next queue offset to be given out."""
        return self.first + len(self._entries) // ENTRY.size

    def add(self, physical_offset: int, size: int, tags_code: int) -> None:
        self._entries += ENTRY.pack(physical_offset, size, tags_code)

    def entry(self, offset: int) -> tuple[int, int, int]:
        """(physical offset, record size, tags code) of one queue offset. Raises IndexError outside first..end."""
        if not self.first <= offset < self.end:
            raise IndexError(f"queue offset {offset} is not in {self.first}..{self.end - 1}")
        found: tuple[int, int, int] = ENTRY.unpack_from(self._entries, (offset - self.first) * ENTRY.size)
        return found

    def entries(self, offset: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Up to `count` entries from `offset` (not below `first`) on."""
        position = (max(offset, self.first) - self.first) * ENTRY.size
        chunk = bytes(self._entries[position : position + count * ENTRY.size])
        return ENTRY.iter_unpack(chunk)
