"""Finds signs of faults that only several rows together show, such as a due registration that is missing. Pure: no I/O.

registrations that a NameServer logs each time ─► MISSED if one was due, EARLY if it expired all the same
a node's own lines that come each period       ─► OWN_MISSED
no answer, but the request arrived             ─► HALF; the channel closed for it ─► CLOSED_AFTER
a route without the broker, then its channel   ─► nothing more
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

from ...chaos.oracle.intervals import grouped
from ..logs_to_rows.signs import (
    CLOSES,
    Edge,
    Kind,
    Row,
    Seen,
    Sign,
    in_time,
    is_near,
    is_registration,
    last_before,
    value_of,
)

_SETTLES_MS = 5_000.0
"""A line in one server's log this soon after another's is about the same change."""


@dataclass(slots=True)
class RoleChange:
    """A change of a broker's role (master or slave): `node` has the broker id `id` from `at_ms` on."""

    node: str
    id: int
    at_ms: float
    rows: list[Row]
    others: list[RoleChange] = field(default_factory=list)
    """Brokers of the same name that became its slaves."""

    @property
    def is_master(self) -> bool:
        return self.id == 0

    @property
    def term(self) -> int:
        """The election term in which the role changed; 0 if no log has a term."""
        return max((int(value_of(row).get("term", 0)) for row in self.rows), default=0)

    @property
    def sentence(self) -> str:
        name = self.node.partition("/")[0]
        at = sorted({str(row["node"]) for row in self.rows if row["event"] == "registration"})
        where = f" at {', '.join(at)}" if at else ""
        made = "master" if self.is_master else f"id {self.id}"
        registers = name if self.is_master else f"{name}/{self.id}"
        by = f" by an election (term {self.term})" if self.term and self.is_master else ""
        said = f"{self.node} registers as {registers}{where} from {self.at_ms / 1000:.1f} s on: it was made {made}{by}"
        return "; ".join(
            [said, *(f"{one.node} is its slave, id {one.id}, from {one.at_ms / 1000:.1f} s on" for one in self.others)]
        )


def role_changes(seen: Seen) -> list[RoleChange]:
    """Return the brokers' changes between master and slave in order of time. The change of a new master includes the
    changes of its slaves."""
    found: list[RoleChange] = []
    for node, told in _told(seen).items():
        found += _changes(node, told)
    found.sort(key=lambda one: one.at_ms)
    kept: list[RoleChange] = []
    masters: dict[str, RoleChange] = {}
    for one in found:
        name = one.node.partition("/")[0]
        if one.is_master:
            masters[name] = one
        elif name in masters and masters[name].node != one.node:
            masters[name].others.append(one)
            continue
        kept.append(one)
    return kept


_Told = Sequence[tuple[float, int, Row]]


def _is_slave(told: _Told, at_ms: float) -> bool:
    """Whether the broker with these ids (in order of time) was a slave at `at_ms`."""
    return bool(told) and told[max(0, bisect_right(told, at_ms, key=itemgetter(0)) - 1)][1] > 0


def _told(seen: Seen) -> Mapping[str, _Told]:
    """Return each broker's ids over time, by NameServers' logs and its own."""
    brokers = {*seen.brokers}
    found: dict[str, list[tuple[float, int, Row]]] = defaultdict(list)
    for row in seen.rows:
        node, id_ = "", None
        if is_registration(row):
            node, id_ = seen.addresses.get(str(row.get("address")), ""), row.get("broker_id") or 0
            if node.partition("/")[0] != row["broker_name"]:
                continue
        elif row["event"] == "register" and row.get("type") == "ok" and value_of(row).get("id") is not None:
            node, id_ = str(row["node"]), int(value_of(row)["id"])
        if node in brokers and id_ is not None and id_ >= 0:
            found[node].append((float(row["time_ms"]), int(id_), row))
    return found


def _changes(node: str, told: _Told) -> Iterator[RoleChange]:
    had = told[0][1]
    change: RoleChange | None = None
    for at_ms, id_, row in told:
        if change is not None and at_ms <= change.at_ms + _SETTLES_MS:
            if id_ == change.id:
                change.rows.append(row)
            continue
        if id_ != had:
            if change is not None:
                yield change
            change, had = RoleChange(node, id_, at_ms, [row]), id_
    if change is not None:
        yield change


TELLS_ARRIVALS = 3
"""After so many registrations of one broker a period apart, the log is known to have each of them (5.x: only the
first)."""


def concluded(seen: Seen) -> None:
    """Add to `seen` the signs that only several rows together show, and remove the signs that several rows together
    disprove."""
    _arrivals(seen)
    _paired(seen)


