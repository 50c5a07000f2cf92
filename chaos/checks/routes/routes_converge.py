"""All NameServers that the same brokers can reach hold equal routes, once the window of the last change is over.

    change (fault or heal) ────── window ──────┬──────────── judged ────────────┬─ next change
                            drop or return     └ all of a class equal, each topic ┘

The run is cut into segments at every change of what a NameServer process can hold. Within a segment the NameServers
that the same live brokers can reach form a class. A segment shorter than its window judges nothing. A topic made or
changed inside a segment opens a window of its own, R + B. From the moment that somebody has a broker registered, or its
write permission wiped or added, by hand at a NameServer, it is not compared: done_by_hand says what must show there.
Where a scenario promises `tables_agree_within_s`, any two NameServers are held to that besides (promised.py).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from ...oracle.intervals import Stretch, grouped, until_next
from ...oracle.promises import Segment, segments
from ...oracle.roles import elects
from ...oracle.windows import serves_window, topic_window
from ...oracle.world import World
from ...topology import broker_name, is_slave
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Rule, finding, rounded, verdict_of, wrongs
from ..record.control import Control, once
from ..record.differences import NOT_JUDGED, apart, route_at, the_wrong_one
from ..record.route_tables import RouteTables, exists, route_tables
from ..record.settling import Due, Settling
from .promised import tables_agree


@check(
    says="NameServers that the same brokers can reach have equal routes again within a time limit after each fault",
    group=Group.ROUTES,
    section=Section.ROUTES,
    is_of_the_whole=True,
    needs=(Needs.TABLES, Needs.BROKERS),
    tells=lambda measured: _told(measured.get("converged") or (), measured.get("wrong", 0)),
    settles=lambda world: serves_window(world.timers).latest_ms,
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: (segment, class, topic). Violations: those that differed inside the judged stretch."""
    found, tables = segments(world), route_tables(control, world)
    promised = [*tables_agree(control, tables, world)]
    if not found and not promised:
        return Verdict.nothing_examined("at no time could the same brokers reach two NameServers")
    seen = [(segment, _look(control, world, segment, tables)) for segment in found]
    findings = [_finding(control, world, segment, of, tables) for segment, of in seen]
    return verdict_of(
        [*findings, *promised],
        measured={"converged": _converged(seen), **wrongs(findings)},
        nothing="each change was followed by another change before its time limit was over",
        noun="topics differed between NameServers" + ("" if promised else " that the same brokers reach"),
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


def _look(control: Control, world: World, segment: Segment, tables: RouteTables) -> Settling:
    """What the members of the segment held of each topic; one that is new may have a later window of its own."""
    latest, names, own = segment.latest, [name for name, _ in segment.members], topic_window(world.timers)
    unshared, changed = _unshared(control, world), dict[str, float]()
    for change in tables.topic_changes:
        if change.started_ms < change.time_ms < segment.to_ms:
            changed[change.topic] = max(change.time_ms, changed.get(change.topic, change.time_ms))
    span = latest.start_ms - world.timers.R_ms, segment.from_ms
    seen = Settling(control.lateness.tolerance(world, (*names, latest.broker), *span, latest.window.timers))
    for topic in tables.topics:
        due = Due(topic, segment.from_ms, segment.to_ms, latest.start_ms, latest.window)
        at_ms = changed.get(topic, -math.inf)
        if at_ms + own.latest_ms > segment.from_ms:
            due = due._replace(from_ms=at_ms + own.latest_ms, at_ms=at_ms, window=own)
        seen.add(due, apart(tables, world, topic, segment, unshared.get(topic, {})))
    if seen.wrong and seen.worst is not None:  # a broker did not register at one of them, as the machine explains
        nodes = (*names, *(node.name for node in world.of_kind("broker", "slave")))
        missing = max(segment.start_ms, seen.worst.s), min(seen.worst.e, segment.to_ms)
        if control.lateness.explains(world, nodes, *missing):
            seen.excuse()
    return seen


@once
def _unshared(control: Control, world: World) -> Mapping[str, Mapping[str, Sequence[Stretch]]]:
    """Topic → broker name → when no master of the name has the topic. A NameServer may then have it alone: it heard of
    it before the master deleted it, or from a slave, which makes %RETRY% topics of its own, before the master came."""
    found: dict[str, dict[str, Sequence[Stretch]]] = defaultdict(dict)
    if not all(node.is_ours for node in world.of_kind("broker", "slave")):
        return found
    rows = grouped(
        ((row.node, row.topic), (row.time_ms, exists(row.value)))
        for row in control.rows("topic")
        if not is_slave(row.node) or elects(world, row.node)
    )
    followed = {broker_name(node.name) for node in world.of_kind("slave") if not elects(world, node.name)}
    for node, topic in {*rows, *product(followed, route_tables(control, world).topics)}:
        states = [(-math.inf, node not in followed), *rows.get((node, topic), ())]
        absent = (Stretch(at_ms, end_ms) for (at_ms, is_there), end_ms in until_next(states, math.inf) if not is_there)
        found[topic][broker_name(node)] = [*found[topic].get(broker_name(node), ()), *absent]
    return found


def _finding(control: Control, world: World, segment: Segment, seen: Settling, tables: RouteTables) -> Finding:
    about = segment.members[0], segment.members[-1]
    more: dict[str, Any] = {"name_servers": [name for name, _ in segment.members]}
    worst = seen.worst if seen.reaches_ms > 0 else None
    if seen.due is not None and worst is not None:
        about = worst.about.other, segment.members[0]
    if seen.due is not None and worst is not None and seen.is_out:
        more["name_servers"] = [name for name, _ in reversed(about)]
        more["routes"] = [route_at(tables.of(one, seen.due.topic), worst.about.last_ms) for one in reversed(about)]
        names, two = [name for name, _ in segment.members], [name for name, _ in about]
        wrong_one = the_wrong_one(control, world, seen.due.topic, two, names, worst.about.last_ms)
        about = about[::-1] if wrong_one == two[1] else about
        more |= {} if wrong_one else {"because": NOT_JUDGED}
    return finding(
        (*(name for name, _ in about), seen.due.topic if seen.due and worst else ""),
        "must be equal",
        (segment.from_ms, segment.to_ms),
        Rule(segment.latest.window.row, ""),
        out=(worst.s, worst.e) if worst else None,
        after=str(segment.latest.label),
        times={str(segment.latest.label): segment.latest.start_ms}
        if seen.is_out and segment.latest.label.fault_id
        else {},
        more=more,
        **seen.counts | seen.measured(segment.latest.window),
    )


def _converged(seen: Sequence[tuple[Segment, Settling]]) -> list[dict[str, Any]]:
    """After each change: how long until the last class had converged (None: it never did), and its own bound."""
    found: dict[str, tuple[float, float]] = {}
    for segment, of in seen:
        # A topic that was changed later has a window of its own, of which only what is wrong is told here.
        ends = [at_ms for due, at_ms in of.ends if of.is_out or due.at_ms == segment.latest.start_ms]
        after_ms = max(ends, default=segment.label_ms) - segment.label_ms
        after_ms = math.inf if after_ms + segment.label_ms >= segment.to_ms else after_ms
        if segment.label.fault_id:
            one = after_ms, segment.from_ms - segment.label_ms
            found[str(segment.label)] = max(found.get(str(segment.label), one), one)
    return [
        {"change": label, "after_ms": rounded(after_ms) if after_ms < math.inf else None, "bound_ms": rounded(bound_ms)}
        for label, (after_ms, bound_ms) in found.items()
    ]
