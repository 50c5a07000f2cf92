"""Legal but odd scenarios of what clients are told, and the defect that is still found in each."""

from dataclasses import dataclass, field
from typing import Any

from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario


@dataclass(frozen=True)
class Odd:
    """`defect`, planted in it, is found by `check`."""

    timeline: list[dict[str, Any]]
    defect: str
    check: str
    cluster: dict[str, Any] = field(default_factory=dict)
    workload: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    settle_s: float = 60


def scenario(odd: Odd) -> Scenario:
    """It, on two NameServers and two brokers but where it says something else."""
    document = {
        "cluster": {"name_servers": 2, "brokers": 2, **odd.cluster},
        "workload": {"client_starts": 0, "sends_per_s": 2, **odd.workload},
        "phases": odd.phases,
        "nodes": odd.nodes,
        "config": odd.config,
        "timeline": odd.timeline,
        "settle_s": odd.settle_s,
        "checks": ["routes_are_true"],
    }
    return parse(document, file="odd.yaml")


TOLD = {
    "consumers that see different brokers": Odd(
        [],
        "name-servers-answer-late",
        "prompt_answers",
        workload={"consumers": 2},
        nodes={"broker-b": {"name_servers": ["ns-1"]}, "consumer-0": {"name_servers": ["ns-0"]}},
        settle_s=300,
    ),
    "a topic that one broker alone has": Odd(
        [
            {"at_s": 0, "do": "stop", "nodes": ["broker-b"]},
            {"at_s": 8, "do": "stop", "nodes": ["broker-a"]},
            {"at_s": 30, "do": "restart", "nodes": ["broker-a", "broker-b"]},
            {"at_s": 110, "do": "kill", "nodes": ["broker-b"], "for_s": 30},
        ],
        "producer-retries-the-same-broker",
        "living_are_used",
    ),
    "a broker that is back at the NameServer, which a slow link tells of": Odd(
        [
            {"at_s": 5, "do": "kill", "nodes": ["broker-a"], "for_s": 145},
            {"at_s": 6, "do": "latency", "links": ["consumer-0 <-> name_servers"], "latency_ms": 500},
            {"at_s": 6, "do": "cut", "links": ["consumer-0 <-> broker-a"]},
            {"at_s": 250, "do": "heal"},
        ],
        "name-server-brings-back-the-dead",
        "no_resurrection",
        cluster={"name_servers": 1},
    ),
    "a broker that stops before what was lost is sent again": Odd(
        [
            {"at_s": 60, "do": "packet_loss", "links": ["broker-a <-> name_servers"], "for_s": 36},
            {"at_s": 97.2, "do": "stop", "nodes": ["broker-a"], "for_s": 142.8},
        ],
        "name-server-brings-back-the-dead",
        "no_resurrection",
    ),
    "a new list that has the NameServer next which has just failed": Odd(
        [
            {"at_s": 20, "do": "name_server_list", "name_servers": ["ns-0", "ns-2"]},
            {"at_s": 170, "do": "reset", "links": ["clients <-> name_servers"]},
            {"at_s": 300, "do": "heal"},
        ],
        "client-never-moves-on",
        "name_server_selection",
        cluster={"name_servers": 3, "name_server_list": ["ns-0", "ns-1"]},
        workload={"producers": 3, "consumers": 3},
    ),
}
