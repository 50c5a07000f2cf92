"""A list is as wide as the terminal: columns, the last cell wrapped beside them, or a paragraph a row."""

import pytest

from nemesrv.chaos.reports.text import rows_fitting, width_of_output

ROWS = (
    ("ns-0", "V4_9_8", "UTC+08:00 (inferred)", "collected/ns-0/namesrv.log and 3 more"),
    ("broker-a", "V5_3_3", "", "collected/broker-a/broker.log"),
)
WORDS = [word for row in ROWS for cell in row for word in cell.split()]


def shown(width: int | None) -> list[str]:
    return list(rows_fitting(ROWS, width, "  "))


@pytest.mark.parametrize("width", [34, 40, 60, 73, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(width: int) -> None:
    assert max(map(len, shown(width))) <= width
    assert [word for line in shown(width) for word in line.split()] == WORDS


def test_where_columns_fit_they_are_aligned_and_in_a_pipe_a_row_is_a_line() -> None:
    lines = ["  ns-0      V4_9_8  UTC+08:00 (inferred)  " + ROWS[0][3], "  broker-a  V5_3_3" + " " * 24 + ROWS[1][3]]
    assert shown(len(lines[0])) == shown(None) == lines


def test_a_last_cell_that_is_too_long_is_wrapped_in_its_column() -> None:
    first, more, *_ = shown(73)
    assert first.endswith("  collected/ns-0/namesrv.log and")
    assert more == " " * 42 + "3 more"


def test_where_they_do_not_fit_a_row_is_a_paragraph() -> None:
    narrow = ["  broker-a", "    V5_3_3", "    collected/broker-a/broker.log"]
    assert shown(40)[-3:] == narrow


def test_a_pipe_is_as_wide_as_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width_of_output() is None
    monkeypatch.setenv("COLUMNS", "40")
    assert width_of_output() == 40
