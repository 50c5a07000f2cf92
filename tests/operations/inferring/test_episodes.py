"""Each fault is told from the lines that it leaves, and not, or not for certain, where a line speaks against it."""

from collections.abc import Sequence
from typing import Any

import pytest

from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.inferring.telling import Episode, Hypothesis
from tests.operations.importing.hand_made import ADDRESSES, NAME_SERVERS, Incident, killed


def only(incident: Incident) -> Episode:
    (episode,) = episodes_of(incident.rows).episodes
    return episode


def first(incident: Incident) -> Hypothesis:
    return only(incident).hypotheses[0]


def told(hypothesis: Hypothesis) -> list[tuple[str, Any]]:
    return [(entry["do"], entry.get("nodes") or entry.get("links")) for entry in hypothesis.timeline]


@pytest.fixture
def incident() -> Incident:
    return Incident()


def test_where_all_is_well_nothing_happened(incident: Incident) -> None:
    incident.well("broker-a", "broker-b")
    assert episodes_of(incident.rows).to_json() == {"episodes": [], "not_seen": []}


def test_of_no_rows_nothing_is_said() -> None:
    assert episodes_of([]).episodes == []


def test_a_process_that_ended_closes_everywhere_and_begins_again() -> None:
    one = first(killed())
    assert (told(one), one.certainty) == ([("kill", ["broker-a"]), ("restart", ["broker-a"])], "certain")
    start, end = one.timeline
    assert abs(start["at_s"] - 210) < 1
    assert abs(end["at_s"] - 296) < 1


def test_a_log_that_goes_on_speaks_against_a_death() -> None:
    incident = killed(boots=False)
    for at in incident.ticks("broker-a", 210.0, 300.0):
        for server in ("ns-0", "ns-1"):
            incident.fails("broker-a", server, at, how="refused")
    one = first(incident)
    assert told(one)[0] == ("cut", ["broker-a <-> name_servers"])
    assert "broker-a <-> name_servers (ns-0, ns-1)" in one.sentence


def test_an_end_without_a_new_start_is_less_than_certain() -> None:
    one = first(killed(boots=False))
    assert (one.fault, one.certainty) == ("kill", "likely")
    assert any("without a start" in against["says"] for against in one.speaks_against)


def test_without_the_log_of_who_may_have_died_nothing_is_certain() -> None:
    incident = killed()
    incident.rows = [row for row in incident.rows if row["node"] != "broker-a"]
    inferred = episodes_of(incident.rows)
    assert inferred.episodes[0].hypotheses[0].fault == "kill"
    assert inferred.episodes[0].hypotheses[0].certainty != "certain"
    assert any("broker-a's own log is not here" in text for text in inferred.not_seen)


def test_who_unregisters_everywhere_was_stopped(incident: Incident) -> None:
    incident.well("broker-b")
    incident.well("broker-a", but=[(200.0, 300.0)])
    incident.all_drop("broker-a", 210.0, "unregistered")
    incident.put(210.0, "broker-a", "stopped")
    incident.put(296.0, "broker-a", "started", address=ADDRESSES["broker-a"])
    one = first(incident)
    assert (told(one), one.certainty) == ([("stop", ["broker-a"]), ("restart", ["broker-a"])], "certain")


def test_a_clean_stop_that_takes_its_time_is_one_though_clients_still_connect_meanwhile(incident: Incident) -> None:
    """Apache's 5.3.3 under load: its listener closed connections and took new ones for 13 s after its leave."""
    incident.node("consumer-0", "consumer")
    incident.well("broker-b")
    incident.well("broker-a", but=[(200.0, 300.0)])
    incident.all_drop("broker-a", 210.0, "unregistered")
    address = ADDRESSES["broker-a"]
    for at in (20.0, 211.0, 214.5, 217.5, 222.0):
        incident.channel(at, "consumer-0", "open", address)
    for at in (210.5, 214.0, 217.0, 221.5, 223.0):
        incident.channel(at, "consumer-0", "close", address)
    incident.put(223.0, "broker-a", "stopped")
    incident.put(296.0, "broker-a", "started", address=address)
    found = episodes_of(incident.rows).episodes
    assert [(told(one.hypotheses[0]), one.hypotheses[0].certainty) for one in found] == [
        ([("stop", ["broker-a"]), ("restart", ["broker-a"])], "certain")
    ]


