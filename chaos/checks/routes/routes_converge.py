"""All NameServers that the same brokers can reach hold equal routes, once the window of the last change is over.

    change (fault or heal) ────── window ──────┬──────────── judged ────────────┬─ next change
                            drop or return     └ all of a class equal, each topic ┘

The run is cut into segments at every change of what a NameServer process can hold. Within a segment the NameServers
that the same live brokers can reach form a class. A segment shorter than its window judges nothing. A topic made or
changed inside a segment opens a window of its own, R + B. From the moment that somebody has a broker registered, or its
write permission wiped or added, by hand at a NameServer, it is not compared: done_by_hand says what must show there.
Measured is when each class had converged after each change. Where a scenario promises `tables_agree_within_s`, any two
NameServers are held to that besides (promised.py).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...oracle.promises import BEGIN, FaultEdge, RouteState, ToldByHand, route_states, told_by_hand
from ...oracle.windows import Window, serves_window, topic_window
from ...oracle.world import World
from ...topology import broker_name, is_slave
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import Rule, finding, lasted, rounded, verdict_of, wrongs
from ..record.control import Control, decoded
from ..record.lateness import Missing
from ..record.route_tables import Process, RouteStretch, RouteTables, route_tables
from ..tolerance import Tolerance, tolerance
from .promised import tables_agree

NAME = "routes_converge"


@dataclass(frozen=True, slots=True)
class Segment:
    """One class of NameServer processes between two changes, judged in [from_ms, to_ms)."""

    id: int
    members: tuple[tuple[str, int], ...]
    """(name_server, incarnation), at least two."""
    start_ms: float
    from_ms: float
    to_ms: float
    latest: RouteState
    """The pair whose window ends last: it decides the bound."""
    label: FaultEdge
    label_ms: float
    """When the change began that this segment belongs to; a fault of several links takes several moments."""
    slaves_only: frozenset[str] = frozenset()
    """The names of which only slaves reach these NameServers."""


class _Difference(NamedTuple):
    """In [s, e) the topic's route at another member was not the reference's."""

    s: float
    e: float
    member: Process
    reference: Process
    last_ms: float
    """When the last of the pieces began that this is made of: the routes of that moment are shown."""


@dataclass(slots=True)
class _Seen:
    """What one segment came to over its topics; the worst topic by how long it differed out of bounds."""

    examined: int = 0
    wrong: int = 0
    late: int = 0
    settled_ms: float | None = None
    """When the last topic had become equal; None: none ever differed."""
    old_settled_ms: float | None = None
    """The same of the other topics."""
    new_topics: dict[str, float] = field(default_factory=dict)
    """Those that were changed after the segment's own window, or were in time only for theirs: how long it took."""
    reaches_ms: float = 0.0
    """How far the worst difference reaches into what is judged from the nearer end: what lateness may explain."""
    topic: str = ""
    worst: _Difference | None = None
    due_ms: float = 0.0
    """From when the worst topic had to be equal, and the change that this counts from."""
    at_ms: float = 0.0
    formula: str = ""


def judge(control: Control, world: World) -> Verdict:
    """Examined: (segment, class, topic). Violations: those that differed inside the judged stretch."""
    found, tables = segments(world), route_tables(control, world)
    promised = [*tables_agree(control, tables, world)]
    if not found and not promised:
        return Verdict.nothing_examined(NAME, "never could the same brokers reach two NameServers at once")
    late = (
        (
            (*(name for name, _ in s.members), s.latest.broker),
            s.latest.at_ms - world.timers.R_ms,
            max(s.from_ms, s.start_ms),
        )
        for s in found
    )
    lags = zip(found, control.lateness.largest_of_each(world, late), strict=True)
    tolerances = {s.id: tolerance(world.timers, lag_ms, s.latest.window.timers) for s, lag_ms in lags}
    changes = _changes(tables)
    seen = {segment.id: _look(segment, tables, changes, world, tolerances[segment.id]) for segment in found}
    for id_ in _stalled(control, world, found, seen):
        seen[id_].wrong, seen[id_].late = 0, seen[id_].wrong + seen[id_].late
    findings = [_finding(segment, tolerances[segment.id], seen[segment.id], tables, world) for segment in found]
    return verdict_of(
        NAME,
        [*findings, *promised],
        measured={"converged": _converged(found, seen), **wrongs(findings)},
        nothing="no segment between two changes was longer than its window",
        noun="topics differed between NameServers" + ("" if promised else " that the same brokers reach"),
    )


