"""Small print of the tables: what changes a route, what a scan finds, what brokers are told, what the log says.

Each of these was a mutant of route_table.py, unregister.py or tables.py that no other test noticed.
"""

from logging import INFO, WARNING
from typing import Any

import pytest

from nemesrv.actors.namesrv import route_table
from nemesrv.actors.namesrv.route_table import RouteTable
from nemesrv.actors.namesrv.tables import (
    BrokerGroup,
    DropReason,
    MinBrokerIdChanged,
    Registered,
    RouteOptions,
    Shown,
    ShownTopics,
    Unregistration,
)
from nemesrv.remoting.bodies.route import QueueData
from nemesrv.remoting.node.profile import Profile
from tests.actors.namesrv.helpers import (
    V4,
    V5,
    leaving,
    perms,
    register,
    registration,
    row,
    table_with,
    topic,
    unregister,
    version,
)

MASTER, SLAVE, OTHER = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"


class Heard(list[tuple[int, str]]):
    """What a table says, put into words."""

    def __call__(self, level: int, msg: str, /, *args: object) -> None:
        self.append((level, msg % args))


def with_slave(profile: Profile, *, acting: bool | None = None, **options: Any) -> RouteTable:
    """Master and slave under one name; nothing has changed since."""
    table = table_with(
        profile,
        registration(enable_acting_master=acting),
        registration(id_=1, addr=SLAVE, channel=2, enable_acting_master=acting),
        options=RouteOptions(**options),
    )
    table.take_changed_topics()
    return table


# -- who leaves, and which routes that changes


def test_a_slave_that_unregisters_changes_the_routes_of_its_group(profile: Profile) -> None:
    table = with_slave(profile)
    unregister(table, leaving(addr=SLAVE, id_=1))
    assert table.take_changed_topics() == {"T", "U"}


def test_a_slave_whose_channel_closes_changes_the_routes_of_its_group(profile: Profile) -> None:
    table = with_slave(profile)
    table.on_channel_destroy(2, "anywhere", DropReason.CLOSED)
    table.run_unregistrations()
    assert table.take_changed_topics() == {"T", "U"}


def test_unregistering_an_id_that_nobody_has_takes_the_filter_servers_of_the_address_along() -> None:
    table = table_with(V4, registration(filter_servers=("f",)))
    table.take_changed_topics()
    assert table.unregister(leaving(id_=5)) == ()
    assert not table.filter_server_table
    assert table.take_changed_topics() == {"T", "U"}


def test_an_address_that_lost_its_id_to_another_takes_its_filter_servers_along_when_it_leaves() -> None:
    table = table_with(V5, registration(filter_servers=("f",)), registration(addr=OTHER))
    table.take_changed_topics()
    unregister(table, leaving())
    assert not table.filter_server_table
    assert table.take_changed_topics() == {"T", "U"}


def test_a_closed_channel_takes_the_filter_servers_along() -> None:
    table = table_with(V4, registration(filter_servers=("f",)))
    table.on_channel_destroy(1, "anywhere", DropReason.CLOSED)
    assert not table.filter_server_table


def test_new_filter_servers_change_the_routes() -> None:
    table = table_with(V4, registration())
    table.take_changed_topics()
    register(table, filter_servers=("f",))
    assert table.take_changed_topics() == {"T", "U"}


def test_a_broker_of_the_second_cluster_leaves_that_cluster() -> None:
    table = table_with(V4, registration(), registration("broker-b", addr=OTHER, channel=3, cluster="d"))
    table.on_channel_destroy(3, "anywhere", DropReason.CLOSED)
    assert table.cluster_addr_table == {"c": {"broker-a"}}


def test_of_two_clusters_with_one_address_the_broker_behind_the_channel_leaves() -> None:
    table = table_with(V5, registration(), registration("broker-b", channel=2, cluster="d"))
    table.on_channel_destroy(2, "anywhere", DropReason.CLOSED)
    assert [gone.broker_name for gone in table.run_unregistrations().dropped] == ["broker-b"]


# -- the scan


def test_a_scan_drops_all_that_are_silent_though_two_of_them_share_a_channel() -> None:
    table = table_with(
        V4,
        registration("broker-a", addr="a", channel=1),
        registration("broker-b", addr="b", channel=1),
        registration("broker-c", addr="c", channel=2),
        registration("broker-d", addr="d", channel=3),
    )
    expired = table.expire(now_ms=120_001)
    assert expired.channel_ids == (1, 2, 3)
    assert [gone.broker_name for gone in expired.dropped] == ["broker-b", "broker-c", "broker-d"]


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_a_scan_is_announced_in_5_x_only(heard: Heard, profile: Profile) -> None:
    RouteTable(profile, say=heard).expire(now_ms=0)
    assert heard == ([(INFO, "start scanNotActiveBroker")] if profile is V5 else [])


