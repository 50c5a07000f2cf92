"""Logs of a run on Apache's own programs as the hosts of a cluster would have left them, with the truth beside them.

    python -m tests.operations.importing.apache_run RUN FOLDER

In such a run each node sees its peers at addresses of the harness's own, and all are on this machine. Here each node
has one address (10.0.1.x NameServers, 10.0.2.x brokers, 10.0.3.x clients), ports are RocketMQ's, and paths those of an
installation. Nothing else is changed. `truth.json`: what was done to whom and when, and what each NameServer then did.
"""

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from nemesrv.chaos.history.rows import read_rows

LOGS = ("namesrv.log", "broker.log", "remoting.log", "rocketmq_client.log", "tools_default.log")
_LOOPBACK = re.compile(r"127\.0\.0\.1:(\d+)")
_LISTED = re.compile(r"namesrvAddr=(\S+)")
_OWN_PORT = re.compile(r"listenPort=(\d+)")
_BROKER = re.compile(r"(?:The broker\[|heart beat to broker\[)(broker-\w+)(?:, | \d+ )127\.0\.0\.1:(\d+)")
_ROUTE = re.compile(r"brokerName=(broker-\w+), brokerAddrs=\{0=127\.0\.0\.1:(\d+)")
_CLIENT = re.compile(r"R:/127\.0\.0\.1:(\d+)\], clientId=127\.0\.0\.1@([\w-]+)#")
_LOST = re.compile(r"(?:IDLE exception |channelUnregistered, the channel)\[127\.0\.0\.1:(\d+)\]")
_DESTROYED = re.compile(r"the broker's channel destroyed, 127\.0\.0\.1:(\d+)")
_REMOVED = re.compile(r"brokerLiveTable OK, BrokerIdentityInfo \[clusterName=\S+ brokerAddr=127\.0\.0\.1:(\d+)\]")
_CAME = re.compile(r"^(\S+ \S+) .*channelRegistered 127\.0\.0\.1:(\d+)")
_DIALS = re.compile(r"^(\S+ [\d:]+)\S* .*NETTY CLIENT PIPELINE: CONNECT  \S+ => 127\.0\.0\.1:(\d+)")


class _Hosts:
    """Port of this machine to the node that it stands for."""

    def __init__(self, run: Path, nodes: dict[str, dict[str, Any]]) -> None:
        kinds = {name: node["value"]["kind"] for name, node in nodes.items()}
        folders = {name: name.replace("/", "@") for name in kinds}
        self.hosts = {"prober": "10.0.3.200"}
        for kind, net, first in (
            ("name_server", 1, 1),
            ("broker", 2, 1),
            ("slave", 2, 101),
            ("consumer", 3, 1),
            ("producer", 3, 101),
        ):
            named = sorted(name for name, own in kinds.items() if own == kind)
            self.hosts |= {name: f"10.0.{net}.{number}" for number, name in enumerate(named, first)}
        self.servers = sorted(name for name, kind in kinds.items() if kind == "name_server")
        self.ports = {node["address"].rpartition(":")[2]: name for name, node in nodes.items() if node["address"]}
        self.files = {
            (node, path): path.read_text(errors="replace")
            for node in kinds
            for path in sorted((run / "logs" / folders[node]).rglob("*.log"))
            if path.name in LOGS and path.stat().st_size
        }
        for node in kinds:
            settings = [
                *(run / "data" / folders[node]).rglob("*.conf"),
                *(run / "logs" / folders[node]).glob("*.properties"),
            ]
            for text in [path.read_text() for path in settings]:
                if (own := _OWN_PORT.search(text)) is not None:
                    self.ports[own[1]] = node
                if (listed := _LISTED.search(text)) is not None:
                    for server, address in zip(self.servers, listed[1].split(";"), strict=True):
                        self.ports[address.rpartition(":")[2]] = server
        for text in self.files.values():
            for listed in _LISTED.finditer(text):  # a process that was started again has other links
                for server, address in zip(self.servers, listed[1].split(";"), strict=True):
                    self.ports.setdefault(address.rpartition(":")[2], server)
            for found in (*_BROKER.finditer(text), *_ROUTE.finditer(text)):  # a slave says its master's name
                self.ports.setdefault(found[2], found[1])
        self._diallers: dict[tuple[str, str], str] = {}
        self._find_diallers(kinds)

    def _find_diallers(self, kinds: dict[str, str]) -> None:
        """Whose each ephemeral port is: by what is said of it later (a lost broker, an id), else by when it dialled."""
        dialled: list[tuple[str, str, str]] = []
        for (node, _), text in self.files.items():
            if kinds[node] != "name_server":
                found = (_DIALS.match(line) for line in text.splitlines())
                dialled += [(one[1][-8:], self.ports.get(one[2], ""), node) for one in found if one is not None]
        for (node, _), text in self.files.items():
            self._diallers |= {(node, found[1]): found[2] for found in _CLIENT.finditer(text)}
            lost: str | None = None
            for line in text.splitlines():
                lost = found[1] if (found := _LOST.search(line)) else lost
                if (gone := _DESTROYED.search(line) or _REMOVED.search(line)) is not None and lost is not None:
                    self._diallers[node, lost], lost = self.ports[gone[1]], None
            for line in text.splitlines():
                if (came := _CAME.match(line)) is None or (node, came[2]) in self._diallers:
                    continue
                at = _second(came[1])
                near = [one for one in dialled if one[1] == node and abs(_second(one[0]) - at) <= 1]
                if near:
                    dialled.remove(near[0])
                    self._diallers[node, came[2]] = near[0][2]

    def address(self, node: str, port: str) -> str:
        """What a log of `node` calls 127.0.0.1:port."""
        peer = self.ports.get(port)
        if peer is None:
            return f"{self.hosts[self._diallers.get((node, port), 'prober')]}:{port}"
        return f"{self.hosts[peer]}:{9876 if peer in self.servers else 10911}"


