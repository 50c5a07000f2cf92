"""The rules by which brokers and topics come in and routes go out (nameserver.md sections 2, 3, 5, 6)."""

from nemesrv.actors.namesrv.route_table import RouteTable, filter_by_zone
from nemesrv.actors.namesrv.tables import RouteOptions
from nemesrv.remoting.bodies.route import QueueData, TopicRouteData, canonical
from nemesrv.remoting.node.profile import Profile
from tests.actors.namesrv.helpers import V4, V5, perms, register, registration, table_with, topic, version


def routed(table: RouteTable, name: str = "T") -> TopicRouteData:
    route = table.route(name)
    assert route is not None
    return route


def test_a_registered_broker_is_in_the_route_of_its_topics(profile: Profile) -> None:
    table = table_with(profile, registration(topics=(topic("T", queues=8), topic("U"))))
    assert canonical(routed(table)) == {
        "brokers": {"broker-a": {"0": "10.0.0.1:10911"}},
        "queues": {"broker-a": [8, 8, 6, 0]},
    }
    assert table.route("nobody has this") is None
    assert table.take_changed_topics() == {"T", "U"}
    assert table.take_changed_topics() == set()


def test_registering_the_same_again_changes_nothing_but_the_last_update(profile: Profile) -> None:
    table = table_with(profile, registration())
    table.take_changed_topics()
    register(table, now_ms=30_000)
    assert table.take_changed_topics() == set()
    assert [live.last_update_ms for live in table.broker_live_table.values()] == [30_000]


def test_an_unchanged_version_leaves_a_wiped_perm_and_any_other_version_restores_it(profile: Profile) -> None:
    table = table_with(profile, registration(data_version=version(5)))
    assert table.wipe_write_perm("broker-a") == 2
    register(table, data_version=version(5))
    assert perms(table) == {"broker-a": 4}
    register(table, data_version=version(4))  # older: inequality, not order, makes it a change
    assert perms(table) == {"broker-a": 6}


def test_state_version_is_part_of_the_version_in_5_x_only() -> None:
    for profile, expected in ((V4, 4), (V5, 6)):
        table = table_with(profile, registration(data_version=version(5)))
        table.wipe_write_perm("broker-a")
        register(table, data_version=version(5, state=1))
        assert perms(table) == {"broker-a": expected}


def test_a_topic_deleted_here_comes_back_with_the_next_registration_in_5_x_only() -> None:
    for profile, back in ((V4, False), (V5, True)):
        table = table_with(profile, registration())
        table.delete_topic("T")
        register(table)
        assert (table.route("T") is not None) is back


def test_topics_absent_from_a_registration_stay(profile: Profile) -> None:
    table = table_with(profile, registration(), registration(topics=(), data_version=version(2)))
    assert table.route("T") is not None


def test_topics_absent_from_a_registration_go_where_5_x_is_told_so() -> None:
    options = RouteOptions(delete_topic_with_broker_registration=True)
    table = table_with(V5, registration(), registration("broker-b", addr="10.0.0.2:10911"), options=options)
    register(table, topics=(topic("U"), topic("V")))
    assert perms(table, "T") == {"broker-b": 6}
    assert set(perms(table, "V")) == {"broker-a"}
    static = {"V": {"bname": "broker-a"}}
    register(table, topics=(topic("V"), topic("W")), queue_mappings=static)  # static topics: nothing is deleted
    assert set(perms(table, "U")) == {"broker-a", "broker-b"}
    assert routed(table, "V").topic_queue_mapping_by_broker is None  # the version did not change
    register(table, topics=(topic("V"), topic("W")), queue_mappings=static, data_version=version(2))
    assert routed(table, "V").topic_queue_mapping_by_broker == {"broker-a": {"bname": "broker-a"}}


