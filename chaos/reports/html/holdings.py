"""A lane per (NameServer, broker): held, partly held, missing, and stale where it was held although it must not be.

    bars   ▇▇▇▇▇▇▇▇▇▇ held ▇▇▇▇▇▇▇▇▇▇▇▇▇│░░░░ missing ░░░░│▇▇▇▇ held
    rules  ── must hold ──┤▒▒▒ may ▒▒▒├── must not hold ──┤▒▒ may ▒▒├── must hold

Held counts topics: a broker is held whose name stands in a topic's route, partly held while it stands in fewer topics
than it has. What was wrong is told with the demands of checkers/pairs.py, which the check judges by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...checkers.tolerance import Tolerance, tolerance
from ...oracle.obligations import Obligation, ObligationKind, obligations
from ...oracle.world import Life, World
from .data import Recorded
from .intervals import Kind
from .rules import Lateness, bound, rules, wrong
from .stretches import Lane, Stretch, seconds, span, thin

LANE_MAX = 400
"""How many stretches one lane shows."""


def pair_lanes(recorded: Recorded, world: World) -> list[Lane]:
    """The lanes, NameServer by NameServer."""
    counts = _counts(recorded)
    due = _topics_due(recorded)
    demands: dict[tuple[str, str], list[Obligation]] = defaultdict(list)
    for obligation in obligations(world):
        demands[obligation.name_server, obligation.broker].append(obligation)
    lateness, ruled = Lateness(recorded.lags, world), rules(world)
    lanes = []
    for name_server in world.of_kind("name_server"):
        for broker in world.of_kind("broker"):
            pair = (name_server.name, broker.name)
            lives = world.lives_of(name_server.name)
            held = [
                stretch
                for life in lives
                for stretch in _bars(life, broker.name, counts.get((*pair, life.incarnation), []), due, world.end_ms)
            ]
            windows = [*ruled.get((*pair, Kind.ROUTE), []), *_over(held, demands[pair], world, lateness)]
            bars = [*held, *_away(lives, world)]
            lanes.append(
                Lane(
                    key="/".join(pair),
                    label=broker.name,
                    group=name_server.name,
                    bars=thin(sorted(bars, key=lambda s: s.start_ms), LANE_MAX),
                    windows=_thin_each(windows),
                )
            )
    return lanes


def _thin_each(windows: Sequence[Stretch]) -> list[Stretch]:
    """Demands and violations thinned apart, because they lie over each other."""
    over = [w for w in windows if w.kind in ("over", "late")]
    return [*thin([w for w in windows if w.kind not in ("over", "late")], LANE_MAX), *thin(over, LANE_MAX)]


Change = tuple[float, int]


def _counts(recorded: Recorded) -> Mapping[tuple[str, str, int], list[Change]]:
    """(NameServer, broker, incarnation) → (time, number of topics whose route names the broker), at each change."""
    routes = recorded.routes
    held: dict[tuple[int, int, int], frozenset[str]] = {}
    topics: dict[tuple[str, str, int], int] = defaultdict(int)
    changes: dict[tuple[str, str, int], list[Change]] = defaultdict(list)
    nothing: frozenset[str] = frozenset()
    columns = (routes.time_ms, routes.node, routes.incarnation, routes.topic, routes.value)
    for time_ms, node, incarnation, topic, value in zip(*(column.tolist() for column in columns), strict=True):
        new = nothing if value < 0 else routes.brokers_of[value]
        before = held.get((node, incarnation, topic), nothing)
        if new == before:
            continue
        held[node, incarnation, topic] = new
        for broker in new ^ before:
            key = (routes.nodes[node], broker, incarnation)
            topics[key] += 1 if broker in new else -1
            changes[key].append((time_ms, topics[key]))
    return changes


def _topics_due(recorded: Recorded) -> Mapping[str, list[Change]]:
    """Broker → (time, how many topics it has); empty when the report did not keep all those rows."""
    if recorded.left_out.get("topic"):
        return {}
    has: dict[str, set[str]] = defaultdict(set)
    found: dict[str, list[Change]] = defaultdict(list)
    for row in recorded.notable:
        if row["event"] == "topic":
            topics = has[row["node"]]
            topics.discard(row["topic"]) if row["value"] in (None, "null") else topics.add(row["topic"])
            found[row["node"]].append((row["time_ms"], len(topics)))
    return found


def _bars(
    life: Life, broker: str, changes: Sequence[Change], due: Mapping[str, list[Change]], until_ms: float
) -> list[Stretch]:
    """What one process of a NameServer held of the broker, from its start to its end."""
    end_ms = min(life.end_ms, until_ms)
    if life.start_ms >= end_ms:
        return []
    wanted = due.get(broker, [])
    times = sorted({life.start_ms, *(t for t, _ in (*changes, *wanted) if life.start_ms < t < end_ms)})
    found: list[Stretch] = []
    at = has = 0
    topics = asked = 0
    for start_ms, stop_ms in zip(times, [*times[1:], end_ms], strict=True):
        while at < len(changes) and changes[at][0] <= start_ms:
            topics, at = changes[at][1], at + 1
        while has < len(wanted) and wanted[has][0] <= start_ms:
            asked, has = wanted[has][1], has + 1
        kind = "missing" if topics == 0 else "partly" if topics < asked else "held"
        if found and found[-1].kind == kind:
            start_ms = found.pop().start_ms
        says = {
            "missing": f"{life.node} did not hold {broker}",
            "partly": f"{life.node} held {broker} in {topics} topics of {asked}",
            "held": f"{life.node} held {broker} in {topics} topics",
        }[kind]
        found.append(Stretch(start_ms=start_ms, end_ms=stop_ms, kind=kind, text=f"{says} {span(start_ms, stop_ms)}"))
    return found


def _away(lives: Sequence[Life], world: World) -> list[Stretch]:
    """The gaps between the lives of a NameServer."""
    found = []
    for before, after in zip(lives, [*lives[1:], None], strict=True):
        start_ms, end_ms = before.end_ms, after.start_ms if after else world.end_ms
        if start_ms < min(end_ms, world.end_ms):
            text = f"{before.node} was not running {span(start_ms, end_ms)}"
            found.append(Stretch(start_ms=start_ms, end_ms=end_ms, kind="away", text=text))
    return found


def _over(held: Sequence[Stretch], demands: Sequence[Obligation], world: World, lateness: Lateness) -> list[Stretch]:
    """Where the table was not as demanded: `over`, or `late` as long as the machine's lateness may explain it."""
    found = []
    for o in demands:
        unwanted = ("held", "partly") if o.demand is ObligationKind.DROP else ("missing",)
        against = [s for s in held if s.kind in unwanted and s.start_ms < o.to_ms and s.end_ms > o.from_ms]
        if not against:
            continue
        until_ms = o.to_ms if o.demand is ObligationKind.KEEP else o.from_ms
        lag_ms = lateness.of((o.name_server, o.broker), o.at_ms - world.timers.R_ms, until_ms)
        fine = tolerance(world.timers, lag_ms, o.window.timers)
        found += [_wrong(s, o, fine) for s in against]
    return found


def _wrong(stretch: Stretch, o: Obligation, allowed: Tolerance) -> Stretch:
    into_ms = min(stretch.end_ms, o.to_ms) - o.from_ms
    back_ms = o.to_ms - max(stretch.start_ms, o.from_ms)
    start_ms, end_ms = max(stretch.start_ms, o.from_ms), min(stretch.end_ms, o.to_ms)
    state = "still held" if o.demand is ObligationKind.DROP else "did not hold"
    text = f"{o.name_server} {state} {o.broker} {span(start_ms, end_ms)}; allowed {_bound(o)}"
    return wrong(start_ms, end_ms, max(min(into_ms, back_ms), 0.0), allowed, text)


def _bound(o: Obligation) -> str:
    if o.demand is ObligationKind.KEEP:
        after = f" after {o.label}" if o.label.fault_id else ""
        return f"not before {seconds(o.window.earliest_ms)}{after} ({o.window.formula}; {o.window.row})"
    return bound(o.window, str(o.label) if o.label.fault_id else "")
