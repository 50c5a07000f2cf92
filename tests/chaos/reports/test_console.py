"""A table is as wide as the terminal, or a paragraph a row where its columns would be cut into single letters."""

from io import StringIO

import pytest
from rich.console import Console

from nemesrv.chaos.proof.selftest import SelftestOutcome, print_outcomes
from nemesrv.chaos.reports.terminal import PIPE_COLUMNS, print_answers, standard_output
from tests.chaos.builder import invalid


def outcome(scenario: str, defect: str | None, *found: str) -> SelftestOutcome:
    return SelftestOutcome(
        scenario=scenario,
        defect=defect,
        meant=frozenset(found),
        found=frozenset(found),
        unknown=frozenset({"availability"}),
        where="runs/selftest/1",
    )


OUTCOMES = [
    outcome("broker-partition", None),
    outcome("name-server-crash-5.x", "name-server-forgets-registrations", "registrations_are_kept"),
]


def shown(width: int) -> list[str]:
    console = Console(file=StringIO(), width=width)
    print_outcomes(console, OUTCOMES)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 180])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(len(line) for line in shown(width)) <= width


def test_where_the_columns_fit_it_is_a_table_and_elsewhere_a_paragraph_a_row() -> None:
    assert any("scenario" in line and "planted defect" in line for line in shown(180))
    narrow = shown(40)
    assert narrow[:3] == ["self-test", "broker-partition", "  planted defect: none (clean twin)"]
    assert "  result: found" in narrow
    assert narrow[-1] == "1 of 1 defects found, 1 of 1 twins clean"


def test_no_word_of_a_narrow_terminal_s_table_is_cut() -> None:
    said = " ".join(" ".join(shown(40)).split())
    assert "name-server-forgets-registrations" in said
    assert "registrations_are_kept" in said


def test_a_pipe_is_as_wide_as_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert standard_output().width == PIPE_COLUMNS
    assert standard_output(120).width == 120
    monkeypatch.setenv("COLUMNS", "40")
    assert standard_output().width == 40
    monkeypatch.setenv("COLUMNS", "wide")
    assert standard_output().width == PIPE_COLUMNS


def test_a_narrow_terminal_gets_the_checks_as_paragraphs_that_fit_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    verdict = invalid("routes_are_true", violations=3, why="three of nine")
    print_answers([verdict], ["a line"])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "routes_are_true" in lines
    assert "  verdict: INVALID" in lines
    assert max(map(len, lines)) <= 40
