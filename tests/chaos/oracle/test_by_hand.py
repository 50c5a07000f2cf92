"""What an act by hand leaves open: whose place in which table, and for how long no time is quiet."""

import math
from typing import Any

import pytest

from nemesrv.chaos.oracle.promises import ObligationKind, obligations, told_by_hand
from nemesrv.chaos.oracle.quiet import calm, is_alone
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder, address_of, cluster

STRANGE = "10.9.9.9:10911"


def story(**run: Any) -> HistoryBuilder:
    run = {"workload": {"topic": "orders", "queues": 4}, **run}
    return cluster(name_servers=2, brokers=("broker-a", "broker-b"), clients=("producer-0",), **run)


def act(builder: HistoryBuilder, at_s: float, f: str, how: str = "ok", took_s: float = 0.01, **more: Any) -> None:
    value = {"topics": {"orders": 4}, "perm": 6, **more.pop("value", {})}
    about = {"broker_id": 0, "type": how, "duration_ms": took_s * 1000, **more}
    builder.at(at_s + took_s).act(f, about.pop("target", "ns-0"), value=value, **about)


def must_hold(builder: HistoryBuilder, name_server: str, broker: str) -> list[tuple[float, float]]:
    world = World.of_rows(builder.rows)
    found = [o for o in obligations(world) if (o.name_server, o.broker) == (name_server, broker)]
    return [(o.from_ms / 1000, o.to_ms / 1000) for o in found if o.demand is ObligationKind.RETURN]


def test_an_unregistration_is_over_with_the_next_registration_of_its_broker() -> None:
    builder = story()
    act(builder, 60, "unregister", broker_name="broker-a", address=address_of("broker-a"))
    builder.end(200)
    assert must_hold(builder, "ns-0", "broker-a") == [(33.0, 60.0), (pytest.approx(93.01), 200.0)]
    assert must_hold(builder, "ns-0", "broker-b") == must_hold(builder, "ns-1", "broker-a") == [(33.0, 200.0)]


@pytest.mark.parametrize(
    ("profile", "address", "cluster_name", "comes_back"),
    [
        ("4.9", "broker-a", "eu", True),
        ("4.9", "broker-b", "DefaultCluster", False),
        ("5.x", "broker-a", "DefaultCluster", True),
        ("5.x", "broker-a", "eu", False),
    ],
)
@pytest.mark.parametrize("f", ["register", "unregister"])
def test_a_broker_that_asks_first_comes_back_where_the_act_took_its_version_out(
    f: str, profile: str, address: str, cluster_name: str, comes_back: bool
) -> None:
    builder = story(node_timers={"broker-a": {"F_ms": 24_000.0}}, profile=profile)
    about = {"broker_name": "broker-a", "address": address_of(address), "value": {"cluster_name": cluster_name}}
    act(builder, 60, f, **about)
    builder.end(300)
    assert any(to_s == 300.0 for _, to_s in must_hold(builder, "ns-0", "broker-a")) is comes_back


def test_a_stranger_in_the_place_of_a_broker_is_out_with_its_next_registration() -> None:
    builder = story()
    act(builder, 60, "register", broker_name="broker-a", address=STRANGE)
    builder.end(200)
    assert must_hold(builder, "ns-0", "broker-a") == [(33.0, 60.0), (pytest.approx(93.01), 200.0)]


def test_a_name_server_that_no_broker_lists_may_hold_a_broker_that_somebody_registered_by_hand() -> None:
    builder = story(name_server_list=["ns-1"])
    act(builder, 60, "register", broker_name="broker-a", address=address_of("broker-a"))
    world = builder.end(200).facts()[1]
    dropped = [o for o in obligations(world) if o.name_server == "ns-0" and o.demand is ObligationKind.DROP]
    assert {(o.broker, o.to_ms / 1000) for o in dropped} == {("broker-a", 60.0), ("broker-b", 200.0)}


