"""What a person and a CI server read: JUnit XML and the table. The page has its own tests in reports/."""

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console

from nemesrv.chaos.reports.ci import junit
from nemesrv.chaos.reports.terminal import verdict_table
from nemesrv.chaos.reports.text import phrases
from nemesrv.chaos.verdict import Example, Verdict
from tests.chaos.builder import invalid, valid

ROOT = Path(__file__).resolve().parents[3]
VALID = valid("routes_are_true", measured={"max_ms": 120040.0}, allowed={"bound_ms": 130000.0, "formula": "E + S"})
INVALID = invalid(
    "no_acknowledged_loss",
    examined=100,
    violations=2,
    examples=(Example(more={"msg_key": "<k>&\x00"}),),
    why="2 acknowledged messages were never seen again",
)
UNKNOWN = Verdict.nothing_examined("no broker died", name="dead_brokers_avoided")
ALL = (VALID, INVALID, UNKNOWN)


def test_junit_has_one_case_a_check_and_tells_invalid_from_unknown() -> None:
    suite = ET.fromstring(junit("smoke", 7, ALL))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert {suite.get("name"), *(case.get("classname") for case in suite.iter("testcase"))} == {"nemesrv.smoke.seed-7"}
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert cases["routes_are_true"].find("failure") is None
    assert cases["routes_are_true"].find("error") is None
    failure, error = cases["no_acknowledged_loss"].find("failure"), cases["dead_brokers_avoided"].find("error")
    assert failure is not None
    assert failure.get("type") == "INVALID"
    assert error is not None
    assert error.get("message") == "no broker died"


def test_the_table_names_each_check_its_verdict_and_why_it_is_unknown() -> None:
    console = Console(width=160, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(verdict_table(ALL))
    text = capture.get()
    for expected in (
        *("routes_are_true", "every table was right", "130.0 s (E + S)", "INVALID"),
        *("UNKNOWN", "no broker died"),
    ):
        assert expected in text


def test_values_become_words_and_what_says_nothing_is_left_out() -> None:
    values = {
        "bound_ms": None,
        "max_ms": 1500,
        "drops": [{"name_server": "ns-0", "after_ms": 120000.0}, {"name_server": "ns-1", "after_ms": 1.0}],
        "converged_ms": {"kill-1 start": 250.0},
        "p_value": 0.123456,
        "broken_rules": {},
        "formula": "E + S",
    }
    assert dict(phrases(values)) == {
        "max": "1.5 s",
        "drops": "name server ns-0, after 120.0 s; name server ns-1, after 0.0 s",
        "converged": "kill-1 start 0.2 s",
        "p value": "0.1235",
        "formula": "E + S",
    }


def test_the_tutorials_command_makes_unknown_a_skipped_test_that_publishers_are_not_red_for(tmp_path: Path) -> None:
    told = re.search(r"sed -i '(.+)' {}", (ROOT / "docs/tutorial/5-ci.md").read_text(encoding="utf-8"))
    assert told is not None
    file = tmp_path / "junit.xml"
    file.write_bytes(junit("smoke", 7, ALL))
    subprocess.run(["sed", "-i", told[1], str(file)], check=True)
    assert [case.get("message") for case in ET.parse(file).iter("skipped")] == ["no broker died"]
    assert not list(ET.parse(file).iter("error"))