def _addressed(hosts: _Hosts, node: str, found: re.Match[str]) -> str:
    return hosts.address(node, found[1])


def _second(stamp: str) -> int:
    """Of the hour: zones differ by whole hours here."""
    return int(stamp[-5:-3]) * 60 + int(stamp[-2:])


def cleaned(run: Path, folder: Path) -> dict[str, Any]:
    """Writes FOLDER/NODE/FILE and FOLDER/truth.json, which it returns."""
    rows = read_rows(run)
    nodes = {row["source"]: row for row in rows if row["event"] == "node"}
    hosts = _Hosts(run, {name: node for name, node in nodes.items() if name != "prober"})
    for (node, path), text in hosts.files.items():
        own = hosts.hosts[node]
        text = text.replace(str((run / "data" / node / "home").resolve()), "/opt/rocketmq")
        text = _LOOPBACK.sub(partial(_addressed, hosts, node), text)
        text = re.sub(r"127\.0\.0\.1@([\w-]+)#", lambda found: f"{hosts.hosts[found[1]]}@{found[1]}#", text)
        text = re.sub(r"((?:brokerIP\d|bindAddress|clientIP)='?)127\.0\.0\.1", rf"\g<1>{own}", text)
        text = re.sub(r"listenPort=\d+", f"listenPort={9876 if node in hosts.servers else 10911}", text)
        text = re.sub(r"192\.0\.2\.\d+:\d+", f"{own}:{9876 if node in hosts.servers else 10911}", text)
        text = re.sub(r"192\.0\.2\.\d+", own, text)
        place = (
            folder / node.replace("/", "-") / ("rocketmq_client.log" if path.name == "tools_default.log" else path.name)
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    truth = _truth(rows, hosts)
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return truth


def _truth(rows: list[dict[str, Any]], hosts: _Hosts) -> dict[str, Any]:
    begin = next(row["value"] for row in rows if row["event"] == "run_begin")
    kept: dict[str, list[dict[str, Any]]] = {"fault": [], "broker_dropped": [], "came": []}
    held: set[tuple[str, str]] = set()
    for row in rows:
        if row["event"] == "fault":
            keys = ("time_ms", "fault", "source", "target", "stream", "phase")
            kept["fault"].append({key: row[key] for key in keys if row[key] is not None})
        pair = (row["node"], row["broker_name"])
        if row["event"] == "broker_dropped":
            held.discard(pair)
            reason = row["value"]["reason"]
            kept["broker_dropped"].append(
                {"time_ms": row["time_ms"], "name_server": pair[0], "broker": pair[1], "reason": reason}
            )
        elif row["event"] == "registration" and not row["code"] and pair not in held:
            held.add(pair)
            kept["came"].append({"time_ms": row["time_ms"], "name_server": pair[0], "broker": pair[1]})
    return {
        "scenario": begin["scenario"],
        "profile": begin["profile"],
        "origin_wall_ms": begin["origin_wall_ms"],
        "hosts": {name: host for name, host in hosts.hosts.items() if name != "prober"},
        **kept,
    }


if __name__ == "__main__":
    cleaned(Path(sys.argv[1]), Path(sys.argv[2]))
