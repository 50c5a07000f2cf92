"""one_master: two masters, ids that nobody has, slaves as masters: each planted wrong is found, its twin is not."""

from typing import Any

import pytest

from nemesrv.chaos.checks.routes.one_master import is_live, judge
from nemesrv.chaos.oracle.name_server import Request
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import KILL, HistoryBuilder, address_of, cluster

BROKERS = ("broker-a", "broker-b", "broker-a/1")
GROUP = ("broker-a", "broker-a/1", "broker-a/2")
ELECTS: dict[str, Any] = {"settings": {node: {"enableDLegerCommitLog": True} for node in GROUP}}
ACTING: dict[str, Any] = {"settings": {node: {"enableSlaveActingMaster": True} for node in BROKERS}}


def verdict(of: HistoryBuilder, lag_ms: float | None = 1.0) -> Verdict:
    return judge(*of.end(500, lag_ms).facts())


def registers(of: HistoryBuilder, node: str, id_: int, *at_s: float, name_server: str = "ns-0") -> HistoryBuilder:
    for when_s in at_s:
        of.at(when_s).registration(name_server, node, broker_id=id_)
    return of


def shown(of: HistoryBuilder, at_s: float, ids: dict[str, str], perm: int = 6, node: str = "ns-0") -> HistoryBuilder:
    """The node shows broker-a so from then on."""
    route = {"brokers": {"broker-a": ids}, "queues": {"broker-a": [4, 4, perm, 0]}}
    return of.at(at_s).event(node, "route" if node == "ns-0" else "route_changed", topic="orders", value=route)


def test_a_master_that_registers_again_and_again_is_one() -> None:
    of = registers(registers(cluster(brokers=BROKERS), "broker-a", 0, 1, 31, 61), "broker-a/1", 1, 2, 32)
    found = verdict(of)
    assert (found.verdict, found.measured["claims"]) == (Validity.VALID, 3)


def told(master: str | None, at_s: float = 45.0, reset_s: float | None = None) -> list[tuple[str, str]]:
    """The slave was answered with this master, while broker-a registers from 1 s until 61 s."""
    of = registers(cluster(brokers=BROKERS), "broker-a", 0, 1, 31, 61)
    of.at(at_s).register("broker-a/1", took_s=0.002, topics=1, version=1, master=master)
    if reset_s is not None:
        of.at(reset_s).fault("f1", "reset", "toxiproxy.reset_peer", "broker-a", "ns-0", until_s=reset_s + 1)
    return [(one.who, one.what) for one in verdict(of).examples]


def test_a_slave_is_answered_with_the_address_of_its_master() -> None:
    assert told(address_of("broker-a")) == told(None, at_s=0.5) == told(None, at_s=80) == []
    assert told(None) == told(address_of("broker-b")) == [("ns-0", "broker-a/1")]


@pytest.mark.parametrize(
    ("at_s", "named", "wrong"),
    [
        (45, ("broker-a", "broker-a/1"), []),
        (45, ("broker-a/1",), [("ns-0", "broker-a/1")]),
        (55, ("broker-a", "broker-a/1"), [("ns-0", "broker-a/1")]),
        (55, ("broker-a/1",), []),
        (51, ("broker-a", "broker-a/1"), []),
    ],
)
def test_a_name_server_names_the_brokers_that_it_has(
    at_s: float, named: tuple[str, ...], wrong: list[tuple[str, str]]
) -> None:
    """broker-a registers from 1 s on, and is dropped at 50 s."""
    of = registers(registers(cluster(brokers=BROKERS), "broker-a/1", 1, 1, 31), "broker-a", 0, 1, 31)
    of.at(49.9).fault(*KILL).at(50).drops("ns-0", "broker-a", "closed")
    value = {str(int("/" in node)): address_of(node) for node in named}
    of.at(at_s).event("broker-a/1", "members_named", name_server=address_of("ns-0"), value=value)
    assert [(one.who, one.what) for one in verdict(of).examples] == wrong


