"""NameServers that join, are removed, and come back empty: what the run does, and what the checks then ask."""

from pathlib import Path

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.quiet import calm
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse

CLUSTER = {"name_servers": 3, "brokers": 2}
FEW = {"producers": 1, "consumers": 1, "sends_per_s": 1, "client_starts": 10}
JOINS = {"ns-2": {"joins_at_s": 60}}
REMOVED = [{"at_s": 150, "do": "remove", "nodes": ["ns-0"]}]
WIPED = {"at_s": 160, "do": "wipe_write_perm", "nodes": ["ns-0"], "broker": "broker-a"}


@pytest.mark.nightly_but("5.x")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
def test_a_joined_name_server_fills_and_a_removed_one_stays_away(profile: str, tmp_path: Path) -> None:
    document = {"nodes": JOINS, "timeline": REMOVED, "workload": FEW, "settle_s": 120, "checks": ["routes_are_true"]}
    asked = parse({**document, "cluster": {**CLUSTER, "profile": profile}}, file="x.yaml")
    run = record_virtual(asked, 1, tmp_path / "run")
    rows = list(read_rows(run.path))
    world = World.of_rows(rows)
    of_ns_2 = [(one.demand, one.from_ms - world.timeline_ms) for one in obligations(world) if one.name_server == "ns-2"]
    assert of_ns_2 == [(ObligationKind.RETURN, pytest.approx(93_000, abs=100))] * 2
    lives = {node: [life.start_ms - world.timeline_ms for life in world.lives_of(node)] for node in ("ns-0", "ns-2")}
    assert lives["ns-2"] == [pytest.approx(60_000, abs=100)]
    assert len(lives["ns-0"]) == 1  # nothing heals it
    assert all(found.verdict == "VALID" or not found.examined for found in verdicts(run.path))
    still = calm(world)
    assert still[-1].end_ms == world.end_ms  # removed for good is no fault for ever
    assert still[-1].start_ms - world.timeline_ms > 150_000
