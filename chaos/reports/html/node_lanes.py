"""Makes the lanes (plot rows) of nodes and queues. Bars show what happened, windows what RocketMQ's timers demand,
marks failures.

A NameServer has a lane for each broker, which shows when the NameServer's routes had the broker.

    bars   ▇▇▇▇▇▇▇▇▇▇ held ▇▇▇▇▇▇▇▇▇▇▇▇▇│░░░░ missing ░░░░│▇▇▇▇ held
    rules  ── must hold ──┤▒▒▒ may ▒▒▒├── must not hold ──┤▒▒ may ▒▒├── must hold

`held`: the routes of all the broker's topics have the broker. `partly`: some routes of the broker's topics lack the
broker. `missing`: no route has the broker. One more lane shows when the NameServer's routes had to equal the routes of
other NameServers.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...history.schema import object_of
from ...oracle.lost_name_servers import name_server_losses
from ...oracle.recorded import Life
from ...oracle.world import World
from ...verdict import Verdict, seconds, singular
from ..columns import Array, Recorded
from .found import LANE_MAX
from .rule_stretches import bound, rules
from .run_in_words import Names
from .stretches import Lane, LaneStretch, span, thin

EQUAL = "routes_converge"
"""The check whose findings say when NameServers had to be equal."""


def pair_lanes(recorded: Recorded, world: World, verdicts: Sequence[Verdict] = ()) -> list[Lane]:
    counts = _counts(recorded)
    due = _topics_due(recorded)
    ruled = rules(world)
    equal = _equal(verdicts, world)
    lanes = []
    for name_server in world.of_kind("name_server"):
        if equal:
            rows = thin(equal.get(name_server.name, []), LANE_MAX)
            lanes.append(Lane(key=name_server.name, label="equal to others?", group=name_server.name, windows=rows))
        for broker in world.of_kind("broker", "slave"):
            pair = (name_server.name, broker.name)
            lives = world.lives_of(name_server.name)
            if name_server.name not in world.run.get("logs_of", pair):
                says = f"the log of {name_server.name} was not read, so nobody knows whether it had {broker.name}"
                bars = [LaneStretch.said("unlogged", life.start_ms, world.end_ms, says) for life in lives]
                lanes.append(Lane(key="/".join(pair), label=broker.name, group=name_server.name, bars=bars))
                continue
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
                    windows=thin(ruled.get(pair, []), LANE_MAX),
                )
            )
    return lanes


def _equal(verdicts: Sequence[Verdict], world: World) -> Mapping[str, list[LaneStretch]]:
    """Return for each NameServer when it had to have the routes of other NameServers that the same brokers reach."""
    found: dict[str, list[LaneStretch]] = defaultdict(list)
    for finding in (f for v in verdicts if v.name == EQUAL for f in v.findings):
        start_ms, end_ms = finding.from_ms, min(finding.to_ms, world.end_ms)
        members = [str(name) for name in finding.more.get("name_servers") or (finding.subject, finding.object)]
        if start_ms < end_ms:
            for name in members:
                others = ", ".join(other for other in members if other != name)
                says = f"{name} must hold the routes of {others}"
                found[name].append(LaneStretch.said("must", start_ms, end_ms, says))
    return found


Change = tuple[float, int]


def _counts(recorded: Recorded) -> Mapping[tuple[str, str, int], list[Change]]:
    """Return by (NameServer, broker, incarnation) the times at which the number of topics with the broker changed.
    Retry topics of consumer groups are left out, because they come and go with the groups."""
    held: dict[tuple[str, int, str], frozenset[str]] = {}
    topics: dict[tuple[str, str, int], int] = defaultdict(int)
    changes: dict[tuple[str, str, int], list[Change]] = defaultdict(list)
    brokers_of = cache(_brokers)
    rows = recorded.rows_of("route")
    columns = (rows[name].to_pylist() for name in ("time_ms", "node", "incarnation", "topic", "value"))
    for time_ms, node, incarnation, topic, value in zip(*columns, strict=True):
        new = brokers_of(value)
        before = held.get((node, incarnation, topic), frozenset())
        if new == before or str(topic).startswith(RETRY_GROUP_TOPIC_PREFIX):
            continue
        held[node, incarnation, topic] = new
        for broker in new ^ before:
            key = (node, broker, incarnation)
            topics[key] += 1 if broker in new else -1
            changes[key].append((time_ms, topics[key]))
    return changes


def _brokers(route: str | None) -> frozenset[str]:
    return frozenset(
        name if id_ == "0" else f"{name}/{id_}"
        for name, ids in (object_of(route).get("brokers") or {}).items()
        for id_ in (ids if isinstance(ids, dict) and ids else ("0",))
    )


def _topics_due(recorded: Recorded) -> Mapping[str, list[Change]]:
    """Return each broker's number of topics over time; nothing if the report left out such rows."""
    if recorded.left_out.get("topic"):
        return {}
    has: dict[str, set[str]] = defaultdict(set)
    found: dict[str, list[Change]] = defaultdict(list)
    for row in recorded.notable:
        if row["event"] == "topic" and not str(row["topic"]).startswith(RETRY_GROUP_TOPIC_PREFIX):
            topics = has[row["node"]]
            topics.discard(row["topic"]) if row["value"] in (None, "null") else topics.add(row["topic"])
            found[row["node"]].append((row["time_ms"], len(topics)))
    return found