CHECK = Check(
    name=NAME,
    says="NameServers that the same brokers reach have equal routes; how long that took after each fault",
    group=Group.ROUTES,
    section=Section.ROUTES,
    is_of_the_whole=True,
    needs=(Needs.TABLES, Needs.BROKERS),
    judge=judge,
    tells=lambda measured: _told(measured.get("converged") or (), measured.get("wrong", 0)),
    settles=lambda world: serves_window(world.timers).latest_ms,
)


def _told(converged: Sequence[Mapping[str, Any]], wrong: int = 0) -> str:
    """ "equal again 14.2 s after black_hole-1 end (33.0 s)": of what is nearest to its own bound, which is named."""
    never = [row["change"] for row in converged if row["after_ms"] is None]
    if never:
        return f"not equal again after {', '.join(never)}"
    differed = [row for row in converged if row["after_ms"]]
    if not differed:
        return "" if wrong else "equal all the time"
    row = max(differed, key=lambda row: row["after_ms"] - row["bound_ms"])
    return f"equal again {row['after_ms'] / 1000:.1f} s after {row['change']} ({row['bound_ms'] / 1000:.1f} s)"


def segments(world: World) -> list[Segment]:
    """Every class of at least two NameServer processes between two changes, in order of time."""
    states = route_states(world)
    times = sorted({state.start_ms for state in states} | {state.end_ms for state in states})
    lost = [fault for node in world.of_kind("name_server") for fault in world.process_faults(node.name)]
    found: list[Segment] = []
    label, label_ms = BEGIN, times[0] if times else 0.0
    starting: dict[float, list[RouteState]] = defaultdict(list)
    for state in states:
        starting[state.start_ms].append(state)
    current: list[RouteState] = []
    for start_ms, to_ms in itertools.pairwise(times):
        current = [state for state in current if state.end_ms > start_ms] + starting[start_ms]
        current.sort(key=lambda state: (state.name_server, state.incarnation, state.broker))
        began = [state.label for state in current if state.start_ms == start_ms and state.label.fault_id]
        began += [FaultEdge(fault.fault_id, "start") for fault in lost if fault.start_ms == start_ms]
        if began and began[0] != label:
            label, label_ms = began[0], start_ms
        by_process: dict[tuple[str, int], list[RouteState]] = {}
        for state in current:
            by_process.setdefault((state.name_server, state.incarnation), []).append(state)
        classes: dict[frozenset[str], list[tuple[str, int]]] = {}
        for process, pairs in by_process.items():
            if all(state.judged for state in pairs):
                reaching = frozenset(state.broker for state in pairs if state.up)
                classes.setdefault(reaching, []).append(process)
        for members in classes.values():
            if len(members) > 1:
                latest = max((s for member in members for s in by_process[member]), key=lambda s: s.settled_ms)
                from_ms = max(start_ms, latest.settled_ms)
                found.append(
                    Segment(
                        len(found),
                        tuple(members),
                        start_ms,
                        from_ms,
                        to_ms,
                        latest,
                        label,
                        label_ms,
                        _without_master(by_process[members[0]]),
                    )
                )
    return found


def _without_master(states: Iterable[RouteState]) -> frozenset[str]:
    """The names of which only slaves reach the NameServer: their rows are the last that it had from a master, if any,
    and so not the same everywhere."""
    up = {state.broker for state in states if state.up}
    return frozenset(broker_name(broker) for broker in up if is_slave(broker)) - up


def _stalled(control: Control, world: World, found: Sequence[Segment], seen: Mapping[int, _Seen]) -> set[int]:
    """The segments whose difference the machine explains: a broker did not register at one of the NameServers."""
    brokers = [node.name for node in world.of_kind("broker", "slave")]
    missing = {
        s.id: Missing(
            (*(name_server for name_server, _ in s.members), *brokers),
            max(s.start_ms, worst.s),
            min(worst.e, s.to_ms),
        )
        for s in found
        if seen[s.id].wrong and (worst := seen[s.id].worst)
    }
    return control.lateness.stalled(world, missing)


def _changes(tables: RouteTables) -> Mapping[str, Sequence[float]]:
    """topic → when a broker that was up made or changed it."""
    found: dict[str, list[float]] = defaultdict(list)
    for change in tables.topic_changes:
        if change.time_ms > change.started_ms:
            found[change.topic].append(change.time_ms)
    return found