def _arrivals(seen: Seen) -> None:
    """Add signs of missing registrations and of early drops, at NameServers that log each registration."""
    R, E = seen.timers.R_ms, seen.timers.silence_ms
    ids = _told(seen)
    again = {edge: _came_again(seen, edge) for edge in seen.by_edge if seen.kinds.get(edge.peer) == "name_server"}
    again_at: Counter[str] = Counter()
    for edge, count in again.items():
        again_at[edge.peer] += count
    for edge, signs in [*seen.by_edge.items()]:
        if not edge.peer or seen.kinds.get(edge.peer) != "name_server":
            continue
        tolerance = seen.tolerance_ms(*edge)
        came = [s.at_ms for s in signs if s.kind is Kind.ARRIVED]
        own_ids: _Told = ids.get(edge.dialler, ())
        told = again[edge] > 0 and again_at[edge.peer] >= TELLS_ARRIVALS
        log_ends = seen.own[edge.peer][-1] if seen.is_written(edge.peer) else 0.0
        more: list[Sign] = []
        if told:
            signs = [
                s
                for s in signs
                if s.kind is not Kind.OK or _is_slave(own_ids, s.at_ms) or _heard(seen, s, came, tolerance)
            ]
            dues = _due(seen, edge.dialler, [*came, log_ends], R, tolerance, own_ids)
            more = [Sign(Kind.MISSED, edge, due, due, edge.peer, None) for due in dues]
        changed = []
        lived = [s.at_ms for s in signs if s.kind in (Kind.ARRIVED, Kind.OK)]
        for sign in signs:
            if sign.kind is Kind.SILENCE:
                is_timed = sign.value == "expired" or (told and sign.value == "idle")
                last_ms = last_before(came, sign.at_ms - tolerance) if told else last_before(lived, sign.at_ms)
                if is_timed and sign.at_ms - last_ms < E - R - tolerance:
                    sign = replace(sign, kind=Kind.EARLY, from_ms=sign.at_ms)
                elif is_timed and math.isfinite(last_ms):
                    began = last_ms if told else max(sign.at_ms - E - seen.timers.S_ms, last_ms)
                    sign = replace(sign, from_ms=began + R)
                elif sign.from_ms == sign.at_ms and not (told and is_timed):
                    sign = replace(sign, from_ms=sign.at_ms - E + R)
            changed.append(sign)
        seen.by_edge[edge] = sorted([*changed, *more], key=in_time)
    _own_missed(seen)


def _due(
    seen: Seen, node: str, times: Sequence[float], period_ms: float, slack_ms: float, ids: _Told = ()
) -> Iterator[float]:
    """Return when a line was due between these times and did not come. A NameServer 4.9 logs each registration of a
    master, and only the first of a slave."""
    for last, following in pairwise(times):
        due = last + period_ms
        while due + slack_ms < following and not _boots(seen, node, last, due) and not _is_slave(ids, due):
            yield due
            due += period_ms


def _boots(seen: Seen, node: str, from_ms: float, to_ms: float) -> bool:
    own = seen.by_edge.get(Edge(node, ""), ())
    return any(sign.kind is Kind.BOOT and from_ms < sign.at_ms <= to_ms for sign in own)


def _came_again(seen: Seen, edge: Edge) -> int:
    """Return registrations that were due from a broker that the NameServer had already."""
    tolerance, signs = seen.tolerance_ms(*edge), seen.by_edge[edge]
    came = [s.at_ms for s in signs if s.kind is Kind.ARRIVED]
    ends = sorted(s.at_ms for s in signs if s.kind in _DROPS)
    kept = [(a, b) for a, b in pairwise(came) if bisect_left(ends, a - tolerance) == bisect_right(ends, b)]
    return sum(abs(b - a - seen.timers.R_ms) <= tolerance for a, b in kept)


def _heard(seen: Seen, sign: Sign, came: list[float], tolerance: float) -> bool:
    """Whether a registration arrived that a broker logs as OK: 4.9 logs OK for a new topic even without an answer."""
    unseen = not seen.covers(sign.edge.peer, sign.at_ms - tolerance, sign.at_ms + tolerance)
    return unseen or is_near(came, sign.at_ms, tolerance)


def _own_missed(seen: Seen) -> None:
    """Return missing periodic lines in a broker's own log, and in a 5.x NameServer's scans."""
    due_by: dict[str, tuple[list[float], float]] = {}
    for node in seen.brokers:
        sent = sorted(
            s.from_ms
            for edge, signs in seen.by_edge.items()
            if edge.dialler == node
            for s in signs
            if s.observer == node and seen.kinds.get(edge.peer) == "name_server" and s.kind is not Kind.OPEN
        )
        due_by[node] = sent, seen.timers.R_ms
    scans = (row for row in seen.rows if row["event"] == "scheduled_task" and row.get("f") == "scanNotActiveBroker")
    for node, times in grouped((row["node"], row["time_ms"]) for row in scans).items():
        due_by[node] = times, seen.timers.S_ms
    for node, (times, period_ms) in due_by.items():
        if len(times) < TELLS_ARRIVALS:
            continue
        tolerance = 2 * seen.tolerance_ms(node)
        edge, waits_ms = Edge(node, ""), seen.timers.B_ms if node in seen.brokers else 0.0
        dues = _due(seen, node, [*times, seen.last_ms], period_ms, tolerance + waits_ms)
        if more := [Sign(Kind.OWN_MISSED, edge, due, due, node, None) for due in dues]:
            seen.by_edge[edge] = sorted([*seen.by_edge.get(edge, []), *more], key=in_time)


