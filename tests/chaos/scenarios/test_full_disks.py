"""Full disks in a scenario: what is refused and how, and when the World has a disk full."""

from typing import Any

import pytest

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from tests.refusals import refusal

FILL = {"at_s": 5, "do": "fill_disk", "nodes": ["broker-a"]}


def of(*timeline: dict[str, Any]) -> Scenario:
    cluster = {"name_servers": 1, "brokers": 2, "slaves": 1}
    return parse({"cluster": cluster, "checks": ["routes_are_true"], "timeline": list(timeline)}, file="x.yaml")


@pytest.mark.parametrize(
    ("do", "node", "said"),
    [
        ("fill_disk", "broker-a", "a broker that runs then, and has room: broker-a is under fill_disk"),
        ("fill_disk", "ns-0", "one of broker-a, broker-b"),
        ("fill_disk", "broker-b/1", "one of broker-a, broker-b"),
        ("free_disk", "broker-b", "a broker whose disk is full then"),
        ("kill", "broker-a", "free_disk before it: the disk of broker-a is full"),
        ("port_taken", "producer-0", "producer-0"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(do: str, node: str, said: str) -> None:
    with refusal(said):
        of(FILL, {"at_s": 9, "do": do, "nodes": [node]})


def test_a_disk_is_full_as_long_as_said_and_free_when_the_timeline_is_over() -> None:
    world = expected_world(of({**FILL, "for_s": 20}, {"at_s": 60, "do": "fill_disk", "nodes": ["broker-b"]})).world
    spans = [(disk.broker, round((disk.surely.end_ms - disk.surely.start_ms) / 1000)) for disk in world.full_disks]
    assert spans == [("broker-a", 20), ("broker-b", 0)]
