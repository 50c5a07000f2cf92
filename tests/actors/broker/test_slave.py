"""A slave beside its master: what it copies, what it serves and refuses, and what it does when the master is gone."""

import asyncio
from pathlib import Path

import pytest

from nemesrv.actors.broker.commit_log import StoreError
from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.replication import Flow
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.broker.store import MessageStore
from nemesrv.actors.errors import ConfigError
from nemesrv.remoting.bodies.admin import HARuntimeInfo
from nemesrv.remoting.bodies.register import TopicConfigSerializeWrapper
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from tests.refusals import refusal

from .world import PROFILES, RecordingNameServer, World, bodies

NAME_SERVER = (Address("127.0.0.1", 9876),)
SLAVE = 10921
SMALL_FILES = 1 << 17


class Pair:
    """A master and its slave, which the NameServer tells of each other."""

    def __init__(self, world: World, name_server: RecordingNameServer, master: Broker, slave: Broker) -> None:
        self.world, self.name_server, self.master, self.slave = world, name_server, master, slave

    @property
    def logs(self) -> tuple[bytes, bytes]:
        """Both commit logs, whole."""
        of = (self.master.store, self.slave.store)
        master, slave = (store.directory / "commitlog" for store in of)
        return tuple(b"".join(file.read_bytes() for file in sorted(log.iterdir())) for log in (master, slave))  # type: ignore[return-value]


async def pair(world: World, *, sent: bytes = b"", then_s: float = 0, **config: object) -> Pair:
    (name_server,) = await world.name_servers(1)
    master = await world.broker(namesrv_addr=NAME_SERVER, **config)
    told = {"masterAddr": "127.0.0.1:10911", "haServerAddr": "127.0.0.1:10912"}
    name_server.answer = lambda: RemotingCommand.response(header=told)
    own = {key: value for key, value in config.items() if key != "broker_role"}
    slave = await world.broker(port=SLAVE, namesrv_addr=NAME_SERVER, broker_id=1, broker_role="SLAVE", **own)
    if sent:
        await world.send(sent)
    await world.clock.sleep(then_s)
    return Pair(world, name_server, master, slave)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_slave_has_what_its_master_has_byte_for_byte_and_serves_it(world: World, profile: Profile) -> None:
    both = await pair(world, profile=profile)
    await world.clock.sleep(4)  # the topics come with the first synchronization
    await world.create_topic()
    for number in range(5):
        await world.send(b"%d" % number)
    await world.clock.sleep(11)
    master, slave = both.logs
    assert master == slave != b""
    assert bodies(await world.pull(port=SLAVE)) == [b"%d" % number for number in range(5)]


async def test_what_was_there_before_the_slave_is_copied_over_file_ends_too(world: World) -> None:
    config = {"mapped_file_size_commit_log": SMALL_FILES, "max_message_size": 4096}
    (name_server,) = await world.name_servers(1)
    master = await world.broker(namesrv_addr=NAME_SERVER, **config)
    await world.create_topic()
    for number in range(120):
        await world.send(b"%04d" % number * 800)
    assert len(list((master.store.directory / "commitlog").iterdir())) > 2
    name_server.answer = lambda: RemotingCommand.response(header={"masterAddr": "127.0.0.1:10911"})
    slave = await world.broker(port=SLAVE, namesrv_addr=NAME_SERVER, broker_id=1, broker_role="SLAVE", **config)
    await world.clock.sleep(4)
    master_log, slave_log = Pair(world, name_server, master, slave).logs
    assert slave_log == master_log
    assert slave.store.max_offset("orders", 0) == 120


async def test_a_slave_that_was_restarted_goes_on_where_its_log_ends(world: World) -> None:
    both = await pair(world, sent=b"before", then_s=1)
    await world.stop(both.slave)
    await world.send(b"meanwhile")
    both.slave = await world.broker(port=SLAVE, namesrv_addr=NAME_SERVER, broker_id=1, broker_role="SLAVE")
    assert both.slave.store.max_offset("orders", 0) == 1
    await world.clock.sleep(1)
    assert both.logs[0] == both.logs[1]
    assert both.slave.store.max_offset("orders", 0) == 2


async def test_a_slave_registers_with_its_id_and_the_masters_version(world: World) -> None:
    both = await pair(world)
    await world.create_topic()
    await world.clock.sleep(20)
    fields, told = both.name_server.requests[-1][2], both.name_server.bodies[-1]
    assert (fields["brokerId"], fields["brokerAddr"]) == ("1", f"127.0.0.1:{SLAVE}")
    assert told.data_version == both.master.services.topics.data_version
    assert {topic.topic_name for topic in told.topics} == set(both.master.services.topics.topic_config_table)


