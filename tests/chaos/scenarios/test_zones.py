"""`zones:`: who is in which, and faults between them."""

from pathlib import Path

from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import load, parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.verdict import Validity

EAST = {"east": ["ns-0", "broker-a", "producers"], "west": ["ns-1", "broker-b", "consumers", "prober"]}


def apart(*, settle_s: float = 70) -> Scenario:
    """A scenario whose zones are lost to one another for longer than the expiry."""
    timeline = [
        {"at_s": 20, "do": "black_hole", "links": ["zone:east <-> zone:west"]},
        {"at_s": 175, "do": "heal"},
    ]
    cluster = {"name_servers": 2, "brokers": 2}
    few = {"sends_per_s": 1, "client_starts": 10}
    document = {"checks": ["routes_are_true"], "cluster": cluster, "workload": few, "zones": EAST, "timeline": timeline}
    return parse({**document, "settle_s": settle_s}, file="apart.yaml")


def test_zones_that_are_lost_to_one_another_keep_their_own_brokers_only(tmp_path: Path) -> None:
    found = {}
    for name in (None, "name-server-never-expires"):
        defect = DEFECTS[name] if name else None
        run = record_virtual(apart(), 1, tmp_path / (name or "right"), defect=defect)
        rows = list(read_rows(run.path))
        world = World.of_rows(rows)
        assert world.run["zones"]["east"] == ["ns-0", "broker-a", "producer-0", "producer-1"]
        found[name] = CHECKS["routes_are_true"].judge(Control.of_rows(rows), world).verdict
    assert found == {None: Validity.VALID, "name-server-never-expires": Validity.INVALID}


def test_explain_says_who_is_where_and_who_must_hold_what(tmp_path: Path) -> None:
    file = tmp_path / "apart.yaml"
    file.write_text(apart().to_yaml(), encoding="utf-8")
    assert load(file) == apart()
    told = CliRunner().invoke(cli, ["explain", str(file)], catch_exceptions=False).output
    assert "zone east: ns-0, broker-a, producer-0, producer-1\n" in told
    for server, broker in (("ns-0", "broker-b"), ("ns-1", "broker-a")):
        assert f"{server}: {broker}\n      0.0 ..   110.0  must hold" in told
        assert "150.0 ..   175.0  must not hold" in told
