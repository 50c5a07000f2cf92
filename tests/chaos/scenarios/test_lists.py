"""Lists of NameServers by HTTP: who asks when, what is taken, and what the checks then ask for."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle import lists
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.verdict import Validity

CLUSTER = {"name_servers": 3, "brokers": 2, "name_server_list": ["ns-0", "ns-1"]}
FEW = {"producers": 1, "consumers": 1, "sends_per_s": 1, "client_starts": 10}
CHANGED = [{"at_s": 60, "do": "name_server_list", "name_servers": ["ns-1", "ns-2"]}]


def scenario(**document: Any) -> Scenario:
    rest = {"cluster": CLUSTER, "workload": FEW, "timeline": CHANGED, "settle_s": 330, **document}
    return parse({"checks": ["routes_are_true"], **rest}, file="x.yaml")


def judged(run: Path) -> dict[str, Validity]:
    """Check to its verdict."""
    return {verdict.name: verdict.verdict for verdict in verdicts(run)}


@pytest.mark.nightly_but("5.x")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
def test_a_changed_list_is_in_use_within_its_time_and_all_follows(profile: str, tmp_path: Path) -> None:
    run = record_virtual(scenario(cluster={**CLUSTER, "profile": profile}), 1, tmp_path / "run")
    rows = list(read_rows(run.path))
    world = World.of_rows(rows)
    changed_ms = world.served[1].from_ms
    taken = {row["node"]: row["time_ms"] - changed_ms for row in rows if row.get("f") == "fetchNameServerAddr"
             and row["event"] == "name_server_list" and row["time_ms"] > changed_ms}  # fmt: skip
    brokers_ms = 120_000 if profile == "4.9" else 10_000
    assert {node for node in taken} == {"broker-a", "broker-b", "producer-0", "consumer-0"}
    assert all(ms <= (brokers_ms if node.startswith("broker") else 120_000) + 10 for node, ms in taken.items())
    registered = {}
    for row in rows:
        if row["event"] == "registration":
            registered.setdefault((row["node"], row["broker_name"]), []).append(row["time_ms"] - changed_ms)
    for broker in ("broker-a", "broker-b"):
        assert max(registered["ns-0", broker]) < taken[broker] <= min(registered["ns-2", broker])
    found = judged(run.path)
    assert Validity.INVALID not in found.values()
    asked = ("routes_are_true", "no_resurrection", "registrations_are_kept", "client_routes_are_true", "timers_kept")
    assert {found[name] for name in (*asked, "name_server_selection", "availability")} == {Validity.VALID}


@pytest.mark.nightly("test_a_changed_list_is_in_use_within_its_time_and_all_follows")
def test_a_node_that_cannot_reach_the_address_server_may_keep_its_list_until_it_can(tmp_path: Path) -> None:
    timeline = [
        {"at_s": 50, "do": "black_hole", "links": ["broker-a <-> address-server"]},
        *CHANGED,
        {"at_s": 250, "do": "heal"},
    ]
    run = record_virtual(scenario(timeline=timeline, settle_s=250), 1, tmp_path / "run")
    world = World.of_rows(read_rows(run.path))
    served = world.served[1]
    assert lists.due_ms(world, "broker-a", served) - world.timeline_ms == pytest.approx(250_000 + 123_000, abs=100)
    assert lists.due_ms(world, "broker-b", served) - world.timeline_ms == pytest.approx(60_000 + 123_000, abs=100)
    assert Validity.INVALID not in judged(run.path).values()