def _look(
    segment: Segment, tables: RouteTables, changes: Mapping[str, Sequence[float]], world: World, tolerance_: Tolerance
) -> _Seen:
    """What the members of the segment held of each topic."""
    seen = _Seen()
    window_ms, to_ms = topic_window(world.timers).latest_ms, segment.to_ms
    for topic in tables.topics:
        # Later than the segment's own window where the topic is new.
        changed_ms = max((at_ms for at_ms in changes.get(topic, ()) if at_ms < to_ms), default=-window_ms)
        due_ms, settled_ms = max(segment.from_ms, changed_ms + window_ms), None
        farthest_ms, worst = 0.0, None
        for difference in _differences(segment, tables, told_by_hand(world), topic):
            s, e = difference.s, difference.e
            reaches_ms = max(min(min(e, to_ms) - due_ms, to_ms - max(s, due_ms)), 0.0) if due_ms < to_ms else 0.0
            # A moment at the far end belongs to the next change, which took effect before its row was written.
            if s < due_ms or reaches_ms > tolerance_.valid_up_to_ms:
                settled_ms = e if settled_ms is None else max(settled_ms, e)
            if worst is None or (reaches_ms, difference.member[0], s) > (farthest_ms, worst.member[0], worst.s):
                farthest_ms, worst = reaches_ms, difference
        if settled_ms is not None:
            seen.settled_ms = max(settled_ms, seen.settled_ms or settled_ms)
            in_time = farthest_ms <= tolerance_.valid_up_to_ms < settled_ms - segment.from_ms
            if changed_ms >= segment.from_ms or (due_ms > segment.from_ms and in_time):
                seen.new_topics[topic] = settled_ms - changed_ms
            else:
                seen.old_settled_ms = max(settled_ms, seen.old_settled_ms or settled_ms)
        if due_ms < to_ms:
            seen.examined += 1
            seen.wrong += farthest_ms > tolerance_.unknown_up_to_ms
            seen.late += tolerance_.valid_up_to_ms < farthest_ms <= tolerance_.unknown_up_to_ms
        if (farthest_ms, topic) >= (seen.reaches_ms, seen.topic):
            seen.reaches_ms, seen.topic, seen.worst, seen.due_ms = farthest_ms, topic, worst, due_ms
            is_own = due_ms > segment.from_ms
            seen.at_ms = changed_ms if is_own else segment.latest.at_ms
            seen.formula = topic_window(world.timers).formula if is_own else segment.latest.window.formula
    return seen


def _differences(segment: Segment, tables: RouteTables, by_hand: ToldByHand, topic: str) -> list[_Difference]:
    """Where each other member's route was not that of the first; neighbouring pieces are one stretch, because what
    matters is how long the two differed, not how often either changed."""
    name = segment.members[0][0]
    found: list[_Difference] = []
    references = [member for member in segment.members if member[0] == name]
    for other in dict.fromkeys(member[0] for member in segment.members if member[0] != name):
        pieces = sorted(
            _Difference(s, e, member, reference, s)
            for member in segment.members
            if member[0] == other
            for reference in references
            for s, e in _unequal(
                _within(tables.stretches.get(member, {}).get(topic, ()), segment),
                _within(tables.stretches.get(reference, {}).get(topic, ()), segment),
                {
                    **tables.perms_set.get(reference, {}),
                    **tables.perms_set.get(member, {}),
                    **by_hand.changed[reference[0]],
                    **by_hand.changed[member[0]],
                    **dict.fromkeys(segment.slaves_only, -math.inf),
                },
            )
            if not any(by_hand.is_deleted(process[0], topic, s, e) for process in (member, reference))
        )
        for piece in pieces:
            if found and found[-1].member[0] == other and found[-1].e >= piece.s:
                found[-1] = _Difference(found[-1].s, max(found[-1].e, piece.e), *piece[2:])
            else:
                found.append(piece)
    return found


def _within(stretches: Iterable[RouteStretch], segment: Segment) -> list[RouteStretch]:
    return [
        RouteStretch(max(st.s, segment.start_ms), min(st.e, segment.to_ms), st.value)
        for st in stretches
        if st.s < segment.to_ms and st.e > segment.start_ms
    ]


def _unequal(
    ones: Sequence[RouteStretch], others: Sequence[RouteStretch], apart: Mapping[str, float]
) -> Iterable[tuple[float, float]]:
    """The stretches in which both are known and differ, but for brokers that somebody else had changed at either
    (`apart`: since when)."""
    for one in ones:
        for other in others:
            s, e = max(one.s, other.s), min(one.e, other.e)
            if s < e and one.value != other.value:
                left_out = {broker for broker, since_ms in apart.items() if since_ms <= s}
                if not left_out or _but(one.value, left_out) != _but(other.value, left_out):
                    yield s, e