def test_who_is_unregistered_at_one_name_server_and_lives_on_was_so_by_hand(incident: Incident) -> None:
    incident.well("broker-a", "broker-b")
    incident.drops("ns-0", "broker-a", 210.0, "unregistered")
    one = first(incident)
    assert told(one) == [("unregister", ["ns-0"])]
    assert one.timeline[0]["broker"] == "broker-a"


def parted(how: str = "no_answer", *, until_s: float = 420.0, drop: bool = True) -> Incident:
    """broker-a and ns-0, from 200 s on."""
    incident = Incident()
    incident.well("broker-b")
    incident.well("broker-a", but=[(200.0, until_s)])
    for at in incident.ticks("broker-a", 200.0, until_s):
        incident.registers("broker-a", at=[at], with_=["ns-1"])
        incident.fails("broker-a", "ns-0", at, how=how)
    if drop:
        incident.drops("ns-0", "broker-a", 305.0, "idle")
    return incident


def test_silence_on_one_link_is_a_black_hole_of_it() -> None:
    one = first(parted())
    assert told(one) == [("black_hole", ["broker-a <-> ns-0"]), ("heal", ["broker-a <-> ns-0"])]
    start, end = one.timeline
    assert 184 <= start["at_s"] <= 206
    assert 395 <= end["at_s"] <= 426


def test_what_is_sent_and_does_not_arrive_is_told_of_one_way_as_well() -> None:
    same = [one for one in only(parted()).hypotheses if one.rank == 1]
    assert [one.timeline[0].get("stream") for one in same] == [None, "upstream"]
    assert all(one.certainty != "certain" for one in same)
    assert "a packet capture would" in same[1].speaks_against[-1]["says"]


def test_a_link_whose_name_server_never_drops_the_broker_was_dead_for_one_connection_alone() -> None:
    assert first(parted(drop=False)).fault == "half_open"


def test_dials_without_an_answer_are_lost_packets() -> None:
    assert first(parted("no_dial")).fault == "packet_loss"


def test_refusals_and_a_channel_that_ended_are_a_cut() -> None:
    incident = parted("refused", drop=False)
    incident.drops("ns-0", "broker-a", 204.0, "closed")
    one = first(incident)
    assert (told(one)[0], one.certainty) == (("cut", ["broker-a <-> ns-0"]), "certain")


def test_registrations_that_arrive_while_the_answers_do_not_are_a_fault_of_the_way_back(incident: Incident) -> None:
    incident.well("broker-b")
    incident.well("broker-a", but=[(200.0, 420.0)])
    for at in incident.ticks("broker-a", 200.0, 420.0):
        incident.registers("broker-a", at=[at], with_=["ns-1"])
        incident.arrives("broker-a", "ns-0", at)
        incident.fails("broker-a", "ns-0", at, how="no_answer")
        incident.drops("ns-0", "broker-a", at + 6.0, "closed")
    one = first(incident)
    assert (one.fault, one.timeline[0]["stream"]) == ("black_hole", "downstream")


def refuses_until_it_starts(incident: Incident) -> None:
    """ns-0 refuses registrations from 200 s on, and is started again at 258 s."""
    incident.well("broker-a", "broker-b", but=[(200.0, 260.0)], with_=["ns-0"])
    incident.well("broker-a", "broker-b", with_=["ns-1"])
    for broker in ("broker-a", "broker-b"):
        for at in incident.ticks(broker, 200.0, 260.0):
            incident.fails(broker, "ns-0", at, how="refused")
    incident.put(258.0, "ns-0", "started", address=ADDRESSES["ns-0"])


def test_a_name_server_that_starts_again_empty_was_killed_or_stopped(incident: Incident) -> None:
    refuses_until_it_starts(incident)
    same = [one for one in only(incident).hypotheses if one.rank == 1]
    assert [told(one) for one in same] == [
        [(do, ["ns-0"]), ("restart", ["ns-0"])] for do in ("kill", "stop")
    ]  # fmt: skip


