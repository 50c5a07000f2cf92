"""The history hears when a broker is isolated, for how long, and when it is selected again."""

from typing import Any

from nemesrv.clients.producer.fault_strategy import IsolationRecord


def recorder() -> tuple[IsolationRecord, list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = []

    def record(_: str, /, **fields: Any) -> None:
        rows.append((fields["f"], fields["broker_name"], (fields.get("value") or {}).get("isolation_ms")))

    return IsolationRecord(record), rows


def test_an_isolation_and_the_first_selection_after_it_are_recorded() -> None:
    isolations, rows = recorder()
    isolations.selected("broker-a")
    isolations.noted("broker-a", 20, 0, failed=False)
    isolations.noted("broker-a", 600, 30_000, failed=False)
    isolations.selected("broker-b")
    isolations.selected("broker-a")
    isolations.selected("broker-a")
    assert rows == [("isolated", "broker-a", 30_000), ("selected", "broker-a", None)]


def test_the_good_attempt_that_ends_an_isolation_is_recorded_and_later_ones_are_not() -> None:
    isolations, rows = recorder()
    isolations.noted("broker-a", 600, 30_000, failed=False)
    isolations.noted("broker-a", 20, 0, failed=False)
    isolations.noted("broker-a", 20, 0, failed=False)
    assert rows == [("isolated", "broker-a", 30_000), ("isolated", "broker-a", 0)]
