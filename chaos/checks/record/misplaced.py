"""Sends and receipts that stand behind a later one of their queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...verdict import FINDINGS_MAX
from ..check import Facts, first


class Misplaced(NamedTuple):
    """A send, or a receipt, behind one with a higher offset, or with the same."""

    what: str
    from_ms: float
    to_ms: float
    msg_key: str
    node: str
    topic: str
    broker_name: str
    queue_id: int | None
    offset: int

    def order(self) -> tuple[str, float, str]:
        """Which is told first."""
        return self.what, self.from_ms, self.msg_key or ""


@dataclass(frozen=True)
class Order(Facts):
    """How many acknowledged sends, and receipts where they are promised an order; the first that are out of it."""

    sends: int = 0
    receipts: int = 0
    out_of_order: int = 0
    misplaced: tuple[Misplaced, ...] = first(FINDINGS_MAX, Misplaced.order)
