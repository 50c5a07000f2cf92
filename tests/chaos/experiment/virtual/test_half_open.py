"""Half-open links and dropped SYNs in whole runs: what must be seen while they last, and what breaks it."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.defect import of_file
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

FEW_SENDS = {"client_starts": 0, "sends_per_s": 1}

LINKS = ["broker-a <-> ns-0", "clients <-> ns-1", "producer-0 <-> broker-b"]
KEEPS_ITS_DEAD_CHANNEL = '''"""A broker keeps the channel on which nothing is answered."""

NODES = ["broker-a"]


def plant(broker):
    assemble = broker._assemble

    def assembled(*args):
        assemble(*args)
        broker._registration._client.close_on_timeout = False

    broker._assemble = assembled
'''


def scenario(do: str, *more: dict[str, Any], profile: str = "4.9", links: list[str] = LINKS, **config: Any) -> Scenario:
    begin, end = {"at_s": 20, "do": do, "links": links}, {"at_s": 220, "do": "heal"}
    document = {
        "name": "parted", "cluster": {"name_servers": 2, "brokers": 2, "profile": profile}, "config": config,
        "workload": FEW_SENDS, "timeline": [begin, *more, end],
        "settle_s": 100, "checks": ["routes_are_true"],
    }  # fmt: skip
    return parse(document, file="parted.yaml")


@pytest.mark.nightly_but("half_open-4.9", "syn_drop-5.x")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
@pytest.mark.parametrize("do", ["half_open", "syn_drop"])
def test_the_tables_keep_whoever_can_still_register(do: str, profile: str, tmp_path: Path) -> None:
    folder = record_virtual(scenario(do, profile=profile), 3, tmp_path / "run").path
    assert {fault.fault for fault in World.of_rows(read_rows(folder)).faults} == {do}
    assert found_wrong(folder) == {}


@pytest.mark.nightly
def test_a_broker_that_keeps_its_dead_channel_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "keeps.py"
    wrong.write_text(KEEPS_ITS_DEAD_CHANNEL, encoding="utf-8")
    folder = record_virtual(scenario("half_open", links=LINKS[:1]), 3, tmp_path / "run", of_file(wrong)).path
    assert "routes_are_true" in found_wrong(folder)


@pytest.mark.nightly
def test_who_is_started_again_while_syns_are_dropped_is_promised_to_nobody_until_the_heal(tmp_path: Path) -> None:
    restart = {"at_s": 60, "do": "restart", "nodes": ["broker-a"]}
    asked = scenario("syn_drop", restart, links=LINKS[:1])
    demands = [
        (o.demand, o.from_ms / 1000, o.to_ms / 1000)
        for o in obligations(expected_world(asked).world)
        if (o.name_server, o.broker) == ("ns-0", "broker-a") and o.to_ms > 20_000
    ]
    assert demands == [(ObligationKind.KEEP, 20, 54), (ObligationKind.RETURN, 253, 320)], "two faults at once"
    assert found_wrong(record_virtual(asked, 3, tmp_path / "run").path) == {}


def test_what_is_demanded_of_a_half_open_link_follows_the_settings() -> None:
    def kept(**config: Any) -> list[float]:
        world = expected_world(scenario("half_open", links=LINKS[:1], **config)).world
        found = [o for o in obligations(world) if (o.name_server, o.broker) == ("ns-0", "broker-a")]
        return [o.to_ms / 1000 for o in found if o.demand is ObligationKind.KEEP]

    assert kept() == [220]
    assert kept(**{"broker-a": {"clientCloseSocketIfTimeout": False}}) == [110]
    assert kept(**{"broker-a": {"registerNameServerPeriod": 60_000}}) == [80], "two periods are too long"


@pytest.mark.parametrize("do", ["half_open", "syn_drop"])
def test_neither_has_a_direction(do: str) -> None:
    with pytest.raises(ScenarioError, match="which is of both directions"):
        scenario(do, links=["into broker-a"])
