"""`--set KEY=VALUE`: where a key leads, and what is wrong with one."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.scenarios.document import change
from nemesrv.chaos.scenarios.loading import find
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.remoting.node.profile import Profile


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("settle_s=90", "settle_s", 90),
        ("workload.topic=pay", "workload.topic", "pay"),
        ("timeline.0.nodes=[broker-a, broker-b]", "timeline.0.nodes", ["broker-a", "broker-b"]),
        ("config.brokers.forceRegister=false", "config.brokers.forceRegister", False),
        ("brokers.forceRegister=false", "config.brokers.forceRegister", False),
        ("ns-1.serverChannelMaxIdleTimeSeconds=90", "config.ns-1.serverChannelMaxIdleTimeSeconds", 90),
        ("pollNameServerInterval=5000", "config.clients.pollNameServerInterval", 5_000),
        ("registerNameServerPeriod=20000", "config.brokers.registerNameServerPeriod", 20_000),
        ("seed=null", "seed", None),
    ],
)
def test_a_key_leads_into_the_file(text: str, place: str, value: object) -> None:
    document: dict[str, Any] = {"timeline": [{"at_s": 5, "do": "kill", "nodes": ["broker-a"]}]}
    assert change(text, document, Scenario.model_fields) == place
    at: Any = document
    for part in place.split("."):
        at = at[int(part)] if isinstance(at, list) else at[part]
    assert at == value


def test_what_the_option_did_not_change_is_said_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("checks: [routes_converge]\ncluster: {brokers: 0}")
    with pytest.raises(ScenarioError) as error:
        find(str(path), ["settle_s=3"])
    assert error.value.file == str(path)
    assert find(str(path), ["cluster.brokers=4"]).cluster.brokers == 4


def test_a_profile_needs_no_quotes_though_yaml_reads_it_as_a_number() -> None:
    assert find("smoke", ["cluster.profile=4.9"]).profile is Profile.V4_9
