"""`nemesrv museum` and `nemesrv scenarios --incidents`, as a person calls them."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.proof.museum import Said, ShownIncident, by_validity, caption, chosen, document
from nemesrv.chaos.scenarios.loading import load, shipped
from nemesrv.chaos.verdict import Validity, Verdict


def test_an_incident_is_found_and_gone_with_its_fix(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["museum", "i11", "--out", str(tmp_path / "kept"), "--json"])
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)
    assert (one["name"], one["as_meant"]) == ("i11-two-claim-one-name", True)
    assert one["upstream"] == ["apache/rocketmq#3991", "apache/rocketmq#1450"]
    assert (one["buggy"]["INVALID"], one["fixed"]["INVALID"]) == (["one_master"], [])
    assert re.search(r"ns-\d changed the address of the master of broker-a again and again", one["finding"])
    for variant in ("buggy", "fixed"):
        assert (tmp_path / "kept" / "i11-two-claim-one-name" / variant / "scenario.yaml").is_file()


@pytest.mark.nightly("test_an_incident_is_found_and_gone_with_its_fix")
@pytest.mark.parametrize("name", shipped("incidents"))
def test_each_that_ships_is_found_as_it_was_and_gone_with_its_fix(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["museum", name, "--out", str(tmp_path / "kept")])
    assert result.exit_code == 0, result.output


def shown(*, buggy: dict[str, Validity], fixed: dict[str, Validity]) -> ShownIncident:
    """Of I03, which availability is to find."""
    scenario = load(shipped("incidents")["i03-one-of-two-drops-syns"])
    assert scenario.incident is not None

    def variant(said: dict[str, Validity]) -> Said:
        return by_validity([Verdict(name=n, verdict=v, examined=1, violations=0) for n, v in said.items()])

    about = {"name": scenario.name, "description": scenario.description, "incident": scenario.incident}
    return ShownIncident(**about, buggy=variant(buggy), fixed=variant(fixed))


RED, GREEN, UNSURE = Validity.INVALID, Validity.VALID, Validity.UNKNOWN


@pytest.mark.parametrize(
    ("buggy", "fixed", "expected"),
    [
        ({"availability": RED}, {"availability": GREEN}, True),
        ({"availability": RED, "one_master": RED}, {"availability": GREEN, "one_master": UNSURE}, True),
        ({"availability": GREEN, "one_master": RED}, {"availability": GREEN}, False),
        ({"availability": UNSURE}, {"availability": GREEN}, False),
        ({"availability": RED}, {"availability": UNSURE}, False),
        ({"availability": RED}, {"availability": GREEN, "one_master": RED}, False),
    ],
)
def test_red_by_the_named_check_and_green_by_all(
    buggy: dict[str, Validity], fixed: dict[str, Validity], expected: bool
) -> None:
    one = shown(buggy=buggy, fixed=fixed)
    assert one.as_meant is expected
    assert document(one)["as_meant"] is expected
    assert document(one)["also"] == [name for name in buggy if buggy[name] is RED and name != "availability"]
    assert caption([one]).endswith("not so: i03-one-of-two-drops-syns") is not expected


def test_one_that_does_not_ship_is_refused() -> None:
    with pytest.raises(
        ScenarioError, match=r"museum: NAME: 'i03-one-of-two' is not allowed; expected one of i01-host-lost, "
    ):
        chosen(["i03-one-of-two"])
    assert [path.stem[:3] for path in chosen(["i12", "i07-topic-before-the-first-tick"])] == ["i07", "i12"]
    assert len(chosen([])) == len(shipped("incidents")) >= 15


def test_incidents_are_listed_with_where_they_were_reported() -> None:
    lines = CliRunner().invoke(cli, ["scenarios", "--incidents"]).stdout.splitlines()
    assert [line[:3] for line in lines] == [f"i{number:02}" for number in range(1, len(shipped("incidents")) + 1)]
    assert lines[2].startswith("i03-one-of-two-drops-syns")
    assert lines[2].endswith("(apache/rocketmq#7056)")
    told = json.loads(CliRunner().invoke(cli, ["scenarios", "--incidents", "--json"]).stdout)
    assert told[2]["found_by"] == ["availability"]
    assert told[2]["fixed"]["sets"] == {"cluster.profile": "5.x"}