def test_slaves_write_no_topics_and_learn_their_master(profile: Profile) -> None:
    slave = registration(id_=1, addr="10.0.0.9:10911", topics=(topic("S"), topic("R")))
    table = table_with(profile)
    assert table.register(slave, now_ms=0).master_addr is None
    register(table)
    result = table.register(slave, now_ms=0)
    assert (result.master_addr, result.ha_server_addr) == ("10.0.0.1:10911", "10.0.0.1:10912")
    assert table.route("S") is None
    assert routed(table).broker_datas[0].broker_addrs == {0: "10.0.0.1:10911", 1: "10.0.0.9:10911"}


def test_a_slave_that_becomes_master_keeps_only_its_new_id(profile: Profile) -> None:
    table = table_with(profile, registration(id_=1), registration(id_=0))
    assert table.broker_addr_table["broker-a"].addrs == {0: "10.0.0.1:10911"}


def test_without_a_state_version_the_last_writer_holds_the_id(profile: Profile) -> None:
    table = table_with(profile, registration(), registration(addr="10.0.0.2:10911"))
    assert table.broker_addr_table["broker-a"].addrs == {0: "10.0.0.2:10911"}
    assert len(table.broker_live_table) == 2  # the old address keeps its entry


def test_a_lower_state_version_loses_the_conflict_in_5_x_and_wins_it_in_4_9() -> None:
    for profile, holder in ((V5, "10.0.0.1:10911"), (V4, "10.0.0.2:10911")):
        table = table_with(profile, registration(data_version=version(1, state=7)))
        result = register(table, addr="10.0.0.2:10911", data_version=version(9, state=6))
        assert result.refused is None
        assert table.broker_addr_table["broker-a"].addrs == {0: holder}
        assert (table.data_version("c", "10.0.0.2:10911") is None) is (profile is V5)


def test_a_first_registration_with_one_topic_is_refused_in_5_x_only() -> None:
    for profile, accepted in ((V4, True), (V5, False)):
        table = table_with(profile)
        assert (register(table, topics=(topic("T"),)).refused is None) is accepted
        assert "broker-a" in table.broker_addr_table  # 5.x leaves the empty group and the cluster entry behind
        assert table.cluster_addr_table == {"c": {"broker-a"}}
        assert (table.route("T") is not None) is accepted
    register(table)
    assert (
        register(table, topics=(topic("V"),), data_version=version(2)).refused is None
    )  # incremental, once it is known
    assert table.route("V") is not None


def test_the_smallest_slave_registers_read_only_topics_and_acts_as_master_in_5_x() -> None:
    options = RouteOptions(support_acting_master=True)
    slave = registration(id_=2, addr="10.0.0.2:10911", enable_acting_master=True)
    table = table_with(V5, slave, options=options)
    assert perms(table) == {"broker-a": 4}
    assert routed(table).broker_datas[0].broker_addrs == {0: "10.0.0.2:10911"}
    old = table_with(V5, registration(id_=2, addr="10.0.0.2:10911"), options=options)  # says nothing: an old version
    assert old.route("T") is None
    member_topic = "rmq_sys_SYNC_BROKER_MEMBER_x"
    register(table, id_=2, addr="10.0.0.2:10911", enable_acting_master=True, topics=(topic(member_topic), topic("T")))
    assert routed(table, member_topic).broker_datas[0].broker_addrs == {2: "10.0.0.2:10911"}
    table.set_options(RouteOptions())
    assert table.take_changed_topics() >= {"T", member_topic}
    assert routed(table).broker_datas[0].broker_addrs == {2: "10.0.0.2:10911"}


def test_a_new_smallest_id_is_told_to_the_others_when_5_x_is_told_so() -> None:
    options = RouteOptions(notify_min_broker_id_changed=True)
    table = table_with(V5, registration(id_=2, addr="10.0.0.2:10911"), options=options)
    told = register(table, id_=0).notification
    assert told is not None
    assert (told.min_broker_id, told.min_broker_addr, told.ha_broker_addr, told.notify, told.offline_broker_addr) == (
        0,
        "10.0.0.1:10911",
        "10.0.0.1:10912",
        ("10.0.0.2:10911",),
        None,
    )
    assert register(table, id_=0).notification is None
    assert register(table_with(V5, registration(id_=2)), id_=0).notification is None


