"""Each NameServer's routes equal what is really alive and reachable, within the window of the last change.

For each NameServer process and broker, obligations.py says when the broker must be in the table (RETURN, KEEP) and when
it must not (DROP). Held means: in the route of every topic that the broker has had for longer than R + B. Measured are
the time of each drop and of each return. Where a fault makes the broker come and go, route_flapping.py says how long
each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..oracle.obligations import Obligation, ObligationKind, obligations
from ..oracle.windows import topic_window
from ..oracle.world import World
from ..verdict import Finding, Verdict
from .check import Check, Reads, Section
from .control import Control
from .findings import rounded, tolerated, verdict_of
from .lateness import LagWindow, Missing
from .route_flapping import flapping_findings
from .route_tables import RouteTables, route_tables
from .tolerance import Tolerance, tolerance

NAME = "routes_are_true"
_SHOWN = 60


@dataclass(slots=True)
class _Seen:
    """What one obligation came to over its topics; the worst topic by how far it was out of bounds."""

    examined: int = 0
    wrong: int = 0
    late: int = 0
    settled_ms: float | None = None
    """When the last topic was right."""
    over_ms: float = 0.0
    topic: str = ""
    stretch: tuple[float, float] | None = None
    """The wrong stretch of the worst topic, as far as it goes; None when no topic was ever wrong."""


def judge(control: Control, world: World) -> Verdict:
    """Examined: (obligation, topic) pairs. Violations: those where a broker was missing, or was still there."""
    demanded = obligations(world)
    if not demanded:
        why = "no NameServer and broker lived together for longer than the window of their last change"
        return Verdict.nothing_examined(NAME, why)
    tables = route_tables(control, world)
    tolerances = _tolerances(control, world, demanded)
    of_broker = _topics_of(tables)
    seen = {o.id: _look(o, tables, of_broker, world, tolerances[o.id]) for o in demanded}
    for id_ in _stalled(control, world, demanded, seen):
        seen[id_].wrong, seen[id_].late = 0, seen[id_].wrong + seen[id_].late
    findings = [_finding(o, tolerances[o.id], seen[o.id]) for o in demanded]
    findings += flapping_findings(control, world)
    measured = {
        "drops": _times(demanded, seen, ObligationKind.DROP),
        "returns": _times(demanded, seen, ObligationKind.RETURN),
    }
    return verdict_of(
        NAME,
        findings,
        measured=measured,
        nothing="no topic was ever due to be in a table",
        noun="times a NameServer's route did not equal what was alive and reachable",
    )


CHECK = Check(
    name=NAME,
    says="each NameServer holds exactly the brokers that are alive and reach it, within the drop and return windows",
    section=Section.ROUTES,
    reads=Reads.CONTROL,
    gather=lambda gathering, _world: gathering.control,
    judge=judge,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    drops, returns = measured.get("drops") or (), measured.get("returns") or ()
    if not drops and not returns:
        return "every table was right all the time"
    said = [f"{_many(len(drops), 'drop')}, the latest {_after(drops)}"] if drops else []
    return "; ".join(said + ([f"{_many(len(returns), 'return')}, the latest {_after(returns)}"] if returns else []))


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _after(entries: Sequence[Mapping[str, Any]]) -> str:
    last = entries[0]
    return f"{last['after_ms'] / 1000:.1f} s after {last['fault_id']} ({last['name_server']}, {last['broker_name']})"


def _tolerances(control: Control, world: World, demanded: Sequence[Obligation]) -> dict[int, Tolerance]:
    # A registration one period before the change is where φ is counted from.
    windows = [
        LagWindow(o.id, node, o.at_ms - world.timers.R_ms, o.to_ms if o.demand is ObligationKind.KEEP else o.from_ms)
        for o in demanded
        for node in (o.name_server, o.broker)
    ]
    lags = control.lateness.measured(world, windows)
    return {o.id: tolerance(world.timers, lags.get(o.id), o.window.timers) for o in demanded}


def _stalled(control: Control, world: World, demanded: Sequence[Obligation], seen: Mapping[int, _Seen]) -> set[int]:
    """The obligations where a broker was missing, and the machine explains why it did not register."""
    # After a heal it is the first registration that counts; in peace what made the broker be dropped counts too.
    missing = {
        o.id: Missing(
            (o.name_server, o.broker),
            stretch[0] if o.demand is ObligationKind.KEEP else max(o.at_ms, stretch[0]),
            min(stretch[1], o.to_ms),
        )
        for o in demanded
        if o.demand is not ObligationKind.DROP and seen[o.id].wrong and (stretch := seen[o.id].stretch)
    }
    return control.lateness.stalled(world, missing)


def _broker_incarnation(world: World, obligation: Obligation) -> int:
    lives = world.lives_of(obligation.broker)
    living = [life.incarnation for life in lives if life.start_ms <= obligation.at_ms]
    return living[-1] if living else -1


_Topics = Mapping[tuple[str, int], Sequence[tuple[str, float, float, float | None]]]
"""Broker process → its topics: name, when its process was started, when it made the topic, and when it lost it."""


def _topics_of(tables: RouteTables) -> _Topics:
    made: dict[tuple[str, int, str, float], float] = {}
    gone: dict[tuple[str, int, str, float], float] = {}
    for change in tables.topic_changes:
        key = change.broker, change.incarnation, change.topic, change.started_ms
        times = made if change.is_there else gone
        times[key] = min(times.get(key, change.time_ms), change.time_ms)
    found: dict[tuple[str, int], list[tuple[str, float, float, float | None]]] = defaultdict(list)
    for (broker, incarnation, topic, started_ms), made_ms in sorted(made.items()):
        lost_ms = gone.get((broker, incarnation, topic, started_ms))
        found[broker, incarnation].append((topic, started_ms, made_ms, lost_ms))
    return found


def _due(o: Obligation, tables: RouteTables, of_broker: _Topics, world: World) -> Iterator[tuple[str, float, float]]:
    """topic, from when and until when it is due: one that the broker made while it was up is due R + B later."""
    if o.demand is ObligationKind.DROP:
        yield from ((topic, o.from_ms, o.to_ms) for topic in tables.topics)
        return
    window_ms = topic_window(world.timers).latest_ms
    for topic, started_ms, made_ms, gone_ms in of_broker.get((o.broker, _broker_incarnation(world, o)), ()):
        due_ms = max(o.from_ms, made_ms + window_ms) if made_ms > started_ms else o.from_ms
        until_ms = o.to_ms if gone_ms is None else min(o.to_ms, gone_ms)
        if due_ms < until_ms:
            yield topic, due_ms, until_ms


def _look(o: Obligation, tables: RouteTables, of_broker: _Topics, world: World, tolerance_: Tolerance) -> _Seen:
    """What the NameServer held of the obligation's broker while it was due."""
    want = o.demand is not ObligationKind.DROP
    seen = _Seen()
    for topic, due_ms, until_ms in _due(o, tables, of_broker, world):
        over_ms, worst = 0.0, None
        for present, s, e in tables.presence((o.name_server, o.incarnation), topic, o.broker):
            if e <= 0 or present == want or s >= until_ms or e <= min(o.at_ms, due_ms):
                continue
            # How far a wrong stretch reaches into the obligation from its nearer end; 0 when it ends before.
            reaches_ms = max(min(min(e, until_ms) - due_ms, until_ms - max(s, due_ms)), 0.0)
            # A moment at the far end belongs to the next change, which took effect before its row was written.
            if s < due_ms or reaches_ms > tolerance_.valid_up_to_ms:
                settled_ms = min(e, until_ms)
                seen.settled_ms = settled_ms if seen.settled_ms is None else max(seen.settled_ms, settled_ms)
            if worst is None or (reaches_ms, s) > (over_ms, worst[0]):
                over_ms, worst = reaches_ms, (s, e)
        seen.examined += 1
        seen.wrong += over_ms > tolerance_.unknown_up_to_ms
        seen.late += tolerance_.valid_up_to_ms < over_ms <= tolerance_.unknown_up_to_ms
        if (over_ms, topic) >= (seen.over_ms, seen.topic):
            seen.over_ms, seen.topic, seen.stretch = over_ms, topic, worst
    return seen


