"""Finds events that are no fault of a link or process: a paused host, NameServers stopped before their brokers, a
client that ran only for a short time. Pure: no I/O.

A host was paused (sleep, pause, snapshot) if all its processes' logs are silent at the same time and go on without a
restart. After the pause, a NameServer on the host expires living brokers, later than a running NameServer would.
Effects of a pause, or of another event here, are not used as signs of a fault.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ...chaos.reports.text import all_of
from ...chaos.verdict import seconds
from ..logs_to_rows.signs import CLOSES, WORKS, Edge, Kind, Row, Seen, Sign, first_after, last_before
from .telling import Episode, Hypothesis, act

AT_LEAST_PERIODS = 3.0
"""Least silence that counts, in periods of registration."""
WAKES_MS = 60_000.0
"""Effects of a silence show within this time after its end."""
VISIT_MS = 120_000.0
"""A client that was there for less came and went: an admin command, a probe, a test."""
ORDER_MS = 600_000.0
"""Servers stopped within this time were stopped together."""
BURST_MS = 2_000.0
SCORE, OTHERWISE = 0.8, 0.1
WORTH = 6.0


@dataclass(slots=True)
class _Silence:
    from_ms: float
    to_ms: float
    nodes: set[str] = field(default_factory=set)
    late: list[Sign] = field(default_factory=list)
    """Brokers that a waking NameServer expired."""


def standing_in(seen: Seen, taken: dict[Sign, float]) -> list[Episode]:
    """Return pauses and the other harmless events as episodes, and add the signs that they explain to `taken`."""
    _came_and_went(seen, taken)
    return [*_hosts(seen, taken), *_wrong_order(seen, taken)]


# --- a host


def _hosts(seen: Seen, taken: dict[Sign, float]) -> Iterator[Episode]:
    for silence in _silences(seen):
        nodes = sorted(silence.nodes)
        rows = [*_last_and_first(seen, silence), *(sign.row for sign in silence.late if sign.row is not None)]
        _take(seen, taken, silence.nodes, silence.from_ms, silence.to_ms + WAKES_MS)
        yield _told(seen, silence, nodes, rows)


def _take(seen: Seen, taken: dict[Sign, float], nodes: Collection[str], from_ms: float, to_ms: float) -> None:
    """Add the signs of trouble on these nodes' links, from `from_ms` to `to_ms`, to the explained signs."""
    for edge, signs in seen.by_edge.items():
        if any(node in nodes for node in edge):
            within = (one for one in signs if from_ms <= one.at_ms <= to_ms and one.kind not in WORKS)
            taken.update(dict.fromkeys(within, WORTH))


def _told(seen: Seen, silence: _Silence, nodes: Sequence[str], rows: Sequence[Row]) -> Episode:
    who = all_of(nodes)
    for_s = (silence.to_ms - silence.from_ms) / 1000
    span = f"from {seconds(silence.from_ms)} to {seconds(silence.to_ms)} ({for_s:.0f} s)"
    late = (
        f"; {', '.join(sorted({one.edge.peer for one in silence.late}))} expired brokers when it went on, later than "
        "a NameServer that runs does"
        if silence.late
        else ""
    )
    told = act(
        "pause_host",
        f"the host of {who} stood still {span}: all that write there were silent together, and none was started "
        f"again{late}",
        [
            {"at_s": round(silence.from_ms / 1000, 3), "do": "pause", "nodes": list(nodes)},
            {"at_s": round(silence.to_ms / 1000, 3), "do": "resume", "nodes": list(nodes)},
        ],
        rows,
        from_ms=silence.from_ms,
        to_ms=silence.to_ms,
        certainty="likely",
        score=SCORE + OTHERWISE if silence.late else SCORE,
    )
    told.hypotheses[0].speaks_for += [{"says": says} for says in timers_after(seen, silence.nodes, silence.to_ms)]
    told.hypotheses.append(_clock_set(silence, nodes, for_s))
    return told


def _clock_set(silence: _Silence, nodes: Sequence[str], for_s: float) -> Hypothesis:
    """Return logs of a host whose clock was set, which looks like a host that stood still."""
    at_s = round(silence.from_ms / 1000, 3)
    return Hypothesis(
        rank=2,
        fault="clock_step",
        sentence=f"the clock of the host of {', '.join(nodes)} was set forward by {for_s:.0f} s at {at_s:.1f} s",
        certainty="unsure",
        score=OTHERWISE,
        timeline=[],
        bounds_ms=[1_000.0, None],
        speaks_against=[{"says": "a log of another host would tell the two apart"}],
    )


