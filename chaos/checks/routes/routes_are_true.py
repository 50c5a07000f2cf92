"""Each NameServer's routes equal what is really alive and reachable, within the window of the last change.

For each NameServer process and broker, promises.py says when the broker must be in the table (RETURN, KEEP) and when
it must not (DROP). Held means: in the route of every topic that the broker has had for longer than R + B. Measured are
the time of each drop and of each return. Where a fault makes the broker come and go, route_flapping.py says how long
each time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...oracle.promises import Obligation, ObligationKind, obligations, route_states
from ...oracle.windows import Window
from ...oracle.world import World
from ...verdict import Finding, Validity, Verdict, length
from ..check import Check, Group, Needs, Section
from ..findings import Rule, finding, lasted, rounded, verdict_of, wrongs
from ..record.control import Control
from ..record.demands import Demand, Demands, demand_tolerances
from ..record.lateness import Missing
from ..record.route_tables import Presence, RouteTables, route_tables
from ..tolerance import Tolerance

NAME = "routes_are_true"
_SHOWN = 60


class _Settled(NamedTuple):
    """How long a change took, against its bound."""

    margin_ms: float
    after_ms: float
    window: Window


@dataclass(slots=True)
class _Seen:
    """What one obligation came to over its topics; the worst topic by how far it was out of bounds."""

    examined: int = 0
    wrong: int = 0
    late: int = 0
    settled: _Settled | None = None
    """Of what had to change, and did, the topic nearest to its bound."""
    reaches_ms: float = 0.0
    """How far the worst stretch reaches into the obligation from the nearer end: what lateness may explain."""
    topic: str = ""
    stretch: tuple[float, float] | None = None
    """The wrong stretch of the worst topic, as far as it goes; None when no topic was ever wrong."""
    due: Demand | None = None
    """When the worst topic was due."""


def judge(control: Control, world: World) -> Verdict:
    """Examined: (obligation, topic) pairs. Violations: those where a broker was missing, or was still there."""
    demanded = obligations(world)
    if not demanded:
        why = "no NameServer and broker lived together for longer than the window of their last change"
        return Verdict.nothing_examined(NAME, why)
    tables = route_tables(control, world)
    tolerances = demand_tolerances(control, world)
    demands = Demands(tables, world)
    seen = {o.id: _look(o, tables, demands, tolerances[o.id]) for o in demanded}
    for id_ in _stalled(control, world, demanded, seen):
        seen[id_].wrong, seen[id_].late = 0, seen[id_].wrong + seen[id_].late
    findings = [_finding(o, tolerances[o.id], seen[o.id]) for o in demanded]
    measured = {
        "drops": _times(demanded, seen, ObligationKind.DROP),
        "returns": _times(demanded, seen, ObligationKind.RETURN),
        **wrongs(findings),
    }
    verdict = verdict_of(
        NAME,
        findings,
        measured=measured,
        nothing="no topic was ever due to be in a table",
        noun="times a NameServer's route did not equal what was alive and reachable",
    )
    if verdict.verdict is Validity.VALID and (still_open := _open_at_the_end(tables, world)):
        return replace(verdict, verdict=Validity.UNKNOWN, why=still_open)
    return verdict


def _open_at_the_end(tables: RouteTables, world: World) -> str:
    """Which broker a table lacked when the run ended, and had still time to get back; "" for none."""
    for state in route_states(world):
        last = state.up and state.judged and state.label.fault_id and state.end_ms >= world.end_ms
        if not last or state.settled_ms <= world.end_ms:
            continue
        lacked = [
            topic
            for topic in tables.topics
            if any(one.present for life in tables.stretches for one in tables.presence(life, topic, state.broker))
            and not _at_the_end(tables.presence((state.name_server, state.incarnation), topic, state.broker))
        ]
        if lacked:
            return (
                f"{state.name_server} did not hold {state.broker} ({lacked[0]}) when the run ended, "
                f"{length(world.end_ms - state.start_ms)} after {state.label}; "
                f"{length(state.window.latest_ms)} are allowed: "
                f"`settle_s: {math.ceil(state.window.latest_ms / 1000) + 1}` decides it"
            )
    return ""


def _at_the_end(presence: Sequence[Presence]) -> bool:
    return bool(presence) and presence[-1].present


CHECK = Check(
    name=NAME,
    says="each NameServer has exactly the brokers that are alive and reach it, within the drop and return windows",
    group=Group.ROUTES,
    section=Section.ROUTES,
    is_of_the_whole=True,
    needs=(Needs.TABLES, Needs.BROKERS),
    judge=judge,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    drops, returns = measured.get("drops") or (), measured.get("returns") or ()
    if not drops and not returns:
        return "" if measured.get("wrong") else "every table was right all the time"
    said = [f"{_many(len(drops), 'drop')}, the latest {_after(drops)}"] if drops else []
    return "; ".join(said + ([f"{_many(len(returns), 'return')}, the latest {_after(returns)}"] if returns else []))


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _after(entries: Sequence[Mapping[str, Any]]) -> str:
    last = entries[0]
    return f"{last['after_ms'] / 1000:.1f} s after {last['fault_id']} ({last['name_server']}, {last['broker_name']})"


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


def _look(o: Obligation, tables: RouteTables, demands: Demands, tolerance_: Tolerance) -> _Seen:
    """What the NameServer held of the obligation's broker while it was due."""
    seen = _Seen()
    for due in demands.of(o):
        topic, due_ms, until_ms = due.topic, due.from_ms, due.to_ms
        farthest_ms, worst = 0.0, None
        process = o.name_server, o.incarnation
        for present, s, e in tables.presence(process, topic, o.broker, anywhere=not due.wants):
            if e <= 0 or present == due.wants or s >= until_ms or e <= min(o.at_ms, due_ms):
                continue
            # How far a wrong stretch reaches into the obligation from its nearer end; 0 when it ends before.
            reaches_ms = max(min(min(e, until_ms) - due_ms, until_ms - max(s, due_ms)), 0.0)
            # One that began later was no change that took its time: it is wrong, or a moment at the far end, which
            # belongs to the next change, that took effect before its row was written.
            if s < due_ms:
                after_ms = min(e, until_ms) - due.at_ms
                settled = _Settled(after_ms - due.window.latest_ms, after_ms, due.window)
                seen.settled = settled if seen.settled is None else max(seen.settled, settled, key=_margin)
            if worst is None or (reaches_ms, s) > (farthest_ms, worst[0]):
                farthest_ms, worst = reaches_ms, (s, e)
        seen.examined += 1
        seen.wrong += farthest_ms > tolerance_.unknown_up_to_ms
        seen.late += tolerance_.valid_up_to_ms < farthest_ms <= tolerance_.unknown_up_to_ms
        if (farthest_ms, topic) >= (seen.reaches_ms, seen.topic):
            seen.reaches_ms, seen.topic, seen.stretch, seen.due = farthest_ms, topic, worst, due
    return seen