def _paired(seen: Seen) -> None:
    """Return pairs: an unanswered registration that arrived, or a lost route, with the close of its channel."""
    for edge, signs in seen.by_edge.items():
        if not edge.peer:
            continue
        tolerance = seen.tolerance_ms(*edge)
        arrived = [s for s in signs if s.kind is Kind.ARRIVED]
        given_up = [s for s in signs if s.kind in (Kind.NO_ANSWER, Kind.NO_DIAL)]
        times = [s.at_ms for s in arrived]
        gone: set[Sign] = set()
        more: list[Sign] = []
        for one in given_up:
            if seen.kinds.get(edge.peer) != "name_server":
                break
            at = bisect_left(times, one.from_ms - tolerance)
            end = bisect_right(times, max(one.from_ms + tolerance, one.at_ms - tolerance / 2))
            if at < end and arrived[at] not in gone:
                late = times[at] - one.from_ms > max(1_500.0, tolerance)
                kind = Kind.HALF_LATE if late else Kind.HALF
                more.append(Sign(kind, edge, one.at_ms, one.from_ms, one.observer, one.row))
                gone |= {arrived[at], one}
        ends = sorted([*(one.at_ms for one in given_up), *seen.idle.get(edge, ())])
        kept = []
        for sign in signs:
            if sign in gone:
                continue
            if sign.kind in CLOSES and is_near(ends, sign.at_ms, tolerance):
                if sign.kind is Kind.CLOSED_BY_PEER_SEEN:
                    kept.append(Sign(Kind.CLOSED_AFTER, edge, sign.at_ms, sign.at_ms, sign.observer, sign.row))
                continue  # the dialler's own close after its time-out says nothing more
            kept.append(sign)
        signs[:] = sorted([*kept, *more], key=in_time)
    _routes_gone(seen)


def _routes_gone(seen: Seen) -> None:
    """Return channels of clients and brokers that end within the client's expiry after the route lost the broker."""
    at_servers = ((edge, signs) for edge, signs in seen.by_edge.items() if seen.kinds.get(edge.peer) == "name_server")
    lost = grouped((edge.dialler, s.at_ms) for edge, signs in at_servers for s in signs if s.kind in _DROPS)
    own_lost = _lost_to_clients(seen)
    later_ms = 120_000.0 + seen.timers.P_ms + 20_000.0
    for edge, signs in seen.by_edge.items():
        drops = sorted([*lost.get(edge.peer, ()), *own_lost.get(edge, ())])
        if not drops or seen.kinds.get(edge.peer) not in ("broker", "slave"):
            continue
        expired = [s.at_ms for s in signs if s.kind is Kind.SILENCE]
        tolerance = seen.tolerance_ms(*edge)
        told_by_route = not seen.is_written(edge.peer) and edge in own_lost
        kept = []
        for sign in signs:
            at = bisect_right(drops, sign.at_ms - 85_000.0)
            follows = at > 0 and sign.at_ms - drops[at - 1] <= later_ms
            if follows and sign.kind is not Kind.SILENCE and seen.is_written(edge.dialler):
                follows = sign.kind in CLOSES and (told_by_route or is_near(expired, sign.at_ms, tolerance))
            if not follows:
                kept.append(sign)
        signs[:] = kept


def _used(seen: Seen, brokers: Mapping[str, Any], *, masters_only: bool) -> frozenset[str]:
    found = set[str]()
    for name, ids in brokers.items():
        of = ids if isinstance(ids, Mapping) and ids else {"0": ""}
        found |= {seen.addresses.get(str(at), str(name)) for id_, at in of.items() if id_ == "0" or not masters_only}
    return frozenset(found)


def _lost_to_clients(seen: Seen) -> dict[Edge, list[float]]:
    """Return (client, broker, time) at which the client took a route without the broker. A producer reports that it is
    alive only to brokers with id 0."""
    had: dict[tuple[str, str], frozenset[str]] = {}
    lost: dict[Edge, list[float]] = defaultdict(list)
    for row in seen.rows:
        brokers = value_of(row).get("brokers") if row["event"] == "route_changed" else None
        if isinstance(brokers, Mapping):
            masters_only = seen.kinds.get(str(row["node"])) == "producer"
            key, now = (str(row["node"]), str(row.get("topic"))), _used(seen, brokers, masters_only=masters_only)
            for broker in had.get(key, frozenset()) - now:
                lost[Edge(str(row["node"]), broker)].append(float(row["time_ms"]))
            had[key] = now
    return lost


_DROPS = (Kind.SILENCE, Kind.EARLY, Kind.LEFT, Kind.GONE, Kind.CLOSED_BY_PEER_SEEN, Kind.CLOSED_AFTER)
