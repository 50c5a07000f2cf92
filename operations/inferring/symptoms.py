"""Finds signs of faults and of health in a history's rows: lost or kept connections and registrations. Pure: no I/O."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from ...chaos.history.schema import Group, named
from ...chaos.history.transitions import SILENT
from ...chaos.oracle.intervals import Stretch, merged
from ...chaos.oracle.timers import Timers
from ...chaos.topology import broker_node, node_of_client_id
from ..logs_to_rows.signs import (
    HARNESS,
    WORKS,
    Edge,
    Kind,
    Row,
    Seen,
    Sign,
    in_time,
    is_inferred,
    is_registration,
    value_of,
)
from .conclusions import concluded

NOT_OWN = frozenset({"timer_lag", "node", "run_begin", "run_end", "fault", "host_clock", "phase", "link", "boot"})
"""Rows that are no log line of the node that they name."""

STARTS_WITHIN_MS = 15_000.0
"""What a process writes within this time before its start message belongs to it."""
IDLE_MS = 119_000.0
"""Idle limit of a client's channel: the broker's serverChannelMaxIdleTimeSeconds."""
NEAR_PERIODS, FIRST_KEPT = 8, 3
SHORT_MS = 500.0
"""A failure that took less was no time-out."""
EXACT_MS, EXACT_LOG_MS = 50.0, 600.0


def seen_of(rows: Iterable[Row], timers: Timers | None = None) -> Seen:
    ordered = sorted(
        rows, key=lambda row: (row["time_ms"], str(row["node"]), row.get("incarnation") or 0, row.get("seq") or 0)
    )
    begin = next((row for row in ordered if row["event"] == "run_begin"), None)
    seen = Seen(timers or (Timers.from_json(value_of(begin)) if begin else Timers()), rows=ordered)
    doubts = value_of(begin).get("doubts", {}) if begin else {}
    seen.unsure, seen.unpinned, seen.guessed = (
        frozenset(doubts.get(kind, ())) for kind in ("clocks", "periods", "addresses")
    )
    traffic = named(Group.TRAFFIC)
    told = [row for row in ordered if row["node"] not in HARNESS and row["event"] not in traffic]
    seen.first_ms = min((row["time_ms"] for row in told), default=0.0)
    seen.last_ms = max((row["time_ms"] for row in told), default=0.0)
    _who(seen, ordered, told)
    _of_rows(seen, told)
    for signs in seen.by_edge.values():
        signs.sort(key=in_time)
    concluded(seen)
    _thinned(seen)
    return seen


def _thinned(seen: Seen) -> None:
    """Remove successes far from every failure, because they say nothing about a fault's begin and end. The nearest
    success before and after the failures is kept."""
    near_ms = NEAR_PERIODS * seen.timers.R_ms
    around = merged(Stretch(sign.at_ms - near_ms, sign.at_ms + near_ms) for sign in seen.bad())
    begins = [one.start_ms for one in around]
    for signs in seen.by_edge.values():
        kept: list[Sign] = []
        last: Sign | None = None
        at_before = -1
        for sign in signs:
            at = bisect_right(begins, sign.at_ms) - 1
            inside = at >= 0 and sign.at_ms <= around[at].end_ms
            if sign.kind not in WORKS or inside:
                if last is not None:
                    kept.append(last)
                    last = None
                kept.append(sign)
            elif at != at_before or len(kept) < FIRST_KEPT:
                kept.append(sign)
            else:
                last = sign
            at_before = at
        signs[:] = kept


def _who(seen: Seen, ordered: Iterable[Row], told: Iterable[Row]) -> None:
    own: dict[str, list[float]] = defaultdict(list)
    exact: dict[str, float] = {}
    for row in ordered:
        if row["event"] == "node" and row.get("source") not in HARNESS:
            seen.kinds[str(row["source"])] = str(value_of(row).get("kind", ""))
            if row.get("address"):
                seen.addresses[str(row["address"])] = str(row["source"])
        elif row["event"] == "timer_lag" and value_of(row).get("learnt"):
            exact[row["node"]] = max(exact.get(row["node"], 0.0), float(row.get("lag_ms") or 0.0) / 2)
    for row in told:
        node = str(row["node"])
        if row["event"] == "started" and row.get("address"):
            seen.addresses.setdefault(str(row["address"]), node)
        if row["event"] not in NOT_OWN and not is_inferred(row):
            own[node].append(row["time_ms"])
            if node not in seen.kinds and row.get("role"):
                seen.kinds[node] = str(row["role"])
            if value_of(row).get("learnt") == "log":
                exact.setdefault(node, EXACT_LOG_MS)
    seen.own = dict(own)
    seen.exact_ms = {node: exact.get(node, EXACT_MS) for node in own}


def registered_node(seen: Seen, row: Row) -> str | None:
    """Return the node that registered in this row; None if a broker with another name has the row's address."""
    broker = broker_node(row["broker_name"], row.get("broker_id"))
    node = seen.addresses.get(str(row.get("address")), broker)
    return node if node.partition("/")[0] == broker.partition("/")[0] else None


