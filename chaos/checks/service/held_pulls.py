"""Part of timers_kept: waiting pulls at a broker, and clients that it forgets.

| timer         | measured                                                               | rows                |
|---------------|------------------------------------------------------------------------|---------------------|
| long poll     | held pulls: answered after the time they asked for, at the next check; | scheduled_task      |
|               | and at once when a message comes, at a slave at the next check         |                     |
| client expiry | from a client's last heartbeat at a broker until the broker forgets it | client_heartbeat,   |
|               |                                                                        | client_gone         |

Upstream: `PullRequestHoldService`, `ClientHousekeepingService`.
"""

import math
from collections.abc import Iterator

from ...oracle.broker import CLIENT_SCAN_MS, HOLD_CHECK
from ...oracle.intervals import Stretch
from ...oracle.link import MOMENT_MS
from ...oracle.roles import elects
from ...oracle.slaves import made_masters, may_not_copy
from ...oracle.time_outs import CLIENT_EXPIRED_MS, check_periods, wakes
from ...oracle.timers import Act
from ...topology import broker_name, is_slave
from ...verdict import Finding
from ..record.timer_acts import Process, Run

LONG_POLL, EXPIRY = "long poll", "client expiry"


class HeldPulls(Process):
    """Those of one process of a broker."""

    def findings(self) -> Iterator[Finding]:
        row = "PullRequestHoldService: looks at held pulls each 5 s"
        yield from self.finding(HOLD_CHECK, "each 5 s after the last", row, self._checks())
        yield from self.finding(LONG_POLL, "answers pulls at the check", row, self._holds())
        if is_slave(self.life.node):  # a copied message wakes no pull in 4.9
            row = "PullRequestHoldService.checkHoldRequest: the next check answers the pulls that wait for a message"
            yield from self.finding(LONG_POLL, "answers with what was copied", row, self._copied())
        row = "PullRequestHoldService.notifyMessageArriving: a message wakes the pulls that wait for it"
        yield from self.finding(LONG_POLL, "wakes held pulls at once", row, self._wakes())
        row = "ClientHousekeepingService: forgets a client 120 s after its last heartbeat, at the next scan"
        yield from self.finding(EXPIRY, "120 s after a heartbeat", row, self._expiries())

    def _checks(self) -> Iterator[Act]:
        """From the end of each check of held pulls until the next began; and the one that never came."""
        ended_ms = self.start_ms
        for run in self.runs_of(HOLD_CHECK):
            waits = check_periods(self.world, self.life.node, ended_ms - MOMENT_MS, run.began_ms)
            if len(waits) == 1:
                yield self.wait(ended_ms, run.began_ms, *waits[0])
            ended_ms = run.ended_ms
        yield from self.never(ended_ms, *check_periods(self.world, self.life.node, ended_ms - MOMENT_MS)[-1])

    def _holds(self) -> Iterator[Act]:
        """How long after its own time each held pull without a message was answered."""
        for since_ms, run in self._with_start():
            about, wait = run.value, check_periods(self.world, self.life.node, since_ms - MOMENT_MS, run.ended_ms)[-1]
            if about.get("timed_out"):
                for past_ms in {about["shortest_ms"], about["longest_ms"]}:
                    due_ms = run.ended_ms - past_ms
                    latest_ms = self.after_pauses(due_ms + wait.ms) - due_ms
                    yield Act(due_ms, past_ms, 0.0, latest_ms, f"0 .. {wait.symbol}", since_ms=since_ms)

    def _wakes(self) -> Iterator[Act]:
        """How long after it was stored the first message of each woken pull of a master went out: without
        longPollingEnable at the next check."""
        for since_ms, run in self._with_start():
            slowest_ms = run.value.get("slowest_ms")
            if slowest_ms is not None and since_ms > self._master_ms and not self.held(since_ms, run.ended_ms):
                wait = wakes(self.world, self.life.node, since_ms - MOMENT_MS, run.ended_ms)
                yield Act(run.ended_ms - slowest_ms, slowest_ms, None, *wait, since_ms=since_ms)

    @property
    def _master_ms(self) -> float:
        """Since when it is a master: a slave since somebody made it one, or never."""
        made = made_masters(self.world).get(broker_name(self.life.node))
        if not is_slave(self.life.node):
            return -math.inf
        return made.at_ms if made is not None and made.node == self.life.node else math.inf

    def _copied(self) -> Iterator[Act]:
        """The same at a slave, while it copied for certain, so that the message came within a moment. A slave that
        began to copy then, as after its master has moved, copied older messages."""
        master = broker_name(self.life.node)
        if elects(self.world, master) or self.world.clocks.get(master) or self.world.clocks.get(self.life.node):
            return
        away = [*may_not_copy(self.world, master, self.life.node)]
        away += [Stretch(row.time_ms, row.time_ms) for row in self.control.by_process("copies").get(self.process, ())]
        for since_ms, run in self._with_start():
            slowest_ms = run.value.get("slowest_ms")
            if slowest_ms is None or run.ended_ms > self._master_ms or self.held(since_ms, run.ended_ms):
                continue
            wait = check_periods(self.world, self.life.node, since_ms - MOMENT_MS, run.ended_ms)[-1]
            stored_ms = run.ended_ms - wait.ms - slowest_ms
            if not any(start_ms <= run.ended_ms and stored_ms <= end_ms for start_ms, end_ms in away):
                within_ms = wait.ms + self.timers.clocks_ms
                yield Act(run.ended_ms - slowest_ms, slowest_ms, None, within_ms, wait.symbol, since_ms=since_ms)

    def _with_start(self) -> Iterator[tuple[float, Run]]:
        """Each check, and since when its pulls were answered."""
        since_ms = self.start_ms
        for run in self.runs_of(HOLD_CHECK):
            yield since_ms, run
            since_ms = run.ended_ms

    def _expiries(self) -> Iterator[Act]:
        """Of each channel: how long after the last heartbeat its client expired; late ones, and what never did."""
        heard: dict[str, float] = {}
        for row in self.control.by_process("client_heartbeat", "client_gone").get(self.process, ()):
            names_nobody = row.event == "client_heartbeat" and row.said.get("groups") == {}
            last_ms = None if names_nobody else heard.pop(str(row.op_id), None)
            if row.event == "client_heartbeat" and not names_nobody:
                heard[str(row.op_id)] = row.time_ms
            if last_ms is not None:
                expired = row.event == "client_gone" and row.f == "expired"
                yield from self._expiry(last_ms, row.time_ms, expired=expired)
        for last_ms in heard.values():
            yield from self._expiry(last_ms, self.end_ms, expired=False)

    def _expiry(self, last_ms: float, at_ms: float, *, expired: bool) -> Iterator[Act]:
        """It expired then, or was there until then."""
        latest_ms = self.after_pauses(last_ms + CLIENT_EXPIRED_MS + CLIENT_SCAN_MS) - last_ms
        act = Act(last_ms, at_ms - last_ms, None, latest_ms, "120 s .. 130 s", missing=not expired)
        if expired:
            yield act._replace(earliest_ms=CLIENT_EXPIRED_MS)
        elif act.over_ms > 0:
            yield act
