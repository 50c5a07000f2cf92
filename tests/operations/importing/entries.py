"""A record of a log before it has a layout, and who dials from which host: what all writers of logs share."""

import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .own_logs import Said, said

KINDS = ("name_server", "broker", "producer", "consumer")
"""Whose logs there are; 10.0.3.1 is whoever dials, on the virtual clock."""
_ELSEWHERE = "10.0.3.200"
"""Where whoever has no log dials from: the prober, an operator."""
_OPENED = re.compile(r"channel #\d+ 10\.0\.3\.1:(\d+) - (\S+) opened")
_DIALLED = re.compile(r"10\.0\.3\.1:(\d+)")


class Entry(NamedTuple):
    at_ms: float
    """On the history's axis."""
    level: str
    thread: str
    logger: str
    """RocketmqRemoting, RocketmqClient, RocketmqCommon, RocketmqNamesrv or RocketmqBroker."""
    text: str
    """With the lines that go on with it."""


class Cluster:
    """A recorded run as writers of its logs need it."""

    def __init__(self, run: Path, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        begin = next(row["value"] for row in rows if row["event"] == "run_begin")
        self.origin_wall_ms: float = begin["origin_wall_ms"]
        self.is_5: bool = begin["profile"] != "4.9"
        self.settings: Mapping[str, Mapping[str, Any]] = begin.get("settings") or {}
        self.kinds: dict[str, str] = {
            row["source"]: row["value"]["kind"]
            for row in rows
            if row["event"] == "node" and row["value"]["kind"] in KINDS
        }
        self.has_lists_by_http = any(row["event"] == "served_list" for row in rows)
        self.addresses: dict[str, str] = {
            row["source"]: row["address"] for row in rows if row["event"] == "node" and row["address"]
        }
        self.node_at: dict[str, str] = {address: node for node, address in self.addresses.items()}
        self.said: dict[str, list[Said]] = {node: list(said(run, node)) for node in self.kinds}
        self.by_node: dict[str, list[dict[str, Any]]] = {node: [] for node in self.kinds}
        for row in rows:
            self.by_node.setdefault(row["node"], []).append(row)
        clients = sorted(node for node, kind in self.kinds.items() if kind in ("producer", "consumer"))
        self.hosts: dict[str, str] = {node: address.rpartition(":")[0] for node, address in self.addresses.items()}
        self.hosts |= {node: f"10.0.3.{number}" for number, node in enumerate(clients, 2)}
        self._dialler: dict[str, str] = {}
        for node, records in self.said.items():
            for record in records:
                if (found := _OPENED.fullmatch(record.text)) is not None and node != self.node_at.get(found[2]):
                    self._dialler[found[1]] = node

    def nodes(self, *kinds: str) -> list[str]:
        return sorted(node for node, kind in self.kinds.items() if kind in kinds)

    def acted_ms(self) -> tuple[float, float]:
        """When the first and the last of what was done was done."""
        rows = [row for row in self.rows if row["event"] in ("fault", "admin", "disk", "served_list")]
        steady_ms = next(row["time_ms"] for row in self.rows if row["event"] == "phase" and row["phase"] == "steady")
        at_ms = [row["time_ms"] for row in rows if row["time_ms"] >= steady_ms]
        return min(at_ms), max(at_ms)

    def name_servers(self) -> list[str]:
        return [self.addresses[node] for node in self.nodes("name_server")]

    def at(self, record: Said) -> float:
        """When it was logged, on the history's axis."""
        return record.wall_ms - self.origin_wall_ms

    def with_hosts(self, text: str) -> str:
        """The same with each dialler's own host in place of the one that all share, and client ids that say it."""
        text = _DIALLED.sub(
            lambda found: f"{self.hosts.get(self._dialler.get(found[1], ''), _ELSEWHERE)}:{found[1]}", text
        )
        return re.sub(
            r"127\.0\.0\.1@([\w-]+)#", lambda found: f"{self.hosts.get(found[1], '127.0.0.1')}@{found[1]}#", text
        )

    def client_id(self, node: str) -> str:
        return f"{self.hosts[node]}@{node}#{int(self.origin_wall_ms) * 1_000_000}"


def number_of(*parts: object) -> int:
    """A number that these make, the same each time: thread numbers, channel ids, hashes of objects."""
    return zlib.crc32("|".join(map(str, parts)).encode())


def one_of(count: int, *parts: object) -> int:
    """From 1 to `count`."""
    return 1 + number_of(*parts) % count


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """By time; what has one time stays as it came."""
    return sorted(entries, key=lambda entry: entry.at_ms)


def route_text(route: Mapping[str, Any] | None, is_5: bool) -> str:
    """A route of the history as TopicRouteData's toString has it."""
    if route is None or not isinstance(route, Mapping) or "brokers" not in route:
        return "null"
    queues = ", ".join(
        f"QueueData [brokerName={name}, readQueueNums={read}, writeQueueNums={write}, perm={perm}, topicSysFlag={flag}]"
        for name, (read, write, perm, flag) in sorted(route["queues"].items())
    )
    acting = ", enableActingMaster=false" if is_5 else ""
    brokers = ", ".join(
        f"BrokerData [brokerName={name}, brokerAddrs={{{', '.join(f'{i}={a}' for i, a in own.items())}}}{acting}]"
        for name, own in sorted(route["brokers"].items())
    )
    more = ", topicQueueMappingInfoTable=null" if is_5 else ""
    datas = f"queueDatas=[{queues}], brokerDatas=[{brokers}], filterServerTable={{}}"
    return f"TopicRouteData [orderTopicConf=null, {datas}{more}]"
