"""Brokers that elect their master: who they are in a scenario."""

from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.scenarios.loading import find, parse
from nemesrv.chaos.scenarios.model import Scenario

DLEDGER = {"brokers": {"enableDLegerCommitLog": True}}


def scenario(config: dict[str, Any] = DLEDGER, slaves: int = 2, implementation: str = "apache-4.9.7") -> Scenario:
    cluster = {"name_servers": 1, "brokers": 2, "slaves": slaves, "implementation": implementation}
    return parse({"cluster": cluster, "config": config, "checks": ["one_master"]}, file="x.yaml")


def test_a_group_is_all_brokers_of_a_name() -> None:
    groups = {name: (name, f"{name}/1", f"{name}/2") for name in ("broker-a", "broker-b")}
    assert {name: tuple(nodes) for name, nodes in scenario().electing_names().items()} == groups


@pytest.mark.parametrize("name", ["controller-switches-master", "leader-election"])
def test_what_ships_has_a_group_beside_another_broker(name: str) -> None:
    found = find(name)
    assert list(found.electing_names()) == ["broker-a"]
    assert "broker-b" in found.topology().nodes
    assert "one_master" in found.checks


def test_a_role_is_said_of_masters_only() -> None:
    role = {"brokers": {"brokerRole": "SYNC_MASTER"}}
    for made_by in ("apache-4.9.7", "ours"):
        settings = scenario(role, 1, made_by).settings()
        assert settings["broker-a"]["brokerRole"] == "SYNC_MASTER"
        assert "brokerRole" not in settings.get("broker-a/1", {})
    with pytest.raises(ScenarioError, match="one of ASYNC_MASTER, SYNC_MASTER"):
        scenario({"brokers": {"brokerRole": "SLAVE"}}, 1)
