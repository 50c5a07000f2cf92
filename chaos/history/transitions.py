"""Transitions: the changes in a history, with their times. No I/O.

| who | kind | whom | how |
|---|---|---|---|
| NameServer | came, lost | broker | lost: closed, unregistered, silent |
| NameServer | route | topic | its brokers from then on |
| NameServer | permission | broker | wiped, added |
| broker | registers | NameServer | ok, or not |
| broker | client came, client lost | client | lost: closed, unregistered, expired |
| client | chose | NameServer | |
| client | took | topic | the brokers of its route from then on |
| client | looks up | topic | answered, code N, or no answer |
| any | started, stopped | itself | |
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...remoting.topics import is_own
from ..topology import broker_node, node_of_client_id
from .schema import list_of, object_of

SILENT = frozenset(("idle", "expired"))
"""Two signs of the same silence; which comes first is a matter of milliseconds."""
CLOSED = frozenset(("closed", "exception"))
UNTOLD = "unknown"
"""How a broker was lost if only its absence was seen."""
READ_ONLY = " (read-only)"
"""Suffix of a broker's name in a route whose queues there are read-only."""
BLINK_MS = 1_000.0
"""A state that lasted less than a second is not counted: at the end of a fault, closes and delayed bytes come in any
order, and logs have whole seconds."""


class Transition(NamedTuple):
    """One change in a history, with its time in RocketMQ milliseconds."""

    at_ms: float
    node: str
    kind: str
    subject: str
    how: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """A key that is equal for the same change at another time."""
        return self.node, self.kind, self.subject, self.how

    @property
    def words(self) -> str:
        """Return the change in words, such as `ns-0 lost broker-a (silent)`."""
        kind = "cannot register" if self.kind == "registers" and self.how != "ok" else self.kind
        otherwise = "{0.node}: {0.kind} {0.subject}" + (" ({0.how})" if self.how else "")
        return _WORDS.get(kind, otherwise).format(self)


_WORDS = {
    "started": "{0.node} started",
    "stopped": "{0.node} stopped",
    "came": "{0.node} has {0.subject}",
    "lost": "{0.node} lost {0.subject} ({0.how})",
    "route": "{0.node}: {0.subject} is at {0.how}",
    "took": "{0.node} takes the route of {0.subject}: {0.how}",
    "chose": "{0.node} chose {0.subject}",
    "looks up": "{0.node} looks up {0.subject}: {0.how}",
    "registers": "{0.node} registers at {0.subject}",
    "cannot register": "{0.node} cannot register at {0.subject}",
    "permission": "{0.node}: write permission of {0.subject} {0.how}",
}


Lane = tuple[str, str]
"""(NameServer, broker), (client, "NameServer"), or (NameServer or client, topic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTransitions:
    """The transitions in a period of a history."""

    transitions: Sequence[Transition]
    held: Mapping[Lane, Sequence[tuple[float, float, str]]]
    """The states of each lane over time: for (NameServer, broker) whether the broker is in its table, for a client its
    chosen NameServer, for a topic the brokers of its route."""


def seen(
    rows: Iterable[Mapping[str, Any]],
    from_ms: float,
    to_ms: float,
    *,
    zero_ms: float | None = None,
    names: Mapping[str, str] | None = None,
    clients: Mapping[str, str] | None = None,
    blink_ms: float = BLINK_MS,
) -> ShownTransitions:
    """Return the rows' transitions in [from_ms, to_ms). Times count from `zero_ms`, by default from `from_ms`.

    `names`: the nodes' names in the other, compared history. `clients`: the node of each client id that does not show
    its node. `blink_ms`: a state shorter than this is left out, with the changes into and out of it; 0 keeps all.
    """
    reader = _Reader(dict(names or {}), dict(clients or {}))
    for row in rows:
        if row["time_ms"] >= to_ms:
            break
        reader.take(row)
    zero = from_ms if zero_ms is None else zero_ms
    found = [
        one._replace(at_ms=one.at_ms - zero)
        for one in (_lasting(reader.found, blink_ms) if blink_ms else reader.found)
        if one.at_ms >= from_ms
    ]
    reader.end(to_ms)
    held = {
        lane: [(max(a, from_ms) - zero, b - zero, what) for a, b, what in parts if b > from_ms]
        for lane, parts in ((lane, _whole(parts, blink_ms)) for lane, parts in reader.held.items())
    }
    return ShownTransitions(transitions=found, held={lane: parts for lane, parts in held.items() if parts})


def is_system(topic: str | None, brokers: Iterable[str] = ()) -> bool:
    """Whether a topic is RocketMQ's own, so that nobody sends to it by name."""
    return not topic or topic in brokers or is_own(topic)


