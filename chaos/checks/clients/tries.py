"""The tries of sends: none too many, none too few. Which may follow which is oracle/time_outs.py."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ...verdict import FINDINGS_MAX, Finding
from ..findings import at_a_moment
from ..record.control import Control
from ..record.timer_acts import by_process
from ..record.uses import BrokerShares, GivenUp

_ROW = "sendDefaultImpl: tried again while it is not stored, has a try left, and its time is not over"
_NEAR_MS = 50.0


def odd_tries(shares: BrokerShares, control: Control) -> Iterator[Finding]:
    """One for each try that should not have been, and for each that was missing."""
    for odd in shares.odd[:FINDINGS_MAX]:
        more = {"op_id": odd.op_id, "attempt": odd.attempt}
        yield at_a_moment(odd.node, odd.broker_name, odd.kind, odd.time_ms, _ROW, more)
    missing = (one for one in shares.given_up if not _asked_in_vain(one, control))
    for one in islice(missing, FINDINGS_MAX):
        more = {"op_id": one.op_id, "attempt": one.attempt, "left_ms": round(one.left_ms, 3)}
        yield at_a_moment(one.node, one.broker_name, "given up with a try and time left", one.ended_ms, _ROW, more)


def _asked_in_vain(one: GivenUp, control: Control) -> bool:
    """Whether a look-up failed just then: a send that needs an address ends with it."""
    calls = by_process(control, "name_server_call").get((one.node, one.incarnation), ())
    until_ms = one.ended_ms + one.left_ms + _NEAR_MS
    return any(one.ended_ms - _NEAR_MS <= call.ended_ms <= until_ms and call.row.type != "ok" for call in calls)