def _of_rows(seen: Seen, told: Iterable[Row]) -> None:
    chosen: dict[str, list[tuple[float, str]]] = defaultdict(list)
    ends = _ends_of_dials(seen, told)
    for row in told:
        node, event, at_ms = str(row["node"]), row["event"], float(row["time_ms"])
        if event == "started":
            if not is_inferred(row) and seen.own_from(node) < at_ms - STARTS_WITHIN_MS:
                seen.add(Kind.BOOT, Edge(node, ""), row)
        elif event == "stopped":
            seen.add(Kind.STOPPED, Edge(node, ""), row)
        elif event == "registration":
            if is_registration(row) and not is_inferred(row) and (broker := registered_node(seen, row)) is not None:
                seen.add(Kind.ARRIVED, Edge(broker, node), row)
        elif event == "broker_dropped":
            _dropped(seen, row)
        elif event == "register":
            _register(seen, row, ends)
        elif event == "timed_out":
            _timed_out(seen, row)
        elif event == "channel":
            _channel(seen, row, ends)
        elif event == "name_server_chosen" and (server := seen.addresses.get(str(row.get("name_server")))):
            chosen[node].append((at_ms, server))
        elif event == "name_server_call" and (server := seen.addresses.get(str(row.get("name_server")))):
            if row.get("code") is not None:
                seen.add(Kind.OK, Edge(node, server), row)
        elif event == "route_changed" and chosen.get(node):
            seen.add(Kind.OK, Edge(node, chosen[node][-1][1]), row)
        elif event in ("client_heartbeat", "client_gone"):
            _client(seen, row)
    seen.chosen = dict(chosen)


def _dropped(seen: Seen, row: Row) -> None:
    reason = str(value_of(row).get("reason", "unknown"))
    broker = seen.addresses.get(str(row.get("address"))) or (
        broker_node(row["broker_name"], row.get("broker_id")) if row.get("broker_name") else ""
    )
    if not broker:
        return
    kind = {"unregistered": Kind.LEFT, "unknown": Kind.GONE}.get(reason, Kind.CLOSED_BY_PEER_SEEN)
    if reason in SILENT or reason == "silence":
        kind = Kind.SILENCE
    seen.add(kind, Edge(broker, str(row["node"])), row, value=reason)


def _ends_of_dials(seen: Seen, told: Iterable[Row]) -> dict[Edge, list[tuple[float, Kind, float]]]:
    """Return a node's failed connects and calls in its own log: time, outcome, duration."""
    found: dict[Edge, list[tuple[float, Kind, float]]] = defaultdict(list)
    for row in told:
        peer = seen.addresses.get(str(row.get("address")))
        if peer is None:
            continue
        at_ms, took_ms = float(row["time_ms"]), row.get("duration_ms")
        if row["event"] == "timed_out":
            kind = Kind.NO_DIAL if row.get("f") == "connect" else Kind.NO_ANSWER
            usual_ms = seen.timers.C_ms if kind is Kind.NO_DIAL else seen.timers.B_ms
            found[Edge(str(row["node"]), peer)].append((at_ms, kind, float(took_ms or usual_ms)))
        elif row["event"] == "channel" and row.get("f") == "connect_failed":
            found[Edge(str(row["node"]), peer)].append((at_ms, Kind.REFUSED, 0.0))
    return found


def _failed(
    seen: Seen, edge: Edge, at_ms: float, ends: dict[Edge, list[tuple[float, Kind, float]]]
) -> tuple[Kind, float]:
    """Return how and since when a connect or call failed, if its row has no duration."""
    tolerance = seen.tolerance_ms(edge.dialler)
    near = [one for one in ends.get(edge, ()) if abs(one[0] - at_ms) <= tolerance]
    known = ((kind, at_ms - took_ms) for wanted in _HOW for _, kind, took_ms in near if kind is wanted)
    return next(known, (Kind.FAILED, at_ms))


