"""The Markdown that a CI server shows on the page of a job."""

from pathlib import Path

from nemesrv.chaos.reports.answers import answers
from nemesrv.chaos.reports.ci import append, replay_line, summary
from nemesrv.chaos.verdict import Example, Verdict
from tests.chaos.builder import invalid, valid

VALID = valid(
    "routes_converge", examined=1234, measured={"max_ms": 10_600.0}, allowed={"bound_ms": 33_000.0, "formula": "R + C"}
)
INVALID = invalid(
    "dead_brokers_avoided",
    examined=4,
    why="1 of 4 clients | used a <lost> broker",
    allowed={"bound_ms": 33_000.0, "formula": "R + C"},
    examples=(Example(who="producer-0", from_ms=61_000.0),),
)
UNKNOWN = Verdict.nothing_examined("no fault of the scenario was seen", name="exercised")


def said(*verdicts: Verdict, name: str = "smoke", again: str = "again") -> str:
    return summary(answers(verdicts, None, name, "seed 7, profile 4.9"), verdicts, again)


def test_the_summary_has_a_line_for_each_group_and_the_line_that_repeats_the_run() -> None:
    text = said(VALID, again=replay_line("runs/smoke/1/scenario.yaml", 7))
    assert text.startswith("### ✅ smoke: VALID\n\nSeed 7, profile 4.9. ")
    assert "Repeat it: `nemesrv run runs/smoke/1/scenario.yaml --seed 7`\n" in text
    assert "| routes | ✅ VALID | 1 VALID |" in text
    assert "routes_converge" not in text


def test_what_is_wrong_stands_below_its_group_with_its_letters_and_its_counterexamples() -> None:
    text = said(VALID, INVALID, UNKNOWN)
    assert text.startswith("### ❌ smoke: INVALID\n\n**producer-0, at 61.0 s.**")
    assert "| client routes | ❌ INVALID | 1 INVALID |" in text
    assert "| `dead_brokers_avoided` | ❌ INVALID | 4 | 1 |" in text
    assert "| 33.0 s (R + C) |" in text
    assert "R: a broker registers every registerNameServerPeriod" in text
    assert "**`dead_brokers_avoided`** producer-0, at 61.0 s\n- producer-0, at 61.0 s" in text
    assert "| `exercised` | ❔ UNKNOWN | 0 | 0 |  | no fault of the scenario was seen |" in text


def test_nothing_that_a_run_says_ends_its_cell_or_begins_a_tag() -> None:
    wild = invalid("order_kept", examined=1, why="a | and a <b>")
    assert "**`order_kept`** a \\| and a &lt;b>" in said(wild)


def test_several_runs_of_a_job_share_one_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        append(tmp_path / "summary.md", said(VALID, name=name))
    assert [line for line in (tmp_path / "summary.md").read_text().splitlines() if line.startswith("###")] == [
        "### ✅ one: VALID",
        "### ✅ two: VALID",
    ]