def _but(value: str | None, brokers: Collection[str]) -> object:
    """The route without these brokers; None where nothing is left."""
    route: Any = decoded(value)
    if not route or not brokers:
        return route
    parts = [
        {name: of for name, of in (route.get(part) or {}).items() if name not in brokers}
        for part in ("brokers", "queues")
    ]
    return parts if any(parts) else None


def _route_at(tables: RouteTables, process: Process, topic: str, at_ms: float) -> object:
    held = (st.value for st in tables.stretches.get(process, {}).get(topic, ()) if st.s <= at_ms < st.e)
    return decoded(next(held, None))


def _against_its_window(segment: Segment, seen: _Seen, world: World) -> tuple[float | None, Window]:
    """How long it took, and the window that this was held against, where all are right: of the topic nearest to its
    bound."""
    latest = segment.latest
    found: list[tuple[float, Window]] = []
    if seen.old_settled_ms is not None and latest.at_ms >= segment.start_ms:
        found.append((seen.old_settled_ms - latest.at_ms, latest.window))
    if seen.new_topics:
        found.append((max(seen.new_topics.values()), topic_window(world.timers)))
    return max(found, key=lambda one: one[0] - one[1].latest_ms, default=(None, latest.window))


def _finding(segment: Segment, tolerance_: Tolerance, seen: _Seen, tables: RouteTables, world: World) -> Finding:
    latest, worst = segment.latest, seen.worst if seen.reaches_ms > 0 else None
    measured_ms, window = _against_its_window(segment, seen, world)
    against: dict[str, Any] = {"measured_ms": measured_ms, "bound_ms": window.latest_ms, "formula": window.formula}
    against["over_ms"] = max((measured_ms or 0.0) - window.latest_ms, 0.0)
    if worst is not None and (seen.wrong or seen.late):
        against = _out_of_bounds(segment, seen, worst)
    names = [name for name, _ in segment.members]
    more: dict[str, object] = {"name_servers": names}
    if worst is not None and (seen.wrong or seen.late):
        ends = (worst.reference, worst.member)
        more["routes"] = [_route_at(tables, process, seen.topic, worst.last_ms) for process in ends]
        more["name_servers"] = [process[0] for process in ends]
    return finding(
        (
            worst.member[0] if worst else names[0],
            worst.reference[0] if worst else names[-1],
            seen.topic if worst else "",
        ),
        "must be equal",
        (segment.from_ms, segment.to_ms),
        Rule(window.row, ""),
        out=(worst.s, worst.e) if worst else None,
        tolerance=tolerance_,
        examined=seen.examined,
        wrong=seen.wrong,
        late=seen.late,
        after=str(latest.label),
        more=more,
        **against,
    )


def _out_of_bounds(segment: Segment, seen: _Seen, worst: _Difference) -> dict[str, Any]:
    """What was measured of the worst topic: until when it differed, or for how long when it should not have at all."""
    s, e = max(worst.s, seen.due_ms), min(worst.e, segment.to_ms)
    if worst.s >= seen.due_ms:
        return lasted(s, e)
    bound_ms = seen.due_ms - seen.at_ms
    return {"measured_ms": e - seen.at_ms, "bound_ms": bound_ms, "formula": seen.formula, "over_ms": e - s}


def _converged(found: Sequence[Segment], seen: Mapping[int, _Seen]) -> list[dict[str, Any]]:
    """After each change: how long until the last class had converged (None: it never did), and its own bound."""
    ends = {str(segment.label): segment.to_ms for segment in found}
    converged: dict[str, tuple[float, float]] = {}
    for segment in found:
        # A topic that was changed later has a window of its own, of which only what is wrong is told here.
        of = seen[segment.id]
        label, settled_ms = str(segment.label), of.settled_ms if of.wrong or of.late else of.old_settled_ms
        if not segment.label.fault_id:
            continue
        after_ms = 0.0 if settled_ms is None else settled_ms - segment.label_ms
        if settled_ms is not None and settled_ms >= ends[label]:
            after_ms = math.inf
        converged[label] = max(converged.get(label, (0.0, 0.0)), (after_ms, segment.from_ms - segment.label_ms))
    return [
        {
            "change": label,
            "after_ms": rounded(after_ms) if math.isfinite(after_ms) else None,
            "bound_ms": rounded(bound_ms),
        }
        for label, (after_ms, bound_ms) in converged.items()
    ]
