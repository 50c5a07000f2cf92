"""Measures how long each node took to recover from one fault, in the history of one run. Times are milliseconds from
the start of the fault. The time until a broker is back counts from the end of the fault. NEVER means that the node did
not recover before the end of the fault."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...chaos.history.schema import Row, object_of
from ...chaos.history.transitions import EVENTS as OF_TRANSITIONS
from ...chaos.history.transitions import READ_ONLY, seen
from ...chaos.topology import broker_id
from .faults import FaultSpan

EVENTS = (*OF_TRANSITIONS, "phase", "send", "queue_taken", "queue_dropped")
"""The events needed."""
NEVER = math.inf

DROPPED = "dropped"
"""A NameServer has dropped the broker."""
BACK = "back"
"""A NameServer has the broker again (if no broker is named: all masters), counted from the end of the fault."""
ROUTE = "route"
"""A client's route no longer has the broker, or no longer for writing."""
LAST_FAILED = "last failed send"
RELEASED = "released"
"""A consumer has given up its queues of the broker."""
LEFT = "left"
"""A client of the NameServer has chosen another one."""


class Quantity(NamedTuple):
    """The name of a predicted time. `who` recovers: a NameServer, the producers or the consumers. `whom` is the broker
    or NameServer that `who` lost, or ""."""

    who: str
    what: str
    whom: str

    @property
    def words(self) -> str:
        return {
            DROPPED: f"{self.who}: {self.whom} dropped",
            BACK: f"{self.who}: {self.whom or 'a broker'} back, from the end",
            ROUTE: f"{self.who}: {self.whom} out of the route",
            LAST_FAILED: f"{self.who}: last failed send",
            RELEASED: f"{self.who}: queues of {self.whom} released",
            LEFT: f"{self.who} on {self.whom}: another chosen",
        }[self.what]


