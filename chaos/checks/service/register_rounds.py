"""A broker tells all its NameServers at once, and of each change at once.

    ns-0   ├─ ok ┤                  a round: begun at every NameServer of the broker's list at one moment, however long
    ns-1   ├─ ok ┤                  each takes to answer, and over when the last has answered or was given up
    ns-2   ├─ hangs ─────── B ┤

    topic  ├─ changed ─ register, with that version or a newer one      behind the round that is under way, if one is

Both by the broker's own record: `register` (begun duration_ms before its row), `topic`, and `name_server_list` where it
fetches its list. Upstream: `BrokerOuterAPI.registerBrokerAll` (a task for each NameServer, in a pool), and
`BrokerController.registerBrokerAll` (synchronized), which `AdminBrokerProcessor.updateBrokerConfig` asks for, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from ...verdict import Finding
from ..record.registered_rows import row_of
from ..record.timer_acts import Act, Process, Run, by_process

TASK = "registration"
_EVERYWHERE_ROW = "BrokerOuterAPI.registerBrokerAll: a task for each NameServer, all at once"
_CHANGES_ROW = "BrokerController.registerBrokerAll: at once when a topic, or brokerPermission, changes"


class RegisterRounds(Process):
    """The registrations of one process of a broker."""

    def findings(self) -> Iterator[Finding]:
        calls = by_process(self.control, "register").get(self.process, ())
        calls = sorted(calls, key=attrgetter("began_ms"))
        yield from self.finding(TASK, "begins everywhere at once", _EVERYWHERE_ROW, self._everywhere(calls))
        yield from self.finding(TASK, "tells of each change at once", _CHANGES_ROW, self._changes(calls))

    # -- everywhere

    def _everywhere(self, calls: Sequence[Run]) -> Iterator[Act]:
        """Of each registration, how far from it is the one of the NameServer that had its own the furthest from it."""
        begun: dict[str, list[float]] = defaultdict(list)
        for call in calls:
            begun[call.row.name_server or ""].append(call.began_ms)
        for call in calls:
            if self._row_by_ms(call.began_ms) < self.end_ms:
                servers = self._told(call.began_ms, begun)
                acts = [self._apart(call.began_ms, _nearest(begun[server], call.began_ms)) for server in servers]
                yield from sorted(acts, key=attrgetter("over_ms"))[-1:]

    def _apart(self, one_ms: float, other_ms: float) -> Act:
        from_ms, to_ms = min(one_ms, other_ms), max(one_ms, other_ms)
        return Act(from_ms, to_ms - from_ms, None, self.after_pauses(from_ms) - from_ms, "at once")

    def _row_by_ms(self, began_ms: float) -> float:
        """When a registration that began then has left its row, whoever answers."""
        return self.after_pauses(began_ms + self.timers.B_ms) + self.timers.delivery_ms

    def _told(self, at_ms: float, begun: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Whom it has to tell then: all that it ever tells, or those on the list that it had fetched; of one that was
        just being replaced nobody knows."""
        if not self.world.asks_for_list(self.life.node):
            return [*begun]
        near_ms = self.timers.delivery_ms
        before: Sequence[str] = ()
        for row in self.control.rows("name_server_list"):
            if row.process != self.process or row.time_ms > at_ms + near_ms:
                continue
            listed: Sequence[str] = row.decoded or ()
            if row.time_ms >= at_ms - near_ms and {*before} != {*listed}:
                return ()
            before = listed
        return [server for server in before if server in begun]

    # -- of each change

    def _changes(self, calls: Sequence[Run]) -> Iterator[Act]:
        """From when a topic of the broker is another until it begins to tell that. What it has before it registered
        first is told with that."""
        if not calls:
            return
        changes: dict[float, float] = {}
        for row in self.control.rows("topic"):
            if row.process == self.process and row_of(row.decoded) is not None and row.time_ms > calls[0].ended_ms:
                version = (row.decoded or {}).get("version")
                if version is not None:
                    changes.setdefault(row.time_ms, float(version))
        for at_ms, version in changes.items():
            due_ms = self._free_ms(calls, at_ms)
            if self._row_by_ms(due_ms) >= self.end_ms:
                continue
            told = next((one for one in calls if one.began_ms >= at_ms - 1.0 and _version(one) >= version), None)
            told_ms = self.end_ms if told is None else max(told.began_ms, at_ms)
            yield Act(at_ms, told_ms - at_ms, None, due_ms - at_ms, "at once", missing=told is None)

    def _free_ms(self, calls: Sequence[Run], at_ms: float) -> float:
        """When nothing keeps the broker from telling: no pause, no round under way, and no question before it (322)."""
        at_ms = self.after_pauses(at_ms)
        if self.timers.F_ms is not None:
            silent = self.troubles.among(self.name_servers, at_ms, at_ms + self.timers.F_ms)
            at_ms += self.timers.F_ms if silent else self.timers.delivery_ms
        for one in calls:
            if one.began_ms <= at_ms + self.timers.delivery_ms and one.ended_ms > at_ms:
                at_ms = self.after_pauses(one.ended_ms)
        return at_ms


def _nearest(times_ms: Sequence[float], at_ms: float) -> float:
    at = bisect_left(times_ms, at_ms)
    return min(times_ms[max(at - 1, 0) : at + 1], key=lambda time_ms: abs(time_ms - at_ms))


def _version(call: Run) -> float:
    said = call.row.decoded
    found = said.get("version") if isinstance(said, dict) else None
    return float(found) if isinstance(found, int | float) else 0.0
