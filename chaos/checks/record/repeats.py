"""What came twice, or after its queue was given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...oracle.world import World
from ...verdict import FINDINGS_MAX
from ..check import Facts, first, largest
from ..tolerance import Tolerance, tolerance
from .lateness import Lateness

TOO_LATE = "received after its consumer had given the queue up"


class Repeat(NamedTuple):
    """A receipt, or a stored copy, of a message that was there before; times of the first one and of this one."""

    at_ms: float
    to_ms: float
    msg_key: str
    what: str
    topic: str
    broker_name: str
    queue_id: int | None
    offset: int | None
    client: str = ""
    first_client: str = ""
    changed_ms: float | None = None
    """When its queue changed hands between the two."""
    over_ms: float | None = None
    """How far that lies from what explains the repeat; None: nothing says when the queue was taken."""
    is_wrong: bool = True
    """False: only the machine's lateness may explain it."""

    def order(self) -> tuple[bool, float, str, float]:
        """Which is told first."""
        return not self.is_wrong, self.at_ms, self.msg_key, self.to_ms


@dataclass(frozen=True)
class Repeats(Facts):
    """How many messages were received, how often again, and how often stored again."""

    messages: int = 0
    received_again: int = 0
    stored_again: int = 0
    wrong: int = 0
    """Of both: what no fault, rebalance or retry explains."""
    late: int = 0
    """Of both: what only the machine's lateness explains."""
    too_late: int = 0
    """Receipts of a queue that was given up."""
    perhaps_too_late: int = 0
    """Such receipts that the machine's lateness explains."""
    oldest_ms: float | None = largest()
    """How long before its queue changed hands the earliest first receipt came of what came again."""
    lag_ms: float | None = largest()
    """How late the timers of consumers and brokers were at most; None: nobody measured it."""
    first_too_late: tuple[Repeat, ...] = first(FINDINGS_MAX, Repeat.order)
    first_received: tuple[Repeat, ...] = first(FINDINGS_MAX, Repeat.order)
    first_stored: tuple[Repeat, ...] = first(FINDINGS_MAX, Repeat.order)

    @property
    def told(self) -> tuple[Repeat, ...]:
        """The first of each kind: of the wrong ones, or of the late ones where none is wrong."""
        kinds = self.first_too_late, self.first_received, self.first_stored
        return tuple(one for kind in kinds for one in kind if one.is_wrong or not kind[0].is_wrong)


def measured_lag_ms(lateness: Lateness, world: World) -> float | None:
    """Of the whole run: a receipt that comes again joins several nodes and times, and only the worst one matters."""
    nodes = [node.name for node in world.of_kind("consumer", "broker")]
    return lateness.largest(world, nodes, 0.0, world.end_ms)


def tolerance_of(world: World, lag_ms: float | None) -> Tolerance:
    return tolerance(world.timers, lag_ms, 2)