_HOW = (Kind.NO_DIAL, Kind.NO_ANSWER, Kind.REFUSED)
"""From the surest on."""


def _register(seen: Seen, row: Row, ends: dict[Edge, list[tuple[float, Kind, float]]]) -> None:
    server = seen.addresses.get(str(row.get("name_server")))
    if server is None:
        return
    edge, at_ms, took_ms = Edge(str(row["node"]), server), float(row["time_ms"]), row.get("duration_ms")
    began_ms = at_ms - float(took_ms or 0.0)
    if row.get("type") == "ok" or row.get("code"):  # a registration that is refused with a code was answered
        late = took_ms is not None and took_ms > SHORT_MS
        kind = Kind.LATE if late else Kind.OK
    elif took_ms is None:
        kind, began_ms = _failed(seen, edge, at_ms, ends)
    elif row.get("type") == "info":
        kind = Kind.BROKEN if took_ms < SHORT_MS else Kind.NO_ANSWER
    else:
        kind = Kind.REFUSED if took_ms < SHORT_MS else Kind.NO_DIAL
    seen.add(kind, edge, row, from_ms=began_ms)


def _timed_out(seen: Seen, row: Row) -> None:
    peer = seen.addresses.get(str(row.get("address")))
    if peer is None or row.get("f") == "REGISTER_BROKER" or seen.kinds.get(str(row["node"])) in ("broker", "slave"):
        return  # a broker's are told by its `register` rows
    took_ms = float(row.get("duration_ms") or seen.timers.A_ms)
    attempt_ms = value_of(row).get("attempt_ms")
    kind = Kind.NO_DIAL if row.get("f") == "connect" else Kind.NO_ANSWER
    if kind is Kind.NO_ANSWER and row.get("f") == "PULL_MESSAGE":
        took_ms = min(took_ms, 10_000.0)  # a pull is held for 15 s; from then on its answer is due
    from_ms = float(row["time_ms"]) - float(attempt_ms or took_ms)
    seen.add(kind, Edge(str(row["node"]), peer), row, from_ms=from_ms)


def _channel(seen: Seen, row: Row, ends: dict[Edge, list[tuple[float, Kind, float]]]) -> None:
    peer, node = seen.addresses.get(str(row.get("address"))), str(row["node"])
    if peer is None:
        return
    edge, at_ms, reason = Edge(node, peer), float(row["time_ms"]), str(value_of(row).get("reason", ""))
    if row.get("f") == "open":
        seen.add(Kind.OPEN, edge, row)
    elif row.get("f") == "connect_failed":
        if seen.kinds.get(node) in ("broker", "slave") and seen.kinds.get(peer) == "name_server":
            return  # its `register` row says it
        is_slow = "time" in reason.lower() or "no answer" in reason.lower()
        if not is_slow and _failed(seen, edge, at_ms, ends)[0] is not Kind.NO_DIAL:
            seen.add(Kind.REFUSED, edge, row)  # what was not answered has a timed_out row of its own
    elif row.get("f") == "close" and reason.startswith("idle"):
        seen.idle.setdefault(edge, []).append(at_ms)
    elif row.get("f") == "close":
        seen.add(Kind.CLOSED_BY_DIALLER_SEEN, edge, row)


def _client(seen: Seen, row: Row) -> None:
    client, broker, at_ms = client_of(seen, row), str(row["node"]), float(row["time_ms"])
    if client is None:
        return
    if row["event"] == "client_heartbeat":
        seen.add(Kind.ARRIVED, Edge(client, broker), row)
        return
    kind = {"closed": Kind.CLOSED_BY_PEER_SEEN, "unregistered": Kind.LEFT}.get(str(row.get("f")), Kind.SILENCE)
    if kind is Kind.CLOSED_BY_PEER_SEEN and float(row.get("duration_ms") or 0.0) >= IDLE_MS:
        kind = Kind.SILENCE  # the broker closed it itself, because nothing came
    last_ms = at_ms - float(row.get("duration_ms") or 120_000.0)
    began_ms = min(at_ms, last_ms + seen.timers.H_ms) if kind is Kind.SILENCE else at_ms
    seen.add(kind, Edge(client, broker), row, from_ms=began_ms)


def client_of(seen: Seen, row: Row) -> str | None:
    """Return the client that the row is about, by its clientId, else by its address."""
    identity = str(value_of(row).get("client", ""))
    instance = node_of_client_id(identity)
    if instance in seen.kinds:
        return instance
    return seen.addresses.get(str(row.get("address")))
