"""Part of timers_kept: a producer's fault strategy (sendLatencyFaultEnable), by its `broker_isolated` rows.

    a try that failed, or a slow one ───────┬─ isolated for notAvailableDuration ─┬─ sent to again, in its turn
                                  at once ──┘   by latencyMax                     └─ not before, while another is there

That each such try leaves a row is a question of living_are_used (plain/tries.py).

Upstream: `LatencyFaultToleranceImpl`, `MQFaultStrategy`.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ....remoting.node.profile import Profile
from ...oracle.time_outs import isolation_ms
from ...oracle.timers import Act
from ...verdict import Finding
from ..record.timer_acts import Process
from ..record.turns import client_routes
from ..record.uses import detects

ISOLATION = "isolation"


class Isolations(Process):
    """Those of one process of a producer."""

    def findings(self) -> Iterator[Finding]:
        row = "LatencyFaultToleranceImpl: by latencyMax and notAvailableDuration"
        isolated, avoided = self._isolations()
        yield from self.finding(ISOLATION, "isolates as long as set", row, isolated)
        yield from self.finding(ISOLATION, "ends isolations in time", row, avoided)

    def _isolations(self) -> tuple[Sequence[Act], Sequence[Act]]:
        """How long each attempt isolated its broker; and how long each broker was avoided."""
        isolated: list[Act] = []
        avoided: list[Act] = []
        from_ms: dict[str, float] = {}
        until_ms: dict[str, float] = {}
        forgotten: set[str] = set()
        rows = sorted((*self.rows("broker_isolated"), *self.rows("route_changed")), key=lambda run: run.ended_ms)
        for run in rows:
            row, at_ms, broker = run.row, run.ended_ms, run.row.broker_name
            if row.f == "isolated":
                failed, latency_ms = bool(run.value.get("failed")), row.duration_ms or 0.0
                wait_ms = isolation_ms(self.world, self.life.node, latency_ms, failed=failed)
                measured_ms = float(run.value["isolation_ms"])
                isolated.append(Act(at_ms, measured_ms, wait_ms, wait_ms, "notAvailableDuration"))
                longest_ms = max(until_ms.get(broker, 0.0), at_ms + wait_ms)
                if longest_ms <= at_ms + wait_ms:
                    forgotten.discard(broker)
                until_ms[broker] = at_ms + wait_ms if self.timers.profile is Profile.V4_9 else longest_ms
                from_ms[broker] = at_ms
            elif broker in from_ms:
                act = self._avoided(broker, from_ms.pop(broker), at_ms, until_ms)
                avoided.append(act._replace(earliest_ms=None) if broker in forgotten else act)
            ring = self._writable(at_ms)
            # pickOneAtLeast may remove who has no queue to write, and a detector who has no address.
            if all(until_ms.get(name, 0.0) > at_ms for name in ring) or detects(self.world, self.life.node):
                forgotten |= from_ms.keys() - ring.keys()
        for broker, since_ms in from_ms.items():
            never = self._avoided(broker, since_ms, self.end_ms, until_ms)._replace(earliest_ms=None, missing=True)
            if never.over_ms > 0:
                avoided.append(never)
        return isolated, avoided

    def _avoided(self, broker: str, since_ms: float, at_ms: float, until_ms: Mapping[str, float]) -> Act:
        """Not sent to while another is there; and in its turn when it has passed, if nothing is in the way. A send goes
        by the route with which it began for all its tries (`sendDefaultImpl`), T ago at most."""
        passed_ms = until_ms[broker]
        there = self._writable(at_ms).keys() & self._writable(at_ms - self.timers.T_ms).keys()
        others = [name for name in there if name != broker and until_ms.get(name, 0.0) <= at_ms - 1.0]
        earliest_ms = passed_ms - since_ms if others else None
        rate = float(self.world.workload.get("sends_per_s") or 1.0)
        turn_ms = (sum(self._writable(at_ms).values()) + 1) * 1000.0 / rate
        stays = all(broker in self._writable(moment_ms) for moment_ms in (passed_ms, passed_ms + turn_ms, at_ms))
        undisturbed = not self.troubles.among([*self.name_servers, *self.brokers], passed_ms, passed_ms + turn_ms)
        latest_ms = math.inf
        if stays and undisturbed and not self.held(passed_ms, passed_ms + turn_ms):
            latest_ms = max(passed_ms, since_ms) + turn_ms - since_ms
        return Act(since_ms, at_ms - since_ms, earliest_ms, latest_ms, "notAvailableDuration, then in its turn")

    def _writable(self, at_ms: float) -> Mapping[str, int]:
        """The brokers of the route that the producer has then, with how many queues it may write."""
        ring = client_routes(self.control).ring(*self.process, self.world.topic_of(self.life.node), at_ms)
        return Counter(broker for broker, _ in ring)