async def test_a_slave_stores_nothing_that_a_client_sends_and_changes_nothing_by_hand(world: World) -> None:
    both = await pair(world)
    await world.create_topic()
    await world.clock.sleep(4)
    sent = await world.send(port=SLAVE)
    assert sent.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "slave mode" in (sent.remark or "")
    deleted = await world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"}, port=SLAVE)
    assert deleted.code == ResponseCode.SYSTEM_ERROR
    assert "slave" in (deleted.remark or "")
    assert both.slave.store.max_physical_offset == 0
    assert "orders" in both.slave.services.topics


async def test_each_says_how_far_the_slave_is_behind(world: World) -> None:
    await pair(world, profile=Profile.V5_X)
    await world.create_topic()
    await world.send(b"copied")
    await world.clock.sleep(11)
    told = (await world.ask(RequestCode.GET_BROKER_HA_STATUS)).body
    at_master = HARuntimeInfo.decode(told)
    at_slave = HARuntimeInfo.decode((await world.ask(RequestCode.GET_BROKER_HA_STATUS, port=SLAVE)).body)
    (slave,) = at_master.ha_connection_info
    assert at_master.master
    assert at_master.in_sync_slave_nums == 1
    assert slave.in_sync
    assert (slave.slave_ack_offset, slave.diff) == (at_master.master_commit_log_max_offset, 0)
    assert slave.slave_ack_offset > 0
    assert not at_slave.master
    client = at_slave.ha_client_runtime_info
    assert (client.master_addr, client.max_offset) == ("127.0.0.1:10911", slave.slave_ack_offset)
    assert client.last_write_timestamp > 0
    assert client.activated


def test_the_bytes_of_a_second_are_those_of_the_one_before() -> None:
    flow = Flow()
    flow.add(100, 5.1)
    flow.add(20, 5.9)
    assert [flow.in_second(at_s) for at_s in (5.95, 6.0, 6.9, 7.0)] == [0, 120, 120, 0]


async def test_topics_groups_and_offsets_follow_the_master_each_10_s(world: World) -> None:
    both = await pair(world)
    await world.clock.sleep(4)
    await world.create_topic("late", queues=2)
    await world.pull(topic="late")  # makes the group
    await world.commit(7, topic="late")
    slave = both.slave.services
    assert "late" not in slave.topics
    await world.clock.sleep(10)
    assert slave.topics.topic_config_table == both.master.services.topics.topic_config_table
    assert slave.offsets.query("g", "late", 0) == 7
    assert slave.groups.table == both.master.services.groups.table
    times = [event["at"] for event in world.recorded("scheduled_task", f="SlaveSynchronize")]
    assert times == [3, 13]


async def test_delayed_messages_wait_at_the_slave_until_it_is_told_that_they_were_delivered(world: World) -> None:
    both = await pair(world)
    await world.send(b"later", properties="DELAY\x011\x02")
    await world.clock.sleep(14)
    assert both.slave.store.max_offset("orders", 0) == 1, "copied, not delivered a second time"
    answer = await world.ask(RequestCode.GET_ALL_DELAY_OFFSET)
    kept = (both.slave.store.directory / "config" / "delayOffset.json").read_bytes()
    assert kept == answer.body
    assert b'"1":1' in kept


@pytest.mark.parametrize(("profile", "wakes"), [(Profile.V4_9, False), (Profile.V5_X, True)])
async def test_copies_wake_a_held_pull_in_5x_and_the_check_in_4_9(world: World, profile: Profile, wakes: bool) -> None:
    await pair(world, sent=b"first", then_s=11, profile=profile)
    held = asyncio.create_task(world.pull(1, wait_ms=15_000, port=SLAVE))
    await world.clock.sleep(0.5)
    await world.send(b"second")
    await world.clock.sleep(0.5)
    assert held.done() is wakes
    assert bodies(await held) == [b"second"]


async def test_without_its_master_a_slave_goes_on_serving_and_takes_commits(world: World) -> None:
    both = await pair(world, sent=b"one", then_s=11)
    both.name_server.answer = RemotingCommand.response  # it forgets the master
    await world.stop(both.master)
    await world.clock.sleep(60)
    answer = await world.pull(port=SLAVE, sysFlag=1 | 4, commitOffset=1)
    assert bodies(answer) == [b"one"]
    assert (answer.ext_fields or {})["suggestWhichBrokerId"] == "0"
    assert both.slave.services.offsets.query("g", "orders", 0) == -1, "a slave takes no commit from a pull"
    await world.commit(1, port=SLAVE)
    assert both.slave.services.offsets.query("g", "orders", 0) == 1


async def test_a_master_that_came_back_is_followed_again_and_its_offsets_count(world: World) -> None:
    both = await pair(world, sent=b"one", then_s=11)
    await world.pull()
    await world.commit(0)
    await world.stop(both.master)
    await world.commit(1, port=SLAVE)
    both.master = await world.broker(namesrv_addr=NAME_SERVER)
    await world.send(b"two")
    await world.clock.sleep(15)
    assert both.logs[0] == both.logs[1]
    assert both.slave.services.offsets.query("g", "orders", 0) == 0, "as Apache's: the master's, over its own"


