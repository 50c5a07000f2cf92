"""The lines of a file that grows, each once and only whole ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tail:
    """The lines of a file that grows: what is new since the last look, but for a line that is not whole yet."""

    file: str
    number: int = 0
    """Of the last whole line."""
    _rest: bytes = field(default=b"", init=False)

    def fed(self, data: bytes) -> Iterator[tuple[int, str]]:
        """Number and text of each line that `data`, which came behind all before, makes whole."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self.number += 1
            yield self.number, line.decode("utf-8", "replace").rstrip("\r")
