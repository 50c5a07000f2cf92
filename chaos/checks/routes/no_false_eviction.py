"""No NameServer drops a broker that it must have, or drops a silent broker too soon.

    read             registration ── registration ─┬─ …
    must be there    ├───────────────────── until min(E, I) of silence ──┤        oracle/name_server.py
    broker_dropped                       ▲ INVALID                         ▲ right

routes_are_true asks whether the routes were right; this check names the drop, its reason, and how old the broker was.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...oracle.intervals import grouped
from ...oracle.name_server import joined
from ...oracle.recorded import Life
from ...oracle.roles import member_at
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Rule, at_no_time, finding, rounded, verdict_of
from ..record.control import Control, Row
from ..record.lateness import may_time_out, patience_ms
from ..record.received import Machine, received

_SHOWN = 60
_ROW = "a broker that registered stays until its channel ends, or it was silent for long enough"
_SOON_ROW = "a NameServer drops a broker for silence"
_SOON = {"expired": "not before E", "idle": "not before I"}


class _Drop(NamedTuple):
    time_ms: float
    reason: str
    age_ms: float | None
    """How long after its last registration, by the clock that the NameServer counts by; None: it had none."""
    soon_ms: float | None
    """How old a broker must be to be dropped for this reason; None where its age is no matter."""
    short_ms: float
    """For how much longer the NameServer had to have the broker; 0: not at all."""
    back_ms: float | None = None
    """When the NameServer took its next registration; None: it never did."""


@check(
    says="no NameServer drops a broker before the broker's channel ended or the broker was silent for long enough",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES, Needs.BROKERS),
    tells=lambda measured: f"{measured.get('of_live_brokers', 0)} drops of live brokers{_silence(measured)}",
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: stretches in which a broker had to stay, and drops for silence. Violations: drops."""
    told, findings, every = _told_of(control, world), list[Finding](), list[_Drop]()
    shown: list[dict[str, Any]] = []
    for life, broker, machine in received(control, world).every():
        rows = told.get((*life.process, broker), ())
        kept = [(group[0].start_ms, max(one.end_ms for one in group)) for group in joined(machine.must())]
        here = _drops(world, machine, kept, rows, was_read=received(control, world).was_read(life))
        every += here
        shown += [
            {"name_server": life.node, "broker": broker, "at_ms": d.time_ms, "reason": d.reason, "back_ms": d.back_ms}
            for d in here
        ]
        if any(row.event == "registration" for row in rows):
            findings += [finding((life.node, broker), "must not be dropped", span, at_no_time(_ROW)) for span in kept]
        # one that never registered with this process, it must not have had: registrations_are_kept
        aged = [drop for drop in here if drop.age_ms is not None]
        counted = [drop for drop in here if drop.short_ms > 0 or (drop in aged and drop.reason in _SOON)]
        findings += [_finding(control, world, life, broker, machine, drop) for drop in counted]
    ages = (drop.age_ms for drop in every if drop.reason in _SOON and drop.age_ms is not None)
    measured: dict[str, Any] = {
        "drops": dict(sorted(Counter(drop.reason for drop in every).items())),
        "of_live_brokers": sum(f.wrong + f.late for f in findings),
        "shortest_silence_ms": rounded(min(ages, default=None)),
    }
    if shown:
        measured["dropped"] = sorted(shown, key=lambda one: (one["at_ms"], one["name_server"]))[:_SHOWN]
    return verdict_of(
        findings,
        measured=measured,
        nothing="no NameServer accepted a registration that it had to keep",
        noun="drops came before the broker's channel had ended, or before the broker was silent for long enough",
    )


def _silence(measured: Mapping[str, Any]) -> str:
    shortest_ms = measured.get("shortest_silence_ms")
    return "" if shortest_ms is None else f"; shortest silence before a drop {shortest_ms / 1000:.1f} s"


def _told_of(control: Control, world: World) -> Mapping[tuple[str, int, str], Sequence[Row]]:
    """NameServer, its incarnation and broker → what the NameServer says of it: registrations taken, and drops. An
    address that is no node's, and was registered by hand, is no broker, whatever its name and id."""
    strange = {act.address for act in world.acts if act.f == "register"} - world.owners.keys()
    rows = (row for row in control.rows("registration", "broker_dropped") if row.address not in strange)
    named = ((row, member_at(world, row.broker_name, row.broker_id, row.address)) for row in rows)
    return grouped(
        ((*row.process, broker), row)
        for row, broker in named
        if not row.code and row.time_ms < world.end_ms
        if row.event == "registration" or not world.had_before(broker, row.address, row.time_ms)
    )


