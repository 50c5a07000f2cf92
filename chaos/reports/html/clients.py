"""A lane per client: which NameServer it had chosen, and a row for each broker it used, with what failed there.

    producer-0   NameServer  ▇▇▇▇▇▇ ns-1 ▇▇▇▇▇▇▇▇│▇▇▇▇▇ ns-2 ▇▇▇▇▇▇▇
                 broker-a    ▇▇▇▇▇▇▇▇▇▇▇▇x x          ▇▇▇▇▇▇▇▇▇▇▇▇▇▇
                 broker-b    ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇

A use is a try of a send or a pull at its beginning, as the check dead_brokers_avoided counts it; uses closer together
than a few pixels are one bar. Below the bars stands in which stretch the client had to have left a lost broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ...oracle.lost_name_servers import name_server_losses
from ...oracle.world import World
from .codes import Array
from .data import Recorded, Traffic
from .intervals import Kind
from .rules import bound, rules
from .stretches import Lane, Mark, Stretch, seconds, span, thin, thin_marks
from .words import Names

ACROSS = 250
"""How many bars a row shows at most: a gap shorter than a 250th of the run is not drawn."""
MARKS_MAX = 150
"""How many failures a row shows one by one."""
LEAST_GAP_MS = 4000.0
"""A client takes the queues of its brokers in turn, so that some seconds without one of them are no gap."""


def client_lanes(recorded: Recorded, world: World, start_ms: float) -> list[Lane]:
    """The lanes, client by client: first its NameServer (key: the client), then each broker (key: client/broker)."""
    uses, failures = _by_pair(recorded.traffic, "invoke"), _by_pair(recorded.traffic, "fail", "info")
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
                marks=thin_marks(calls.get(client.name, []), MARKS_MAX),
            )
        )
        for broker in world.of_kind("broker"):
            pair = (client.name, broker.name)
            times = uses.get(pair, np.empty(0))
            windows = ruled.get((*pair, Kind.USE), [])
            if all(rule.kind == "may" for rule in windows):
                windows = []  # it was never lost
            lanes.append(
                Lane(
                    key="/".join(pair),
                    label=broker.name,
                    group=client.name,
                    bars=_bars(*pair, times, gap_ms, world.end_ms),
                    windows=thin(windows, ACROSS),
                    marks=_failure_marks(*pair, failures.get(pair, np.empty(0))),
                )
            )
    return lanes


def _by_pair(traffic: Traffic, *outcomes: str) -> Mapping[tuple[str, str], Array]:
    """(client, broker) → times of its tries and pulls that have one of these outcomes, in order."""
    mask = (traffic.where("send_attempt", *outcomes) | traffic.where("pull", *outcomes)) & (traffic.broker >= 0)
    if "info" in outcomes:
        mask &= ~(traffic.answered & (traffic.event == 2))
    time_ms, node, broker = traffic.time_ms[mask], traffic.node[mask].astype("i8"), traffic.broker[mask]
    if not len(time_ms):
        return {}
    width = len(traffic.brokers)
    pair = node * width + broker
    order = np.argsort(pair, kind="stable")
    keys, first = np.unique(pair[order], return_index=True)
    parts = np.split(time_ms[order], first[1:])
    return {
        (traffic.nodes[key // width], traffic.brokers[key % width]): part
        for key, part in zip(keys.tolist(), parts, strict=True)
    }


def _bars(client: str, broker: str, times: Array, gap_ms: float, end_ms: float) -> list[Stretch]:
    times = times[times < end_ms]
    if not len(times):
        return []
    breaks = np.flatnonzero(np.diff(times) > gap_ms) + 1
    found = []
    for part in np.split(times, breaks):
        first_ms, last_ms, count = float(part[0]), float(part[-1]), len(part)
        stretch_ms = max(last_ms, first_ms + gap_ms / 4)  # a single use must be seen
        rate = f", {count / ((last_ms - first_ms) / 1000):.1f} a second" if count > 9 and last_ms > first_ms else ""
        text = f"{client} used {broker} {count} times {span(first_ms, last_ms)}{rate}"
        found.append(Stretch(start_ms=first_ms, end_ms=stretch_ms, kind="used", text=text, count=count))
    return found


def _failure_marks(client: str, broker: str, times: Array) -> list[Mark]:
    marks = []
    for at_ms, count in _clusters(times, MARKS_MAX):
        plural = "1 try or pull" if count == 1 else f"{count} tries and pulls"
        text = f"{plural} of {client} at {broker} failed or ended unknown, from {seconds(at_ms)} on"
        marks.append(Mark(at_ms=at_ms, kind="failed", text=text, count=count))
    return marks


def _clusters(times: Array, most: int) -> list[tuple[float, int]]:
    """(first time, count) of each slice of time that has any."""
    if len(times) <= most:
        return [(float(t), 1) for t in times]
    slice_of = ((times - times[0]) / max(float(times[-1] - times[0]), 1e-9) * (most - 1)).astype("i8")
    _, first, count = np.unique(slice_of, return_index=True, return_counts=True)
    return list(zip(times[first].tolist(), count.tolist(), strict=True))


def _chosen(recorded: Recorded, world: World) -> Mapping[str, list[Stretch]]:
    """Client → the NameServers it had chosen, one after the other; kind is `ns` and the NameServer's index."""
    names = {node.address: node.name for node in world.of_kind("name_server")}
    rows: dict[str, list[tuple[float, str | None, str]]] = defaultdict(list)
    for row in recorded.notable:
        if row["event"] == "name_server_chosen":
            rows[row["node"]].append((row["time_ms"], row["name_server"], row["value"] or ""))
    found: dict[str, list[Stretch]] = {}
    for client, chosen in rows.items():
        ends = [life.end_ms for life in world.lives_of(client)]
        stretches = []
        for at, (start_ms, address, value) in enumerate(chosen):
            after = chosen[at + 1][0] if at + 1 < len(chosen) else world.end_ms
            end_ms = min([after, world.end_ms, *(end for end in ends if end > start_ms)])
            if address is None or end_ms <= start_ms:
                continue
            text = f"{client} had chosen {names.get(address, address)} {span(start_ms, end_ms)} {value}"
            stretches.append(Stretch(start_ms=start_ms, end_ms=end_ms, kind=_kind(world, address), text=text))
        found[client] = stretches
    return found


