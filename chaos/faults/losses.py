"""What a fault looks like to its peers, whatever injected it: the rows of the project's failure-detection table.

A fault says which of them it is (link_faults.py, process_faults.py); what RocketMQ's timers make of one stands in the
oracle (chaos/oracle/windows.py), which imports these and is imported by no fault.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol


class Loss(StrEnum):
    """What a fault looks like to the NameServer that holds the broker's route."""

    CRASH = "process crash, kernel closes its connections"
    GRACEFUL = "graceful shutdown"
    SILENT = "host loss, hang, two-way partition, or broker→NameServer loss only"
    BACKWARD_PACKETS = "NameServer→broker loss only, packet level"
    BACKWARD_PROXY = "NameServer→broker loss only, byte proxy"
    CLOSED = "proxy disabled: both sides closed at once, later dials refused"
    DROPPED = "timeout toxic: data dropped, closes pass"
    RESET = "reset_peer toxic"
    STALE = "half-open: what was connected is dead, what is new works"
    UNDIALLED = "SYNs dropped: what is connected works, what is new gets no answer"
    SLOW = "slow link"
    HARMLESS = "slower than before, far from every time-out"
    OTHER = "a fault without a row of its own"

    @property
    def closes(self) -> bool:
        """Whether peers see their connections close."""
        return self in (Loss.CRASH, Loss.GRACEFUL, Loss.CLOSED)

    @property
    def swallows_closes(self) -> bool:
        """Whether a close of the other kind of fault cannot get through while this one lasts."""
        return self in (Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.SLOW, Loss.STALE, Loss.OTHER)


class Dial(StrEnum):
    """What a client meets that dials over a link, or a process, under a fault, and then asks something."""

    ANSWERED = "accepted, answered"
    LATE = "accepted, answered late"
    REFUSED = "refused"
    CLOSED = "accepted, then closed"
    """No fault of ours: a proxy that listens on for a process that is gone."""
    SILENT = "accepted, no answer"
    RESET = "accepted, reset at its first bytes"
    DROPPED = "no answer to the SYN"


class TimeLimits(Protocol):
    """RocketMQ's time limits that a slow link may reach, under the symbols of the table (oracle/timers.py)."""

    @property
    def A_ms(self) -> float: ...

    @property
    def B_ms(self) -> float: ...

    @property
    def C_ms(self) -> float: ...


class Delay(NamedTuple):
    """What a latency does to each direction of a link, in RocketMQ milliseconds."""

    upstream_ms: float
    downstream_ms: float
    jitter_ms: float
    """Of each direction that is delayed, up or down."""

    @property
    def _jitters_ms(self) -> float:
        return self.jitter_ms * ((self.upstream_ms > 0) + (self.downstream_ms > 0))

    @property
    def round_trip_min_ms(self) -> float:
        return max(0.0, self.upstream_ms + self.downstream_ms - self._jitters_ms)

    @property
    def round_trip_max_ms(self) -> float:
        return self.upstream_ms + self.downstream_ms + self._jitters_ms