def _drops(
    world: World, machine: Machine, kept: Sequence[tuple[float, float]], rows: Sequence[Row], *, was_read: bool
) -> list[_Drop]:
    """`was_read`: the transport's record says what came. Elsewhere the NameServer's own word for its last registration
    counts, for what a broker says that it sent may not have arrived. What is heard later (322, 904) sets the time anew,
    by a wall clock that may have been set back meanwhile."""
    timers, found, last_ms = machine.timers, list[_Drop](), None
    for row in rows:
        if row.event == "registration":
            last_ms = row.time_ms
            found = [drop if drop.back_ms else drop._replace(back_ms=last_ms) for drop in found]
            continue
        reason = str(row.said.get("reason") or "")
        age_ms = None if last_ms is None else row.time_ms - last_ms
        if reason == "expired" and last_ms is not None:  # by its own wall clock
            heard_ms = (one.at_ms for one in machine.heard if last_ms < one.at_ms < row.time_ms)
            oldest_ms = min(world.wall_ms(row.node, at_ms) for at_ms in (last_ms, *heard_ms))
            age_ms = world.wall_ms(row.node, row.time_ms) - oldest_ms
        soon_ms = {"expired": timers.E_ms, "idle": timers.I_ms}.get(reason)
        short_ms = max((to_ms - row.time_ms for from_ms, to_ms in kept if from_ms < row.time_ms < to_ms), default=0.0)
        if soon_ms is not None and age_ms is not None:
            short_ms = max(short_ms if was_read else 0.0, soon_ms - age_ms)
        found.append(_Drop(row.time_ms, reason, age_ms, soon_ms, short_ms))
    return found


def _finding(control: Control, world: World, life: Life, broker: str, machine: Machine, drop: _Drop) -> Finding:
    age_ms, soon_ms = drop.age_ms or 0.0, drop.soon_ms
    tolerance = received(control, world).tolerance(life, broker, drop.time_ms - age_ms, drop.time_ms)
    rule = at_no_time(_ROW)
    away_ms = min(drop.short_ms, (drop.back_ms or math.inf) - drop.time_ms)
    away_ms = away_ms if away_ms > tolerance.unknown_up_to_ms else drop.short_ms
    said: dict[str, Any] = {"measured_ms": away_ms, "over_ms": away_ms}
    by_its_word_ms = 0.0 if soon_ms is None else max(soon_ms - age_ms, 0.0)
    if soon_ms is not None and (by_its_word_ms > tolerance.unknown_up_to_ms or drop.short_ms <= by_its_word_ms):
        rule = Rule(_SOON_ROW, _SOON[drop.reason], earliest_ms=soon_ms)
        said = {"measured_ms": drop.age_ms, "over_ms": by_its_word_ms or drop.short_ms}
    if drop.short_ms > tolerance.unknown_up_to_ms and _explained(control, world, life, broker, machine, drop):
        said |= {"wrong": 0, "late": 1}
    return finding(
        (life.node, broker),
        "must not be dropped" if rule.earliest_ms is None else "dropped too soon",
        (drop.time_ms - age_ms, drop.time_ms + away_ms),
        rule,
        out=(drop.time_ms, drop.time_ms + away_ms) if drop.short_ms else None,
        tolerance=tolerance,
        times={} if drop.back_ms is None else {"back": drop.back_ms},
        more={"reason": drop.reason, "registered_before_ms": rounded(drop.age_ms)},
        **said,
    )


def _explained(control: Control, world: World, life: Life, broker: str, machine: Machine, drop: _Drop) -> bool:
    """Whether the machine stood still so long that a time-out of a healthy pair may have closed the channel; only
    where nobody recorded whether it was closed."""
    if machine.is_witnessed or drop.reason not in ("closed", "exception"):
        return False
    timers, nodes = world.timers, (life.node, broker)
    from_ms, to_ms = drop.time_ms - timers.R_ms - timers.B_ms, drop.time_ms + timers.delivery_ms
    lag_ms = control.lateness.largest(world, nodes, from_ms, to_ms)
    return may_time_out(machine.timers, lag_ms, patience_ms(world, *nodes))
