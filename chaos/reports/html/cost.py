"""The cost of a run for its clients: time without a broker, failed sends, messages that waited.

    producer-0 at broker-a   ok ok ok ok ──────── 41 s ──────── ok ok ok
                                        └ fault ┘

A client was without a broker while none of its sends and pulls there was answered. It is reported if that lasted longer
than LEAST_MS and than ever without faults, and something had happened to the broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...oracle.world import World
from ...verdict import seconds
from .data import Array, Recorded
from .flow import MessageFlow
from .node_lanes import by_pair

LEAST_MS = 5000.0
"""A waiting pull is tested every 5 s, so shorter times are no wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Without:
    """The longest stretch in which one client had no answer from one broker."""

    client: str
    broker: str
    from_ms: float
    to_ms: float
    came_back: bool

    @property
    def took_ms(self) -> float:
        return self.to_ms - self.from_ms


def cost_sentence(recorded: Recorded, flow: MessageFlow, gaps: Sequence[Without]) -> str:
    """`consumer-0 was without broker-a for 41.0 s (20.1 to 61.1 s); 65 messages waited longer than 5 s, …`; also if
    there was no cost. "" if no client worked."""
    sends = {outcome: int(recorded.traffic.where("send", outcome).sum()) for outcome in ("ok", "fail", "info")}
    if not sum(sends.values()) and not recorded.traffic.where("pull", "ok").any():
        return ""
    said = [_without(broker, of) for broker, of in _by_broker(gaps).items()]
    if failed := sends["fail"] + sends["info"]:
        said.append(f"{failed:,} of {failed + sends['ok']:,} sends failed or ended without an answer")
    slow = flow.took_ms[flow.took_ms > LEAST_MS]
    if len(slow):
        noun = "message" if len(slow) == 1 else "messages"
        at_most = f", {seconds(float(slow.max()))} at most"
        said.append(f"{len(slow):,} {noun} waited longer than {LEAST_MS / 1000:g} s{at_most}")
    behind = len(flow.acknowledged_ms) - len(flow.received_ms)
    if behind:
        said.append(f"{behind:,} acknowledged {'message was' if behind == 1 else 'messages were'} received by nobody")
    nothing = f"no client was without a broker, and no message waited, for more than {LEAST_MS / 1000:g} s"
    return "; ".join(said) or f"{nothing}; no send failed"


def _by_broker(gaps: Sequence[Without]) -> Mapping[str, list[Without]]:
    found: dict[str, list[Without]] = defaultdict(list)
    for gap in sorted(gaps, key=lambda gap: -gap.took_ms):
        found[gap.broker].append(gap)
    return found


def _without(broker: str, gaps: Sequence[Without]) -> str:
    """For one broker, the client with the longest time first."""
    longest = gaps[0]
    span = f"{longest.from_ms / 1000:.1f} to {seconds(longest.to_ms)}"
    when = f"{seconds(longest.took_ms)} ({span}{'' if longest.came_back else ', the end of its work'})"
    if len(gaps) == 1:
        return f"{longest.client} was without {broker} for {when}"
    return f"{len(gaps)} clients were without {broker}, {longest.client} the longest, for {when}"


def gaps_of(recorded: Recorded, world: World) -> list[Without]:
    """One for each client and broker with such a stretch."""
    troubled = _troubles(recorded, world)
    if not troubled or not len(recorded.traffic.time_ms):
        return []
    found = []
    answered = by_pair(recorded.traffic, "ok", answered=True)
    works_until: dict[str, float] = {}
    for (client, _), times in answered.items():
        works_until[client] = max(works_until.get(client, 0.0), float(times[-1]))
    everybody_until = max(works_until.values(), default=0.0)
    for (client, broker), times in answered.items():
        if broker not in troubled or client == "prober" or len(times) < 2:
            continue
        end_ms = max(works_until[client], everybody_until)
        gap = _longest(times, end_ms, troubled[broker])
        if gap is not None and _lives(world, client, *gap):
            from_ms, to_ms = gap
            back = to_ms < end_ms
            found.append(Without(client=client, broker=broker, from_ms=from_ms, to_ms=to_ms, came_back=back))
    return found


def _longest(times: Array, end_ms: float, troubles: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """The longest stretch between two times that overlaps a trouble, from the trouble's begin on; None if others are
    half as long."""
    starts, ends = times, np.append(times[1:], max(end_ms, float(times[-1])))
    lengths = ends - starts
    met = np.zeros(len(times), dtype=bool)
    begun = ends.copy()
    for start_ms, stop_ms in troubles:
        meets = (starts < stop_ms) & (ends > start_ms)
        met |= meets
        begun[meets] = np.minimum(begun[meets], np.maximum(starts[meets], start_ms))
    usual_ms = float(lengths[~met].max()) if (~met).any() else 0.0
    if not met.any():
        return None
    at = int(np.argmax(np.where(met, lengths, 0.0)))
    if lengths[at] <= max(LEAST_MS, 2 * usual_ms):
        return None
    return float(begun[at]), float(ends[at])


def _troubles(recorded: Recorded, world: World) -> Mapping[str, list[tuple[float, float]]]:
    """Broker to the times of faults on it or its links, and of its drops by NameServers."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    brokers = {node.name for node in world.of_kind("broker")}
    for fault in world.faults:
        for name in {fault.source, fault.target} & brokers:
            found[str(name)].append((fault.start_ms, min(fault.end_ms, world.end_ms)))
    for row in recorded.notable:
        if row["event"] == "broker_dropped" and row["broker_name"] in brokers and row["time_ms"] < world.end_ms:
            found[row["broker_name"]].append((row["time_ms"], row["time_ms"]))
    return found


def _lives(world: World, client: str, from_ms: float, to_ms: float) -> bool:
    """Whether one process of the client ran all the time without a pause."""
    there = any(life.start_ms <= from_ms and life.end_ms >= to_ms - 1 for life in world.lives_of(client))
    own = any(f.source == client and f.target is None and f.start_ms < to_ms for f in world.faults)
    return there and not own