@dataclass(slots=True)
class _Reader:
    names: dict[str, str]
    clients: dict[str, str]
    found: list[Transition] = field(default_factory=list)
    held: dict[Lane, list[tuple[float, float, str]]] = field(default_factory=lambda: defaultdict(list))
    _kinds: dict[str, str] = field(default_factory=dict)
    _by_address: dict[str, str] = field(default_factory=dict)
    _open: dict[Lane, tuple[float, str]] = field(default_factory=dict)
    _state: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _brokers: set[str] = field(default_factory=set)
    _known_clients: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def take(self, row: Mapping[str, Any]) -> None:
        handler = _HANDLERS.get(row["event"])
        if handler is not None:
            handler(self, row)

    def end(self, at_ms: float) -> None:
        for lane, (since_ms, what) in self._open.items():
            self.held[lane].append((since_ms, at_ms, what))
        self._open.clear()

    def _name(self, node: str | None) -> str:
        return self.names.get(node or "", node or "")

    def _server(self, address: str | None) -> str:
        return self._by_address.get(address or "", address or "")

    def _add(self, row: Mapping[str, Any], kind: str, subject: str, how: str = "") -> None:
        self.found.append(Transition(float(row["time_ms"]), self._name(row["node"]), kind, subject, how))

    def _changed(self, row: Mapping[str, Any], kind: str, subject: str, how: str) -> bool:
        key = row["node"], kind, subject
        before, self._state[key] = self._state.get(key), how
        return before != how

    def _shut(self, lane: Lane, at_ms: float) -> None:
        opened = self._open.pop(lane, None)
        if opened is not None:
            self.held[lane].append((opened[0], at_ms, opened[1]))

    # -- one event each

    def node(self, row: Mapping[str, Any]) -> None:
        self._kinds[row["source"]] = str(object_of(row.get("value")).get("kind", ""))
        if row.get("address"):
            self._by_address[row["address"]] = self._name(row["source"])

    def started(self, row: Mapping[str, Any]) -> None:
        node = self._name(row["node"])
        if row["role"] == "prober":
            return
        if row.get("address") and row["role"] == "name_server":
            self._by_address.setdefault(row["address"], node)
        self._add(row, "started", node)
        self._forget(row)

    def stopped(self, row: Mapping[str, Any]) -> None:
        if row["role"] != "prober":
            self._add(row, "stopped", self._name(row["node"]))
            self._forget(row)

    def _forget(self, row: Mapping[str, Any]) -> None:
        node = self._name(row["node"])
        for lane in [lane for lane in self._open if lane[0] == node]:
            self._shut(lane, row["time_ms"])
        for key in [key for key in self._state if key[0] == row["node"] and key[1] != "registers"]:
            del self._state[key]
        self._known_clients.pop(row["node"], None)

    def registration(self, row: Mapping[str, Any]) -> None:
        if row.get("code"):
            return
        broker = self._name(broker_node(row["broker_name"], row["broker_id"]))
        self._brokers.add(str(row["broker_name"]))
        lane = self._name(row["node"]), broker
        if lane not in self._open:
            self._open[lane] = float(row["time_ms"]), broker
            self._add(row, "came", broker)

    def dropped(self, row: Mapping[str, Any]) -> None:
        broker = self._name(broker_node(row["broker_name"], row["broker_id"]))
        reason = str(object_of(row.get("value")).get("reason") or UNTOLD)
        how = "silent" if reason in SILENT else "closed" if reason in CLOSED else reason
        self._shut((self._name(row["node"]), broker), float(row["time_ms"]))
        self._add(row, "lost", broker, how)

    def route(self, row: Mapping[str, Any]) -> None:
        self._route(row, "route")

    def took(self, row: Mapping[str, Any]) -> None:
        if row["role"] in ("producer", "consumer"):
            self._route(row, "took")

    def _route(self, row: Mapping[str, Any], kind: str) -> None:
        topic = row.get("topic")
        if is_system(topic, self._brokers):
            return
        how = self._told(object_of(row.get("value")))
        if self._changed(row, kind, str(topic), how):
            lane = self._name(row["node"]), str(topic)
            self._shut(lane, float(row["time_ms"]))
            self._open[lane] = float(row["time_ms"]), how
            self._add(row, kind, str(topic), how)

    def _told(self, route: Mapping[str, Any]) -> str:
        """Return `broker-a, broker-b (read-only)`: the brokers of a route."""
        said = []
        queues = route.get("queues") or {}
        for name, ids in sorted((route.get("brokers") or {}).items()):
            for id_ in sorted(ids if isinstance(ids, Mapping) and ids else {"0": ""}, key=str):
                said.append(self._name(broker_node(name, int(id_))))
            perm = queues[name][2] if name in queues and len(queues[name] or ()) > 2 else 6
            if isinstance(perm, int) and not perm & 2:
                said[-1] += READ_ONLY if perm & 4 else " (closed)"
        return ", ".join(said) or "nobody"

    def write_perm(self, row: Mapping[str, Any]) -> None:
        value = object_of(row.get("value"))
        how = "wiped" if value.get("wiped") is not None else "added"
        self._add(row, "permission", self._name(row["broker_name"]), how)

    def register(self, row: Mapping[str, Any]) -> None:
        how = "ok" if row.get("type") == "ok" else "not"
        server = self._server(row.get("name_server"))
        before = (row["node"], "registers", server) in self._state
        if self._changed(row, "registers", server, how) and (before or how == "not"):
            self._add(row, "registers", server, how)

    def heartbeat(self, row: Mapping[str, Any]) -> None:
        client = self._client(row)
        if client and client not in self._known_clients[row["node"]]:
            self._known_clients[row["node"]].add(client)
            self._add(row, "client came", client)

    def gone(self, row: Mapping[str, Any]) -> None:
        client = self._client(row)
        if client:
            self._known_clients[row["node"]].discard(client)
            self._add(row, "client lost", client, str(row.get("f") or UNTOLD))

    def _client(self, row: Mapping[str, Any]) -> str:
        """Return the client's node by its id, `address@node#time` in our runs; "" for the harness and unknown ids."""
        id_ = str(object_of(row.get("value")).get("client") or "")
        node = self.clients.get(id_) or node_of_client_id(id_)
        kind = self._kinds.get(node)
        return self._name(node) if kind in ("producer", "consumer") else ""

    def chosen(self, row: Mapping[str, Any]) -> None:
        """Note which NameServer a client chose. Brokers are left out, because a broker registers with all
        NameServers."""
        if row["role"] not in ("producer", "consumer") or row.get("op_id"):
            return
        lane = self._name(row["node"]), "NameServer"
        server = self._server(row.get("name_server"))
        if lane in self._open and self._open[lane][1] == server:
            return
        self._shut(lane, float(row["time_ms"]))
        self._open[lane] = float(row["time_ms"]), server
        self._add(row, "chose", server)

    def call(self, row: Mapping[str, Any]) -> None:
        topic = row.get("topic")
        if row["role"] == "prober" or row.get("op_id") or row.get("f") != "route" or is_system(topic, self._brokers):
            return
        how = "answered" if row.get("type") == "ok" else f"code {row['code']}" if row.get("code") else "no answer"
        before = (row["node"], "looks up", str(topic)) in self._state
        if self._changed(row, "looks up", str(topic), how) and (before or how != "answered"):
            self._add(row, "looks up", str(topic), how)