def test_a_queue_of_unregistrations_that_is_full_is_said_to_refuse(heard: Heard) -> None:
    table = table_with(V5, registration(), options=RouteOptions(unregister_queue_capacity=0), say=heard)
    table.on_channel_destroy(1, "anywhere", DropReason.CLOSED)
    assert heard[-1][1].endswith("submit result: false")
    assert not table.unregistrations_waiting


# -- the smallest id


def test_members_are_told_of_a_new_smallest_id_when_that_is_wanted_and_the_group_acts_as_master() -> None:
    def told(*, notify: bool, acting: bool, gone: Unregistration) -> tuple[MinBrokerIdChanged, ...]:
        table = with_slave(V5, acting=acting, notify_min_broker_id_changed=notify)
        table.submit_unregister(gone)
        return table.run_unregistrations().notifications

    assert told(notify=True, acting=True, gone=leaving()) == (
        MinBrokerIdChanged(
            broker_name="broker-a",
            min_broker_id=1,
            min_broker_addr=SLAVE,
            offline_broker_addr=MASTER,
            ha_broker_addr=None,
            notify=(SLAVE,),
        ),
    )
    assert told(notify=True, acting=False, gone=leaving()) == ()
    assert told(notify=False, acting=True, gone=leaving()) == ()
    assert told(notify=True, acting=True, gone=leaving(addr=SLAVE, id_=1)) == ()


def test_nobody_is_told_of_a_group_that_has_gone() -> None:
    table = with_slave(V5, acting=True, notify_min_broker_id_changed=True)
    table.submit_unregister(leaving())
    table.submit_unregister(leaving(addr=SLAVE, id_=1))
    assert table.run_unregistrations().notifications == ()


def test_a_lone_broker_that_takes_a_smaller_id_is_told_itself() -> None:
    table = table_with(V5, registration(id_=2), options=RouteOptions(notify_min_broker_id_changed=True))
    assert register(table, id_=1).notification == MinBrokerIdChanged(
        broker_name="broker-a",
        min_broker_id=1,
        min_broker_addr=MASTER,
        offline_broker_addr=None,
        ha_broker_addr=MASTER.replace("10911", "10912"),
        notify=(MASTER,),
    )


def test_4_9_tells_nobody_of_a_smaller_id() -> None:
    table = table_with(V4, registration(id_=2), options=RouteOptions(notify_min_broker_id_changed=True))
    assert register(table, id_=1) == Registered()


# -- write permission where slaves act as master


def test_only_a_group_without_its_master_becomes_read_only() -> None:
    table = with_slave(V5, acting=True, support_acting_master=True)
    register(table, broker="broker-b", addr=OTHER, channel=3)
    unregister(table, leaving(addr=SLAVE, id_=1))
    assert perms(table) == {"broker-a": 6, "broker-b": 6}
    register(table, id_=1, addr=SLAVE, channel=2, enable_acting_master=True)
    unregister(table, leaving())
    assert perms(table) == {"broker-a": 4, "broker-b": 6}


def test_rows_that_are_read_only_already_stay_the_same_rows() -> None:
    table = with_slave(V5, acting=True, support_acting_master=True)
    register(table, id_=2, addr=OTHER, channel=3, enable_acting_master=True)
    unregister(table, leaving())
    rows = table.broker_addr_table["broker-a"].rows_version
    unregister(table, leaving(addr=OTHER, id_=2))
    assert perms(table) == {"broker-a": 4}
    assert table.broker_addr_table["broker-a"].rows_version == rows


def test_a_master_that_may_be_acted_for_keeps_its_own_write_permission() -> None:
    assert perms(table_with(V5, registration(enable_acting_master=True))) == {"broker-a": 6}


# -- what registers


def test_the_same_address_may_come_back_with_a_smaller_state_version() -> None:
    table = table_with(V5, registration(data_version=version(1, state=5)))
    register(table, data_version=version(2, state=1))
    assert table.data_version("c", MASTER) == version(2, state=1)