def hung(*, writes: bool) -> Incident:
    """ns-0, from 200 s on: nobody's registrations arrive; if it writes, it gives the brokers up itself."""
    incident = Incident()
    incident.well("broker-a", "broker-b", but=[(200.0, 420.0)], with_=["ns-0"])
    incident.well("broker-a", "broker-b", with_=["ns-1"])
    for broker in ("broker-a", "broker-b"):
        for at in incident.ticks(broker, 200.0, 420.0):
            incident.fails(broker, "ns-0", at, how="no_answer")
        if writes:
            incident.drops("ns-0", broker, incident.ticks(broker, 0.0, 200.0)[-1] + 120.0, "idle")
    return incident


def test_a_name_server_that_writes_meanwhile_did_not_hang() -> None:
    one = first(hung(writes=True))
    assert one.fault in ("black_hole", "packet_loss")
    assert told(one)[0][1] in (["isolate ns-0"], ["brokers <-> ns-0"])


def test_a_name_server_that_writes_nothing_meanwhile_hung() -> None:
    assert told(first(hung(writes=False)))[0] == ("pause", ["ns-0"])


def test_two_name_servers_each_blind_to_another_broker_are_one_fault(incident: Incident) -> None:
    for broker, blind in (("broker-a", "ns-0"), ("broker-b", "ns-1")):
        other = "ns-1" if blind == "ns-0" else "ns-0"
        incident.well(broker, with_=[other])
        incident.well(broker, but=[(200.0, 420.0)], with_=[blind])
        for at in incident.ticks(broker, 200.0, 420.0):
            incident.fails(broker, blind, at, how="no_answer")
        incident.drops(blind, broker, incident.ticks(broker, 0.0, 200.0)[-1] + 120.0, "idle")
    one = first(incident)
    assert told(one)[0] == ("black_hole", ["broker-a <-> ns-0", "broker-b <-> ns-1"])


def test_faults_at_different_times_are_episodes_of_their_own() -> None:
    incident = killed()
    incident.rows = [row for row in incident.rows if not (row["node"] == "broker-b" and row["time_ms"] > 450_000)]
    incident.rows = [
        row for row in incident.rows if not (row.get("broker_name") == "broker-b" and row["time_ms"] > 450_000)
    ]
    incident.all_drop("broker-b", 455.0, "closed")
    assert [one.hypotheses[0].fault for one in episodes_of(incident.rows).episodes] == ["kill", "kill"]


def test_all_expired_at_once_though_they_had_registered_is_a_clock(incident: Incident) -> None:
    incident.well("broker-a", "broker-b")
    for broker in ("broker-a", "broker-b"):
        incident.drops("ns-0", broker, 221.0, "expired")
    assert told(first(incident)) == [("clock_step", ["ns-0"])]


def test_a_wiped_permission_is_told_with_its_return(incident: Incident) -> None:
    incident.well("broker-a", "broker-b")
    incident.put(100.0, "ns-0", "write_perm", broker_name="broker-a", value={"wiped": 3})
    incident.put(160.0, "ns-0", "write_perm", broker_name="broker-a", value={"added": 3})
    one = first(incident)
    assert told(one) == [("wipe_write_perm", ["ns-0"]), ("add_write_perm", ["ns-0"])]
    assert one.certainty == "certain"


def test_a_stranger_under_a_brokers_name_is_told_by_its_address(incident: Incident) -> None:
    incident.well("broker-a", "broker-b")
    for at in (100.0, 130.0, 160.0):
        incident.arrives("broker-a", "ns-0", at, address="10.9.9.9:10911")
    entry = first(incident).timeline[0]
    assert (entry["do"], entry["address"], entry["every_s"]) == ("register", "10.9.9.9:10911", 30)


