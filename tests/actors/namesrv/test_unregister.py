"""The rules by which brokers leave (nameserver.md section 4)."""

from nemesrv.actors.namesrv.route_table import RouteTable
from nemesrv.actors.namesrv.tables import Dropped, DropReason, RouteOptions
from nemesrv.remoting.node.profile import Profile
from tests.actors.namesrv.helpers import V4, V5, leaving, perms, register, registration, table_with, unregister

REMOTE = "127.0.0.1:55555"


def lose(table: RouteTable, channel: int, reason: DropReason = DropReason.CLOSED) -> tuple[Dropped, ...]:
    return table.on_channel_destroy(channel, REMOTE, reason) + table.run_unregistrations().dropped


def dropped(reason: DropReason, *, broker: str = "broker-a", id_: int = 0, addr: str = "10.0.0.1:10911") -> Dropped:
    return Dropped(broker_name=broker, broker_id=id_, address=addr, reason=reason)


def is_empty(table: RouteTable) -> bool:
    tables = (table.topic_queue_table, table.broker_addr_table, table.cluster_addr_table, table.broker_live_table)
    return not any(tables) and not table.filter_server_table


def test_the_last_broker_takes_everything_with_it(profile: Profile) -> None:
    table = table_with(profile, registration(filter_servers=("f",)))
    table.take_changed_topics()
    assert unregister(table, leaving()) == (dropped(DropReason.UNREGISTERED),)
    assert is_empty(table)
    assert table.take_changed_topics() == {"T", "U"}
    assert unregister(table, leaving()) == ()


def test_unregister_goes_by_id_in_4_9_and_by_address_in_5_x() -> None:
    asked = leaving(addr="10.0.0.2:10911", id_=0)
    for profile, left in ((V4, {1: "10.0.0.2:10911"}), (V5, {0: "10.0.0.1:10911"})):
        table = table_with(profile, registration(), registration(id_=1, addr="10.0.0.2:10911"))
        (gone,) = unregister(table, asked)
        assert table.broker_addr_table["broker-a"].addrs == left
        assert gone.broker_id == (0 if profile is V4 else 1)


def test_a_group_that_still_has_a_slave_keeps_its_topics(profile: Profile) -> None:
    table = table_with(profile, registration(), registration(id_=1, addr="10.0.0.2:10911"))
    unregister(table, leaving())
    assert perms(table) == {"broker-a": 6}  # no acting master: writable by the table, skipped by producers


def test_5_x_refuses_what_its_queue_cannot_hold_and_empties_it_in_one_batch() -> None:
    table = table_with(
        V5,
        registration(),
        registration("broker-b", addr="10.0.0.2:10911"),
        options=RouteOptions(unregister_queue_capacity=2),
    )
    assert table.submit_unregister(leaving())
    assert table.submit_unregister(leaving("broker-b", addr="10.0.0.2:10911"))
    assert not table.submit_unregister(leaving())
    assert table.route("T") is not None  # queued is not done
    assert len(table.run_unregistrations().dropped) == 2
    assert is_empty(table)


def test_a_lost_channel_takes_its_broker(profile: Profile) -> None:
    table = table_with(profile, registration(channel=7))
    assert lose(table, 8) == ()
    assert lose(table, 7, DropReason.EXCEPTION) == (dropped(DropReason.EXCEPTION),)
    assert is_empty(table)


def test_a_broker_that_came_back_on_a_new_channel_outlives_its_old_one(profile: Profile) -> None:
    table = table_with(profile, registration(channel=7), registration(channel=8))
    assert lose(table, 7) == ()
    assert table.route("T") is not None


def test_a_channel_without_a_live_entry_is_taken_for_the_brokers_address_in_4_9_only() -> None:
    for profile, goes in ((V4, True), (V5, False)):
        table = table_with(profile, registration(addr=REMOTE, channel=7), registration(addr=REMOTE, channel=8))
        assert bool(lose(table, 9)) is goes


def test_a_broker_silent_past_its_timeout_leaves_the_route(profile: Profile) -> None:
    table = table_with(profile, registration(channel=7), now_ms=1_000)
    assert table.expire(now_ms=121_000).channel_ids == ()  # exactly the timeout is not past it
    expired = table.expire(now_ms=121_001)
    assert expired.channel_ids == (7,)
    gone = expired.dropped + table.run_unregistrations().dropped
    assert gone == (dropped(DropReason.EXPIRED),)
    assert is_empty(table)


def test_a_broker_names_its_own_timeout_in_5_x_only() -> None:
    for profile, expires in ((V4, False), (V5, True)):
        table = table_with(profile, registration(heartbeat_timeout_ms=10_000))
        assert bool(table.expire(now_ms=10_001).channel_ids) is expires
        table.heartbeat("c", "10.0.0.1:10911", now_ms=10_001)
        assert table.expire(now_ms=20_001).channel_ids == ()


def test_an_address_given_up_for_another_expires_once_in_4_9_and_again_and_again_in_5_x() -> None:
    for profile, scans in ((V4, [1, 0]), (V5, [1, 1])):
        table = table_with(profile, registration())
        register(table, addr="10.0.0.2:10911", channel=2, now_ms=100_000)
        found = []
        for now_ms in (130_000, 135_000):
            found.append(len(table.expire(now_ms=now_ms).channel_ids))
            assert table.run_unregistrations().dropped == ()
        assert found == scans
        assert table.broker_addr_table["broker-a"].addrs == {0: "10.0.0.2:10911"}


def test_4_9_takes_the_other_broker_of_an_expired_ones_channel_along() -> None:
    silent = registration(channel=7)
    loud = registration("broker-b", addr="10.0.0.2:10911", channel=7)
    table = table_with(V4, silent)
    table.register(loud, now_ms=100_000)
    expired = table.expire(now_ms=130_000)
    assert expired.dropped == (dropped(DropReason.EXPIRED, broker="broker-b", addr="10.0.0.2:10911"),)
    assert table.broker_live_table == {}
