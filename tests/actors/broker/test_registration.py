"""Registration with NameServers: periods, payloads, failures, unregistration, on the virtual clock."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.broker.topics import TopicTable
from nemesrv.remoting.bodies.route import DataVersion, KVTable
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import RocketMQError
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile

from .world import PROFILES, RecordingNameServer, World

BROKER = Address("127.0.0.1", 10911)
ONE = (Address("127.0.0.1", 9876),)
IDENTITY = {"brokerName": "broker-a", "brokerId": "0", "clusterName": "DefaultCluster", "brokerAddr": str(BROKER)}
THREE = tuple(Address("127.0.0.1", port) for port in (9876, 9877, 9878))


async def registered(world: World, **config: object) -> tuple[RecordingNameServer, Broker]:
    """With the only NameServer that there is."""
    (server,) = await world.name_servers(1)
    return server, await world.broker(namesrv_addr=ONE, **config)


@pytest.mark.parametrize("profile", PROFILES)
async def test_every_name_server_is_told_at_once_after_10_s_and_then_each_30_s(world: World, profile: Profile) -> None:
    servers = await world.name_servers(3)
    await world.broker(namesrv_addr=THREE, profile=profile)
    await world.clock.sleep(101)
    # 4.9's first check of half messages makes their topic
    expected = [0, 10, 40, 60, 70, 100] if profile is Profile.V4_9 else [0, 10, 40, 70, 100]
    assert [server.times() for server in servers] == [expected] * 3
    outcomes = world.recorded("register", type="ok", name_server="127.0.0.1:9877", code=0)
    assert [round(outcome["at"]) for outcome in outcomes] == expected


@pytest.mark.parametrize(("period_ms", "expected"), [(1, [0, 10, 20, 30]), (600_000, [0, 10, 70, 130])])
async def test_the_period_is_clamped_to_10_and_60_s(world: World, period_ms: int, expected: list[float]) -> None:
    server, _ = await registered(world, register_name_server_period=period_ms, profile=Profile.V5_X)
    await world.clock.sleep(expected[-1] + 1)
    assert server.times() == expected


async def test_the_first_registration_says_who_and_what(world: World) -> None:
    server, broker = await registered(world)
    _, _, fields, topics = server.requests[0]
    assert fields.items() >= (IDENTITY | {"haServerAddr": "127.0.0.1:10912"}).items()
    assert "TBW102" in topics
    assert len(topics) >= 2
    assert server.bodies[0].data_version == broker.services.topics.data_version
    tbw = server.bodies[0].topic_config_serialize_wrapper.topic_config_table["TBW102"]
    assert (tbw.perm, tbw.read_queue_nums, tbw.write_queue_nums) == (7, 8, 8)


async def test_name_servers_have_a_created_topic_before_mqadmin_has_the_answer(world: World) -> None:
    server, _ = await registered(world)

    async def late() -> RemotingCommand:
        await world.clock.sleep(1)
        return RemotingCommand.response()

    server.answer = late
    began_s = world.clock.monotonic_s()
    await world.create_topic("created")
    assert world.clock.monotonic_s() - began_s >= 1
    assert [topic.topic_name for topic in server.bodies[-1].topics] == ["created"]


async def test_a_new_topic_is_told_at_once_alone_with_its_own_version(world: World) -> None:
    servers = await world.name_servers(2)
    broker = await world.broker(namesrv_addr=THREE[:2])
    await world.clock.sleep(3)
    before = broker.services.topics.data_version
    await world.send(topic="new")
    await world.clock.sleep(0.1)
    for server in servers:
        assert server.times()[1:] == [3]
        assert server.requests[1][3] == ("new",)
        assert server.bodies[1].data_version.counter == before.counter + 1


async def test_topics_made_in_one_breath_arrive_in_order_each_with_its_version(world: World) -> None:
    server, broker = await registered(world)
    for name in ("one", "two", "three"):
        broker.services.topics.create_by_default(name, "TBW102", 4, now_ms=world.clock.now_ms())
    await world.clock.sleep(0.1)
    told = [(body.topics[0].topic_name, body.data_version.counter) for body in server.bodies[1:]]
    assert told == [("one", 1), ("two", 2), ("three", 3)]


async def test_a_name_server_that_hangs_holds_up_no_other_and_is_tried_again(world: World) -> None:
    servers = await world.name_servers(3)
    world.network.hold(THREE[1])
    await world.broker(namesrv_addr=THREE)
    assert round(world.clock.monotonic_s()) == 6
    assert (servers[0].times(), servers[1].times(), servers[2].times()) == ([0], [], [0])
    assert [outcome["at"] for outcome in world.recorded("register", type="info")] == [6]
    await world.clock.sleep(41)
    assert servers[0].times() == [0, 16, 46]
    world.network.release(THREE[1])
    await world.clock.sleep(30)
    assert 76 in servers[1].times()


async def test_a_name_server_that_refuses_is_a_definite_failure(world: World) -> None:
    servers = await world.name_servers(2)
    await servers[1].server.close()
    await world.broker(namesrv_addr=THREE[:2])
    assert servers[0].times() == [0]
    (failed,) = world.recorded("register", type="fail", name_server="127.0.0.1:9877")
    assert failed["code"] is None


async def test_an_answer_other_than_success_is_recorded_with_its_code(world: World) -> None:
    (server,) = await world.name_servers(1)
    server.answer = lambda: RemotingCommand.response(ResponseCode.INVALID_PARAMETER, "no")
    await world.broker(namesrv_addr=ONE)
    assert len(world.recorded("register", type="fail", code=ResponseCode.INVALID_PARAMETER)) == 1


async def test_after_a_failure_a_new_topic_comes_with_all_the_others(world: World) -> None:
    # Or the NameServer would learn the newest version without the topic that it missed, and keep lacking it.
    server, _ = await registered(world)
    server.answer = lambda: RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "not now")
    await world.send(topic="missed")
    await world.clock.sleep(0.1)
    server.answer = RemotingCommand.response
    await world.send(topic="next")
    await world.clock.sleep(0.1)
    assert server.requests[-1][3] != ("next",)
    assert {"missed", "next", "TBW102"} <= set(server.requests[-1][3])
    await world.send(topic="third")
    await world.clock.sleep(0.1)
    assert server.requests[-1][3] == ("third",)


async def test_the_targets_are_asked_for_anew_each_time(world: World) -> None:
    servers = await world.name_servers(2)
    broker = await world.broker(namesrv_addr=THREE[:2])
    targets: Sequence[Address] = THREE[:1]
    broker._registration_targets = lambda: targets  # type: ignore[method-assign]
    await world.clock.sleep(41)
    assert (servers[0].times(), servers[1].times()) == ([0, 10, 40], [0])


async def test_a_clean_stop_unregisters_from_each_in_turn_a_dead_one_costing_3_s(world: World) -> None:
    servers = await world.name_servers(3)
    broker = await world.broker(namesrv_addr=THREE)
    await world.clock.sleep(1)
    world.network.hold(THREE[0])
    await world.stop(broker)
    assert [server.times(RequestCode.UNREGISTER_BROKER) for server in servers] == [[], [4], [4]]
    assert servers[1].requests[-1][2] == IDENTITY


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_read_only_broker_says_so_of_every_topic(world: World, profile: Profile) -> None:
    server, _ = await registered(world, broker_permission=4, profile=profile)
    assert {topic.perm & 6 for topic in server.bodies[0].topics} <= {4, 0}
    assert all(not topic.perm & 2 for topic in server.bodies[0].topics)


async def test_a_changed_permission_is_told_at_once_under_a_new_version(world: World) -> None:
    server, _ = await registered(world)
    await world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=4")
    await world.clock.sleep(0.1)
    first, second = server.bodies
    assert second.data_version != first.data_version
    assert all(not topic.perm & 2 for topic in second.topics)


async def test_not_forced_a_broker_asks_first_and_registers_only_what_changed(world: World) -> None:
    server, broker = await registered(world, force_register=False, profile=Profile.V5_X)
    version: list[DataVersion] = [broker.services.topics.data_version]
    server.answer = lambda: RemotingCommand.response(header={"changed": "false"}, body=version[0].encode())
    await world.clock.sleep(41)
    assert (server.times(), server.times(RequestCode.QUERY_DATA_VERSION)) == ([0], [10, 40])
    version[0] = version[0].next(now_ms=1)
    await world.clock.sleep(30)
    assert server.times() == [0, 70]
    await world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=4")
    await world.clock.sleep(1)
    assert server.times() == [0, 70, 71], "what an operator changes is told, whatever the NameServer has"


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_compressed_registration_is_read_back_whole(world: World, profile: Profile) -> None:
    server, broker = await registered(world, compressed_register=True, profile=profile)
    assert set(server.requests[0][3]) == set(broker.services.topics.topic_config_table)
    assert server.requests[0][2]["compressed"] == "true"


async def test_the_name_servers_order_configuration_marks_topics(world: World) -> None:
    server, broker = await registered(world)
    await world.create_topic("ordered")
    table = KVTable(table={"ordered": "broker-a:4", "elsewhere": "broker-b:4"})
    server.answer = lambda: RemotingCommand.response(body=table.encode())
    await world.clock.sleep(11)
    topics = broker.services.topics.topic_config_table.values()
    assert [topic.topic_name for topic in topics if topic.order] == ["ordered"]


async def test_of_several_order_configurations_the_one_that_came_first_counts(world: World) -> None:
    servers = await world.name_servers(2)
    broker = await world.broker(namesrv_addr=THREE[:2])
    await world.create_topic("ordered")

    async def late() -> RemotingCommand:
        await world.clock.sleep(1)
        return RemotingCommand.response()

    servers[0].answer = late
    servers[1].answer = lambda: RemotingCommand.response(body=KVTable(table={"ordered": "broker-a:4"}).encode())
    await world.clock.sleep(12)
    topics = broker.services.topics.topic_config_table.values()
    assert [topic.topic_name for topic in topics if topic.order] == ["ordered"]


async def test_the_version_survives_a_restart_and_so_do_the_topics(world: World) -> None:
    server, broker = await registered(world)
    await world.send(topic="kept")
    await world.stop(broker)
    version = server.bodies[-1].data_version
    await world.clock.sleep(5)
    await world.broker(namesrv_addr=ONE)
    assert server.bodies[-1].data_version == version
    assert "kept" in server.requests[-1][3]


async def test_topics_of_a_brokers_start_are_its_next_process_s_though_it_is_killed_at_once(tmp_path: Path) -> None:
    def topic_files() -> list[Path]:
        return [*tmp_path.rglob("topics.json")]

    async with World(tmp_path) as world:
        broker = await world.broker(start=False)
        broker.have_topics({"audit": 2})
        (file,) = topic_files()  # as it is if nothing more is written
        assert TopicTable(BrokerConfig(), now_ms=0, path=file).get("audit") == broker.services.topics.get("audit")


async def test_a_broker_that_only_listens_is_reached_by_nobody(world: World) -> None:
    """In a scenario its port is bound before it joins."""
    broker, asked = await world.broker(start=False), RemotingCommand.request(RequestCode.GET_ALL_TOPIC_CONFIG)
    with pytest.raises(RocketMQError):
        await world.client.invoke(BROKER, asked, timeout_s=1)
    await broker.start()
    answer = await world.client.invoke(BROKER, asked, timeout_s=1)
    assert answer.code == ResponseCode.SUCCESS