_HANDLERS = {
    "node": _Reader.node,
    "started": _Reader.started,
    "stopped": _Reader.stopped,
    "registration": _Reader.registration,
    "broker_dropped": _Reader.dropped,
    "route": _Reader.route,
    "write_perm": _Reader.write_perm,
    "register": _Reader.register,
    "client_heartbeat": _Reader.heartbeat,
    "client_gone": _Reader.gone,
    "name_server_chosen": _Reader.chosen,
    "name_server_call": _Reader.call,
    "route_changed": _Reader.took,
}
EVENTS = (*_HANDLERS, "name_server_list")
"""The events that show transitions."""


def lists_of(rows: Iterable[Mapping[str, Any]], at_ms: float = -math.inf) -> dict[str, list[str]]:
    """Return each client's NameServers by name, in the order of use, from the NameServer that the client was using at
    `at_ms`. Without a choice before `at_ms` the list starts at the client's first choice. A broker's NameServers are in
    the order of the broker's list."""
    names: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    chosen: dict[str, str] = {}
    for row in rows:
        node = row["node"]
        if row["event"] == "node" and row.get("address"):
            names[row["address"]] = row["source"]
        if row["role"] not in ("producer", "consumer", "broker") or row.get("op_id"):
            continue
        if row["event"] == "name_server_list" and (node not in lists or row["time_ms"] <= at_ms):
            lists[node] = [names.get(str(at), str(at)) for at in list_of(row.get("value"))]
        elif row["event"] == "name_server_chosen" and (node not in chosen or row["time_ms"] <= at_ms):
            chosen[node] = names.get(row["name_server"], row["name_server"])
    found = {}
    for node in {**lists, **chosen}:
        listed = lists.get(node) or [chosen[node]]
        at = listed.index(chosen[node]) if chosen.get(node) in listed else 0
        found[node] = [*listed[at:], *listed[:at]]
    return found