@pytest.mark.parametrize(("first_ms", "is_wrong"), [(1.0, True), (3.0, False)])
def test_a_slave_copies_the_log_of_the_master_in_the_first_answer_of_a_round(first_ms: float, is_wrong: bool) -> None:
    of = cluster(brokers=BROKERS)
    of.at(5).event("broker-a/1", "copies", address=address_of("broker-b"))
    answers = {first_ms: address_of("broker-a"), 2.0: None}
    for took_ms, master in sorted(answers.items()):
        took_s = took_ms / 1000
        of.at(45 + took_s).register("broker-a/1", took_s=took_s, topics=1, master=master)
    found = [one.more["kind"] for one in verdict(of).examples]
    assert found == (["copies from its master"] if is_wrong else [])


@pytest.mark.parametrize("f", ["UNREGISTER_BROKER", "REGISTER_BROKER"])
@pytest.mark.parametrize(("at_ms", "is_there"), [(20.0, True), (40.0, False), (50.0, True)])
def test_a_slave_is_told_no_master_whose_address_is_gone(f: str, at_ms: float, is_there: bool) -> None:
    registered = [Request(at_ms, "REGISTER_BROKER", address="10.0.0.1:1") for at_ms in (1.0, 31.0)]
    by_hand = Request(at_ms, f, id_=1, address="10.0.0.1:1")
    assert is_live([*registered, by_hand], "10.0.0.1:1", 44.0, 46.0) is is_there


def test_a_slave_is_told_no_master_while_a_reset_keeps_the_master_away() -> None:
    assert told(None, reset_s=43) == []


def test_two_that_register_as_master_in_turn_are_two_masters() -> None:
    of = registers(cluster(brokers=BROKERS), "broker-a", 0, 10, 40, 70, 100)
    registers(of, "broker-a/1", 0, 50, 80)
    found = verdict(of)
    assert (found.verdict, found.violations) == (Validity.INVALID, 1)
    (one,) = found.examples
    assert (one.who, one.what, one.from_ms, one.measured_ms) == ("ns-0", "broker-a", 50_000.0, 30_000.0)


def test_a_second_master_that_says_so_once_is_found() -> None:
    of = registers(registers(cluster(brokers=BROKERS), "broker-a", 0, 10, 40, 70), "broker-a/1", 0, 50)
    found = verdict(of)
    assert [one.measured_ms for one in found.examples] == [20_000.0]


def test_two_masters_at_two_name_servers_are_one_at_each() -> None:
    of = registers(cluster(brokers=BROKERS), "broker-a", 0, 10, 40, 70)
    registers(of, "broker-a/1", 1, 50)
    registers(of, "broker-a", 0, 11, 41, 71, name_server="ns-1")
    assert verdict(of).verdict is Validity.VALID


def test_a_slave_that_takes_over_from_a_dead_master_is_one_master() -> None:
    of = registers(cluster(brokers=BROKERS), "broker-a", 0, 10, 40)
    of.at(45).fault("kill-1", "kill", "sigkill", "broker-a")
    of.at(100).act("switch", "broker-a/1")
    registers(of, "broker-a/1", 0, 100.1, 130)
    shown(of, 100.1, {"0": address_of("broker-a/1")})
    assert verdict(of).verdict is Validity.VALID


def test_what_a_link_gave_when_its_broker_was_dead_is_nobodys_claim() -> None:
    of = registers(cluster(brokers=BROKERS), "broker-a", 0, 10, 40)
    of.at(45).fault("kill-1", "kill", "sigkill", "broker-a")
    of.at(60).act("switch", "broker-a/1")
    registers(of, "broker-a/1", 0, 60.1, 90)
    registers(of, "broker-a", 0, 95)
    assert verdict(of).verdict is Validity.VALID


def elected(*old_leader_says_s: float) -> HistoryBuilder:
    """The leader stands still from 43 to 100 s, and another is elected at 52 s."""
    of = registers(cluster(name_servers=1, brokers=GROUP, **ELECTS), "broker-a", 0, 10, 40)
    registers(of, "broker-a/1", 2, 11, 41)
    shown(of, 52, {"0": address_of("broker-a/1")})
    of.at(43).fault("pause-1", "pause", "sigstop", "broker-a")
    registers(of, "broker-a/1", 0, 52, 82, 112, 142)
    of.at(100).fault("pause-1", "pause", "sigstop", "broker-a", end=True)
    registers(of, "broker-a", 0, *old_leader_says_s)
    return registers(of, "broker-a", 1, (old_leader_says_s or (100.0,))[-1] + 0.5)


