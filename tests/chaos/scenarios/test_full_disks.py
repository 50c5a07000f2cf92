"""Full disks in a scenario: when the World has a disk full."""

from typing import Any

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

FILL = {"at_s": 5, "do": "fill_disk", "nodes": ["broker-a"]}


def of(*timeline: dict[str, Any]) -> Scenario:
    cluster = {"name_servers": 1, "brokers": 2, "slaves": 1}
    return parse({"cluster": cluster, "checks": ["routes_are_true"], "timeline": list(timeline)}, file="x.yaml")


def test_a_disk_is_full_as_long_as_said_and_free_when_the_timeline_is_over() -> None:
    world = expected_world(of({**FILL, "for_s": 20}, {"at_s": 60, "do": "fill_disk", "nodes": ["broker-b"]})).world
    spans = [(disk.broker, round((disk.surely.end_ms - disk.surely.start_ms) / 1000)) for disk in world.full_disks]
    assert spans == [("broker-a", 20), ("broker-b", 0)]
