"""Random incidents of ten kinds, and of nine that are no partition, recorded on the virtual clock: one fault each.

seed ─► drawn ─► Incident(kind, scenario) ─► recorded ─► run folder: history and logs, half a second's work
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

from .own_logs import loud

Entries = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Incident:
    seed: int
    kind: str
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class _Cast:
    """Who there is in the cluster that was drawn."""

    rng: random.Random
    name_servers: list[str]
    brokers: list[str]

    def broker(self) -> str:
        return self.rng.choice(self.brokers)

    def name_server(self) -> str:
        return self.rng.choice(self.name_servers)


def _process(do: str, ended_by: str, *lasts_s: float) -> Callable[[_Cast, float], Entries]:
    def entries(cast: _Cast, at_s: float) -> Entries:
        node, end_s = cast.broker(), at_s + cast.rng.uniform(*lasts_s)
        return [{"at_s": at_s, "do": do, "nodes": [node]}, {"at_s": end_s, "do": ended_by, "nodes": [node]}]

    return entries


def _partition(stream: str) -> Callable[[_Cast, float], Entries]:
    def entries(cast: _Cast, at_s: float) -> Entries:
        link, end_s = f"{cast.broker()} <-> {cast.name_server()}", at_s + cast.rng.uniform(155, 260)
        return [{"at_s": at_s, "do": "black_hole", "links": [link], "stream": stream}, {"at_s": end_s, "do": "heal"}]

    return entries


def _host_lost(cast: _Cast, at_s: float) -> Entries:
    end_s = at_s + cast.rng.uniform(160, 260)
    lost = {"at_s": at_s, "do": "black_hole", "links": [f"* <-> {cast.broker()}"]}
    return [lost, {"at_s": end_s, "do": "heal"}]


def _name_server_restarted(cast: _Cast, at_s: float) -> Entries:
    node, end_s = cast.name_server(), at_s + cast.rng.choice((cast.rng.uniform(1, 5), cast.rng.uniform(10, 90)))
    do = cast.rng.choice(("kill", "stop"))
    return [{"at_s": at_s, "do": do, "nodes": [node]}, {"at_s": end_s, "do": "restart", "nodes": [node]}]


def _list_changed(cast: _Cast, at_s: float) -> Entries:
    half = len(cast.name_servers) // 2
    return [{"at_s": at_s, "do": "name_server_list", "name_servers": cast.name_servers[half:]}]


def _wiped(cast: _Cast, at_s: float) -> Entries:
    broker, end_s = cast.broker(), at_s + cast.rng.uniform(40, 120)
    about = {"nodes": [cast.name_server()], "broker": broker}
    return [{"at_s": at_s, "do": "wipe_write_perm", **about}, {"at_s": end_s, "do": "add_write_perm", **about}]


def _claimed(cast: _Cast, at_s: float) -> Entries:
    end_s = at_s + cast.rng.uniform(60, 150)
    about = {"nodes": list(cast.name_servers), "broker": cast.broker(), "address": "10.9.9.9:10911"}
    return [{"at_s": at_s, "do": "register", "every_s": 30, **about}, {"at_s": end_s, "do": "unregister", **about}]


KINDS: dict[str, Callable[[_Cast, float], Entries]] = {
    "crash": _process("kill", "restart", 20, 140),
    "clean stop": _process("stop", "restart", 20, 140),
    "hang": _process("pause", "resume", 160, 260),
    "pair partition": _partition("both"),
    "one-way partition": _partition("downstream"),
    "host lost": _host_lost,
    "NameServer restarted": _name_server_restarted,
    "list changed": _list_changed,
    "write permission wiped": _wiped,
    "address claimed": _claimed,
}


def _asleep(cast: _Cast, at_s: float) -> Entries:
    nodes, end_s = [*cast.name_servers, *cast.brokers, "producer-0", "consumer-0"], at_s + cast.rng.uniform(200, 900)
    return [{"at_s": at_s, "do": "pause", "nodes": nodes}, {"at_s": end_s, "do": "resume", "nodes": nodes}]


def _moved(cast: _Cast, at_s: float) -> Entries:
    node, end_s = cast.broker(), at_s + cast.rng.uniform(20, 140)
    return [
        {"at_s": at_s, "do": "kill", "nodes": [node]},
        {"at_s": end_s, "do": "restart", "nodes": [node], "new_address": True},
    ]


def _wrong_order(cast: _Cast, at_s: float) -> Entries:
    end_s = at_s + cast.rng.uniform(20, 120)
    return [
        {"at_s": at_s, "do": "stop", "nodes": list(cast.name_servers)},
        {"at_s": end_s, "do": "stop", "nodes": list(cast.brokers)},
    ]


def _unregistered(cast: _Cast, at_s: float) -> Entries:
    return [{"at_s": at_s, "do": "unregister", "nodes": list(cast.name_servers), "broker": cast.broker()}]


def _topic_deleted(cast: _Cast, at_s: float) -> Entries:
    act = {"at_s": 5, "do": "delete_topic", "topic": "orders"}
    return [{**act, "nodes": nodes} for nodes in (cast.brokers, cast.name_servers)]


_CONFIG: dict[str, dict[str, Any]] = {
    "behind NAT": {"broker-a": {"brokerIP1": "172.17.0.3"}},
    "auto-create off": {"brokers": {"autoCreateTopicEnable": False}},
}

STANDING: dict[str, Callable[[_Cast, float], Entries]] = {
    "host stood still": _asleep,
    "address changed": _moved,
    "wrong order": _wrong_order,
    "unregistered by hand": _unregistered,
    "nothing": lambda cast, at_s: [],
    "disk full": _process("fill_disk", "free_disk", 60, 300),
    "port taken": _process("port_taken", "restart", 20, 140),
    "behind NAT": lambda cast, at_s: [],
    "auto-create off": _topic_deleted,
}
"""What is no fault of a link or of one process."""


def drawn(seed: int, kinds: Mapping[str, Callable[[_Cast, float], Entries]] = KINDS) -> Incident:
    """The incident of this seed; as many seeds in a row as there are kinds are one of each."""
    rng = random.Random(f"{seed} incident")
    kind = list(kinds)[seed % len(kinds)]
    many = rng.randint(2, 3)
    cluster: dict[str, Any] = {
        "name_servers": 4 if kind == "list changed" else many,
        "brokers": rng.randint(2, 3),
        # in 5.x nobody but the last master of a name is taken from another address: the claim would be another incident
        "profile": "4.9" if kind == "address claimed" else rng.choice(("4.9", "4.9", "5.x")),
    }
    name_servers = [f"ns-{number}" for number in range(cluster["name_servers"])]
    if kind == "list changed":
        cluster["name_server_list"] = name_servers[:2]
    cast = _Cast(rng, name_servers, [f"broker-{chr(ord('a') + number)}" for number in range(cluster["brokers"])])
    timeline = kinds[kind](cast, round(rng.uniform(40, 100), 3))
    document = {
        "description": f"{kind}, drawn by {seed}",
        "cluster": cluster,
        "workload": {
            "producers": 1 if kind == "host stood still" else rng.randint(1, 2),  # so that all stand still with it
            "consumers": 1 if kind == "host stood still" else rng.randint(1, 2),
            "client_starts": rng.choice((0, 0, 20)),
            "sends_per_s": 1,
        },
        "timeline": [{**entry, "at_s": round(entry["at_s"], 3)} for entry in timeline],
        "settle_s": round(rng.uniform(70, 160), 3),
        "checks": ["routes_are_true"],
        "config": _CONFIG.get(kind, {}),
    }
    if kind == "auto-create off":  # producers that had a route would keep it
        document["nodes"] = {f"producer-{number}": {"joins_at_s": 10} for number in range(2)}
        document["workload"]["producers"] = 2
    return Incident(seed, kind, parse(document, file=f"incident-{seed}.yaml"))


def recorded(incident: Incident, folder: Path) -> Path:
    """The run folder of its run."""
    with loud():
        record_virtual(incident.scenario, incident.seed, folder)
    return folder