def test_a_newcomer_that_is_refused_an_id_is_forgotten() -> None:
    table = table_with(
        V5,
        registration(data_version=version(1, state=5)),
        registration(id_=1, addr=SLAVE, data_version=version(1, state=1)),
    )
    register(table, id_=0, addr=SLAVE, data_version=version(1, state=1))
    assert table.data_version("c", SLAVE) is None
    assert table.broker_addr_table["broker-a"].addrs == {0: MASTER}


def test_a_new_version_with_the_same_rows_changes_no_route() -> None:
    table = table_with(V4, registration())
    table.take_changed_topics()
    register(table, data_version=version(2))
    assert table.take_changed_topics() == set()


def test_a_slave_is_told_nothing_of_a_master_that_is_not_live() -> None:
    table = table_with(V4, registration())
    table.broker_live_table.clear()
    assert register(table, id_=1, addr=SLAVE) == Registered()


def test_mappings_of_static_topics_add_up_and_change_their_topics() -> None:
    one, two = {"S": {"bname": "broker-a"}}, {"SS": {"bname": "broker-a"}}
    table = table_with(V5, registration(queue_mappings=one))
    assert table.mappings_size == route_table.mappings_size(one)
    assert "S" in table.take_changed_topics()
    register(table, data_version=version(2), queue_mappings=two)
    assert table.mappings_size == route_table.mappings_size(one) + route_table.mappings_size(two)
    assert table.take_changed_topics() == {"SS"}


def test_permissions_of_a_broker_are_wiped_beyond_topics_that_it_does_not_have() -> None:
    table = table_with(
        V4, registration("broker-b", addr=OTHER, topics=(topic("A"),)), registration(topics=(topic("T"), topic("U")))
    )
    assert table.wipe_write_perm("broker-a") == 2


# -- in words


def test_refusals_are_said_with_their_reason(heard: Heard) -> None:
    table = RouteTable(V5, say=heard)
    refused = register(table, broker="b" * 2000).refused
    assert refused is not None
    assert heard == [(WARNING, f"registerBroker refused, {'b' * route_table.NAME_MAX}: {refused}")]
    heard.clear()
    table.register_topic("t" * 2000, [QueueData(broker_name="b")])
    assert heard == [
        (WARNING, f"registerTopic refused: a topic's name is longer than {route_table.NAME_MAX} characters")
    ]


def test_topics_registered_for_several_brokers_are_said_row_by_row(heard: Heard) -> None:
    table = table_with(V5, registration(), registration("broker-b", addr=OTHER, channel=2), say=heard)
    rows = [QueueData(broker_name=name) for name in ("broker-a", "broker-b")]
    heard.clear()
    table.register_topic("N", rows)
    table.register_topic("N", rows)
    shown = [str(Shown(each)) for each in rows]
    assert heard == [
        (INFO, f"Register topic route:N, [{', '.join(shown)}]"),
        (INFO, f"Topic route already exist.N, {{broker-a={shown[0]}, broker-b={shown[1]}}}"),
    ]


def test_topics_that_a_registration_leaves_out_are_said_to_go(heard: Heard) -> None:
    options = RouteOptions(delete_topic_with_broker_registration=True)
    table = table_with(
        V5,
        registration(),
        registration("broker-b", addr=OTHER, channel=2, topics=(topic("U"), topic("V"))),
        options=options,
        say=heard,
    )
    heard.clear()
    register(table, topics=(topic("W"),), data_version=version(2))
    gone = Shown(row("broker-a", topic())[1])
    assert heard[:3] == [
        (INFO, f"deleteTopic, remove one broker's topic broker-a T {gone}"),
        (INFO, "deleteTopic, remove the topic all queue T"),
        (INFO, f"deleteTopic, remove one broker's topic broker-a U {gone}"),
    ]
    assert not any("all queue U" in text for _, text in heard)


def test_removals_of_what_is_not_there_are_said_to_have_failed(heard: Heard) -> None:
    RouteTable(V4, say=heard).unregister(leaving())
    assert heard == [(INFO, f"unregisterBroker, remove from brokerLiveTable Failed, {MASTER}")]


def test_rows_and_topics_in_words() -> None:
    assert str(Shown(None)) == "null"
    both = str(ShownTopics([row("b", topic("T", perm=7)), row("b", topic("U", perm=2))]))
    assert both.count("TopicConfig [topicName=") == 2
    assert "perm=RWX" in both
    assert "perm=-W-" in both
    assert "attributes={}], U=TopicConfig" in both


def test_only_5_x_tells_of_zones() -> None:
    group = BrokerGroup(cluster="c", broker_name="b", zone_name="z")
    assert group.data(V5).zone_name == "z"
    assert group.data(V4).zone_name is None
