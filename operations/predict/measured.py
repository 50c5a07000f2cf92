"""How long everybody took to recover, read from the history of a run: the same quantities as the model's.

Times are milliseconds from the start of the fault (of what comes back: from its end); NEVER where it did not happen
before the fault was over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow.dataset as ds

from ...chaos.history.schema import parquet_path
from ...chaos.topology import broker_id, broker_name
from .distribution import NEVER
from .quantities import BACK, DROPPED, FAILED_SENDS, LAST_FAILED, LEFT, RELEASED, ROUTE, Quantity, Sample
from .subject import Subject

_EVENTS = (
    "phase", "node", "broker_dropped", "registration", "route_changed", "send", "queue_dropped", "queue_taken",
    "name_server_chosen",
)  # fmt: skip
_COLUMNS = (
    "time_ms", "seq", "node", "role", "event", "type", "topic", "broker_name", "broker_id", "name_server", "op_id",
    "phase", "source", "address", "value", "code", "queue_id",
)  # fmt: skip
_WRITE = 2
"""PERM_WRITE."""


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of the run that are looked at, in order."""
    table = ds.dataset(parquet_path(folder).parent, format="parquet", exclude_invalid_files=False).to_table(
        columns=list(_COLUMNS), filter=ds.field("event").isin(_EVENTS)
    )
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        if row["value"] is not None and row["event"] != "send":
            row["value"] = orjson.loads(row["value"])
    rows.sort(key=lambda row: (row["time_ms"], row["node"], row["seq"]))
    return rows


def measured(rows: Sequence[Mapping[str, Any]], subject: Subject, topics: Mapping[str, str]) -> Sample:
    """What each quantity was in this run. `topics`: of each client, the one that it sends to, or reads."""
    zero_ms = next(row["time_ms"] for row in rows if (row["event"], row.get("phase")) == ("phase", "steady"))
    from_ms, to_ms = zero_ms + subject.start_ms, zero_ms + subject.end_ms
    return _Run(rows, subject, topics, from_ms, to_ms).sample()