@dataclass(slots=True)
class RunRecovery:
    """One run's recovery times, one per client or NameServer, and the number of failed sends among the sends begun
    during the fault."""

    values: dict[Quantity, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: int = 0
    begun: int = 0


def recovery_of(rows: Sequence[Row], fault: FaultSpan, topics: Mapping[str, str]) -> RunRecovery:
    """Return one run's recovery. `topics` has the topic of each client. `rows` has all rows of the run, in order of
    time."""
    zero_ms = next(row["time_ms"] for row in rows if (row["event"], row.get("phase")) == ("phase", "steady"))
    return _Run(rows, fault, topics, zero_ms).recovery()


class _Run:
    def __init__(self, rows: Sequence[Row], fault: FaultSpan, topics: Mapping[str, str], zero_ms: float) -> None:
        self._rows, self._fault, self._topics = rows, fault, topics
        self._start_ms = zero_ms + fault.start_ms
        self._kinds = {row["source"]: object_of(row["value"])["kind"] for row in rows if row["event"] == "node"}
        whole = seen(rows, -math.inf, math.inf, zero_ms=self._start_ms, blink_ms=0)
        self._held = whole.held
        self._transitions: dict[tuple[str, str], list[tuple[float, str, str]]] = defaultdict(list)
        for one in whole.transitions:
            self._transitions[one.node, one.kind].append((one.at_ms, one.subject, one.how))
        self._found = RunRecovery()

    def recovery(self) -> RunRecovery:
        for broker, servers in self._fault.unheard.items():
            for server in sorted(servers):
                lost = [at_ms for at_ms, whom, _ in self._transitions[server, "lost"] if whom == broker]
                dropped_ms = next((at_ms for at_ms in lost if self._lasts(at_ms)), NEVER)
                self._add(server, DROPPED, broker, dropped_ms)
                if dropped_ms < NEVER:
                    self._add(server, BACK, broker, self._back_ms(server, broker))
        for broker in self._fault.brokers:
            for client in self._clients("producer", "consumer"):
                self._route(client, broker)
            if not self._fault.wiped and not broker_id(broker):
                self._queues(broker)
        for server, clients in self._fault.silent.items():
            for client in sorted(clients):
                self._left(client, server)
            if self._fault.do == "kill":  # one that was started again knows each master again
                for broker in self._clients("broker"):
                    self._add(server, BACK, "", self._back_ms(server, broker))
        self._sends()
        return self._found

    def _add(self, who: str, what: str, whom: str, value_ms: float) -> None:
        self._found.values[Quantity(who, what, whom)].append(value_ms)

    def _lasts(self, at_ms: float) -> bool:
        return 0 <= at_ms < self._fault.lasts_ms

    def _clients(self, *kinds: str) -> list[str]:
        return [node for node, kind in self._kinds.items() if kind in kinds]

    def _back_ms(self, server: str, broker: str) -> float:
        """Time of the last return: data that were kept back may be followed, in the same moment, by the close of their
        channel."""
        ends_ms = self._fault.lasts_ms
        lost = [at_ms for at_ms, whom, _ in self._transitions[server, "lost"] if whom == broker]
        last_ms = max((at_ms for at_ms in lost if at_ms >= ends_ms), default=-math.inf)
        came = [at_ms for at_ms, whom, _ in self._transitions[server, "came"] if whom == broker]
        steady_ms = max(last_ms, ends_ms)
        held = any(from_ms < steady_ms < to_ms for from_ms, to_ms, _ in self._held.get((server, broker), ()))
        later_ms = next((at_ms - ends_ms for at_ms in came if at_ms >= ends_ms and at_ms > last_ms), NEVER)
        return 0.0 if held and later_ms == NEVER else later_ms

    def _route(self, client: str, broker: str) -> None:
        """Note a route. If permission was wiped, a broker that is not written to counts as gone."""
        said = {broker} if self._fault.wiped else {broker, f"{broker}{READ_ONLY}"}
        routes = [
            (at_ms, bool(said & {*how.split(", ")}))
            for at_ms, topic, how in self._transitions[client, "took"]
            if topic == self._topics.get(client)
        ]
        before = [there for at_ms, there in routes if at_ms < 0]
        if before and before[-1]:
            gone = (at_ms for at_ms, there in routes if self._lasts(at_ms) and not there)
            self._add(f"{self._kinds[client]}s", ROUTE, broker, next(gone, NEVER))

    def _queues(self, broker: str) -> None:
        """Note when each consumer had given up the last of the queues that it had at the start of the fault."""
        held: dict[tuple[str, str], float] = {}
        for row in self._rows:
            event, client = row["event"], row["node"]
            of_queues = event in ("queue_taken", "queue_dropped") and row["broker_name"] == broker
            if not of_queues or row["topic"] != self._topics.get(client):
                continue
            at_ms, queue = row["time_ms"] - self._start_ms, (client, row["op_id"])
            if event == "queue_taken" and at_ms < 0:
                held[queue] = NEVER
            elif event == "queue_dropped" and at_ms < 0:
                held.pop(queue, None)
            elif event == "queue_dropped" and queue in held and self._lasts(at_ms):
                held[queue] = at_ms
        for client in dict.fromkeys(client for client, _ in held):
            self._add("consumers", RELEASED, broker, max(at_ms for (who, _), at_ms in held.items() if who == client))

    def _left(self, client: str, server: str) -> None:
        chosen = [(at_ms, whom) for at_ms, whom, _ in self._transitions[client, "chose"]]
        before = [whom for at_ms, whom in chosen if at_ms < 0]
        if before and before[-1] == server:
            left_ms = next((at_ms for at_ms, whom in chosen if at_ms >= 0 and whom != server), NEVER)
            self._add(f"{self._kinds[client]}s", LEFT, server, left_ms)

    def _sends(self) -> None:
        """A send counts if it was begun during the fault, whenever it failed."""
        begun = set[tuple[str, str]]()
        failed: dict[str, list[float]] = {client: [] for client in self._clients("producer")}
        for row in self._rows:
            if row["event"] == "send":
                at_ms, call = row["time_ms"] - self._start_ms, (row["node"], row["op_id"])
                if row["type"] == "invoke" and self._lasts(at_ms):
                    begun.add(call)
                elif row["type"] not in ("invoke", "ok") and call in begun:
                    failed[row["node"]].append(at_ms)
        for times in failed.values():
            self._add("producers", LAST_FAILED, "", max(times, default=0.0))
        if failed:
            self._add(
                "all producers", LAST_FAILED, "", max((at for times in failed.values() for at in times), default=0.0)
            )
        self._found.failed, self._found.begun = sum(map(len, failed.values())), len(begun)
