"""What became of the acknowledged sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...verdict import FINDINGS_MAX
from ..check import Facts, first


class Missing(NamedTuple):
    """An acknowledged send whose message nobody received and no final read holds."""

    acked_ms: float
    msg_key: str
    producer: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int | None
    is_lost: bool
    """False: the final read of its queue is incomplete, so nobody knows."""

    def order(self) -> tuple[float, str]:
        """Which is told first."""
        return self.acked_ms, self.msg_key


@dataclass(frozen=True)
class Fates(Facts):
    """What became of the acknowledged sends, and the first of those that are lost, unread, unsafe or
    forgotten."""

    acknowledged: int = 0
    received: int = 0
    only_in_final_reads: int = 0
    lost: int = 0
    unread: int = 0
    first_lost: tuple[Missing, ...] = first(FINDINGS_MAX, Missing.order)
    first_unread: tuple[Missing, ...] = first(FINDINGS_MAX, Missing.order)
    unsafe: int = 0
    """Acknowledged by a SYNC_MASTER while no slave of its ran."""
    first_unsafe: tuple[Missing, ...] = first(FINDINGS_MAX, Missing.order)
    forgotten: int = 0
    """Acknowledged by a broker whose next process has recovered its queue up to an older offset."""
    first_forgotten: tuple[Missing, ...] = first(FINDINGS_MAX, Missing.order)
