"""Shows what RocketMQ's timers require of each node (the oracle), as stretches of time below the bars of report.html.

    ── must ──┤▒▒ may (the window) ▒▒├── must not ──┤▒▒ may ▒▒├── must ──

    NameServer, broker   its table has the broker                    must · may · must not
    client, broker       it sends to it, or pulls from it                   may · must not

The stretches of a NameServer or client cover the whole life of its process. The requirements are the ones that the
checks use (promises.py, lost_brokers.py). A stretch is `may` if it is neither `must` nor `must not`. found.py draws the
violations.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...oracle.lost_brokers import absences
from ...oracle.promises import ObligationKind, obligations
from ...oracle.windows import Window
from ...oracle.world import World, once
from ...verdict import seconds
from .stretches import LaneStretch


class Ruled(NamedTuple):
    """A requirement that holds from `from_ms` until before `to_ms`."""

    kind: str
    """must, must_not or may."""
    from_ms: float
    to_ms: float
    window: Window | None = None
    """The window that led here; None if there was none."""
    fault_id: str = ""
    """The fault that it follows from, by its begin or end; "" for none."""
    at_ms: float = 0.0
    """The change from which the window counts."""


@once
def rules(world: World) -> Mapping[tuple[str, str], list[LaneStretch]]:
    """Return by (NameServer or client, broker) the times in which the node must, must not or may have the broker, in
    order."""
    strict: dict[tuple[str, int, str], list[Ruled]] = defaultdict(list)
    for o in obligations(world):
        kind = "must_not" if o.demand is ObligationKind.DROP else "must"
        ruled = Ruled(kind, o.from_ms, o.to_ms, o.window, o.label.fault_id, o.at_ms)
        strict[o.name_server, o.incarnation, o.broker].append(ruled)
    for a in absences(world):
        lives = world.lives_of(a.client)
        process = next((life.incarnation for life in lives if life.start_ms <= a.start_ms < life.end_ms), -1)
        ruled = Ruled("must_not", a.from_ms, a.end_ms, a.window, a.fault_id, a.start_ms)
        strict[a.client, process, a.broker].append(ruled)
    found: dict[tuple[str, str], list[LaneStretch]] = defaultdict(list)
    for node in world.of_kind("name_server", "producer", "consumer"):
        verb = "hold" if node.kind == "name_server" else "use"
        for life in world.lives_of(node.name):
            for broker in world.of_kind("broker", *(("slave",) if verb == "hold" else ())):
                said = strict[node.name, life.incarnation, broker.name]
                told = _without_gaps(said, life.start_ms, min(life.end_ms, world.end_ms))
                found[node.name, broker.name] += [_stretch(node.name, verb, broker.name, one) for one in told]
    return found


def _without_gaps(ruled: Iterable[Ruled], now_ms: float, end_ms: float) -> list[Ruled]:
    """Return the times in order, with `may` between them; if two overlap, the later one is shortened."""
    found: list[Ruled] = []
    for one in sorted(ruled, key=lambda one: one.from_ms):
        from_ms, to_ms = max(one.from_ms, now_ms), min(one.to_ms, end_ms)
        if from_ms >= to_ms:
            continue
        if now_ms < from_ms:
            found.append(one._replace(kind="may", from_ms=now_ms, to_ms=from_ms))
        if found and (found[-1].kind, found[-1].window, found[-1].fault_id) == (one.kind, one.window, one.fault_id):
            found[-1] = found[-1]._replace(to_ms=to_ms)
        else:
            found.append(one._replace(from_ms=from_ms, to_ms=to_ms))
        now_ms = to_ms
    return [*found, Ruled("may", now_ms, end_ms)] if now_ms < end_ms else found


def _stretch(subject: str, verb: str, broker: str, one: Ruled) -> LaneStretch:
    may = "may hold or miss" if verb == "hold" else "may use"
    says = {"must": f"must {verb}", "must_not": f"must not {verb}", "may": may}[one.kind]
    tail = ""
    if one.fault_id and one.kind != "must":
        tail = f", {seconds(one.from_ms - one.at_ms)} to {seconds(one.to_ms - one.at_ms)} after {one.fault_id}"
    if one.window is not None and one.window.row:
        tail += f". Window: {one.window.row}"
    return LaneStretch.said(one.kind, one.from_ms, one.to_ms, f"{subject} {says} {broker}", tail)


def bound(window: Window, fault_id: str) -> str:
    """Return the requirement's time limit in words: `130.0 s after kill-1 (process crash …)`."""
    after = f" after {fault_id}" if fault_id else ""
    at_most = seconds(window.latest_ms) if math.isfinite(window.latest_ms) else "without bound"
    return f"{at_most}{after} ({window.row})"