def later_lists_of(rows: Sequence[Mapping[str, Any]], at_ms: float = -math.inf) -> dict[str, list[list[str]]]:
    """Return the NameServer lists of clients restarted after `at_ms`. Left out are clients whose later lists all have
    the same order as at `at_ms`, and clients with a later list of other NameServers."""
    lives: dict[str, dict[int, list[Mapping[str, Any]]]] = defaultdict(dict)
    for row in rows:
        if row["role"] in ("producer", "consumer") and row["event"] in ("name_server_list", "name_server_chosen"):
            lives[row["node"]].setdefault(int(row.get("incarnation") or 0), []).append(row)
    nodes = [row for row in rows if row["event"] == "node"]
    first, found = lists_of(rows, at_ms), dict[str, list[list[str]]]()
    for client, of in lives.items():
        began = [life for _, life in sorted(of.items())]
        later = [lists_of([*nodes, *life]).get(client, []) for life in began[1:] if life[0]["time_ms"] > at_ms]
        orders = [order for order in later if sorted(order) == sorted(first.get(client, []))]
        if len(orders) == len(later) and any(order != first[client] for order in orders):
            found[client] = orders
    return found


def _lasting(found: Iterable[Transition], blink_ms: float) -> list[Transition]:
    of: dict[tuple[str, str, str], list[Transition]] = defaultdict(list)
    kept: list[Transition] = []
    for one in found:
        family = _FAMILY.get(one.kind)
        if family is None:
            kept.append(one)
        else:
            of[one.node, family, one.subject].append(one)
    for states in of.values():
        before: tuple[str, str] | None = None
        for one, after in zip(states, [*states[1:], None], strict=True):
            if after is not None and after.at_ms - one.at_ms < blink_ms:
                continue
            state = one.kind, "" if one.kind in _WITHOUT_HOW else one.how
            if state != before:
                kept.append(one)
            before = state
    return sorted(kept, key=lambda one: one.at_ms)


def _whole(parts: Iterable[tuple[float, float, str]], blink_ms: float) -> list[tuple[float, float, str]]:
    """Return the stretches joined over gaps, and then without stretches, shorter than `blink_ms`."""
    joined: list[tuple[float, float, str]] = []
    for from_ms, to_ms, what in parts:
        if joined and joined[-1][2] == what and from_ms - joined[-1][1] < blink_ms:
            joined[-1] = joined[-1][0], to_ms, what
        else:
            joined.append((from_ms, to_ms, what))
    return [one for one in joined if one[1] - one[0] >= blink_ms]


_WITHOUT_HOW = frozenset(("came", "lost", "client came", "client lost"))
_FAMILY = {
    **dict.fromkeys(("came", "lost"), "table"),
    **dict.fromkeys(("client came", "client lost"), "clients"),
    **{kind: kind for kind in ("route", "took", "registers", "looks up")},
}
"""Kinds of states, by what they are about."""
