"""What a person reads at the end, at any width of the terminal, and the verdict of the whole."""

import io
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.result import ConformResult, hindered, show, summary, write
from nemesrv.conformance.rule_verdicts import RuleVerdict
from nemesrv.conformance.rules import RULES, LeftOut, Measured
from nemesrv.conformance.stand import ConformPlan
from nemesrv.conformance.subject import Program
from nemesrv.conformance.trial import Trial


def judged(
    rule: str, measured: Measured | LeftOut, expected: str | float | None, verdict: Validity | None
) -> RuleVerdict:
    return RuleVerdict(rule=RULES[rule], measured=measured, expected=expected, verdict=verdict)


GOOD = judged("sticky", Measured(value="kept", count=15), "kept", Validity.VALID)
BAD = judged("answer_timeout_s", Measured(value=5.01, count=3, interval=(5.0, 5.02)), 3.0, Validity.INVALID)
OPEN = judged("start", Measured.undecided("first choices 1 / 7 / 2: too few starts", 10), "random", Validity.UNKNOWN)
ONLY = judged("storm", Measured(value=10.0, count=113), None, None)
NOT_THERE = judged("list_change_s", LeftOut(why="not run: list_changes"), None, None)


def result(*rules: RuleVerdict, profile: str | None = "java-5.3", **trial: object) -> ConformResult:
    plan = ConformPlan(program=Program(("./my-client", "-v")))
    return ConformResult(plan=plan, trial=Trial(**trial), rules=rules, profile=profile)  # type: ignore[arg-type]


def shown(made: ConformResult, columns: int) -> str:
    out = io.StringIO()
    show(made, Console(file=out, width=columns, highlight=False))
    return out.getvalue()


@pytest.mark.parametrize("columns", [40, 72, 80, 120])
def test_everything_is_told_and_no_line_is_wider_than_the_terminal(columns: int) -> None:
    made = result(GOOD, BAD, OPEN, ONLY, NOT_THERE, notes=("in `quiet` the program ended by itself (exit 1)",))
    text = shown(made, columns)
    assert max(map(len, text.splitlines())) <= columns
    words = " ".join(text.replace("│", " ").split())
    for each in ("sticky", "kept", "answer_timeout_s", "5.01 s (5 to 5.02)", "INVALID", "113", "ended by itself"):
        assert each in words, each
    for part in ("first choices", "too few starts", "left out: list_change_s"):
        assert all(word in words for word in part.split()), part


@pytest.mark.parametrize("columns", [72, 80, 120, 200])
def test_each_of_several_clients_is_named_whole_and_what_the_program_does_is_no_clients(columns: int) -> None:
    names = ("nemesrv-conform", "nemesrv-conform-a", "nemesrv-conform-b", "RMQ_SYS_TRACE_TOPIC")
    made = result(replace(GOOD, clients=dict.fromkeys(names, GOOD)), ONLY)
    lines = shown(made, columns).splitlines()
    text = "\n".join(lines)
    assert all(name in text.replace(":", " ").split() for name in names)
    if "│" in text:
        (row,) = (line.split("│")[2:-4] for line in lines if "storm" in line)
        assert [cell.strip() for cell in row] == ["", "", "", "", "10 look-ups"]
    else:
        assert "  program: 10 look-ups" in text


@pytest.mark.parametrize(
    ("rules", "verdict", "status"),
    [
        ((GOOD, ONLY), Validity.VALID, 0),
        ((GOOD, BAD, OPEN), Validity.INVALID, 1),
        ((GOOD, OPEN), Validity.UNKNOWN, 3),
        ((ONLY,), Validity.UNKNOWN, 3),
        ((NOT_THERE,), Validity.UNKNOWN, 3),
        ((), Validity.UNKNOWN, 3),
    ],
)
def test_the_whole_is_as_bad_as_its_worst_rule_and_nothing_examined_is_unknown(
    rules: Sequence[RuleVerdict], verdict: Validity | None, status: int
) -> None:
    made = result(*rules)
    assert (made.verdict, made.exit_status) == (verdict, status)


def test_a_ci_jobs_page_has_a_row_a_rule_that_is_not_valid_and_one_line_for_the_others() -> None:
    lines = summary(result(GOOD, BAD, OPEN, ONLY, NOT_THERE)).splitlines()
    assert lines[0].endswith("my-client compared with java-5.3: INVALID")
    rows = {line.split("`")[1]: line for line in lines if line.startswith("| `")}
    assert [*rows] == ["answer_timeout_s", "start", "storm"]
    assert "| 5.01 s (5 to 5.02) | 3 | 3 s |" in rows["answer_timeout_s"]
    assert "INVALID |" in rows["answer_timeout_s"]
    assert "| measured |" in rows["storm"]
    assert "- 1 VALID: `sticky`." in lines
    assert "- differs from java-5.3 in 1 rule: answer_timeout_s" in lines
    assert "- left out: list_change_s (not run: list_changes)" in lines
    counts = "1 VALID, 1 INVALID, 1 UNKNOWN, 1 without an expected value"
    assert lines[-2] == f"- measured: 4 of the {len(RULES)} rules of conform: {counts}"
    assert summary(result(ONLY, profile=None)).startswith("### my-client: measured\n")


def test_junit_has_the_measured_and_the_expected_value_of_a_rule_that_is_not_valid(tmp_path: Path) -> None:
    late = replace(BAD, measured=replace(BAD.measured, why="late"), verdict=Validity.UNKNOWN)
    both = "measured: 5.01 s (5 to 5.02); java-5.3 expects: 3 s"
    for rule, message in ((BAD, f"{both} (3 examined)"), (late, f"late; {both}")):
        folder = RunFolder.create("conform", tmp_path / str(rule.verdict))
        write(result(rule), folder)
        (case,) = ET.parse(folder.junit_file).getroot()[0].findall("testcase")
        assert case[0].get("message") == message


def test_rules_of_the_profile_that_were_not_asked_for_are_told_as_not_measured() -> None:
    made = replace(result(GOOD), expected=("sticky", "start", "next"))
    assert "rules of java-5.3 that were not measured, because --rules does not name them: 2\n" in shown(made, 120)


def test_a_right_choice_says_how_small_a_deviation_so_many_starts_would_have_shown() -> None:
    why = "so many starts find one chosen 45 points too often"
    found = judged("start", Measured(value="random", count=60, p=0.15, power=0.99, why=why), "random", Validity.VALID)
    assert why in " ".join(shown(result(found), 120).replace("│", " ").split())


def test_without_a_profile_what_was_measured_is_no_verdict() -> None:
    made = result(ONLY, profile=None)
    assert (made.verdict, made.exit_status) == (None, 0)


def test_a_program_that_cannot_be_examined_is_unknown_in_every_rule() -> None:
    made = result(*hindered([NOT_THERE, GOOD], "it ended (exit 1)"), hindered="it ended (exit 1)")
    assert [each.verdict for each in made.rules] == [Validity.UNKNOWN] * 2
    assert made.exit_status == 3
    assert made.to_json()["left_out"] == {}
