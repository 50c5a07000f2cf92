"""docs/clients.md says of each client what was measured, what deviates, and what was not decided."""

import json
from pathlib import Path
from typing import Any

import pytest

from nemesrv.conformance.rule_verdicts import names
from nemesrv.conformance.rules import RULES
from tests.rows_of_json import rows_of_json

from .catalogue import CLIENTS, DRIVERS
from .page import cell, keep, measured, render
from .upstream import CONCERNS, concerns


def rule(name: str = "poll_period_s", value: object = 30.0, verdict: str = "VALID", **more: Any) -> dict[str, Any]:
    entry = {
        "rule": name,
        "measured": value,
        "count": 8,
        "expected": 30.0,
        "verdict": verdict,
        "unit": RULES[name].unit,
    }
    return {**entry, "interval": None, "why": "", "examples": [], **more}


def found(*rules: dict[str, Any]) -> dict[str, Any]:
    versions = {"nemesrv": "0.1.0"}
    same = {"profile": "go", "verdict": "VALID", "left_out": {}, "name_servers": 3, "brokers": 2, "starts": 60}
    notes = ["in `closed` the program ended by itself (exit 1); its last output: at /home/somebody"]
    return {**same, "late_ms": 120.0, "notes": notes, "versions": versions, "rules": list(rules), "seed": 0}


def shown(page: str, rule: str) -> str:
    """The cell of the page's one client in the column of this rule."""
    lines = page.splitlines()
    (head,) = (at for at, line in enumerate(lines) if line.startswith("| client | `") and f"| `{rule}` |" in line)
    columns, cells = (line.strip("|").split("|") for line in (lines[head], lines[head + 2]))
    return cells[columns.index(f" `{rule}` ")].strip()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (rule(), "30 s (8)"),
        (rule(value=2.996), "3 s (8)"),
        (rule("list_order", "shuffled", count=1_200), "shuffled (1,200)"),
        (rule(value=21.0, verdict="INVALID"), "**21 s (8)**"),
        (rule(value=None, verdict="UNKNOWN", why="too few"), "? (8)"),
    ],
)
def test_a_cell_has_what_was_measured_with_its_count_and_is_bold_where_it_deviates(entry: Any, text: str) -> None:
    assert cell(entry) == text


def test_a_rule_that_was_left_out_is_told_from_one_that_is_newer_than_the_run() -> None:
    client = {**keep(found(rule("storm", 4.0)), "2026-11-22"), "left_out": {"start": "not run: starts"}}
    page = render({"go-2.1.2": client})
    assert [shown(page, name) for name in ("storm", "start", "sticky")] == ["4 look-ups (8)", "–", ""]


def test_clients_of_a_language_share_a_row_where_words_and_expected_numbers_are_equal() -> None:
    of = {"java-4.9.3": 29.0, "java-4.9.4": 30.0, "java-4.9.5": 31.0, "java-4.9.7": 32.0}
    java = {name: {**keep(found(rule(value=value)), "2026-11-22"), "profile": "java-4.9"} for name, value in of.items()}
    others = {
        "cpp-1.x": {**java["java-4.9.3"], "profile": "cpp-1"},
        "go-2.1.2": keep(found(rule(value=21.0)), "2026-11-22"),
    }
    page = render({**java, **others})
    assert "| java-4.9.3 to java-4.9.5, java-4.9.7 | 29 to 32 s (32) |" in page
    assert "| cpp-1.x | 29 s (8) |" in page
    apart = rule(value=21.0, verdict="INVALID")
    assert "| java-4.9.3 | **21 s (8)** |" in render({**java, "java-4.9.3": {**java["java-4.9.3"], "rules": [apart]}})


def test_first_choices_are_kept_and_shown() -> None:
    start = rule("start", "random", examples=[{"first choices": [20, 16, 24]}])
    kept = keep(found(start), "2026-11-22")
    assert cell(kept["rules"][0]) == "random: 20/16/24 (8)"
    assert "examples" not in kept["rules"][0]