def timers_after(seen: Seen, nodes: Collection[str], to_ms: float) -> Iterator[str]:
    """Yield a sentence for each broker whose registrations after the pause show whether the host or only the process
    was paused."""
    period = seen.timers.R_ms
    for node in sorted({*nodes} & {*seen.brokers}):
        times = _registers(seen, node)
        at = bisect_left(times, to_ms - 1_000.0)
        after, before = times[at:], times[:at]
        if not after or not before:
            continue
        burst = sum(one <= after[0] + BURST_MS for one in after)
        if burst >= AT_LEAST_PERIODS:
            yield f"{node} registered {burst} times at once when it went on: its timers had run on (a stopped process)"
            continue
        shift_ms = (after[0] - before[-1]) % period
        if min(shift_ms, period - shift_ms) > BURST_MS:
            yield f"{node} registers {shift_ms / 1000:.0f} s later in its period since: its timers had stood still, too"


def _registers(seen: Seen, node: str) -> list[float]:
    """Return when the broker registered with the NameServer of which the broker's log says most."""
    most: list[float] = []
    for edge, signs in seen.by_edge.items():
        if edge.dialler == node and edge.peer:
            own = [sign.from_ms for sign in signs if sign.observer == node and sign.kind is not Kind.OPEN]
            most = own if len(own) > len(most) else most
    return sorted(most)


def _silences(seen: Seen) -> list[_Silence]:
    """Return silences of hosts: of all writers, or of the writers at one address while other writers wrote."""
    found = []
    for silence in _together(seen):
        tolerance = seen.tolerance_ms(*silence.nodes)
        margin_ms = seen.timers.R_ms + tolerance  # who writes each period goes silent, and goes on, up to one later
        from_ms, to_ms = silence.from_ms + margin_ms, silence.to_ms - margin_ms
        covering = {node for node in seen.own if seen.covers(node, silence.from_ms, silence.to_ms)}
        awake = {node for node in covering if first_after(seen.own[node], from_ms) < to_ms}
        silence.late = _expired_late(seen, silence, tolerance)
        silence.nodes |= {sign.edge.peer for sign in silence.late}
        if awake - silence.nodes:
            silence.nodes = _of_one_host(seen, silence.nodes, awake)
        else:
            silence.nodes |= covering
        silence.nodes -= awake
        middle_ms = (from_ms + to_ms) / 2
        for node in silence.nodes:
            silence.from_ms = max(silence.from_ms, last_before(seen.own[node], middle_ms))
            silence.to_ms = min(silence.to_ms, first_after(seen.own[node], middle_ms))
        if len(silence.nodes) > 1 and not _restarted(seen, silence, tolerance):
            found.append(silence)
    return found


