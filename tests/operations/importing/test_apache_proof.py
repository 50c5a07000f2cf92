"""What a run on Apache's servers recorded is put so that a log can be held against it."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.scenarios.loading import parse
from tests.interop.conftest import need
from tests.interop.jars import Jars

from .apache_incidents import SCENARIOS
from .apache_proof import compared, ran, whole
from .truth import transitions


def row(seq: int, time_ms: float, event: str) -> dict[str, Any]:
    own = {
        "node": "ns-0",
        "role": "name_server",
        "broker_name": "broker-a",
        "address": "10.0.2.1:10911",
        "code": 0,
        "value": None,
    }
    return {**own, "seq": seq, "time_ms": time_ms, "event": event}


def told(*rows: dict[str, Any]) -> list[tuple[float, str]]:
    return [(round(one.at_ms), one.what) for one in transitions(whole(rows))]


def test_who_is_dropped_twice_came_in_between() -> None:
    rows = [row(1, 10, "registration"), row(2, 500, "broker_dropped"), row(3, 900, "broker_dropped")]
    assert told(*rows) == [(10, "came"), (500, "lost"), (900, "came"), (900, "lost")]


def test_a_registration_that_was_recorded_before_a_drop_came_before_it() -> None:
    rows = [row(1, 10, "registration"), row(2, 500, "broker_dropped"), row(4, 900, "broker_dropped")]
    assert told(*rows, row(3, 905, "registration"), row(5, 1400, "registration")) == [
        (10, "came"),
        (500, "lost"),
        (900, "came"),
        (900, "lost"),
        (1400, "came"),
    ]


def test_an_address_that_another_has_replaced_is_not_dropped() -> None:
    claim = {"address": "10.9.9.9:10911"}
    rows = [row(1, 10, "registration"), row(2, 100, "registration") | claim, row(3, 130, "registration")]
    gone = [row(4, 160, "broker_dropped") | claim, row(5, 161, "broker_dropped")]
    assert told(*rows, *gone) == [(10, "came"), (100, "came"), (161, "lost")]


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_incident_is_one_fault_of_apaches_servers_and_clients(name: str) -> None:
    scenario = parse(SCENARIOS[name], file=f"{name}.yaml")
    assert len(scenario.timeline) == 2
    assert str(scenario.cluster.implementation).startswith("apache-")


@pytest.mark.nightly
@pytest.mark.e2e
@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.toxiproxy
@pytest.mark.java
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["one-way-4", "clean-stop-5", "hang-5", "claimed-4"])
def test_the_fault_of_apaches_servers_is_first_by_their_own_logs_and_nothing_wrong_is_certain(
    name: str, tmp_path: Path
) -> None:
    """Four of the sixteen of `python -m tests.operations.importing.apache_proof`."""
    need(Jars.SERVERS_4_9, Jars.SERVERS_5_X)
    if libfaketime.found() is None:
        pytest.skip("libfaketime is not installed (apt-get install faketime)")
    ran(name, tmp_path)
    one = compared(name, tmp_path)
    assert one.named_first, one.told()
    assert not one.wrongly_certain, one.told()
    assert one.transitions >= 8, one.told()
