"""The catalogue of events has what the schema has, and what the code records."""

import ast
from pathlib import Path

from nemesrv.chaos.history.schema import EVENTS, SCHEMA

ROOT = Path(__file__).parents[3]


def test_the_catalogue_names_only_columns_that_exist_and_every_one_of_them() -> None:
    used = {column for event in EVENTS.values() for column in event.columns}
    stamped = {"time_ms", "seq", "node", "role", "incarnation", "event"}
    assert {column.name for column in SCHEMA} == stamped | used


def recorded() -> dict[str, set[str]]:
    """event → the columns that the code fills, as far as the calls say them by name."""
    found: dict[str, set[str]] = {}
    for path in (path for folder in ("actors", "clients", "chaos") for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(text)) if "record(" in text else ():
            if isinstance(call, ast.Call) and len(call.args) == 1:
                event = call.args[0]
                if (
                    isinstance(event, ast.Constant)
                    and isinstance(event.value, str)
                    and ast.unparse(call.func).endswith("record")
                ):
                    found.setdefault(event.value, set()).update(k.arg for k in call.keywords if k.arg is not None)
    return found


def test_whatever_the_code_records_is_in_the_catalogue() -> None:
    calls = recorded()
    assert len(calls) > 20
    assert {event: columns - set(EVENTS[event].columns) for event, columns in calls.items()} == {
        event: set() for event in calls
    }
