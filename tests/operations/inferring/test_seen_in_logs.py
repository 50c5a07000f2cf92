"""What is left of a recorded history is what logs would have said, and nothing that only the harness knows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operations.importing.hand_made import ADDRESSES, Incident
from tests.operations.importing.seen_in_logs import seen_in_logs


def left(incident: Incident, event: str, **about: Any) -> list[dict[str, Any]]:
    return [row for row in seen_in_logs(incident.rows, **about) if row["event"] == event]


@pytest.mark.parametrize("event", ["fault", "phase", "gone", "probe", "verified", "send", "pull", "admin", "clock"])
def test_what_no_log_says_is_gone(event: str) -> None:
    incident = Incident()
    incident.put(50.0, "harness", event, source="broker-a")
    incident.put(51.0, "broker-a", event)
    assert left(incident, event) == []


def test_what_the_run_was_to_do_is_not_told_by_its_first_row() -> None:
    incident = Incident()
    incident.rows[0]["value"] = {"profile": "4.9", "timeline": ["kill"], "scenario": "secret", "seed": 3}
    (begin,) = left(incident, "run_begin")
    assert begin["value"] == {"profile": "4.9", "imported": True}


def test_lines_of_servers_are_as_exact_as_a_second() -> None:
    incident = Incident()
    incident.drops("ns-0", "broker-a", 210.123, "closed")
    (drop,) = left(incident, "broker_dropped")
    assert (drop["time_ms"], drop["value"]) == (210_500.0, {"reason": "closed", "learnt": "log"})


def test_a_5x_name_server_says_nothing_of_who_it_has_already() -> None:
    for profile, expected in (("4.9", 2), ("5.x", 1)):
        incident = Incident(profile=profile)
        incident.arrives("broker-a", "ns-0", 10.0)
        incident.arrives("broker-a", "ns-0", 40.0)
        assert len(left(incident, "registration")) == expected


def test_a_5x_name_server_says_of_who_comes_back_that_it_is_new() -> None:
    incident = Incident(profile="5.x")
    incident.arrives("broker-a", "ns-0", 10.0)
    incident.drops("ns-0", "broker-a", 20.0, "closed")
    incident.arrives("broker-a", "ns-0", 40.0)
    assert len(left(incident, "registration")) == 2


def test_a_log_that_is_missing_or_ends_leaves_nothing_behind() -> None:
    incident = Incident()
    incident.well("broker-a")
    assert {row["node"] for row in left(incident, "registration", missing=["ns-0"])} == {"ns-1"}
    assert max(row["time_ms"] for row in left(incident, "registration", ends={"ns-0": 1.0})) > 1000
    assert {row["node"] for row in left(incident, "registration", ends={"ns-0": 1.0})} == {"ns-1"}
    assert ADDRESSES["ns-0"] in {row.get("address") for row in left(incident, "node", missing=["ns-0"])}
