"""broker_tasks over hand-written histories: all NameServers are told at once, and of each change at once."""

from typing import Any

import pytest

from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.checks.service.broker_tasks import BrokerTasks
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.verdict import Finding
from nemesrv.remoting.codes import TABLES_OF_SLAVES
from tests.chaos.builder import PAUSE, HistoryBuilder, address_of, cluster

EVERYWHERE, CHANGES = "begins at all NameServers at once", "registers changes at once"


def story(name_servers: int = 3, **run: Any) -> HistoryBuilder:
    """A broker that registers with each NameServer at 0 s, at 10 s, and then every 30 s."""
    told = cluster(name_servers=name_servers, brokers=("broker-a",), **run)
    for at_s in (0, 10, 40, 70, 100):
        rounds(told, at_s)
    return told


def rounds(told: HistoryBuilder, at_s: float, version: int = 1, **took_s: float) -> HistoryBuilder:
    """A registration at each NameServer that began then; ns_0=6: that one was given up after 6 s."""
    for name in [node for node in told.nodes if node.startswith("ns-")]:
        registers(told, at_s, name, took_s.get(name.replace("-", "_"), 0.002), version)
    return told


def registers(told: HistoryBuilder, at_s: float, name: str, took_s: float = 0.002, version: int = 1) -> None:
    how = "info" if took_s > 1 else "ok"
    told.at(at_s + took_s).register("broker-a", name, took_s=took_s, how=how, version=version, topics=2)


def changes(told: HistoryBuilder, at_s: float, version: int) -> HistoryBuilder:
    value = {"read": 8, "write": 8, "perm": 6, "version": version}
    return told.at(at_s).event("broker-a", "topic", topic="orders", value=value)


def found(told: HistoryBuilder, kind: str, lag_ms: float = 1.0) -> Finding:
    (finding,) = all_found(told, kind, lag_ms)
    return finding


def all_found(told: HistoryBuilder, kind: str, lag_ms: float = 1.0, of: str = "broker-a") -> list[Finding]:
    told.end(150, lag_ms=lag_ms)
    rows = told.in_order()
    control, world = Control.of_rows(rows), World.of_rows(rows)
    (life,) = world.lives_of(of)
    return [one for one in BrokerTasks(control, world, life).others() if one.kind == kind]


def test_a_broker_that_asks_all_at_once_is_right_however_long_one_of_them_takes() -> None:
    assert found(rounds(story(), 130, ns_1=6), EVERYWHERE).wrong == 0


@pytest.mark.parametrize(("topics", "wrong"), [(2, 0), (1, 1)])
def test_a_broker_registers_all_topics_at_its_start(topics: int, wrong: int) -> None:
    told = rounds(cluster(brokers=("broker-a",)), 0)
    for row in told.rows:
        if row["event"] == "register" and row["time_ms"] < 1000:
            row["value"]["topics"] = topics
    assert found(told, "registers at its start").wrong == wrong


def test_a_broker_that_was_paused_between_two_of_them_is_not_late() -> None:
    told = story().at(115.001).fault(*PAUSE)
    told.at(118).fault(*PAUSE, end=True)
    for name, at_s in (("ns-0", 115), ("ns-1", 118.01), ("ns-2", 118.01)):
        registers(told, at_s, name)
    assert found(told, EVERYWHERE).wrong == 0


def test_who_left_the_list_that_a_broker_fetches_need_not_be_told() -> None:
    def told(*fetched: str) -> Finding:
        builder = HistoryBuilder(profile="4.9", time_scale=1, workload={"topic": "orders"}, name_server_list=["ns-0"])
        for name in ("ns-0", "ns-1", "broker-a"):
            builder.node(name)
        builder.at(0).event("harness", "served_list", value=["ns-0", "ns-1"])
        builder.at(0).event("broker-a", "name_server_list", value=[address_of("ns-0"), address_of("ns-1")])
        for at_s in (0.5, 10, 40, 70):
            rounds(builder, at_s)
        builder.at(99).event("broker-a", "name_server_list", f="fetchNameServerAddr", value=[*map(address_of, fetched)])
        registers(builder, 100, "ns-0")
        return found(builder, EVERYWHERE)

    assert (told("ns-0").wrong, told("ns-0", "ns-1").wrong) == (0, 1)


def test_a_change_is_told_at_once() -> None:
    assert found(rounds(changes(story(), 60, 2), 60.001, version=2), CHANGES).wrong == 0
    finding = found(rounds(changes(story(), 60, 2), 90, version=2), CHANGES)
    assert (finding.wrong, finding.measured_ms) == (1, pytest.approx(30_000))


def test_a_change_that_is_never_told_is_found_and_an_older_version_does_not_tell_it() -> None:
    finding = found(rounds(changes(story(), 60, 2), 60.001, version=1), CHANGES)
    assert (finding.wrong, finding.more) == (1, {"never": True})


def test_a_change_waits_for_the_round_that_is_under_way() -> None:
    def told(at_s: float) -> int:
        builder = rounds(changes(story(), 116, 2), 115, ns_1=6)
        return found(rounds(builder, at_s, version=2), CHANGES).wrong

    assert (told(121.001), told(122)) == (0, 1)


