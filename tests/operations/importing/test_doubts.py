"""What is certain is so by logs whose clocks are known, and of NameServers that are known."""

from collections.abc import Callable

import pytest

from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.inferring.telling import Hypothesis
from tests.operations.importing.hand_made import ADDRESSES, Incident, killed

SERVERS = ["ns-0", "ns-1", "broker-a", "broker-b"]


def cut() -> Incident:
    """One link is refused, its channel ended, while both ends write on."""
    incident = Incident()
    incident.well("broker-b")
    incident.well("broker-a", with_=["ns-1"])
    incident.well("broker-a", with_=["ns-0"], but=[(200.0, 300.0)])
    incident.drops("ns-0", "broker-a", 201.0, "closed")
    incident.channel(201.0, "broker-a", "close", ADDRESSES["ns-0"])
    for at in incident.ticks("broker-a", 200.0, 300.0):
        incident.fails("broker-a", "ns-0", at, how="refused")
    return incident


def wiped() -> Incident:
    incident = Incident()
    incident.well("broker-a", "broker-b")
    incident.put(100.0, "ns-0", "write_perm", broker_name="broker-a", value={"wiped": 3})
    return incident


def list_changed() -> Incident:
    incident = Incident()
    incident.well("broker-a", "broker-b")
    incident.put(3.0, "broker-a", "name_server_list", value=[ADDRESSES["ns-0"], ADDRESSES["ns-1"]])
    incident.put(300.0, "broker-a", "name_server_list", value=[ADDRESSES["ns-1"]])
    return incident


MADE = [killed, cut, wiped, list_changed]


def first(incident: Incident, **doubts: list[str]) -> Hypothesis:
    begin = incident.rows[0]
    begin["value"] = {**begin["value"], "doubts": doubts}
    return episodes_of(incident.rows).episodes[0].hypotheses[0]


@pytest.mark.parametrize("made", MADE)
def test_where_clocks_are_known_what_was_certain_is(made: Callable[[], Incident]) -> None:
    assert first(made()).certainty == "certain"
    assert first(made(), clocks=["producer-0"], periods=["producer-0"], addresses=["ns-9"]).certainty == "certain"


@pytest.mark.parametrize("made", MADE)
def test_where_nobody_knows_the_clocks_of_who_says_it_it_is_likely(made: Callable[[], Incident]) -> None:
    one = first(made(), clocks=SERVERS)
    assert (one.certainty, one.fault) == ("likely", first(made()).fault)


def test_one_unknown_clock_among_several_that_say_enough_takes_nothing_away() -> None:
    assert first(killed(), clocks=["ns-1"]).certainty == "certain"


def test_what_one_log_says_alone_by_a_clock_that_only_recurrences_tell_is_likely() -> None:
    assert first(wiped(), periods=["ns-0"]).certainty == "likely"
    assert first(wiped(), periods=["ns-1"]).certainty == "certain"
    assert first(killed(), periods=["ns-0", "ns-1"]).certainty == "certain", "three logs say it"


def test_a_fault_at_a_name_server_whose_address_is_a_guess_is_likely() -> None:
    assert first(cut(), addresses=["ns-0"]).certainty == "likely"
    assert first(list_changed(), addresses=["ns-1"]).certainty == "likely"
    assert first(wiped(), addresses=["ns-0"]).certainty == "certain", "its own log says it, whatever its address"