def _failed_calls(recorded: Recorded, names: Names) -> Mapping[str, list[Mark]]:
    found: dict[str, list[Mark]] = defaultdict(list)
    for row in recorded.notable:
        if row["event"] == "name_server_call" and row["role"] in ("producer", "consumer"):
            took = f" after {row['duration_ms']:.0f} ms" if row["duration_ms"] is not None else ""
            asked = names(row["name_server"] or "a NameServer")
            text = f"{row['node']}: call of {asked} ended {row['type']}{took} at {seconds(row['time_ms'])}"
            found[row["node"]].append(Mark(at_ms=row["time_ms"], kind="failed", text=text))
    return found


def _stays(client: str, chosen: Sequence[Stretch], world: World) -> list[Stretch]:
    """How long the client may stay on a lost NameServer that it had chosen, and from when on it must have left."""
    found = []
    for loss in name_server_losses(world):
        if loss.client != client:
            continue
        for stretch in chosen:
            if stretch.kind != _kind(world, loss.address):
                continue
            # Chosen while it was lost already: the window begins with the choice.
            begin_ms = max(loss.start_ms, stretch.start_ms)
            from_ms = begin_ms + loss.window.latest_ms
            if begin_ms < min(stretch.end_ms, loss.end_ms):
                says = f"{client} may stay on {loss.name_server} {span(begin_ms, from_ms)}: window "
                says += bound(loss.window, loss.fault_id)
                end_ms = min(from_ms, loss.end_ms)
                found.append(Stretch(start_ms=begin_ms, end_ms=end_ms, kind="may", text=says))
            start_ms, end_ms = max(from_ms, stretch.start_ms), min(stretch.end_ms, loss.end_ms)
            if start_ms >= end_ms:
                continue
            text = f"{client} must have left {loss.name_server} {span(start_ms, end_ms)}; allowed "
            text += bound(loss.window, loss.fault_id)
            found.append(Stretch(start_ms=start_ms, end_ms=end_ms, kind="must_not", text=text))
    return found


def _kind(world: World, address: str) -> str:
    """The kind of the bar of this NameServer: `ns` and its index."""
    addresses = [node.address for node in world.of_kind("name_server")]
    return f"ns{addresses.index(address) % 8}" if address in addresses else "ns7"
