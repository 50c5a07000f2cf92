"""What is no fault of a link or of one process: hosts that stood still, moved addresses, orders of stops, visits."""

from collections.abc import Iterable

import pytest

from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.inferring.telling import Episode
from tests.operations.importing.hand_made import ADDRESSES, Incident

SLEPT = 300.0, 900.0


def told(incident: Incident) -> list[Episode]:
    return episodes_of(incident.rows).episodes


def faults(incident: Incident) -> list[str]:
    return [one.hypotheses[0].fault for one in told(incident)]


def scans(incident: Incident, server: str, but: Iterable[tuple[float, float]] = (), every_s: float = 5.0) -> None:
    """A 5.x NameServer's line at each scan."""
    at_s = 3.0
    while at_s < incident.until_s:
        if not any(lo <= at_s < hi for lo, hi in but):
            incident.put(at_s, server, "scheduled_task", f="scanNotActiveBroker")
        at_s += every_s


def slept(*, wakes_late: bool = True) -> Incident:
    """One host with all of ns-0, broker-a and broker-b asleep from 300 to 900 s."""
    incident = Incident(1500.0, servers=("ns-0",), profile="5.x")
    incident.well("broker-a", "broker-b", but=[SLEPT])
    scans(incident, "ns-0", but=[SLEPT])
    if wakes_late:
        for broker in ("broker-a", "broker-b"):
            incident.drops("ns-0", broker, 903.0, "expired")
    return incident


def test_a_silence_that_all_writers_share_is_one_event_of_the_host() -> None:
    (one,) = told(slept())
    first, second = one.hypotheses
    assert (first.fault, first.certainty) == ("pause_host", "likely")
    assert "the host of broker-a, broker-b and ns-0 stood still" in first.sentence
    assert "ns-0 expired brokers when it went on" in first.sentence
    assert one.from_ms == pytest.approx(300_000, abs=30_000)
    assert one.to_ms == pytest.approx(900_000, abs=30_000)
    assert second.fault == "clock_step"
    assert [entry["do"] for entry in first.timeline] == ["pause", "resume"]


def test_a_broker_that_stood_still_alone_is_no_event_of_its_host() -> None:
    incident = Incident(1500.0, servers=("ns-0",), profile="5.x")
    incident.well("broker-a", but=[SLEPT])
    incident.well("broker-b")
    scans(incident, "ns-0")
    incident.drops("ns-0", "broker-a", 420.0, "expired")
    assert "pause_host" not in faults(incident)
    assert told(incident)[0].hypotheses[0].fault == "pause"


def test_a_host_that_was_started_again_did_not_stand_still() -> None:
    incident = slept()
    for node in ("ns-0", "broker-a", "broker-b"):
        incident.put(899.0, node, "started", address=ADDRESSES[node])
    assert "pause_host" not in faults(incident)


def test_timers_that_stood_still_go_on_in_another_phase() -> None:
    incident = Incident(1500.0, servers=("ns-0",), profile="5.x")
    early = [at for at in incident.ticks("broker-a") if at < SLEPT[0]]
    incident.registers("broker-a", at=[*early, *(at + 611.0 for at in early)])
    incident.well("broker-b", but=[SLEPT])
    scans(incident, "ns-0", but=[SLEPT])
    incident.drops("ns-0", "broker-a", 903.0, "expired")
    says = [one["says"] for one in told(incident)[0].hypotheses[0].speaks_for]
    assert any("its timers had stood still" in one and one.startswith("broker-a") for one in says)


def test_a_process_that_stood_still_alone_has_another_phase_since_too() -> None:
    incident = Incident(900.0)
    incident.well("broker-b")
    early = [at for at in incident.ticks("broker-a") if at < 200.0]
    incident.registers("broker-a", at=[*early, *(at + 311.0 for at in early), *(at + 491.0 for at in early)])
    incident.all_drop("broker-a", 312.0, "expired")
    one = next(one.hypotheses[0] for one in told(incident) if one.hypotheses[0].fault == "pause")
    assert any("its timers had stood still" in said["says"] for said in one.speaks_for)


MOVED = "10.0.2.77:10911"


def moved(*, boots: bool, dropped: bool = True, goes_on: bool = False) -> Incident:
    """broker-a registers from another address from 400 s on."""
    incident = Incident(900.0)
    incident.well("broker-b")
    incident.well("broker-a", but=() if goes_on else [(300.0, 900.0)])
    if dropped:
        incident.all_drop("broker-a", 310.0, "closed")
    for server in incident.servers:
        for at_s in range(400, 900, 30):
            incident.arrives("broker-a", server, float(at_s), address=MOVED)
    if boots:
        incident.put(399.0, "broker-a", "started", address=MOVED)
    return incident


def of_broker_a(incident: Incident) -> tuple[str, str]:
    found = [one.hypotheses[0] for one in told(incident)]
    first = next(one for one in found if one.fault in ("register", "address_changed"))
    return first.fault, first.certainty


def test_one_life_at_one_address_and_then_another_life_at_another_is_a_changed_address() -> None:
    assert of_broker_a(moved(boots=True)) == ("address_changed", "certain")
    assert of_broker_a(moved(boots=False)) == ("address_changed", "likely")


def test_two_that_register_by_turns_are_two_brokers_of_one_name() -> None:
    assert of_broker_a(moved(boots=False, dropped=False, goes_on=True)) == ("register", "certain")


def test_name_servers_that_are_stopped_before_their_brokers_are_one_act() -> None:
    incident = Incident(400.0)
    incident.well("broker-a", "broker-b", but=[(300.0, 400.0)])
    for at_s, node in ((300.0, "ns-0"), (301.0, "ns-1"), (340.0, "broker-a"), (345.0, "broker-b")):
        incident.put(at_s, node, "stopped")
    for broker in ("broker-a", "broker-b"):
        for server in incident.servers:
            incident.fails(broker, server, 310.0, how="refused")
    (one,) = told(incident)
    assert one.hypotheses[0].sentence.startswith("the NameServers (ns-0, ns-1) were stopped at 301.0 s, before")
    assert [entry["nodes"] for entry in one.hypotheses[0].timeline] == [["ns-0"], ["ns-1"], ["broker-a"], ["broker-b"]]


def test_a_client_that_came_and_went_is_no_fault() -> None:
    incident = Incident(900.0)
    incident.well("broker-a", "broker-b")
    about = {"address": "10.0.9.9:40001", "value": {"client": "10.0.9.9@1"}}
    incident.node("client-0", "producer", address="10.0.9.9:40001")
    incident.put(200.0, "broker-a", "client_heartbeat", **about)
    incident.put(230.0, "broker-a", "client_heartbeat", **about)
    incident.put(240.0, "broker-a", "client_gone", **about, f="closed")
    assert faults(incident) == []