def test_the_page_lists_deviations_and_what_was_not_decided_with_the_reason() -> None:
    wrong = rule(value=21.0, verdict="INVALID")
    unsure = rule("start", None, "UNKNOWN", why="only 3 starts")
    text = render({"go-2.1.2": keep(found(wrong, unsure), "2026-11-22")})
    deviations, _, rest = text.partition("## Deviations")[2].partition("## Not decided")
    assert "| go-2.1.2 | `poll_period_s` | 21 s (8) | 30 |" in deviations
    assert "| `start` | ? (8) | 30 | only 3 starts |" in rest
    assert shown(text, "poll_period_s") == "**21 s (8)**"
    assert "| 60 starts" in text
    assert "| go-2.1.2 | in `closed` the program ended by itself (exit 1) |" in text
    assert "somebody" not in text


def test_the_page_says_whether_the_run_before_found_the_same() -> None:
    before = {
        "date": "2026-11-21",
        "rules": 37,
        "agree": 36,
        "not the same": [],
        "not decided": ["storm: 7 and nothing"],
    }
    kept = keep(found(rule()), "2026-11-22", {**before, "not the same": ["sticky: kept and moves: not the same"]})
    text = render({"go-2.1.2": kept})
    assert "| VALID | 36 of 37 rules |" in text
    assert "| go-2.1.2 | `sticky`: kept and moves | not the same |\n" in text
    assert "| go-2.1.2 | `storm`: 7 and nothing |  |\n" in text
    assert "## Two runs\n\nAll agree." in render({"node-3.12.0": keep(found(rule()), "2026-11-22", None)})


def test_a_client_that_was_not_measured_is_told_so() -> None:
    assert render({}).count("not measured yet") == len(CLIENTS)


def test_every_client_has_its_driver_and_a_profile_that_there_is() -> None:
    for client in CLIENTS.values():
        assert (DRIVERS / client.driver).is_file(), client.name
        assert client.profile in names(), client.name


def test_what_is_kept_is_of_rules_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "go-2.1.2.json").write_text(json.dumps(keep(found(rule()), "2026-11-22")), encoding="utf-8")
    assert list(measured(tmp_path)) == ["go-2.1.2"]
    for name, of in measured().items():
        unknown = {each["rule"] for each in of["rules"]} - set(RULES)
        assert not unknown, f"{name}: measure it again, `make clients CLIENTS={name}`"


def test_upstream_is_told_what_was_measured_and_nothing_else() -> None:
    retries = rule("send_retries", "the same broker", why="18 sends, each at most 4 attempts")
    lost = rule("sends_lost", 0.13, why="91 of 676, as the program tells")
    (said,) = (each for each in concerns({"go-2.1.2": keep(found(retries, lost), "2026-11-22")}) if "Go" in each)
    assert said.endswith("(`send_retries`: 18 sends, each at most 4 attempts; `sends_lost`: 91 of 676).")
    fine = {"go-2.1.2": keep(found(rule("send_retries", "another broker")), "2026-11-22")}
    assert [each for each in concerns(fine) if "Go" in each] == []


def test_every_concern_is_a_value_that_its_rule_can_have() -> None:
    for concern in CONCERNS:
        assert set(concern.values) <= set(RULES[concern.rule].words)
        assert set(concern.beside) <= set(RULES)


def test_what_is_kept_has_a_line_a_rule() -> None:
    kept = {"late_ms": 1.5, "left_out": {}, "rules": [{"rule": "start", "first choices": [24, 36]}, {"rule": "next"}]}
    assert rows_of_json(kept, levels=2) == (
        '{\n "late_ms": 1.5,\n "left_out": {},\n "rules": [\n'
        '  {"rule": "start", "first choices": [24, 36]},\n  {"rule": "next"}\n ]\n}\n'
    )