def test_a_stranger_with_a_name_of_its_own_takes_no_place_and_yet_clients_hear_of_it() -> None:
    builder = story()
    act(builder, 60, "register", broker_name="broker-x", address=STRANGE)
    builder.end(600)
    world = World.of_rows(builder.rows)
    assert must_hold(builder, "ns-0", "broker-a") == [(33.0, 600.0)]
    (stranger,) = [fault for fault in world.faults if fault.by_hand]
    assert stranger.start_ms == pytest.approx(60_000)
    assert stranger.end_ms == pytest.approx(60_010 + 120_000, abs=world.timers.delivery_ms)  # its channel is idle for I
    assert calm(world)[-1].start_ms > stranger.end_ms


def test_what_was_refused_or_never_arrived_changes_nothing() -> None:
    builder = story()
    act(builder, 60, "unregister", "fail", broker_name="broker-a", address=address_of("broker-a"), code=None)
    builder.end(200)
    assert must_hold(builder, "ns-0", "broker-a") == [(33.0, 200.0)]


def test_what_nobody_answered_may_be_done_until_its_link_is_whole_again() -> None:
    builder = story()
    hole = ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "admin", "ns-0")
    builder.at(50).fault(*hole)
    act(builder, 60, "unregister", "info", took_s=5, broker_name="broker-a", address=address_of("broker-a"), code=None)
    builder.at(90).fault(*hole, end=True).end(200)
    (first, second) = must_hold(builder, "ns-0", "broker-a")
    assert first == (33.0, 60.0)
    assert second == (pytest.approx(123.05, abs=0.1), 200.0)


def test_a_topic_in_use_that_is_deleted_leaves_no_quiet_time_until_it_is_made_again() -> None:
    builder = story()
    act(builder, 60, "delete_topic", topic="orders")
    builder.end(500)
    (deleted,) = [fault for fault in World.of_rows(builder.rows).faults if fault.by_hand]
    assert deleted.end_ms == math.inf
    act(builder, 100, "update_topic", topic="orders", target="broker-a", value={"read_queues": 4, "write_queues": 4})
    again = [fault for fault in World.of_rows(builder.rows).faults if fault.by_hand and fault.fault == "delete_topic"]
    assert again[0].end_ms == pytest.approx(130_010)


def test_what_a_queue_stands_for_is_unclear_once_clients_may_be_told_of_a_stranger() -> None:
    for topics, unclear in (({"stale": 4}, False), ({"orders": 4}, True)):
        builder = story()
        act(builder, 60, "register", broker_name="broker-x", address=STRANGE, value={"topics": topics})
        assert bool(World.of_rows(builder.end(90).rows).unclear) is unclear
    builder = story()
    act(builder, 60, "delete_topic", topic="orders", target="broker-a")
    assert World.of_rows(builder.end(90).rows).unclear == "delete_topic-1 deleted the messages of orders at broker-a"


def test_a_5_x_broker_brings_a_deleted_topic_back_at_its_next_tick_unless_it_asks_first() -> None:
    def away_at(at_s: float, **run: Any) -> bool:
        builder = story(profile="5.x", **run)
        act(builder, 60, "delete_topic", topic="orders")
        world = World.of_rows(builder.end(600).rows)
        return told_by_hand(world).is_deleted("ns-0", "orders", at_s * 1000, at_s * 1000 + 1)

    asks = {"node_timers": {"broker-a": {"F_ms": 24_000.0}}}
    assert (away_at(70), away_at(200), away_at(70, **asks), away_at(200, **asks)) == (True, False, True, True)


def test_nothing_of_the_whole_is_promised_to_a_client_while_it_may_feel_an_act_by_hand() -> None:
    """The act alone is enough: with the only broker's write permission wiped no send has a queue."""
    builder = story()
    for name in ("broker-a", "broker-b"):
        act(builder, 60, "wipe_write_perm", broker_name=name)
    world = World.of_rows(builder.end(300).rows)
    assert [is_alone(world, "producer-0", at_s * 1000) for at_s in (59, 61, 299)] == [True, False, False]


