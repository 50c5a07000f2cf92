"""A lane per queue: which consumer held it, from when to when. And a lane per link that had a fault: what it was.

broker-a 0   ▇▇▇▇▇▇ consumer-0 ▇▇▇▇▇▇▇▇│▇▇▇▇▇ consumer-1 ▇▇▇▇▇▇▇
broker-a → ns-0        ▇▇▇ black hole ▇▇▇
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...oracle.world import World
from .data import Recorded
from .found import LANE_MAX
from .stretches import Lane, Stretch, span, thin

COLOURS = 8
"""So many consumers are told apart by colour."""


def queue_lanes(recorded: Recorded, world: World) -> list[Lane]:
    """The lanes, broker by broker; key `queue/orders/broker-a/0`. The kind of a bar is `owner0` … by the consumer."""
    rows = [row for row in recorded.notable if row["event"] in ("queue_taken", "queue_dropped")]
    topics = {row["topic"] for row in rows}
    consumers = [node.name for node in world.of_kind("consumer")]
    held: dict[tuple[str, str], dict[str, Any]] = {}
    bars: dict[tuple[str, str, int], list[Stretch]] = defaultdict(list)

    def close(row: dict[str, Any], end_ms: float) -> None:
        start_ms, node = row["time_ms"], row["node"]
        dies_ms = min((e for life in world.lives_of(node) if (e := life.end_ms) > start_ms), default=math.inf)
        end_ms = min(end_ms, dies_ms, world.end_ms)
        if start_ms >= end_ms:
            return
        queue = (row["topic"] or "", row["broker_name"] or "", int(row["queue_id"] or 0))
        kind = f"owner{consumers.index(node) % COLOURS if node in consumers else COLOURS - 1}"
        text = f"{node} held queue {queue[2]} of {queue[1]} ({queue[0]}) {span(start_ms, end_ms)}"
        bars[queue].append(Stretch(start_ms=start_ms, end_ms=end_ms, kind=kind, text=text))

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


def link_lanes(world: World) -> list[Lane]:
    """The links that had a fault, by who dials; the others were whole all the time."""
    bars: dict[tuple[str, str], list[Stretch]] = defaultdict(list)
    for fault in world.faults:
        if fault.target is not None:
            end_ms = min(fault.end_ms, world.end_ms)
            way = "" if fault.stream in (None, "both") else f", {fault.stream} only"
            numbers = ", ".join(f"{name} {value}" for name, value in fault.value.items())
            said = f"{fault.kind.words} {fault.source} → {fault.target}{way} {span(fault.start_ms, end_ms)}"
            text = f"{fault.fault_id}: {said}{f' ({numbers})' if numbers else ''}"
            stretch = Stretch(start_ms=fault.start_ms, end_ms=end_ms, kind="fault", text=text)
            bars[fault.source, fault.target].append(stretch)
    return [
        Lane(key=f"link/{source}/{target}", label=f"→ {target}", group=source, bars=thin(found, LANE_MAX))
        for (source, target), found in sorted(bars.items())
    ]