async def test_a_log_that_does_not_follow_on_the_masters_is_left_alone(world: World) -> None:
    both = await pair(world, sent=b"one", then_s=11)
    await world.stop(both.master)
    log = next((both.master.store.directory / "commitlog").iterdir())
    log.unlink()
    both.master = await world.broker(namesrv_addr=NAME_SERVER)
    await world.clock.sleep(30)
    assert both.slave.store.max_offset("orders", 0) == 1
    for number in range(9):
        await world.send(b"another %d" % number)
    await world.clock.sleep(30)
    assert both.slave.store.max_offset("orders", 0) == 1, "what comes does not begin where its log ends"


async def test_a_sync_master_answers_when_a_slave_has_the_message_and_says_when_none_has(world: World) -> None:
    both = await pair(world, broker_role="SYNC_MASTER")
    await world.clock.sleep(1)
    assert (await world.send(b"on both")).code == ResponseCode.SUCCESS
    assert both.logs[0] == both.logs[1]
    world.network.hold(Address("127.0.0.1", 10911))
    waits = asyncio.create_task(both.master.services.copied(both.master.store.max_physical_offset + 1))
    await world.clock.sleep(5.1)
    assert waits.result() == ResponseCode.FLUSH_SLAVE_TIMEOUT
    world.network.release(Address("127.0.0.1", 10911))
    await world.stop(both.slave)
    await world.clock.sleep(0.1)
    alone = await world.send(b"alone")
    assert alone.code == ResponseCode.SLAVE_NOT_AVAILABLE
    assert (alone.ext_fields or {})["queueOffset"] == "1", "it is stored all the same"
    unwaited = await world.send(b"nobody waits", properties="WAIT\x01false\x02")
    assert unwaited.code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"brokerRole": "SLAVE"}, "brokerId=0 is not allowed; expected 1 or more with brokerRole SLAVE"),
        ({"brokerId": "1"}, "brokerId=1 is not allowed; expected 0, or 1 or more with brokerRole SLAVE"),
        ({"brokerRole": "slave"}, "ASYNC_MASTER or SYNC_MASTER or SLAVE"),
    ],
)
def test_a_role_and_an_id_that_do_not_go_together_are_refused(properties: dict[str, str], sentence: str) -> None:
    with refusal(sentence, by=ConfigError):
        BrokerConfig.from_properties(properties, source="broker.conf")


def test_a_store_takes_no_records_that_do_not_follow(tmp_path: Path) -> None:
    one, other = MessageStore(tmp_path / "one"), MessageStore(tmp_path / "other")
    one.open()
    other.open()
    try:
        with pytest.raises(StoreError):
            other.copy(b"no record at all")
        assert other.max_physical_offset == 0
        assert one.records(0, 1000) == b""
    finally:
        one.close()
        other.close()


async def test_a_master_hands_out_its_topics_and_a_fetch_of_another_name_is_refused(world: World) -> None:
    master = await world.broker()
    topics = TopicConfigSerializeWrapper.decode((await world.ask(RequestCode.GET_ALL_TOPIC_CONFIG)).body)
    assert topics.data_version == master.services.topics.data_version
    fetch = {"brokerName": "broker-b", "brokerId": 1, "offset": 0}
    assert (await world.ask(10_912, fetch)).code == ResponseCode.SYSTEM_ERROR


async def test_a_slave_that_is_made_master_takes_sends_and_is_told_under_its_new_id(world: World) -> None:
    both = await pair(world)
    await world.send(b"before")
    await world.send(b"later", properties="DELAY\x013\x02")
    await world.clock.sleep(4)
    await world.stop(both.master)
    role = b"brokerRole=ASYNC_MASTER\nbrokerId=0\n"
    assert (await world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=role, port=SLAVE)).code == 0
    await world.clock.sleep(0.1)
    fields = both.name_server.requests[-1][2]
    assert (fields["brokerId"], fields["brokerAddr"]) == ("0", f"127.0.0.1:{SLAVE}")
    assert (await world.send(b"after", port=SLAVE)).code == ResponseCode.SUCCESS
    await world.clock.sleep(12)
    assert bodies(await world.pull(port=SLAVE)) == [b"before", b"after", b"later"], "what was due it delivers"


async def test_a_role_changes_with_its_id_only(up: World) -> None:
    for text in (b"brokerId=1\n", b"brokerRole=SLAVE\n", b"brokerRole=SLAVE\nbrokerId=0\n"):
        refused = await up.ask(RequestCode.UPDATE_BROKER_CONFIG, body=text)
        assert refused.code == ResponseCode.SYSTEM_ERROR