def _margin(settled: _Settled) -> float:
    return settled.margin_ms


def _finding(o: Obligation, tolerance_: Tolerance, seen: _Seen) -> Finding:
    stretch = seen.stretch if seen.reaches_ms > 0 else None
    return finding(
        (o.name_server, o.broker, seen.topic if stretch else ""),
        "must not hold" if o.demand is ObligationKind.DROP else "must hold",
        (o.from_ms, o.to_ms),
        Rule(o.window.row, ""),
        out=(max(stretch[0], o.from_ms), min(stretch[1], o.to_ms)) if stretch else None,
        tolerance=tolerance_,
        examined=seen.examined,
        wrong=seen.wrong,
        late=seen.late,
        after=str(o.label),
        **_measured(o, tolerance_, seen),
    )


def _measured(o: Obligation, tolerance_: Tolerance, seen: _Seen) -> dict[str, Any]:
    """What was measured against which end: how late it was, how much too early, or how long it was what it may never
    be. In each case it is out of bounds for as long as the wrong stretch lasts within the obligation."""
    window, due = o.window, seen.due
    if o.demand is ObligationKind.KEEP:
        ends = {"earliest_ms": o.to_ms - o.at_ms, "bound_ms": _finite(window.latest_ms)}
        formula = window.formula if math.isfinite(window.latest_ms) else f"not before {window.formula}"
    else:
        ends, formula = {"bound_ms": o.from_ms - o.at_ms}, window.formula
        if o.demand is ObligationKind.DROP and 0 < window.earliest_ms <= _after_ms(seen, o):
            ends["earliest_ms"] = window.earliest_ms  # KEEP says whether it was kept until then
    if due is None or seen.stretch is None or seen.reaches_ms <= tolerance_.valid_up_to_ms:
        if seen.settled is None or o.demand is ObligationKind.KEEP:
            return {**ends, "formula": formula}
        of = seen.settled.window
        return {
            **ends,
            "measured_ms": seen.settled.after_ms,
            "bound_ms": of.latest_ms,
            "formula": of.formula,
            "over_ms": max(seen.settled.margin_ms, 0.0),
        }
    s, e = max(seen.stretch[0], due.from_ms), min(seen.stretch[1], due.to_ms)
    if o.demand is ObligationKind.KEEP and e >= o.to_ms:
        return {**ends, "measured_ms": s - o.at_ms, "formula": formula, "over_ms": e - s}
    if o.demand is not ObligationKind.KEEP and seen.stretch[0] < due.from_ms:
        bound_ms = due.from_ms - due.at_ms
        return {
            **ends,
            "measured_ms": e - due.at_ms,
            "bound_ms": bound_ms,
            "formula": due.window.formula,
            "over_ms": e - s,
        }
    return lasted(s, e)


def _after_ms(seen: _Seen, o: Obligation) -> float:
    """How long the change took; where nothing changed, as long as it may have."""
    return o.from_ms - o.at_ms if seen.settled is None else seen.settled.after_ms


def _finite(value_ms: float) -> float | None:
    return value_ms if math.isfinite(value_ms) else None


def _times(demanded: Sequence[Obligation], seen: Mapping[int, _Seen], demand: ObligationKind) -> list[dict[str, Any]]:
    """How long each drop or return after a fault took, per NameServer and broker; the longest first."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for o in demanded:
        settled = seen[o.id].settled
        if o.demand is not demand or not o.label.fault_id or settled is None:
            continue
        entry = {
            "fault_id": o.label.fault_id,
            "name_server": o.name_server,
            "broker_name": o.broker,
            "after_ms": rounded(settled.after_ms),
            "bound_ms": rounded(settled.window.latest_ms),
        }
        key = (o.label.fault_id, o.name_server, o.broker)
        if key not in found or found[key]["after_ms"] < entry["after_ms"]:
            found[key] = entry
    return sorted(found.values(), key=lambda entry: -entry["after_ms"])[:_SHOWN]