def test_a_leader_that_stood_still_may_say_it_once_more_before_it_hears_of_the_next() -> None:
    assert verdict(elected()).verdict is Validity.VALID
    assert verdict(elected(100.1, 104)).verdict is Validity.VALID


def test_a_leader_that_never_steps_down_is_a_second_master() -> None:
    found = verdict(elected(100.1, 112.5, 130))
    assert found.verdict is Validity.INVALID
    assert found.allowed["formula"] == "3 heartbeats of 2 s + B"


def test_beyond_the_bound_by_no_more_than_the_machine_was_late_is_right() -> None:
    of = elected(100.1, 105, 116)  # 15.9 s of 12
    assert verdict(of, lag_ms=2_500).verdict is Validity.VALID


def loses_its_leader(
    *, told_s: float | None = None, client_s: float | None = None, by: str = "enableDLegerCommitLog"
) -> HistoryBuilder:
    """The leader is killed at 100 s; ns-0 has the new one at `told_s`, and the client at `client_s`."""
    elects: dict[str, Any] = {"settings": {node: {by: True} for node in GROUP}}
    of = cluster(name_servers=1, brokers=GROUP, clients=("producer-0",), **elects)
    of.at(1).event("harness", "phase", phase="steady")
    before, after = {"0": address_of("broker-a"), "2": address_of("broker-a/1")}, {"0": address_of("broker-a/1")}
    shown(of, 10, before)
    shown(of, 15, before, node="producer-0")
    of.at(100).fault("kill-1", "kill", "sigkill", "broker-a")
    shown(of, 100.1, {"2": address_of("broker-a/1")})
    if told_s is not None:
        shown(of, told_s, after)
    if client_s is not None:
        shown(of, client_s, after, node="producer-0")
    return of


def test_a_name_that_elects_its_master_has_one_again_in_time() -> None:
    found = verdict(loses_its_leader(told_s=109, client_s=130))
    assert found.verdict is Validity.VALID
    assert (found.measured["longest_without_master_ms"], found.measured["longest_until_told_ms"]) == (9_000, 30_000)


def test_a_controller_has_a_time_of_its_own() -> None:
    assert verdict(loses_its_leader(told_s=124, client_s=150, by="enableControllerMode")).verdict is Validity.VALID
    found = verdict(loses_its_leader(told_s=160, client_s=165, by="enableControllerMode"))
    assert found.verdict is Validity.INVALID
    assert found.allowed["bound_ms"] == 26_000  # 10 + 5 + 5 + B


def test_a_name_that_stays_without_a_master_is_found() -> None:
    found = verdict(loses_its_leader(told_s=160, client_s=165))
    (one, *_) = (one for one in found.examples if one.more["kind"] == "without a master")
    assert found.verdict is Validity.INVALID
    assert (one.who, one.what, one.measured_ms, one.after) == ("ns-0", "broker-a", 60_000, "kill-1 start")
    assert found.allowed["formula"] == "3 heartbeats of 2 s + 2 votes of 4 s + B"
    assert verdict(loses_its_leader()).verdict is Validity.INVALID


def test_a_table_that_goes_on_showing_the_dead_leader_has_no_master() -> None:
    of = loses_its_leader(told_s=109, client_s=130)
    shown(of, 110, {"0": address_of("broker-a")})
    assert verdict(of).verdict is Validity.INVALID


def test_a_client_that_is_not_told_of_the_new_master_is_found() -> None:
    found = verdict(loses_its_leader(told_s=109, client_s=400))
    assert [one.more["kind"] for one in found.examples] == ["a client without its master"]
    assert found.examples[0].who == "producer-0"


def test_a_little_too_late_where_the_machine_was_is_right() -> None:
    assert verdict(loses_its_leader(told_s=125, client_s=130), lag_ms=2_500).verdict is Validity.VALID