def test_a_broker_that_asks_first_may_wait_for_a_name_server_that_hangs() -> None:
    def told(**run: Any) -> int:
        builder = story(**run).at(50).fault("f1", "pause", "sigstop", "ns-1")
        builder.at(90).fault("f1", "pause", "sigstop", "ns-1", end=True)
        return found(rounds(changes(builder, 60, 2), 66, version=2), CHANGES).wrong

    assert (told(node_timers={"broker-a": {"F_ms": 6000.0}}), told()) == (0, 1)


@pytest.mark.parametrize(("asks", "wrong"), [({"F_ms": 12_000.0}, 0), ({}, 1)])
def test_a_hung_name_server_may_delay_a_first_registration(asks: dict[str, float], wrong: int) -> None:
    told = cluster(brokers=("broker-a",), node_timers={"broker-a": asks}).at(-1).fault("f1", "pause", "sigstop", "ns-0")
    told.at(30).fault("f1", "pause", "sigstop", "ns-0", end=True)
    assert found(rounds(told, 10), "registers at its start").wrong == wrong


@pytest.mark.parametrize(("changed", "at_s", "wrong"), [(True, 115.002, 0), (True, 116, 1), (False, 130, 0)])
def test_a_broker_registers_at_once_if_its_version_has_changed(changed: bool, at_s: float, wrong: int) -> None:
    told = story()
    for name, took_s, said in (("ns-0", 0.0, changed), ("ns-1", 0.002, changed), ("ns-2", 0.003, False)):
        about: dict[str, Any] = {"type": "ok", "name_server": address_of(name), "duration_ms": took_s * 1000}
        told.at(114.997 + took_s).event("broker-a", "data_version", value={"changed": said}, **about)
    judged = all_found(rounds(told, at_s), "registers as answered")
    assert [one.wrong for one in judged] == [wrong] * changed


def test_a_change_before_the_first_registration_is_over_and_one_near_the_end_are_nobodys_to_judge() -> None:
    told = changes(story(), 149, 3)
    told.at(0).event("broker-a", "topic", topic="orders", value={"read": 8, "write": 8, "perm": 6, "version": 1})
    told.end(150)
    rows = told.in_order()
    control, world = Control.of_rows(rows), World.of_rows(rows)
    kinds = [one.kind for one in BrokerTasks(control, world, world.lives_of("broker-a")[0]).others()]
    assert kinds == ["ends by its time-out", EVERYWHERE, "registers at its start"]


def test_a_broker_that_stops_in_order_unregisters_at_every_name_server() -> None:
    def left(*how: str, read: bool = False) -> int:
        told = story().at(119.9)
        for number, reason in enumerate(how):
            if read and number:
                told.read(f"ns-{number}", "UNREGISTER_BROKER", "broker-a")
            told.drops(f"ns-{number}", "broker-a", reason)
        told.at(120).event("broker-a", "stopped").fault("f1", "stop", "sigterm", "broker-a")
        return found(told, "unregisters everywhere").wrong

    assert left("unregistered", "unregistered", "unregistered") == 0
    assert left("unregistered", "closed", "closed") == 2
    assert left("unregistered", "closed", "closed", read=True) == 0  # those read it, and did not go by it


@pytest.mark.parametrize(
    ("cut", "fetched_s", "wrong"), [(False, None, 1), (True, None, 0), (False, 5, 1), (False, 118, 0)]
)
def test_each_light_heartbeat_reaches_each_name_server(cut: bool, fetched_s: float | None, wrong: int) -> None:
    told = story(name_servers=1, profile="5.x", **({} if fetched_s is None else {"name_server_list": ["ns-0"]}))
    if fetched_s is not None:
        told.at(fetched_s).event("broker-a", "name_server_list", f="fetchNameServerAddr", value=[address_of("ns-0")])
    if cut:
        told.at(115).black_hole("broker-a", "ns-0", until_s=119)
    for at_s in range(110, 125):
        told.at(at_s).event("broker-a", "scheduled_task", f="sendHeartbeat", duration_ms=0.0)
        if at_s != 117:
            told.read("ns-0", "BROKER_HEARTBEAT", "broker-a")
    assert found(told, "heartbeats everywhere").wrong == wrong


@pytest.mark.parametrize(
    ("unread", "cut", "slaves", "wrong"),
    [
        ("", False, 1, 0),
        ("GET_ALL_DELAY_OFFSET", False, 1, 1),
        ("GET_ALL_DELAY_OFFSET", True, 1, None),
        ("GET_ALL_DELAY_OFFSET", False, 2, None),  # no request says which slave asks
    ],
)
def test_a_slave_asks_its_master_for_each_table(unread: str, cut: bool, slaves: int, wrong: int | None) -> None:
    slave, *more = [f"broker-a/{number + 1}" for number in range(slaves)]
    told = cluster(brokers=("broker-a", slave, *more))
    for at_s in (0, 10, 40, 70):
        told.at(at_s).register(slave, version=1, topics=2, master=address_of("broker-a"), ha="10.0.2.5:10912")
    if cut:
        told.at(82).black_hole(slave, "broker-a", until_s=89)
    for code in TABLES_OF_SLAVES:
        if code.name != unread:
            told.at(83).event("broker-a", "request_read", f=code.name, op_id="1")
    told.at(83.01).event(slave, "scheduled_task", f="SlaveSynchronize", duration_ms=20.0)
    assert [one.wrong for one in all_found(told, "asks for each table", of=slave)] == ([] if wrong is None else [wrong])
