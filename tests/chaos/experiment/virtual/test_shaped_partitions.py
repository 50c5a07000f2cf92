"""Each shape in a run: the fault is on the links between its sides, and the tables are true throughout."""

from pathlib import Path

import pytest

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.shapes import SHAPES
from nemesrv.chaos.topology import Link

FEW_SENDS = {"client_starts": 0, "sends_per_s": 1}

WORDS = {"isolate": "isolate ns-0", "into": "into broker-a", "out_of": "out_of broker-a", "bridge": "bridge ns-1",
         "groups": "groups ns-0 broker-a producers | ns-1 ns-2 broker-b"}  # fmt: skip


def scenario(shape: str, lasts_s: float = 150) -> Scenario:
    timeline = [
        {"at_s": 20, "do": "black_hole", "name": "parted", "links": [shape]},
        {"at_s": 20 + lasts_s, "do": "heal", "faults": ["parted"]},
    ]
    document = {"name": "shaped", "cluster": {"name_servers": 3, "brokers": 3}, "timeline": timeline, "settle_s": 100,
                "workload": FEW_SENDS, "zones": {"eu": ["ns-0", "broker-a"], "us": ["ns-1", "broker-b"]},
                "checks": ["routes_are_true"]}  # fmt: skip
    return parse(document, file="shaped.yaml")


@pytest.mark.nightly_but("split_list")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_links_between_its_sides_are_parted_and_every_table_is_true(shape: str, tmp_path: Path) -> None:
    asked = scenario(WORDS.get(shape, shape))
    folder = record_virtual(asked, 5, tmp_path / "run").path
    faults = World.of_rows(read_rows(folder)).faults
    assert {fault.fault_id for fault in faults} == {"parted"}
    parted = asked.topology().parse_streams(*asked.timeline[0].links)
    assert {Link(fault.source, str(fault.target)): fault.stream for fault in faults} == parted
    assert found_wrong(folder) == {}


@pytest.mark.nightly
def test_a_name_server_that_keeps_who_is_on_the_other_side_is_found(tmp_path: Path) -> None:
    folder = record_virtual(scenario("halves", 200), 5, tmp_path / "run", DEFECTS["name-server-never-expires"]).path
    assert "routes_are_true" in found_wrong(folder)


@pytest.mark.nightly
def test_a_producer_whose_name_server_names_only_the_broker_that_it_cannot_reach_may_fail(tmp_path: Path) -> None:
    links = ["broker-b <-> ns-0", "producer-0 <-> broker-a"]
    timeline = [
        {"at_s": 20, "do": "black_hole", "links": links},
        {"at_s": 220, "do": "cut", "links": ["consumer-0 <-> broker-a"]},  # from then on it is counted anew
        {"at_s": 320, "do": "heal"},
    ]
    document = {"name": "named", "cluster": {"name_servers": 1, "brokers": 2}, "timeline": timeline, "settle_s": 100,
                "workload": FEW_SENDS, "checks": ["availability"]}  # fmt: skip
    assert found_wrong(record_virtual(parse(document, file="named.yaml"), 5, tmp_path / "run").path) == {}