def test_a_wiped_broker_that_alone_registers_at_a_name_server_is_felt_by_the_clients_of_that_name_server() -> None:
    """broker-b registers at ns-1 alone, so ns-0 has no other broker to write to (random seed 1678139)."""
    builder = story(nodes={"broker-b": {"name_servers": ["ns-1"]}})
    act(builder, 60, "wipe_write_perm", broker_name="broker-a")
    world = World.of_rows(builder.end(300).rows)
    assert [is_alone(world, "producer-0", at_s * 1000) for at_s in (59, 299)] == [True, False]


@pytest.mark.parametrize(
    ("address", "is_mixed_up"), [(address_of("broker-a"), False), (address_of("broker-b"), True), (STRANGE, False)]
)
def test_a_queue_does_not_tell_its_broker_where_a_broker_has_anothers_address(address: str, is_mixed_up: bool) -> None:
    builder = story()
    act(builder, 60, "register", broker_name="broker-a", address=address, value={"topics": None})
    builder.end(200)
    assert bool(World.of_rows(builder.rows).mixed_up_by_hand) is is_mixed_up


@pytest.mark.parametrize(
    ("deleted", "is_unclear"), [((), False), (("payments",), False), (("orders", "payments"), True)]
)
def test_the_messages_of_a_topic_that_somebody_deleted_are_left_out_and_those_of_others_are_judged(
    deleted: tuple[str, ...], is_unclear: bool
) -> None:
    builder = story(topic_of={"producer-0": "orders", "consumer-0": "payments"}).node("consumer-0")
    for topic in deleted:
        act(builder, 60, "delete_topic", target="broker-a", topic=topic)
    world = World.of_rows(builder.end(200).rows)
    assert ({*world.deleted}, bool(world.unclear)) == ({*deleted}, is_unclear)


@pytest.mark.parametrize(
    ("how", "restarted", "from_s", "to_s", "values"),
    [
        ("ok", False, 0, 50, [True]),
        ("ok", False, 50, 70, [True, False]),
        ("ok", False, 70, 200, [False]),
        ("info", False, 150, 200, [True, False]),
        ("fail", False, 70, 200, [True]),
        ("ok", True, 150, 200, [False, True]),
    ],
)
def test_a_setting_is_what_an_operator_made_it(
    how: str, restarted: bool, from_s: float, to_s: float, values: list[bool]
) -> None:
    builder, settings = story(), {"longPollingEnable": False}
    act(builder, 60, "update_config", how, target="broker-a", value={"settings": settings})
    if restarted:
        builder.at(100).fault("f1", "kill", "sigkill", "broker-a", until_s=110).restarted("broker-a")
    world = World.of_rows(builder.end(200).rows)
    assert world.values("broker-a", "longPollingEnable", from_s * 1000, to_s * 1000) == values
    assert world.values("broker-b", "longPollingEnable", from_s * 1000, to_s * 1000) == [True]


@pytest.mark.parametrize(("changed_s", "joins_s", "has"), [(60, None, True), (60, 80, False), (20, None, False)])
def test_a_group_stays_when_its_broker_makes_no_more(changed_s: float, joins_s: float | None, has: bool) -> None:
    nodes = {} if joins_s is None else {"consumer-0": {"joins_at_s": joins_s}}
    builder = story(nodes=nodes).at(30).event("runner", "phase", phase="steady").at(joins_s or 0).node("consumer-0")
    settings = {"autoCreateSubscriptionGroup": "false"}
    act(builder, changed_s, "update_config", target="broker-a", value={"settings": settings})
    world = World.of_rows(builder.end(200).rows)
    assert (world.permits("broker-a", "consumer-0"), world.permits("broker-b", "consumer-0")) == (has, True)
    assert not world.views_differ