def _bars(
    life: Life, broker: str, changes: Sequence[Change], due: Mapping[str, list[Change]], until_ms: float
) -> list[LaneStretch]:
    end_ms = min(life.end_ms, until_ms)
    if life.start_ms >= end_ms:
        return []
    wanted = due.get(broker, [])
    times = sorted({life.start_ms, *(t for t, _ in (*changes, *wanted) if life.start_ms < t < end_ms)})
    found: list[LaneStretch] = []
    asked = 0
    because = said = ""
    longest_ms = 0.0
    for start_ms, stop_ms in pairwise([*times, end_ms]):
        asked_before = asked
        topics, asked = _at(changes, start_ms), _at(wanted, start_ms)
        kind = "missing" if topics == 0 else "partly" if topics < asked else "held"
        if kind != "partly":
            because = ""
        elif asked > asked_before:
            because = f": {broker} had made a topic of which {life.node} had not heard"
        says = {
            "missing": f"{life.node} did not list {broker}",
            "partly": singular(f"{life.node} listed {broker} in {topics} of {asked} topics"),
            "held": singular(f"{life.node} listed {broker} in {topics} topics"),
        }[kind]
        is_new = not found or found[-1].kind != kind
        if is_new or stop_ms - start_ms > longest_ms:  # of a drop, each topic's row is a step
            said, longest_ms = says, stop_ms - start_ms
        start_ms = start_ms if is_new else found.pop().start_ms
        found.append(LaneStretch.said(kind, start_ms, stop_ms, said, because))
    return found


def _at(changes: Sequence[Change], at_ms: float) -> int:
    at = bisect_right(changes, at_ms, key=itemgetter(0))
    return changes[at - 1][1] if at else 0


def _away(lives: Sequence[Life], world: World) -> list[LaneStretch]:
    found = []
    for before, after in zip(lives, [*lives[1:], None], strict=True):
        start_ms, end_ms = before.end_ms, after.start_ms if after else world.end_ms
        if start_ms < min(end_ms, world.end_ms):
            found.append(LaneStretch.said("away", start_ms, end_ms, f"{before.node} was not running"))
    return found


# -- a lane per client: which NameServer it had chosen, and a row for each broker it used, with what failed there.
#
#     producer-0   NameServer  ▇▇▇▇▇▇ ns-1 ▇▇▇▇▇▇▇▇│▇▇▇▇▇ ns-2 ▇▇▇▇▇▇▇
#                  broker-a    ▇▇▇▇▇▇▇▇▇▇▇▇x x          ▇▇▇▇▇▇▇▇▇▇▇▇▇▇
#                  broker-b    ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
#
# A use is a try of a send or a pull at its beginning, as the check dead_brokers_avoided counts it; uses closer together
# than a few pixels are one bar. Below the bars stands in which stretch the client had to have left a lost broker.

ACROSS = 250
"""Most bars of a row: a gap shorter than a 250th of the run is not drawn."""

MARKS_MAX = 150
"""Most failures shown singly in a row."""

LEAST_GAP_MS = 4000.0
"""Clients take queues in turn, so seconds without one broker are no gap."""