def test_a_poll_that_saw_the_next_leader_gone_before_its_kill_was_told_of_says_nothing() -> None:
    of = loses_its_leader(told_s=109, client_s=130)
    shown(of, 299.98, {"2": address_of("broker-a/2")})
    of.at(300).fault("kill-2", "kill", "sigkill", "broker-a/1")
    of.at(299).fault("kill-1", "kill", "sigkill", "broker-a", end=True)
    of.restarted("broker-a")
    shown(of, 308, {"0": address_of("broker-a")})
    shown(of, 320, {"0": address_of("broker-a")}, node="producer-0")
    assert verdict(of).verdict is Validity.VALID


def test_without_most_of_its_brokers_nobody_must_be_elected() -> None:
    of = loses_its_leader()
    of.at(101).fault("kill-2", "kill", "sigkill", "broker-a/2")
    assert verdict(of).verdict is Validity.VALID


def runs_on(back_s: float) -> HistoryBuilder:
    """The leader stands still from 100 to 140 s, takes id 0 back as it runs on, and leaves it 2 s later."""
    of = cluster(name_servers=1, brokers=GROUP, **ELECTS)
    of.at(1).event("harness", "phase", phase="steady")
    old, new = address_of("broker-a"), address_of("broker-a/1")
    shown(of, 10, {"0": old, "2": new})
    of.at(100).fault("pause-1", "pause", "sigstop", "broker-a")
    shown(of, 108, {"0": new})
    of.at(140).fault("pause-1", "pause", "sigstop", "broker-a", end=True)
    shown(of, 140.1, {"0": old})
    shown(of, 142, {"1": old})
    return shown(of, back_s, {"0": new, "1": old})


def test_who_runs_on_may_take_the_name_until_the_new_leaders_next_tick() -> None:
    assert verdict(runs_on(168)).verdict is Validity.VALID
    assert verdict(runs_on(230)).verdict is Validity.INVALID


def waits(until_s: float) -> HistoryBuilder:
    of = cluster(brokers=GROUP, **ELECTS)
    shown(of, 10, {"0": address_of("broker-a"), "-1": address_of("broker-a/1")})
    return shown(of, until_s, {"0": address_of("broker-a"), "2": address_of("broker-a/1")})


def test_one_that_waits_for_an_election_has_no_id_for_a_short_time() -> None:
    assert verdict(waits(25)).verdict is Validity.VALID
    found = verdict(waits(60))
    assert found.verdict is Validity.INVALID
    assert found.allowed["formula"] == "3 heartbeats of 2 s + 2 votes of 4 s + B"


def test_without_most_of_its_group_it_waits_for_as_long() -> None:
    of = cluster(brokers=GROUP, **ELECTS)
    for number, node in enumerate(GROUP[1:]):
        of.at(10).fault(f"kill-{number}", "kill", "sigkill", node)
    shown(of, 12, {"-1": address_of("broker-a")})
    assert verdict(of).verdict is Validity.VALID


ACTS = {"0": address_of("broker-a/1")}


def acting(ids: dict[str, str], perm: int) -> HistoryBuilder:
    return shown(cluster(brokers=BROKERS, profile="5.x", **ACTING), 50, ids, perm)


def test_a_slave_acts_as_master_without_the_write_permission() -> None:
    assert verdict(acting(ACTS, perm=4)).verdict is Validity.VALID
    found = verdict(acting(ACTS, perm=6))
    assert found.examples[0].more["kind"] == "writable without a master"


def test_what_somebody_registered_by_hand_is_nobodys_second_master() -> None:
    of = registers(cluster(brokers=BROKERS), "broker-a", 0, 10, 40, 70)
    asked: dict[str, Any] = {"broker_name": "broker-a", "broker_id": 0, "address": "10.9.9.9:10911"}
    of.at(50).act("register", "ns-0", **asked, value={"topics": {"orders": 4}})
    of.registration("ns-0", "broker-a", address="10.9.9.9:10911")
    shown(of, 50, {"0": "10.9.9.9:10911"})
    assert verdict(of).verdict is Validity.VALID