def test_a_broker_that_its_clients_reach_at_another_address_is_no_stranger(incident: Incident) -> None:
    """As through a proxy or a mapped port: NameServers have one address all the time."""
    elsewhere = "10.7.7.7:30911"
    incident.node("broker-a", "broker", address=elsewhere)
    incident.rows.insert(1, incident.rows.pop())
    incident.well("broker-a", "broker-b")
    for at in incident.ticks("broker-a"):  # by the broker's own log, which does not say as what it registers
        incident.arrives("broker-a", "ns-0", at, address=elsewhere, value={"learnt": "inferred"})
    assert [one.hypotheses[0].fault for one in episodes_of(incident.rows).episodes] == []


def test_a_topic_that_is_gone_while_its_brokers_are_there_was_deleted(incident: Incident) -> None:
    incident.well("broker-a", "broker-b")
    incident.put(100.0, "ns-0", "route", topic="orders", value=None)
    assert told(first(incident)) == [("delete_topic", ["ns-0"])]


def test_a_topic_that_goes_with_its_broker_was_not_deleted() -> None:
    incident = killed()
    incident.put(210.0, "ns-0", "route", topic="orders", value=None)
    assert first(incident).fault == "kill"


def test_a_broker_that_never_speaks_of_a_name_server_has_not_got_it_on_its_list(incident: Incident) -> None:
    incident.well("broker-a")
    incident.well("broker-b", with_=["ns-0"])
    one = first(incident)
    assert (one.fault, one.nodes) == ("part_of_the_list", {"broker-b": {"name_servers": ["ns-0"]}})


def with_clients(*lists: Sequence[str]) -> Incident:
    """A healthy cluster whose clients say these lists of NameServers."""
    incident = Incident()
    incident.well("broker-a", "broker-b")
    for number, listed in enumerate(lists):
        node = f"consumer-{number}"
        incident.node(node, "consumer")
        incident.put(3.0 + number, node, "name_server_list", value=list(listed))
    return incident


BOTH = tuple(NAME_SERVERS.values())


def test_a_client_whose_list_is_not_that_of_the_others_is_told_with_what_it_lacks_and_has() -> None:
    one = first(with_clients(BOTH, (BOTH[0], "10.9.9.9:9876"), BOTH))
    assert one.fault == "own_list"
    assert one.sentence == (
        "consumer-1 has a list of NameServers of its own: it lacks ns-1 and has 10.9.9.9:9876, which no other has"
    )
    assert one.nodes == {"consumer-1": {"name_servers": ["10.9.9.9:9876", "ns-0"]}}


@pytest.mark.parametrize(
    "lists",
    [
        (BOTH, (BOTH[1], BOTH[0]), BOTH),  # in another order
        (BOTH, (BOTH[0],)),  # which of the two is right nobody says
        (BOTH, (BOTH[0], "ns.example.org:9876"), BOTH),  # which may be the other one
        (BOTH, ("10.9.9.9:9876",), BOTH),  # of another cluster, or by another way to the same
        (BOTH, (BOTH[0],), (BOTH[1],)),  # no two agree
    ],
)
def test_no_list_of_its_own_is_told_where_logs_do_not_say_that_it_is_another(lists: Sequence[Sequence[str]]) -> None:
    assert not episodes_of(with_clients(*lists).rows).episodes


def test_a_list_that_changes_in_mid_run_is_told_with_who_is_left(incident: Incident) -> None:
    incident.well("broker-b", "broker-a")
    incident.put(3.0, "broker-a", "name_server_list", value=list(BOTH))
    incident.put(300.0, "broker-a", "name_server_list", value=[BOTH[1]])
    one = first(incident)
    assert (one.fault, one.timeline[0]["name_servers"]) == ("name_server_list", ["ns-1"])


@pytest.mark.parametrize("missing", ["ns-0", "ns-1", "broker-a", "broker-b"])
def test_whichever_log_is_missing_what_did_not_happen_is_not_certain(missing: str) -> None:
    incident = parted()
    incident.rows = [row for row in incident.rows if row["node"] != missing]
    for episode in episodes_of(incident.rows).episodes:
        for one in episode.hypotheses:
            right = one.fault == "black_hole" and told(one)[0][1] == ["broker-a <-> ns-0"]
            assert right or one.certainty != "certain"


