"""A lane per (NameServer, broker): held, partly held, missing, and stale where it was held although it must not be.

    bars   ▇▇▇▇▇▇▇▇▇▇ held ▇▇▇▇▇▇▇▇▇▇▇▇▇│░░░░ missing ░░░░│▇▇▇▇ held
    rules  ── must hold ──┤▒▒▒ may ▒▒▒├── must not hold ──┤▒▒ may ▒▒├── must hold

Held counts topics: a broker is held whose name stands in a topic's route, partly held while it stands in fewer topics
than it has. A lane of the NameServer's own says when its routes had to equal those of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...oracle.recorded import Life
from ...oracle.world import World
from ...verdict import Verdict
from .data import Recorded
from .found import LANE_MAX
from .intervals import Kind
from .rules import rules
from .stretches import Lane, Stretch, span, thin

EQUAL = "routes_converge"
"""The check whose findings say when NameServers had to be equal."""


def pair_lanes(recorded: Recorded, world: World, verdicts: Sequence[Verdict] = ()) -> list[Lane]:
    """The lanes, NameServer by NameServer."""
    counts = _counts(recorded)
    due = _topics_due(recorded)
    ruled = rules(world)
    equal = _equal(verdicts, world)
    lanes = []
    for name_server in world.of_kind("name_server"):
        if equal:
            rows = thin(equal.get(name_server.name, []), LANE_MAX)
            lanes.append(Lane(key=name_server.name, label="equal to others", group=name_server.name, windows=rows))
        for broker in world.of_kind("broker", "slave"):
            pair = (name_server.name, broker.name)
            lives = world.lives_of(name_server.name)
            held = [
                stretch
                for life in lives
                for stretch in _bars(life, broker.name, counts.get((*pair, life.incarnation), []), due, world.end_ms)
            ]
            bars = [*held, *_away(lives, world)]
            lanes.append(
                Lane(
                    key="/".join(pair),
                    label=broker.name,
                    group=name_server.name,
                    bars=thin(sorted(bars, key=lambda s: s.start_ms), LANE_MAX),
                    windows=thin(ruled.get((*pair, Kind.ROUTE), []), LANE_MAX),
                )
            )
    return lanes


def _equal(verdicts: Sequence[Verdict], world: World) -> Mapping[str, list[Stretch]]:
    """NameServer → when its routes had to equal those of others that the same brokers reach."""
    found: dict[str, list[Stretch]] = defaultdict(list)
    for finding in (f for v in verdicts if v.name == EQUAL for f in v.findings):
        start_ms, end_ms = finding.from_ms, min(finding.to_ms, world.end_ms)
        members = [str(name) for name in finding.more.get("name_servers") or (finding.subject, finding.object)]
        if start_ms < end_ms:
            for name in members:
                others = ", ".join(other for other in members if other != name)
                text = f"{name} must hold the routes of {others} {span(start_ms, end_ms)}"
                found[name].append(Stretch(start_ms=start_ms, end_ms=end_ms, kind="must", text=text))
    return found


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