def client_lanes(recorded: Recorded, world: World, start_ms: float) -> list[Lane]:
    """Return each client's lanes: one for the NameServer that the client had chosen (key: client), and one per broker
    (key: client/broker)."""
    uses, failures = recorded.traffic.by_pair("invoke"), recorded.traffic.by_pair("fail", "info")
    ruled = rules(world)
    chosen, calls = _chosen(recorded, world), _failed_calls(recorded, Names(world))
    gap_ms = max((world.end_ms - start_ms) / ACROSS, LEAST_GAP_MS)
    lanes = []
    for client in world.of_kind("producer", "consumer"):
        stays = chosen.get(client.name, [])
        lanes.append(
            Lane(
                key=client.name,
                label="NameServer",
                group=client.name,
                bars=thin(stays, ACROSS),
                windows=thin(_stays(client.name, stays, world), ACROSS),
                marks=thin(calls.get(client.name, []), MARKS_MAX),
            )
        )
        for broker in world.of_kind("broker"):
            pair = (client.name, broker.name)
            times = uses.get(pair, np.empty(0))
            windows = ruled.get(pair, [])
            if all(rule.kind == "may" for rule in windows):
                windows = []  # it was never lost
            if world.run.get("imported") and not windows:
                continue  # a client's log does not say which brokers it used
            lanes.append(
                Lane(
                    key="/".join(pair),
                    label=broker.name,
                    group=client.name,
                    bars=_use_bars(*pair, times, gap_ms, world.end_ms),
                    windows=thin(windows, ACROSS),
                    marks=_failure_marks(*pair, failures.get(pair, np.empty(0))),
                )
            )
    return lanes


def _use_bars(client: str, broker: str, times: Array, gap_ms: float, end_ms: float) -> list[LaneStretch]:
    times = times[times < end_ms]
    if not len(times):
        return []
    breaks = np.flatnonzero(np.diff(times) > gap_ms) + 1
    found = []
    for part in np.split(times, breaks):
        first_ms, last_ms, count = float(part[0]), float(part[-1]), len(part)
        stretch_ms = max(last_ms, first_ms + gap_ms / 4)  # a single use must be seen
        rate = f", {count / ((last_ms - first_ms) / 1000):.1f} a second" if count > 9 and last_ms > first_ms else ""
        text = singular(f"{client} used {broker} {count} times {span(first_ms, last_ms)}{rate}")
        found.append(LaneStretch(start_ms=first_ms, end_ms=stretch_ms, kind="used", text=text, count=count))
    return found


def _failure_marks(client: str, broker: str, times: Array) -> list[LaneStretch]:
    marks = []
    for at_ms, count in _clusters(times, MARKS_MAX):
        plural = "1 try or pull" if count == 1 else f"{count} tries and pulls"
        text = f"{plural} of {client} at {broker} failed or ended unknown, from {seconds(at_ms)} on"
        marks.append(LaneStretch.mark("failed", at_ms, text, count))
    return marks


def _clusters(times: Array, most: int) -> list[tuple[float, int]]:
    if len(times) <= most:
        return [(float(t), 1) for t in times]
    slice_of = ((times - times[0]) / max(float(times[-1] - times[0]), 1e-9) * (most - 1)).astype("i8")
    _, first, count = np.unique(slice_of, return_index=True, return_counts=True)
    return list(zip(times[first].tolist(), count.tolist(), strict=True))


def _chosen(recorded: Recorded, world: World) -> Mapping[str, list[LaneStretch]]:
    """Return each client's chosen NameServers in order; the kind is `ns` and the NameServer's index."""
    names = {node.address: node.name for node in world.of_kind("name_server")}
    rows: dict[str, list[tuple[float, str | None, str]]] = defaultdict(list)
    for row in recorded.notable:
        if row["event"] == "name_server_chosen":
            rows[row["node"]].append((row["time_ms"], row["name_server"], row["value"] or ""))
    found: dict[str, list[LaneStretch]] = {}
    for client, chosen in rows.items():
        ends = [life.end_ms for life in world.lives_of(client)]
        stretches = []
        for at, (start_ms, address, value) in enumerate(chosen):
            after = chosen[at + 1][0] if at + 1 < len(chosen) else world.end_ms
            end_ms = min([after, world.end_ms, *(end for end in ends if end > start_ms)])
            if address is None or end_ms <= start_ms:
                continue
            says, kind = f"{client} had chosen {names.get(address, address)}", _kind_of_name_server(world, address)
            stretches.append(LaneStretch.said(kind, start_ms, end_ms, says, f" {value}"))
        found[client] = stretches
    return found


