"""docs/history.md is what the schema and the catalogue of events say."""

from __future__ import annotations

from pathlib import Path

from nemesrv.chaos.history.docs import EVENTS, render, unknown_columns
from nemesrv.chaos.history.recorder import SCHEMA

DOCS = Path(__file__).parents[3] / "docs" / "history.md"


def test_the_page_is_what_the_schema_says() -> None:
    assert DOCS.read_text(encoding="utf-8") == render(), "run: python -m nemesrv.chaos.history.docs > docs/history.md"


def test_the_catalogue_names_every_event_once_and_only_columns_that_exist() -> None:
    assert unknown_columns() == set()
    names = [event.name for event in EVENTS]
    assert len(names) == len(set(names))
    used = {column for event in EVENTS for column in event.columns}
    stamped = {"time_ms", "seq", "node", "role", "incarnation", "event"}
    assert {column.name for column in SCHEMA} - stamped - used == set()