def test_each_hypothesis_names_lines_by_file_and_number_where_rows_have_them() -> None:
    incident = killed()
    for number, row in enumerate(incident.rows):
        if row["event"] == "broker_dropped":
            row["value"] = {**row["value"], "learnt": "log", "file": "namesrv.log", "line": number}
    said = only(incident).to_json()["hypotheses"][0]["for"]
    assert {one.get("file") for one in said} == {"namesrv.log", None}


def test_a_death_of_which_one_name_server_says_unregistered_is_no_clean_stop() -> None:
    incident = killed()
    for row in incident.rows:
        if row["event"] == "broker_dropped" and row["node"] == "ns-1":
            row["value"] = {"reason": "unregistered"}  # as 5.x says of a channel that was destroyed, too
    assert first(incident).fault == "kill"


def test_the_topic_by_a_brokers_own_name_goes_with_it_and_nobody_deleted_it(incident: Incident) -> None:
    incident.well("broker-a", "broker-b")
    incident.put(100.0, "ns-0", "route", topic="broker-a", value=None)
    assert episodes_of(incident.rows).episodes == []


def test_how_a_name_server_ended_is_never_certain_without_a_line_of_its_own(incident: Incident) -> None:
    refuses_until_it_starts(incident)
    for broker, at in (("broker-a", 201.0), ("broker-b", 204.0)):  # by clocks that are 3 s apart
        incident.channel(at, broker, "close", ADDRESSES["ns-0"])
    one = first(incident)
    assert one.fault in ("kill", "stop")
    assert one.certainty == "likely"


@pytest.mark.parametrize("closed", [False, True])
def test_who_is_not_heard_of_until_the_end_is_no_episode(incident: Incident, closed: bool) -> None:
    incident.well("broker-b")
    incident.well("broker-a", but=[(500.0, 600.0)])
    if closed:
        incident.all_drop("broker-a", 497.0, "closed")
    faults = [one.hypotheses[0].fault for one in episodes_of(incident.rows).episodes]
    assert faults == (["kill"] if closed else [])


def test_a_slave_that_registers_as_the_master_was_made_the_master_and_is_no_stranger() -> None:
    slave, incident = "10.0.2.9:10911", Incident()
    incident.well("broker-b")
    incident.well("broker-a", but=[(200.0, 600.0)])
    incident.node("broker-a/1", "broker", address=slave)
    for server in incident.servers:
        for at_s in range(10, 600, 30):
            incident.arrives("broker-a", server, float(at_s), address=slave, broker_id=0 if at_s > 240 else 1)
    incident.all_drop("broker-a", 205.0, "closed")
    found = [one for episode in episodes_of(incident.rows).episodes for one in episode.hypotheses]
    switched = [one for one in found if one.fault == "switch"]
    assert [(told(one), one.certainty) for one in switched] == [([("switch", ["broker-a/1"])], "likely")]
    assert "broker-a/1 registers as broker-a at ns-0, ns-1" in switched[0].sentence
    assert not [one for one in found if one.fault == "register"]
    assert not [one for one in found if one.certainty == "certain" and one.fault != "kill"]


@pytest.mark.parametrize("acted", [True, False])
def test_a_producer_that_leaves_the_slave_that_acted_as_master_is_no_end_of_the_slave(acted: bool) -> None:
    """Its heartbeats go to id 0 alone, so that the slave closes their idle channel; the slave's own log is not here."""
    slave, incident = "10.0.2.9:10911", Incident()
    incident.well("broker-a", "broker-b")
    incident.node("broker-a/1", "slave", address=slave)
    for node, host in (("producer-0", "10.0.3.1"), ("producer-1", "10.0.3.2")):
        incident.node(node, "producer", address=host)
        incident.put(3.0, node, "started")
        for at_s, master in ((4.0, ADDRESSES["broker-a"]), (126.0, slave if acted else None), (186.0, None)):
            brokers = {"0": master or ADDRESSES["broker-a"], "1": slave}
            incident.put(at_s, node, "route_changed", topic="orders", value={"brokers": {"broker-a": brokers}})
        incident.channel(130.0, node, "open", slave)
        incident.channel(277.0, node, "close", slave)
    assert bool(episodes_of(incident.rows).episodes) is not acted
