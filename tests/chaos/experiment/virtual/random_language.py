"""The random scenarios with lists, late comers, slaves, topics, groups and phases of their own, nothing
planted: each seed's cluster and faults are those of random_scenarios. random_everything goes on from there.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.shapes import LinkExpressionError
from nemesrv.chaos.topology import NodeKind

from . import random_scenarios

_plain = random_scenarios.random_scenario


def random_scenario(seed: int) -> Scenario:
    """The scenario of this seed, with what its nodes have of their own."""
    plain, rng = _plain(seed), random.Random(f"{seed} language")
    document = plain.model_dump(mode="json")
    document["nodes"] = _nodes(plain, rng)
    _membership(document, plain, random.Random(f"{seed} membership"))
    _lists(document, plain, random.Random(f"{seed} lists"))
    _zones(document, plain, random.Random(f"{seed} zones"))
    if not plain.workload.ordered:
        document["workload"]["delayed_share"] = random.Random(f"{seed} delayed").choice((0, 0.1))
    if not (plain.workload.ordered or plain.workload.broadcasting):
        document["workload"]["failing_share"] = random.Random(f"{seed} failing").choice((0, 0, 0.1))
    document["workload"]["topics"] = {"bulk-{1..20}": {"queues": 1}} if rng.random() < 0.2 else {}
    _topics_of_clients(document, plain, random.Random(f"{seed} topics"))
    slaves = random.Random(f"{seed} slaves")
    if slaves.random() < 0.25:
        _give_slaves(document, plain.topology().of(NodeKind.BROKER), slaves)
    document["phases"] = _phases(plain, random.Random(f"{seed} phases"))
    return parse(document, file=f"random-{seed}.yaml")


def _membership(document: dict[str, Any], plain: Scenario, rng: random.Random) -> None:
    """A NameServer that joins, and one that is removed for good."""
    servers = plain.topology().of(NodeKind.NAME_SERVER)
    last_s = max((action.at_s for action in plain.timeline), default=plain.steady_s)
    hit = {node for action in plain.timeline for node in action.nodes}
    free = [server for server in servers[1:] if server not in hit]
    if free and last_s > 1 and rng.random() < 0.3:
        document["nodes"].setdefault(free[-1], {})["joins_at_s"] = round(rng.uniform(0.5, last_s), 1)
    if len(free) > 1 and rng.random() < 0.3:
        at_s = round(rng.uniform(0, last_s), 3)
        timeline = [*document["timeline"], {"at_s": at_s, "do": "remove", "nodes": [free[0]]}]
        document["timeline"] = sorted(timeline, key=lambda entry: float(entry["at_s"]))


def _lists(document: dict[str, Any], plain: Scenario, rng: random.Random) -> None:
    """An address server, whose list changes, and which is lost to some."""
    servers = plain.topology().of(NodeKind.NAME_SERVER)
    if rng.random() > 0.3:
        return
    last_s = max((action.at_s for action in plain.timeline), default=plain.steady_s)

    def some() -> list[str]:
        there = rng.sample(servers, rng.randint(1, len(servers)))
        return [*there, "10.9.9.9:9876"] if rng.random() < 0.15 else there

    joining = {name for name, own in document["nodes"].items() if "joins_at_s" in own}
    document["cluster"]["name_server_list"] = first = some()
    if not set(first) & (set(servers) - joining):
        first.append("ns-0")
    timeline = document["timeline"]
    for entry in timeline:
        if entry.get("links") and rng.random() < 0.3:
            entry["links"] = [f"{rng.choice(('brokers', 'clients', 'broker-a', '*'))} <-> address-server"]
    timeline += [
        {"at_s": round(rng.uniform(0, last_s), 3), "do": "name_server_list", "name_servers": some()}
        for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    timeline.sort(key=lambda entry: float(entry["at_s"]))
    if rng.random() < 0.2:
        timeline.append({"at_s": last_s, "do": rng.choice(("kill", "pause", "stop")), "nodes": ["address-server"]})
    document["settle_s"] = rng.choice((100, 200, 300))


def _zones(document: dict[str, Any], plain: Scenario, rng: random.Random) -> None:
    """Two zones, and a fault between them."""
    of_links = [index for index, entry in enumerate(document["timeline"]) if entry.get("links")]
    if not of_links or rng.random() > 0.25:
        return
    topology = plain.topology()
    nodes = [node for node in topology.nodes if rng.random() < 0.9]
    east = [node for node in nodes if rng.random() < 0.5]
    zones = {"east": east, "west": [node for node in nodes if node not in east]}
    between = "zone:east <-> zone:west"
    try:
        replace(topology, zones={zone: tuple(members) for zone, members in zones.items()}).parse_links(between)
    except LinkExpressionError:
        return  # nobody of the one dials anybody of the other
    document["zones"] = zones
    document["timeline"][rng.choice(of_links)]["links"] = [between]


def _topics_of_clients(document: dict[str, Any], plain: Scenario, rng: random.Random) -> None:
    """A second topic in use, which a second group may read, too."""
    if rng.random() > 0.3:
        return
    document["workload"]["topics"]["payments"] = {"queues": rng.choice((1, 2, 4))}
    topology, nodes = plain.topology(), document["nodes"]
    for node in topology.of(NodeKind.PRODUCER, NodeKind.CONSUMER):
        if rng.random() < 0.5:
            nodes.setdefault(node, {})["topic"] = "payments"
            if topology.kinds[node] is NodeKind.CONSUMER and rng.random() < 0.4:
                nodes[node]["group"] = "audit"


def _phases(plain: Scenario, rng: random.Random) -> dict[str, float]:
    """Timers at phases of their own, some of which meet an action of the timeline."""
    if rng.random() > 0.3:
        return {}
    met_s = [action.at_s % 30 for action in plain.timeline]
    of = plain.topology().of(NodeKind.NAME_SERVER, NodeKind.BROKER, NodeKind.PRODUCER, NodeKind.CONSUMER)
    return {node: round(rng.choice((rng.uniform(0, 30), *met_s)), 3) for node in of if rng.random() < 0.5}


def _nodes(plain: Scenario, rng: random.Random) -> dict[str, dict[str, Any]]:
    topology = plain.topology()
    servers = topology.of(NodeKind.NAME_SERVER)
    last_s = max((action.at_s for action in plain.timeline), default=plain.steady_s)
    hit_s: dict[str, float] = {}
    for action in plain.timeline:
        for node in action.nodes:
            hit_s.setdefault(node, action.at_s)
    found: dict[str, dict[str, Any]] = {}
    for node in topology.of(NodeKind.BROKER, NodeKind.PRODUCER, NodeKind.CONSUMER):
        own: dict[str, Any] = {}
        joins_at_s = round(rng.uniform(0.5, last_s), 1)
        if node != "broker-a" and rng.random() < 0.2 and joins_at_s < hit_s.get(node, last_s):
            own["joins_at_s"] = joins_at_s
        if len(servers) > 1 and rng.random() < 0.2:
            own["name_servers"] = rng.sample(servers, rng.randint(1, len(servers)))
            if rng.random() < 0.3:
                own["name_servers"].insert(0, "10.9.9.9:9876")
        if topology.kinds[node] is NodeKind.BROKER and rng.random() < 0.2:
            own["cluster_name"] = "eu"
        if own:
            found[node] = own
    return found


def _give_slaves(document: dict[str, Any], masters: Sequence[str], rng: random.Random) -> None:
    """Slaves, in the scenario's document, and in the place of some brokers in its faults."""
    if rng.random() < 0.3:
        of = {"broker-a": ["broker-a/1"]}
        document.setdefault("nodes", {})["broker-a/1"] = {}
    else:
        document["cluster"]["slaves"] = each = rng.choice((1, 1, 2))
        of = {master: [f"{master}/{number}" for number in range(1, each + 1)] for master in masters}
    meets = {master: rng.choice(slaves) for master, slaves in of.items() if rng.random() < 0.4}
    for entry in document["timeline"]:
        if entry.get("nodes"):
            entry["nodes"] = [meets.get(node, node) for node in entry["nodes"]]
        if entry.get("links"):
            entry["links"] = [_of_slaves(link, of, rng) for link in entry["links"]]


def _of_slaves(link: str, of: dict[str, list[str]], rng: random.Random) -> str:
    """The link as it is, or a slave's in place of its broker's, or that between a slave and its master."""
    named = re.search(r"broker-[a-z]", link)
    master = named[0] if named else rng.choice(sorted(of))
    if master not in of or "zone:" in link or "address-server" in link or rng.random() < 0.5:
        return link
    slave = rng.choice(of[master])
    if rng.random() < 0.25:
        return f"{slave} <-> {master}"
    return link.replace(master, slave)
