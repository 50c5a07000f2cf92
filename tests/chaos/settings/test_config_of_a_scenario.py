"""`config:` of a scenario: what it says the nodes do, and windows follow."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Validity

CONTROL = ("routes_converge", "routes_are_true", "no_false_eviction", "no_resurrection", "dead_name_servers_left")


def refused(config: object, **rest: object) -> ScenarioError:
    with pytest.raises(ScenarioError) as error:
        parse({"checks": ["routes_converge"], "config": config, **rest}, file="mine.yaml")
    return error.value


def test_the_older_keys_are_the_same_settings() -> None:
    timers = {"register_name_server_period_s": 20, "poll_name_server_interval_s": 5}
    scenario = parse({"checks": ["routes_converge"], "timers": timers}, file="mine.yaml")
    assert scenario.settings()["broker-a"] == {"registerNameServerPeriod": 20_000}
    assert scenario.settings()["prober"] == {"pollNameServerInterval": 5_000}
    error = refused({"brokers": {"registerNameServerPeriod": 30_000}}, timers=timers)
    assert error.key == "config.brokers.registerNameServerPeriod"
    assert "20000, as timers: or workload: says" in error.allowed
    config = {"broker-a": {"registerNameServerPeriod": 30_000}}
    scenario = parse({"checks": ["routes_converge"], "timers": timers, "config": config}, file="mine.yaml")
    assert scenario.settings()["broker-a"] == {"registerNameServerPeriod": 30_000}


def test_config_comes_back_from_the_scenario_as_run() -> None:
    document = {"checks": ["routes_converge"], "config": {"broker-a": {"forceRegister": False}}}
    scenario = parse(document, file="mine.yaml")
    assert parse(yaml.safe_load(scenario.to_yaml()), file="again.yaml") == scenario


def ran(document: Mapping[str, Any], tmp_path: Path, *, seed: int = 1) -> tuple[list[dict[str, Any]], World]:
    scenario = parse({"checks": list(CONTROL), "workload": {"sends_per_s": 1}, **document}, file="mine.yaml")
    rows = list(read_rows(record_virtual(scenario, seed, tmp_path / "run").path))
    return rows, World.of_rows(rows)


def verdicts(rows: list[dict[str, Any]], world: World) -> dict[str, Validity]:
    control = Control.of_rows(rows)
    return {name: CHECKS[name].judge(control, world).verdict for name in CONTROL}


HOLE = [{"at_s": 20, "do": "black_hole", "links": ["broker-a <-> name_servers"], "for_s": 180}]


def test_a_name_server_with_a_shorter_expiry_drops_sooner_and_is_judged_by_its_own(tmp_path: Path) -> None:
    config = {"ns-1": {"brokerChannelExpiredTime": 60_000, "scanNotActiveBrokerInterval": 2_000}}
    document = {"cluster": {"name_servers": 2, "brokers": 2}, "config": config, "timeline": HOLE}
    rows, world = ran(document, tmp_path)
    drops_ = [
        row for row in rows if row["event"] == "broker_dropped" and row["value"] and "unreg" not in str(row["value"])
    ]
    dropped = {row["node"]: row["time_ms"] for row in reversed(drops_)}
    registered = {
        node: max(
            row["time_ms"]
            for row in rows
            if row["event"] == "registration"
            and row["node"] == node
            and row["broker_name"] == "broker-a"
            and row["time_ms"] < dropped[node]
        )
        for node in dropped
    }
    assert 60_000 <= dropped["ns-1"] - registered["ns-1"] <= 62_000
    assert 119_999 <= dropped["ns-0"] - registered["ns-0"] <= 130_000
    drops = {
        o.name_server: o.window
        for o in obligations(world)
        if o.demand is ObligationKind.DROP and o.label.fault_id == "black_hole-1"
    }
    assert drops["ns-1"].latest_ms == 62_000
    assert drops["ns-0"].latest_ms == 130_000
    assert set(verdicts(rows, world).values()) <= {Validity.VALID, Validity.UNKNOWN}
    assert verdicts(rows, world)["routes_are_true"] is Validity.VALID
    # the same history without its settings is wrong: the windows really are the nodes' own
    for row in rows:
        if row["event"] == "run_begin":
            row["value"] = {k: v for k, v in _object(row["value"]).items() if k not in ("node_timers", "settings")}
    assert verdicts(rows, World.of_rows(rows))["no_false_eviction"] is Validity.INVALID


def _object(value: object) -> dict[str, Any]:
    found = json.loads(value) if isinstance(value, str) else value
    assert isinstance(found, dict)
    return found
