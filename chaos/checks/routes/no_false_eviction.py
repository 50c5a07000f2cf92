"""No NameServer drops a broker that is alive and reaches it, and none gives up a silent one too soon.

    live and reachable   in every stretch in which the broker must be in the table (obligations.py: RETURN, KEEP) no
                         `broker_dropped` row, whatever its reason
    too soon             a drop for silence (expired, idle) comes no earlier than E, or I, after the last registration
                         that this NameServer accepted, in any stretch and under any fault

Drops at the edge of a stretch are those of the change next to it. A channel closes for a live broker's own time-out
too: where the machine stood still for as long as that time-out, nobody can say whose fault the drop was.
routes_are_true asks whether the routes were right; this check names the drop, its reason, and how old the broker was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...oracle.obligations import Obligation, ObligationKind, obligations
from ...oracle.roles import member_at
from ...oracle.windows import Timers
from ...oracle.world import World
from ...topology import is_slave
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import Rule, at_no_time, finding, rounded, verdict_of
from ..record.control import Control
from ..record.lateness import may_time_out, patience_ms
from ..tolerance import Tolerance, tolerance

NAME = "no_false_eviction"
_ROW = "a live, reachable broker stays in the table"
_SOON = {"expired": "not before E", "idle": "not before I"}
_REASONS = ("closed", "exception", "expired", "idle", "unregistered")

_Pair = tuple[str, int, str]
"""NameServer, its incarnation, broker."""


class _Drop(NamedTuple):
    """One `broker_dropped` row."""

    time_ms: float
    reason: str
    age_ms: float | None
    """How long after the last registration that this NameServer accepted; None before the first."""
    short_ms: float
    """How much sooner than E, or I, a drop for silence was; 0 for others."""
    back_ms: float | None = None
    """When this NameServer accepted its next registration; None: it never did."""


@dataclass(slots=True)
class _Seen:
    """What a NameServer process did with a broker."""

    since_ms: float | None = None
    """The first registration that it accepted."""
    drops: list[_Drop] = field(default_factory=list)


def judge(control: Control, world: World) -> Verdict:
    """Examined: stretches in which a registered broker had to stay, and drops for silence. Violations: drops."""
    held = [o for o in obligations(world) if o.demand is not ObligationKind.DROP]
    nothing = "no NameServer and broker lived together for longer than the window of their last change"
    if not held:
        return Verdict.nothing_examined(NAME, nothing)
    pairs = _seen(control, world)
    dropped = {o.id: _drops_in(o, pairs) for o in held}
    stalls = _Stalls(control, world)
    findings = [_stay(o, stalls, dropped[o.id]) for o in held if _registered(o, pairs)]
    findings += [finding for pair, seen in sorted(pairs.items()) for finding in _too_soon(world, pair, seen, stalls)]
    return verdict_of(
        NAME,
        findings,
        measured=_measured(pairs, dropped),
        nothing="no broker registered with a NameServer that had to keep it",
        noun="drops of brokers that were alive, reachable or not silent for long enough",
    )


CHECK = Check(
    name=NAME,
    says="no NameServer dropped a broker that was alive and reached it",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES, Needs.BROKERS),
    judge=judge,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    said = f"{measured.get('of_live_brokers', 0)} drops of live brokers"
    shortest_ms = measured.get("shortest_silence_ms")
    return said if shortest_ms is None else f"{said}; shortest silence before a drop {shortest_ms / 1000:.1f} s"


def _seen(control: Control, world: World) -> dict[_Pair, _Seen]:
    found: dict[_Pair, _Seen] = defaultdict(_Seen)
    accepted: dict[_Pair, float] = {}
    slaves = {node.name for node in world.of_kind("slave")}
    for row in sorted(control.rows("registration", "broker_dropped"), key=lambda row: (row.time_ms, row.seq)):
        broker = member_at(world, row.broker_name or "", row.broker_id, row.address)
        if row.time_ms >= world.end_ms or (is_slave(broker) and broker not in slaves):
            continue
        pair = row.node, row.incarnation, broker
        seen = found[pair]
        if row.event == "broker_dropped" and world.had_before(broker, row.address, row.time_ms):
            continue
        if row.event == "broker_dropped":
            reason = str((row.decoded or {}).get("reason") or "")
            age_ms = row.time_ms - accepted[pair] if pair in accepted else None
            timers = world.timers_of(pair[2], pair[0])
            if reason == "expired" and age_ms is not None:  # by its own wall clock
                age_ms = world.wall_ms(row.node, row.time_ms) - world.wall_ms(row.node, accepted[pair])
            due_ms = {"expired": timers.E_ms, "idle": timers.I_ms}.get(reason)
            short_ms = 0.0 if due_ms is None or age_ms is None else max(due_ms - age_ms, 0.0)
            seen.drops.append(_Drop(row.time_ms, reason, age_ms, short_ms))
        elif not row.code:
            accepted[pair] = row.time_ms
            for number in reversed(range(len(seen.drops))):
                if seen.drops[number].back_ms is not None:
                    break
                seen.drops[number] = seen.drops[number]._replace(back_ms=row.time_ms)
            seen.since_ms = row.time_ms if seen.since_ms is None else seen.since_ms
    return dict(found)


def _drops_in(o: Obligation, pairs: Mapping[_Pair, _Seen]) -> list[tuple[float, _Drop]]:
    """The drops while the broker had to stay, by how far from the nearer end of that stretch; the furthest first."""
    seen = pairs.get((o.name_server, o.incarnation, o.broker))
    drops = [d for d in (seen.drops if seen else ()) if o.from_ms <= d.time_ms < o.to_ms]
    return sorted(((min(d.time_ms - o.from_ms, o.to_ms - d.time_ms), d) for d in drops), key=_furthest, reverse=True)


def _furthest(drop: tuple[float, _Drop]) -> tuple[float, float]:
    return drop[0], drop[1].time_ms


class _Stalls:
    """How late the machine was around a drop."""

    def __init__(self, control: Control, world: World) -> None:
        self.timers = world.timers
        self._lateness, self._world = control.lateness, world

    def within(self, nodes: Sequence[str], from_ms: float, to_ms: float) -> float | None:
        """The largest lateness of these nodes; None when nobody measured it."""
        return self._lateness.largest(self._world, nodes, from_ms, to_ms)

    def around(self, nodes: Sequence[str], at_ms: float) -> float | None:
        """The same around a drop."""
        return self.within(nodes, at_ms - self.timers.R_ms - self.timers.B_ms, at_ms + self.timers.delivery_ms)

    def explains(self, nodes: Sequence[str], drop: _Drop) -> bool:
        """Whether the machine stood still so long that a time-out of a healthy pair may have run out."""
        timers = self._world.timers_of(nodes[1], nodes[0])
        patient_ms = {
            "closed": patience_ms(self._world, *nodes),
            "exception": patience_ms(self._world, *nodes),
            "expired": timers.E_ms - timers.beat_ms,
            "idle": timers.I_ms - timers.R_ms,
        }.get(drop.reason)
        return patient_ms is not None and may_time_out(timers, self.around(nodes, drop.time_ms), patient_ms)


def _registered(obligation: Obligation, pairs: Mapping[_Pair, _Seen]) -> bool:
    """Whether the NameServer had the broker at all, as far as the record says."""
    seen = pairs.get((obligation.name_server, obligation.incarnation, obligation.broker))
    return seen is not None and seen.since_ms is not None and seen.since_ms < obligation.to_ms


def _stay(o: Obligation, stalls: _Stalls, drops: Sequence[tuple[float, _Drop]]) -> Finding:
    nodes = o.name_server, o.broker
    lag_ms = stalls.within(nodes, o.at_ms - stalls.timers.R_ms, o.from_ms) if drops else None
    tolerance_ = tolerance(stalls.timers, lag_ms, o.window.timers)
    wrong = [one for one in drops if one[0] > tolerance_.unknown_up_to_ms and not stalls.explains(nodes, one[1])]
    late = [one for one in drops if one not in wrong and one[0] > tolerance_.valid_up_to_ms]
    worst = (wrong or late)[0][1] if wrong or late else None
    until_ms = o.to_ms if worst is None or worst.back_ms is None else min(worst.back_ms, o.to_ms)
    return finding(
        (o.name_server, o.broker),
        "must not be dropped",
        (o.from_ms, o.to_ms),
        at_no_time(_ROW),
        out=(worst.time_ms, until_ms) if worst else None,
        tolerance=tolerance_,
        wrong=len(wrong),
        late=len(late),
        after=str(o.label),
        times=_back(worst),
        more=_of_drop(worst) if worst else {},
    )


def _back(drop: _Drop | None) -> dict[str, float]:
    return {} if drop is None or drop.back_ms is None else {"back": drop.back_ms}


def _of_drop(drop: _Drop) -> dict[str, Any]:
    return {"reason": drop.reason, "registered_before_ms": rounded(drop.age_ms)}


def _too_soon(world: World, pair: _Pair, seen: _Seen, stalls: _Stalls) -> list[Finding]:
    """Drops for silence, held against the age of the last registration."""
    timers, found = world.timers_of(pair[2], pair[0]), []
    for drop in seen.drops:
        if drop.reason not in _SOON:
            continue
        lag_ms = 0.0
        if drop.short_ms > timers.delivery_ms:
            lag_ms = stalls.around((pair[0], pair[2]), drop.time_ms) or 0.0
        found.append(_silence(timers, pair, drop, tolerance(timers, lag_ms, 1)))
    return found


def _silence(timers: Timers, pair: _Pair, drop: _Drop, tolerance_: Tolerance) -> Finding:
    age_ms = drop.age_ms or 0.0
    return finding(
        (pair[0], pair[2]),
        "dropped too soon",
        (drop.time_ms - age_ms, drop.time_ms),
        Rule(
            "a NameServer drops a broker for silence",
            _SOON[drop.reason],
            earliest_ms=timers.E_ms if drop.reason == "expired" else timers.I_ms,
        ),
        out=(drop.time_ms, None) if drop.short_ms else None,
        tolerance=tolerance_,
        measured_ms=drop.age_ms,
        over_ms=drop.short_ms,
        times=_back(drop),
        more=_of_drop(drop),
    )


def _measured(pairs: Mapping[_Pair, _Seen], dropped: Mapping[int, Sequence[tuple[float, _Drop]]]) -> dict[str, Any]:
    reasons = Counter(drop.reason for seen in pairs.values() for drop in seen.drops)
    ages = [d.age_ms for seen in pairs.values() for d in seen.drops if d.reason in _SOON and d.age_ms is not None]
    return {
        "drops": {reason: reasons[reason] for reason in _REASONS if reasons[reason]},
        "of_live_brokers": sum(len(drops) for drops in dropped.values()),
        "shortest_silence_ms": rounded(min(ages, default=None)),
    }