def _failed_calls(recorded: Recorded, names: Names) -> Mapping[str, list[LaneStretch]]:
    found: dict[str, list[LaneStretch]] = defaultdict(list)
    for row in recorded.notable:
        if row["event"] == "name_server_call" and row["role"] in ("producer", "consumer"):
            took = f" after {row['duration_ms']:.0f} ms" if row["duration_ms"] is not None else ""
            asked = names(row["name_server"] or "a NameServer")
            text = f"{row['node']}: call of {asked} ended {row['type']}{took} at {seconds(row['time_ms'])}"
            found[row["node"]].append(LaneStretch.mark("failed", row["time_ms"], text))
    return found


def _stays(client: str, chosen: Sequence[LaneStretch], world: World) -> list[LaneStretch]:
    """Return how long the client may stay on a lost NameServer, and from when on it must have left."""
    found = []
    for loss in name_server_losses(world):
        if loss.client != client:
            continue
        for stretch in chosen:
            if stretch.kind != _kind_of_name_server(world, loss.address):
                continue
            # Chosen while it was lost already: the window begins with the choice.
            begin_ms = max(loss.start_ms, stretch.start_ms)
            from_ms = begin_ms + loss.window.latest_ms
            if begin_ms < min(stretch.end_ms, loss.end_ms):
                says, window = f"{client} may stay on {loss.name_server}", bound(loss.window, loss.fault_id)
                end_ms = min(from_ms, loss.end_ms)
                found.append(LaneStretch.said("may", begin_ms, end_ms, says, f": window {window}"))
            start_ms, end_ms = max(from_ms, stretch.start_ms), min(stretch.end_ms, loss.end_ms)
            if start_ms >= end_ms:
                continue
            says, window = f"{client} must have left {loss.name_server}", bound(loss.window, loss.fault_id)
            found.append(LaneStretch.said("must_not", start_ms, end_ms, says, f"; allowed {window}"))
    return found


def _kind_of_name_server(world: World, address: str) -> str:
    addresses = [node.address for node in world.of_kind("name_server")]
    return f"ns{addresses.index(address) % 8}" if address in addresses else "ns7"


# -- a lane per queue: which consumer held it, from when to when.
#
# broker-a 0   ▇▇▇▇▇▇ consumer-0 ▇▇▇▇▇▇▇▇│▇▇▇▇▇ consumer-1 ▇▇▇▇▇▇▇

COLOURS = 8
"""Number of consumers with a colour of their own."""


def queue_lanes(recorded: Recorded, world: World) -> list[Lane]:
    """Return a lane for each queue, in order of brokers (key: `queue/orders/broker-a/0`). A bar's kind (`owner0`,
    `owner1` …) stands for the consumer that owned the queue."""
    rows = [row for row in recorded.notable if row["event"] in ("queue_taken", "queue_dropped")]
    topics = {row["topic"] for row in rows}
    consumers = [node.name for node in world.of_kind("consumer")]
    held: dict[tuple[str, str], dict[str, Any]] = {}
    bars: dict[tuple[str, str, int], list[LaneStretch]] = defaultdict(list)

    def close(row: dict[str, Any], end_ms: float) -> None:
        start_ms, node = row["time_ms"], row["node"]
        dies_ms = min((e for life in world.lives_of(node) if (e := life.end_ms) > start_ms), default=math.inf)
        end_ms = min(end_ms, dies_ms, world.end_ms)
        if start_ms >= end_ms:
            return
        queue = (row["topic"] or "", row["broker_name"] or "", int(row["queue_id"] or 0))
        kind = f"owner{consumers.index(node) % COLOURS if node in consumers else COLOURS - 1}"
        says = f"{node} owned queue {queue[2]} of {queue[1]} ({queue[0]})"
        bars[queue].append(LaneStretch.said(kind, start_ms, end_ms, says))

    for row in rows:
        before = held.pop((row["node"], row["op_id"]), None)
        if before is not None:
            close(before, row["time_ms"])
        if row["event"] == "queue_taken":
            held[row["node"], row["op_id"]] = row
    for row in held.values():
        close(row, world.end_ms)
    return [
        Lane(
            key=f"queue/{topic}/{broker}/{queue}",
            label=_label(topic, queue, several=len(topics) > 1),
            group=broker,
            bars=thin(sorted(bars[topic, broker, queue], key=lambda s: s.start_ms), LANE_MAX),
        )
        for topic, broker, queue in sorted(bars, key=lambda key: (key[1], key[0], key[2]))
    ]


def _label(topic: str, queue: int, *, several: bool) -> str:
    if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        return f"retry {queue}"
    return f"{topic} {queue}" if several else f"queue {queue}"
