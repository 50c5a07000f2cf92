"""How long held pulls waited, from one check of them to the next: what a broker's history says of its long polling.

A pull is held until a message comes, or for as long as it asked (`suspendTimeoutMillis`) and then until the next check.
Both are measured where the answer is made, by the record's own store time, so that a message of which nobody told the
held pulls counts, too. Plain: times are arguments.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ...remoting.codes import ResponseCode
from ...remoting.command import RemotingCommand

_STORE_TIME = struct.Struct(">q")
_SYS_FLAG_AT, _STORE_TIME_AT = 39, 56
"""In a record: the low byte of its sysFlag; its store time, 12 B further on where the born host is of IPv6."""
_BORN_HOST_V6, _V6_MORE = 0x10, 12


@dataclass(slots=True)
class HoldTimes:
    """Milliseconds of the pulls answered since the last `taken`."""

    notified: int = 0
    slowest_ms: float = 0.0
    """From when a message that was wanted was stored until its pull was answered, at most."""
    timed_out: int = 0
    shortest_ms: float = 0.0
    """How long after its own time a pull was answered that found nothing: at least, and at most."""
    longest_ms: float = 0.0

    def answered(self, response: RemotingCommand, *, held_ms: int, wait_ms: int, now_ms: int) -> None:
        """One that was held since `held_ms` and wanted to wait for `wait_ms` is answered now."""
        if response.code == ResponseCode.SUCCESS:
            self.notified += 1
            self.slowest_ms = max(self.slowest_ms, now_ms - max(held_ms, _first_stored_ms(response.body, now_ms)))
        elif response.code == ResponseCode.PULL_NOT_FOUND:
            past_ms = now_ms - held_ms - wait_ms
            self.shortest_ms = min(self.shortest_ms, past_ms) if self.timed_out else past_ms
            self.longest_ms = max(self.longest_ms, past_ms) if self.timed_out else past_ms
            self.timed_out += 1

    def taken(self) -> dict[str, float]:
        """What there is to say, and nothing from here on."""
        said: dict[str, float] = {}
        if self.notified:
            said |= {"notified": self.notified, "slowest_ms": self.slowest_ms}
        if self.timed_out:
            said |= {"timed_out": self.timed_out, "shortest_ms": self.shortest_ms, "longest_ms": self.longest_ms}
        self.notified = self.timed_out = 0
        self.slowest_ms = self.shortest_ms = self.longest_ms = 0.0
        return said


def _first_stored_ms(records: bytes, now_ms: int) -> int:
    """When the first of these records was stored; now, where it cannot be read."""
    if len(records) < _STORE_TIME_AT + _V6_MORE + _STORE_TIME.size:
        return now_ms
    more = _V6_MORE if records[_SYS_FLAG_AT] & _BORN_HOST_V6 else 0
    return int(_STORE_TIME.unpack_from(records, _STORE_TIME_AT + more)[0])