def _together(seen: Seen) -> list[_Silence]:
    """Return silences that periodic writers share; equal silences are joined."""
    found: list[_Silence] = []
    least_ms, near_ms = AT_LEAST_PERIODS * seen.timers.R_ms, seen.timers.R_ms + BURST_MS
    scan = {str(row["node"]) for row in seen.rows if row["event"] == "scheduled_task"}
    for node in sorted({*seen.brokers, *scan} & seen.own.keys()):
        own = seen.own[node]
        usual = sorted(b - a for a, b in pairwise(own) if b - a > BURST_MS)
        if not usual or usual[len(usual) // 2] > seen.timers.R_ms + 2 * BURST_MS:
            continue  # it writes too seldom for a silence to say anything; other nodes write when somebody comes
        for from_ms, to_ms in ((a, b) for a, b in pairwise(own) if b - a > least_ms):
            near = (one for one in found if max(abs(one.from_ms - from_ms), abs(one.to_ms - to_ms)) <= near_ms)
            if (silence := next(near, None)) is None:
                found.append(_Silence(from_ms, to_ms, {node}))
            else:
                silence.nodes.add(node)
                silence.from_ms, silence.to_ms = max(silence.from_ms, from_ms), min(silence.to_ms, to_ms)
    return found


def _expired_late(seen: Seen, silence: _Silence, tolerance: float) -> list[Sign]:
    latest_ms = seen.timers.E_ms + seen.timers.S_ms + seen.timers.R_ms + tolerance
    return [
        sign
        for edge, signs in seen.by_edge.items()
        if edge.dialler in silence.nodes and edge.peer in seen.name_servers
        for sign in signs
        if sign.kind is Kind.SILENCE
        and sign.at_ms - silence.from_ms > latest_ms
        and abs(sign.at_ms - silence.to_ms) <= seen.timers.S_ms + tolerance + BURST_MS
    ]


def _of_one_host(seen: Seen, nodes: Collection[str], awake: Collection[str]) -> set[str]:
    """Return the silent nodes of one address, if no node at that address wrote."""
    by_host: dict[str, set[str]] = defaultdict(set)
    for address, node in seen.addresses.items():
        by_host[address.rpartition(":")[0]].add(node)
    whole = [members & {*nodes} for members in by_host.values() if members.isdisjoint(awake)]
    return max(whole, key=len, default=set())


def _restarted(seen: Seen, silence: _Silence, tolerance: float) -> bool:
    """Whether a process of these nodes started at the silence's end; then the nodes had ended, not stood still."""
    return any(
        sign.kind is Kind.BOOT and silence.from_ms <= sign.at_ms <= silence.to_ms + WAKES_MS + tolerance
        for node in silence.nodes
        for sign in seen.by_edge.get(Edge(node, ""), ())
    )


def _last_and_first(seen: Seen, silence: _Silence) -> list[Row]:
    last: dict[str, Row] = {}
    first: dict[str, Row] = {}
    for row in seen.rows:
        node = str(row["node"])
        if node not in silence.nodes:
            continue
        if row["time_ms"] <= silence.from_ms + BURST_MS:
            last[node] = row
        elif row["time_ms"] >= silence.to_ms - BURST_MS:
            first.setdefault(node, row)
    return sorted([*last.values(), *first.values()], key=lambda row: float(row["time_ms"]))


# --- an order


def _wrong_order(seen: Seen, taken: dict[Sign, float]) -> Iterator[Episode]:
    """Yield the episode in which every NameServer was stopped, and then brokers, which could not unregister."""
    stops = {
        node: sign
        for node in (*seen.name_servers, *seen.brokers)
        for sign in seen.by_edge.get(Edge(node, ""), ())
        if sign.kind is Kind.STOPPED
    }
    servers = [node for node in seen.name_servers if seen.is_written(node)]
    if not servers or not all(node in stops for node in servers):
        return
    gone_ms = max(stops[node].at_ms for node in servers)
    tolerance = seen.tolerance_ms(*stops)
    brokers = [
        node for node in seen.brokers if node in stops and gone_ms + tolerance < stops[node].at_ms <= gone_ms + ORDER_MS
    ]
    if not brokers:
        return
    first_ms = min(stops[node].at_ms for node in servers)
    _take(seen, taken, {*servers, *brokers}, first_ms - tolerance, math.inf)
    ordered = sorted((stops[node].at_ms, node) for node in (*servers, *brokers))
    sentence = (
        f"the NameServers ({', '.join(servers)}) were stopped at {seconds(gone_ms)}, before {', '.join(brokers)}: a "
        "broker that is stopped after them cannot unregister, and clients keep its address"
    )
    rows = [sign.row for _, node in ordered if (sign := stops[node]).row is not None]
    yield act(
        "stop",
        sentence,
        [{"at_s": round(at_ms / 1000, 3), "do": "stop", "nodes": [node]} for at_ms, node in ordered],
        [row for row in rows if row is not None],
        from_ms=first_ms,
    )


# --- a visit


def _came_and_went(seen: Seen, taken: dict[Sign, float]) -> None:
    """Return clients that started and stopped during the logs; no fault is inferred from their end."""
    for client in seen.clients:
        signs = [sign for edge in seen.edges_of(client) for sign in seen.by_edge[edge] if edge.dialler == client]
        times = [*seen.own.get(client, ()), *(sign.from_ms for sign in signs if sign.observer != client)]
        lived = [sign.at_ms for sign in signs if sign.kind in WORKS] + list(seen.own.get(client, ()))
        signs += seen.by_edge.get(Edge(client, ""), [])
        if times and lived and max(lived) - min(times) <= VISIT_MS and max(lived) < seen.last_ms - 2 * seen.timers.R_ms:
            ends = (*CLOSES, Kind.CLOSED_AFTER, Kind.SILENCE, Kind.LEFT, Kind.GONE, Kind.STOPPED, Kind.MISSED)
            taken.update({sign: WORTH for sign in signs if sign.kind in ends})