def test_query_data_version_tells_changes_and_refreshes_as_its_profile_does(profile: Profile) -> None:
    table = table_with(profile, registration(data_version=version(3)))
    live = next(iter(table.broker_live_table.values()))
    assert table.query_data_version("c", "10.0.0.1:10911", version(3), now_ms=10) == (False, version(3))
    assert live.last_update_ms == 10
    assert table.query_data_version("c", "10.0.0.1:10911", version(4), now_ms=20) == (True, version(3))
    assert live.last_update_ms == (10 if profile is V4 else 20)
    assert table.query_data_version("c", "10.9.9.9:1", version(4), now_ms=20) == (True, None)


def test_a_5_x_live_entry_is_found_in_its_own_cluster_only() -> None:
    for profile, known in ((V4, True), (V5, False)):
        table = table_with(profile, registration())
        assert (table.data_version("another", "10.0.0.1:10911") is not None) is known


def test_add_write_perm_makes_every_row_exactly_six(profile: Profile) -> None:
    table = table_with(profile, registration(topics=(topic("T", perm=13), topic("U", perm=6))))
    table.take_changed_topics()
    assert table.add_write_perm("broker-a") == 2
    assert (perms(table, "T"), perms(table, "U")) == ({"broker-a": 6}, {"broker-a": 6})
    assert table.take_changed_topics() == {"T"}
    assert table.wipe_write_perm("nobody") == 0


def test_a_topic_is_deleted_everywhere_or_in_one_cluster(profile: Profile) -> None:
    table = table_with(profile, registration(), registration("broker-b", addr="10.0.0.2:10911", cluster="d"))
    table.delete_topic("T", "nowhere")
    table.delete_topic("T", "d")
    assert set(perms(table)) == {"broker-a"}
    table.delete_topic("U")
    table.delete_topic("unknown")
    assert table.topics() == ("T",)


def test_register_topic_takes_rows_of_known_brokers_only() -> None:
    table = table_with(V5, registration())
    row = QueueData(broker_name="broker-a", read_queue_nums=1, write_queue_nums=1, perm=6)
    table.register_topic("X", [row])
    assert set(perms(table, "X")) == {"broker-a"}
    table.register_topic("Y", [row, QueueData(broker_name="broker-z")])
    assert table.route("Y") is None
    table = table_with(V5, registration(), registration("broker-b", addr="10.0.0.2:10911"))
    read_only = QueueData(broker_name="broker-a", perm=4)
    table.register_topic("T", [read_only, QueueData(broker_name="broker-z"), QueueData(broker_name="broker-b")])
    assert perms(table, "T") == {"broker-a": 4, "broker-b": 6}


def test_filter_servers_are_in_the_route_until_an_empty_list_comes(profile: Profile) -> None:
    table = table_with(profile, registration(filter_servers=("10.0.0.1:20000",)))
    assert routed(table).filter_server_table == {"10.0.0.1:10911": ("10.0.0.1:20000",)}
    register(table, filter_servers=None)
    assert routed(table).filter_server_table
    table.take_changed_topics()
    register(table, filter_servers=())
    assert routed(table).filter_server_table == {}
    assert table.take_changed_topics() == {"T", "U"}


def test_a_zone_sees_its_own_masters_and_groups_without_one() -> None:
    table = table_with(
        V5,
        registration(zone_name="Z1", filter_servers=("f1",)),
        registration("broker-b", addr="10.0.0.2:10911", zone_name="z2", filter_servers=("f2",)),
        registration("broker-c", addr="10.0.0.3:10911"),
        registration("broker-d", id_=1, addr="10.0.0.4:10911", enable_acting_master=True),
    )
    seen = filter_by_zone(routed(table), "z1")
    assert [data.broker_name for data in seen.broker_datas] == ["broker-a", "broker-d"]
    assert [row.broker_name for row in seen.queue_datas] == ["broker-a", "broker-d"]
    assert seen.filter_server_table == {"10.0.0.1:10911": ("f1",)}
    register(table)  # a registration without the field clears the zone
    assert [data.broker_name for data in filter_by_zone(routed(table), "z1").broker_datas] == ["broker-d"]
