"""The window oracle: who must, may and must not hold a route, use a broker or stay on a NameServer, and when.

    route   NameServer → broker   its table names the broker            must · may · must not
    route   client → broker       its routes name the broker            must · may · must not
    use     client → broker       it sends to it, or pulls from it            may · must not
    stay    client → NameServer   it has chosen it                            may · must not

Every (subject, object, kind) is told without gaps from the subject's start to its end, in plain values, for reports and
for people; the checks judge by the same sources (promises.py, lost_brokers.py, lost_name_servers.py). `may` is every
time that the project's failure-detection table leaves open; its `row` says why. Plain functions over `World`: no Spark,
no clock.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ...oracle.lost_brokers import absences
from ...oracle.promises import ObligationKind, obligations
from ...oracle.recorded import Life
from ...oracle.windows import Window
from ...oracle.world import World
from ...verdict import seconds
from .stretches import LaneStretch, span


class RuleArea(StrEnum):
    ROUTE = "route"
    USE = "use"


class RuleKind(StrEnum):
    MUST = "must"
    MAY = "may"
    MUST_NOT = "must_not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """In [from_ms, to_ms) the rule holds for the subject."""

    subject: str
    """The NameServer or client whose doing it is."""
    incarnation: int
    """Which process of the subject."""
    object: str
    """The broker."""
    kind: RuleArea
    rule: RuleKind
    from_ms: float
    to_ms: float
    formula: str = ""
    """The window that led here, in the symbols of the table; empty where none was opened."""
    row: str = ""
    """The row of the table."""
    fault_id: str = ""
    """The fault that this follows from, begun or healed; empty for none."""
    at_ms: float | None = None
    """The change that the window counts from."""


def intervals(world: World) -> tuple[Interval, ...]:
    """Every interval of the run, by subject, kind and object, in order of time."""
    return world.memoized("intervals", lambda: tuple(_intervals(world)))


def _intervals(world: World) -> list[Interval]:
    strict: dict[tuple[str, int, str, RuleArea], list[Interval]] = defaultdict(list)
    for interval in (*_tables(world), *_uses(world)):
        strict[interval.subject, interval.incarnation, interval.object, interval.kind].append(interval)
    found: list[Interval] = []
    masters = [node.name for node in world.of_kind("broker")]
    everybody = [node.name for node in world.of_kind("broker", "slave")]
    for node in world.of_kind("name_server", "producer", "consumer"):
        kind = RuleArea.ROUTE if node.kind == "name_server" else RuleArea.USE
        for life in world.lives_of(node.name):
            for broker in everybody if kind is RuleArea.ROUTE else masters:
                ruled = strict[node.name, life.incarnation, broker, kind]
                found += _without_gaps(world, life, broker, kind, ruled)
    return found


def _without_gaps(world: World, life: Life, object_: str, kind: RuleArea, ruled: Iterable[Interval]) -> list[Interval]:
    """The strict intervals in order of time, with `may` between them; the later of two that overlap is cut."""
    end_ms, now_ms = min(life.end_ms, world.end_ms), life.start_ms
    found: list[Interval] = []
    for interval in sorted(ruled, key=lambda interval: interval.from_ms):
        from_ms, to_ms = max(interval.from_ms, now_ms), min(interval.to_ms, end_ms)
        if from_ms >= to_ms:
            continue
        if now_ms < from_ms:
            found.append(replace(interval, rule=RuleKind.MAY, from_ms=now_ms, to_ms=from_ms))
        if found and _same(found[-1], interval):
            found[-1] = replace(found[-1], to_ms=to_ms)
        else:
            found.append(replace(interval, from_ms=from_ms, to_ms=to_ms))
        now_ms = to_ms
    if now_ms < end_ms:
        found.append(
            Interval(
                subject=life.node,
                incarnation=life.incarnation,
                object=object_,
                kind=kind,
                rule=RuleKind.MAY,
                from_ms=now_ms,
                to_ms=end_ms,
            )
        )
    return found


def _same(before: Interval, after: Interval) -> bool:
    """Whether the second only goes on with the first."""
    return all(getattr(before, name) == getattr(after, name) for name in ("rule", "formula", "row", "fault_id"))


def _tables(world: World) -> list[Interval]:
    """What each NameServer's table must hold, and must not."""
    return [
        Interval(
            subject=o.name_server,
            incarnation=o.incarnation,
            object=o.broker,
            kind=RuleArea.ROUTE,
            rule=RuleKind.MUST_NOT if o.demand is ObligationKind.DROP else RuleKind.MUST,
            from_ms=o.from_ms,
            to_ms=o.to_ms,
            formula=o.window.formula,
            row=o.window.row,
            fault_id=o.label.fault_id,
            at_ms=o.at_ms,
        )
        for o in obligations(world)
    ]


def _incarnation(world: World, node: str, at_ms: float) -> int:
    living = (life.incarnation for life in world.lives_of(node) if life.start_ms <= at_ms < life.end_ms)
    return next(living, -1)


def _uses(world: World) -> list[Interval]:
    """When a client must not use a broker that is lost."""
    return [
        Interval(
            subject=a.client,
            incarnation=_incarnation(world, a.client, a.start_ms),
            object=a.broker,
            kind=RuleArea.USE,
            rule=RuleKind.MUST_NOT,
            from_ms=a.from_ms,
            to_ms=a.end_ms,
            formula=a.window.formula,
            row=a.window.row,
            fault_id=a.fault_id,
            at_ms=a.start_ms,
        )
        for a in absences(world)
    ]


# -- what the oracle demanded and allowed, as stretches below a lane's bar.
#
#     ── must ──┤▒▒ may (the window) ▒▒├── must not ──┤▒▒ may ▒▒├── must ──
#
# The rules come from the same sources as the checks' own. What was over is drawn of the checks' findings (found.py).

_SAYS = {
    RuleArea.ROUTE: {RuleKind.MUST: "must hold", RuleKind.MAY: "may hold or miss", RuleKind.MUST_NOT: "must not hold"},
    RuleArea.USE: {RuleKind.MUST: "must use", RuleKind.MAY: "may use", RuleKind.MUST_NOT: "must not use"},
}


def rules(world: World) -> Mapping[tuple[str, str, RuleArea], list[LaneStretch]]:
    """(subject, object, kind) → stretches of kind must, must_not and may."""
    found: dict[tuple[str, str, RuleArea], list[LaneStretch]] = defaultdict(list)
    for interval in intervals(world):
        found[interval.subject, interval.object, interval.kind].append(_stretch(interval))
    return found


def _stretch(i: Interval) -> LaneStretch:
    why = i.row
    after = ""
    if i.at_ms is not None and i.rule is not RuleKind.MUST and i.fault_id:
        after = f", {seconds(i.from_ms - i.at_ms)} to {seconds(i.to_ms - i.at_ms)} after {i.fault_id}"
    text = f"{i.subject} {_SAYS[i.kind][i.rule]} {i.object} {span(i.from_ms, i.to_ms)}{after}"
    return LaneStretch(
        start_ms=i.from_ms, end_ms=i.to_ms, kind=str(i.rule), text=f"{text}. Window: {why}" if why else text
    )


def bound(window: Window, fault_id: str) -> str:
    """`130.0 s after kill-1 (process crash …)`."""
    after = f" after {fault_id}" if fault_id else ""
    at_most = seconds(window.latest_ms) if math.isfinite(window.latest_ms) else "without bound"
    return f"{at_most}{after} ({window.row})"
