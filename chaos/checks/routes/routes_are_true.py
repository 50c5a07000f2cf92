"""Each NameServer's routes equal what is really alive and reachable, within the window of the last change.

For each NameServer process and broker, promises.py says when the broker must be in the table (RETURN, KEEP) and when
it must not (DROP). Held means: in the route of every topic that the broker has had for longer than R + B. Measured are
the time of each drop and of each return.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...oracle.promises import Obligation, ObligationKind, obligations
from ...oracle.windows import NEVER
from ...oracle.world import World
from ...verdict import Finding, Validity, Verdict
from ..check import Group, Needs, Section, check
from ..findings import NEVER as FOREVER
from ..findings import Rule, finding, rounded, verdict_of, wrongs
from ..record.control import Control
from ..record.demands import Demands, demand_tolerance, open_at_the_end
from ..record.received import Received, received
from ..record.registered_rows import registered_rows
from ..record.route_tables import RouteTables, route_tables
from ..record.settling import Settling, Wrong

UNCALLED = "must not hold a broker of another list"
_SHOWN = 60


@check(
    says="each NameServer lists exactly the brokers that are alive and can reach it, and adds or drops brokers in time",
    group=Group.ROUTES,
    section=Section.ROUTES,
    is_of_the_whole=True,
    needs=(Needs.TABLES, Needs.BROKERS),
    tells=lambda measured: _told(measured),
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: (obligation, topic) pairs. Violations: those where a broker was missing, or was still there."""
    demanded = obligations(world)
    if not demanded:
        why = "no NameServer and broker ran together for longer than the time limit of their last change"
        return Verdict.nothing_examined(why)
    tables, found = route_tables(control, world), received(control, world)
    demanded = [o for o in demanded if not (o.demand is ObligationKind.KEEP and _was_under_way(control, world, o))]
    demands = Demands(tables, world)
    seen = [(o, _look(o, Settling(demand_tolerance(control, world, o)), tables, demands)) for o in demanded]
    _excuse(control, world, seen)
    findings = [_finding(o, of, found) for o, of in seen]
    drops, returns = (_times(seen, demand) for demand in (ObligationKind.DROP, ObligationKind.RETURN))
    measured = {"drops": drops, "returns": returns, **wrongs(findings)}
    verdict = verdict_of(
        findings,
        measured=measured,
        nothing="at no time did a topic have to be in a table",
        noun="times a NameServer's route did not list exactly the living and reachable brokers",
    )
    if verdict.verdict is Validity.VALID and (still_open := open_at_the_end(tables, world)):
        return replace(verdict, verdict=Validity.UNKNOWN, why=still_open)
    return verdict


def _told(measured: Mapping[str, Any]) -> str:
    said = []
    for what in ("drop", "return"):
        if times := measured.get(f"{what}s"):
            last, count = times[0], f"{len(times)} {what}{'s' if len(times) > 1 else ''}"
            end = "the end of " if last.get("phase") == "end" else ""
            where = f"{end}{last['fault_id']} ({last['name_server']}, {last['broker_name']})"
            said.append(f"{count}, the latest {last['after_ms'] / 1000:.1f} s after {where}")
    return "; ".join(said) or ("" if measured.get("wrong") else "every table was right all the time")


def _was_under_way(control: Control, world: World, o: Obligation) -> bool:
    """Whether the broker waited for an answer to a registration as the fault began: the NameServer may have read the
    request, so that nothing holds up the close of the channel behind it when the time-out is over."""
    sent = registered_rows(control, world).sent(o.broker, o.name_server)
    return any(one.began_ms <= o.at_ms <= one.ended_ms and not one.is_ok for one in sent)


def _look(o: Obligation, seen: Settling, tables: RouteTables, demands: Demands) -> Settling:
    """What the NameServer held of the obligation's broker while it was due."""
    wants = o.demand is not ObligationKind.DROP
    for due in demands.of(o):
        held = tables.presence((o.name_server, o.incarnation), due.topic, o.broker, anywhere=not wants)
        since_ms = max(min(o.at_ms, due.from_ms), 0.0)
        seen.add(due, (Wrong(s, e) for is_there, s, e in held if is_there != wants and since_ms < e and s < due.to_ms))
    return seen


def _excuse(control: Control, world: World, seen: Sequence[tuple[Obligation, Settling]]) -> None:
    """Where a broker was missing, and the machine explains why it did not register."""
    for o, of in seen:
        if o.demand is not ObligationKind.DROP and of.wrong and of.worst is not None:
            # After a heal it is the first registration that counts; in peace what made it be dropped counts too.
            from_ms = of.worst.s if o.demand is ObligationKind.KEEP else max(o.at_ms, of.worst.s)
            if control.lateness.explains(world, (o.name_server, o.broker), from_ms, min(of.worst.e, o.to_ms)):
                of.excuse()


def _finding(o: Obligation, seen: Settling, found: Received) -> Finding:
    uncalled = found.came_uncalled(o.broker, o.name_server)
    kind = "must hold" if o.demand is not ObligationKind.DROP else UNCALLED if uncalled else "must not hold"
    worst = seen.worst if seen.reaches_ms > 0 else None
    more: dict[str, Any] = {"holder": o.broker} if kind == UNCALLED else {}
    if kind == "must hold" and seen.wrong and worst and found.was_registered(o.broker, o.name_server, worst.s, worst.e):
        more = {"read": True}
    return finding(
        (o.name_server, o.broker, seen.due.topic if worst and seen.due else ""),
        kind,
        (o.from_ms, o.to_ms),
        Rule(o.window.row, ""),
        out=(max(worst.s, o.from_ms), min(worst.e, o.to_ms)) if worst else None,
        after=str(o.label),
        more=more,
        **seen.counts | _measured(o, seen),
    )


def _measured(o: Obligation, seen: Settling) -> dict[str, Any]:
    """What was measured against which end."""
    window, own = o.window, o.window._replace(latest_ms=o.from_ms - o.at_ms)
    measured = seen.measured(own)
    if o.demand is ObligationKind.KEEP:
        ends: dict[str, Any] = {"earliest_ms": o.to_ms - o.at_ms}
        ends["bound_ms"] = window.latest_ms if window.latest_ms < NEVER else None
        ends["formula"] = window.formula if window.latest_ms < NEVER else f"not before {window.formula}"
        if (out := seen.out()) is None:
            return ends
        return measured if out[1] < o.to_ms else {**ends, "measured_ms": out[0] - o.at_ms, "over_ms": out[1] - out[0]}
    took_ms = seen.settled.after_ms if seen.settled else own.latest_ms
    if o.demand is ObligationKind.DROP and 0 < window.earliest_ms <= took_ms and measured["formula"] != FOREVER:
        measured["earliest_ms"] = window.earliest_ms  # KEEP says whether it was kept until then
    return measured


def _times(seen: Sequence[tuple[Obligation, Settling]], demand: ObligationKind) -> list[dict[str, Any]]:
    """How long each drop or return after a fault took, per NameServer and broker; the longest first."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for o, of in seen:
        if o.demand is demand and o.label.fault_id and of.settled is not None:
            key, took_ms = (o.label.fault_id, o.name_server, o.broker), of.settled.after_ms
            if key not in found or found[key]["after_ms"] < took_ms:
                found[key] = dict(zip(("fault_id", "name_server", "broker_name"), key, strict=True))
                found[key] |= {"phase": o.label.phase}
                found[key] |= {"after_ms": rounded(took_ms), "bound_ms": rounded(of.settled.window.latest_ms)}
    return sorted(found.values(), key=lambda entry: -entry["after_ms"])[:_SHOWN]