def _finding(o: Obligation, tolerance_: Tolerance, seen: _Seen) -> Finding:
    is_kept = o.demand is ObligationKind.KEEP
    stretch = seen.stretch if seen.over_ms > 0 else None
    return Finding(
        subject=o.name_server,
        object=o.broker,
        topic=seen.topic if stretch else "",
        kind="must not hold" if o.demand is ObligationKind.DROP else "must hold",
        from_ms=o.from_ms,
        to_ms=o.to_ms,
        bound_ms=o.to_ms - o.at_ms if is_kept else o.window.latest_ms,
        formula=f"not before {o.window.formula}" if is_kept else o.window.formula,
        row=o.window.row,
        **tolerated(tolerance_),
        measured_ms=None if seen.settled_ms is None or is_kept else seen.settled_ms - o.at_ms,
        over_ms=seen.over_ms,
        examined=seen.examined,
        wrong=seen.wrong,
        late=seen.late,
        wrong_from_ms=max(stretch[0], o.from_ms) if stretch else None,
        wrong_to_ms=min(stretch[1], o.to_ms) if stretch else None,
        after=str(o.label),
    )


def _times(demanded: Sequence[Obligation], seen: Mapping[int, _Seen], demand: ObligationKind) -> list[dict[str, Any]]:
    """How long each drop or return after a fault took, per NameServer and broker; the longest first."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for o in demanded:
        settled_ms = seen[o.id].settled_ms
        if o.demand is not demand or not o.label.fault_id or settled_ms is None:
            continue
        entry = {
            "fault_id": o.label.fault_id,
            "name_server": o.name_server,
            "broker_name": o.broker,
            "after_ms": rounded(settled_ms - o.at_ms),
            "bound_ms": rounded(o.window.latest_ms),
        }
        key = (o.label.fault_id, o.name_server, o.broker)
        if key not in found or found[key]["after_ms"] < entry["after_ms"]:
            found[key] = entry
    return sorted(found.values(), key=lambda entry: -entry["after_ms"])[:_SHOWN]
