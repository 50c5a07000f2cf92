"""The Markdown that a CI server shows on the page of a job."""

from __future__ import annotations

from pathlib import Path

from nemesrv.chaos.reports.ci import append, replay_line, summary
from nemesrv.chaos.verdict import Example, Validity, Verdict

VALID = Verdict(
    name="routes_converge",
    verdict=Validity.VALID,
    examined=1234,
    measured={"max_ms": 10_600.0},
    allowed={"bound_ms": 33_000.0, "formula": "R + C"},
)
INVALID = Verdict(
    name="dead_brokers_avoided",
    verdict=Validity.INVALID,
    examined=4,
    violations=1,
    why="1 of 4 clients | used a <lost> broker",
    examples=(Example(who="producer-0", from_ms=61_000.0),),
)
UNKNOWN = Verdict.nothing_examined("exercised", "no fault of the scenario was seen")


def test_the_summary_has_a_row_for_each_check_and_the_line_that_repeats_the_run() -> None:
    text = summary("smoke", 7, "4.9", [VALID], replay_line("runs/smoke/1/scenario.yaml", 7))
    assert text.startswith("### ✅ smoke: VALID\n")
    assert "`nemesrv run runs/smoke/1/scenario.yaml --seed 7`" in text
    assert "| `routes_converge` | ✅ VALID | 1,234 | 0 | equal all the time | 33.0 s (R + C) |" in text


def test_what_is_wrong_stands_below_the_table_with_its_counterexamples() -> None:
    text = summary("smoke", 7, "4.9", [VALID, INVALID, UNKNOWN], "again")
    assert text.startswith("### ❌ smoke: INVALID\n")
    assert "**`dead_brokers_avoided`** 1 of 4 clients \\| used a &lt;lost> broker\n- producer-0: at 61.0 s" in text
    assert "| `exercised` | ❔ UNKNOWN | 0 | 0 |  | no fault of the scenario was seen |" in text


def test_several_runs_of_a_job_share_one_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        append(tmp_path / "summary.md", summary(name, 1, "4.9", [VALID], "again"))
    assert [line for line in (tmp_path / "summary.md").read_text().splitlines() if line.startswith("###")] == [
        "### ✅ one: VALID",
        "### ✅ two: VALID",
    ]