class _Run:
    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        subject: Subject,
        topics: Mapping[str, str],
        from_ms: float,
        to_ms: float,
    ) -> None:
        self._subject, self._topics, self._from_ms, self._to_ms = subject, topics, from_ms, to_ms
        self._of: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            self._of[row["event"]].append(row)
        self._kinds = {row["source"]: row["value"]["kind"] for row in self._of["node"]}
        self._names = {row["address"]: row["source"] for row in self._of["node"] if row["address"]}

    def sample(self) -> Sample:
        found = Sample()
        for broker, servers in self._subject.lost_at.items():
            self._servers(found, broker, servers)
        for broker in self._subject.brokers:
            if self._matters(broker):
                self._routes(found, broker)
                self._queues(found, broker)
        for server, clients in self._subject.silent.items():
            self._left(found, server, clients)
            self._refilled(found, server)
        self._sends(found)
        return found

    def _matters(self, broker: str) -> bool:
        return bool(self._subject.lost_at.get(broker)) or self._subject.wiped is not None

    def _servers(self, found: Sample, broker: str, servers: Iterable[str]) -> None:
        name, number = broker_name(broker), broker_id(broker)
        for server in sorted(servers):
            drops = self._within(self._of["broker_dropped"], server, name, number, self._from_ms, self._to_ms)
            found.add(Quantity(server, DROPPED, broker), drops[0] - self._from_ms if drops else NEVER)
            if drops:
                found.add(Quantity(server, BACK, broker), self._back(server, name, number))

    def _back(self, server: str, name: str, number: int) -> float:
        """For good: what arrives when it is held no more may have its channel's close behind it."""
        again = self._within(self._of["broker_dropped"], server, name, number, self._to_ms, NEVER)
        for_good_ms = max(again, default=self._to_ms)
        back = self._within(self._of["registration"], server, name, number, for_good_ms, NEVER)
        return back[0] - self._to_ms if back else NEVER

    def _within(
        self, rows: Iterable[Mapping[str, Any]], node: str, name: str, number: int, from_ms: float, to_ms: float
    ) -> list[float]:
        return [
            row["time_ms"]
            for row in rows
            if row["node"] == node
            and row["broker_name"] == name
            and (row["broker_id"] or 0) == number
            and (row["code"] or 0) == 0
            and from_ms <= row["time_ms"] < to_ms
        ]

    def _clients(self, *kinds: str) -> list[str]:
        return [node for node, kind in self._kinds.items() if kind in kinds]

    def _routes(self, found: Sample, broker: str) -> None:
        name, number = broker_name(broker), str(broker_id(broker))
        writes = self._subject.wiped is not None

        def there(route: Any) -> bool:
            if not route or number not in (route.get("brokers") or {}).get(name, {}):
                return False
            return not writes or bool((route.get("queues") or {}).get(name, [0, 0, 0])[2] & _WRITE)

        for client in self._clients("producer", "consumer"):
            changes = [
                (row["time_ms"], there(row["value"]))
                for row in self._of["route_changed"]
                if row["node"] == client and row["topic"] == self._topics.get(client)
            ]
            knew = [is_there for at_ms, is_there in changes if at_ms < self._from_ms]
            if not knew or not knew[-1]:
                continue
            gone = [at_ms for at_ms, is_there in changes if self._from_ms <= at_ms < self._to_ms and not is_there]
            found.add(Quantity(f"{self._kinds[client]}s", ROUTE, broker), gone[0] - self._from_ms if gone else NEVER)

    def _queues(self, found: Sample, broker: str) -> None:
        if self._subject.wiped is not None or broker_id(broker):
            return
        for client in self._clients("consumer"):
            held: dict[str, float] = {}
            for row in sorted(
                (r for event in ("queue_taken", "queue_dropped") for r in self._of[event] if r["node"] == client),
                key=lambda row: (row["time_ms"], row["seq"]),
            ):
                if row["broker_name"] != broker or row["topic"] != self._topics.get(client):
                    continue
                if row["event"] == "queue_taken" and row["time_ms"] < self._from_ms:
                    held[row["op_id"]] = NEVER
                elif row["event"] == "queue_dropped" and row["op_id"] in held:
                    if row["time_ms"] < self._from_ms:
                        del held[row["op_id"]]
                    elif row["time_ms"] < self._to_ms:
                        held[row["op_id"]] = row["time_ms"] - self._from_ms
            if held:
                found.add(Quantity("consumers", RELEASED, broker), max(held.values()))

    def _left(self, found: Sample, server: str, clients: Iterable[str]) -> None:
        for client in sorted(clients):
            chosen = [
                (row["time_ms"], self._names.get(row["name_server"]))
                for row in self._of["name_server_chosen"]
                if row["node"] == client
            ]
            before = [who for at_ms, who in chosen if at_ms < self._from_ms]
            if before and before[-1] == server:
                left = [at_ms for at_ms, who in chosen if self._from_ms <= at_ms and who != server]
                found.add(Quantity(f"{self._kinds[client]}s", LEFT, server), left[0] - self._from_ms if left else NEVER)

    def _refilled(self, found: Sample, server: str) -> None:
        """When a NameServer that was started again knows each master again."""
        if self._subject.do != "kill":
            return
        for broker in self._clients("broker"):
            found.add(Quantity(server, BACK, ""), self._back(server, broker, 0))

    def _sends(self, found: Sample) -> None:
        begun: dict[tuple[str, str], float] = {}
        failed: dict[str, list[float]] = {client: [] for client in self._clients("producer")}
        for row in self._of["send"]:
            at_ms, call = row["time_ms"], (row["node"], row["op_id"])
            if row["type"] == "invoke":
                if self._from_ms <= at_ms < self._to_ms:
                    begun[call] = at_ms
            elif row["type"] != "ok" and call in begun:
                failed[row["node"]].append(at_ms)
        for times in failed.values():
            found.add(Quantity("producers", LAST_FAILED, ""), max(times) - self._from_ms if times else 0.0)
        if failed:
            last_ms = max((at_ms for times in failed.values() for at_ms in times), default=self._from_ms)
            found.add(Quantity("all producers", LAST_FAILED, ""), last_ms - self._from_ms)
        if begun:
            found.share(FAILED_SENDS, sum(map(len, failed.values())), len(begun))
