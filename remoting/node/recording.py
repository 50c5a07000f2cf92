"""How a node tells the history what happened, without knowing what a history is.

A node calls `record("route", topic=..., value=...)`; the harness hands in a recorder that stamps time, node and
sequence and appends the row. The events and their fields are listed in docs/history.md.
"""

from __future__ import annotations

from typing import Protocol


class Recorder(Protocol):
    def __call__(self, event: str, /, **fields: object) -> None:
        """Append one event of this node. Field names are the history's columns (docs/history.md)."""


def ignore(event: str, /, **fields: object) -> None:
    """The recorder of a node that nobody watches, e.g. a stand-alone NameServer."""
