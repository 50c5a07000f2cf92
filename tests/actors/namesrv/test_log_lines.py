"""namesrv.log in RocketMQ's own words, whole messages, each event in both profiles.

That Apache's own NameServers say the same is shown by tests/interop/test_log_lines.py, which needs their jars.
"""

import logging
import re

import pytest

from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.node.profile import Profile
from tests.virtual import run

from .helpers import IDENTITY, LISTEN, V4, V5, World, topic, version

A = "10.0.0.1:10911"
INFO_A = f"BrokerIdentityInfo [clusterName=c, brokerAddr={A}]"


def row(queues: int = 4, perm: int = 6) -> str:
    return (
        f"QueueData [brokerName=broker-a, readQueueNums={queues}, writeQueueNums={queues}, perm={perm}, topicSysFlag=0]"
    )


class Said:
    """What has been logged at INFO or above since the last call."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "tests.namesrv")
        self._caplog, self._seen = caplog, 0

    def __call__(self, *without: str) -> list[str]:
        """Level and message; `without` are beginnings of lines that another test is about."""
        records = self._caplog.records  # a new list in each phase of a test
        new, self._seen = records[self._seen :], len(records)
        lines = (re.sub(r"127\.0\.0\.1:\d+", "<peer>", f"{r.levelname} {r.getMessage()}") for r in new)
        unwanted = ("INFO NETTY SERVER PIPELINE: channel", "INFO start scanNotActiveBroker", *without)
        return [line for line in lines if not line.startswith(unwanted)]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Said:
    return Said(caplog)


async def test_a_registration(world: World, profile: Profile, said: Said) -> None:
    await world.call.register()
    topics = [f"INFO new topic registered, {name} {row()}" for name in "TU"]
    if profile is V4:
        master = "INFO cluster [c] brokerName [broker-a] master address change from"
        new = f"INFO new broker registered, {A} HAServer: 10.0.0.1:10912"
        assert said() == [f"{master} null to {A}", *topics, new]
        await world.call.register()
        assert said() == [f"{master} {A} to {A}"]  # at each registration of a master, changed or not
    else:
        assert said() == [*topics, f"INFO new broker registered, {INFO_A} HAService: 10.0.0.1:10912"]
        await world.call.register()
        assert said() == []


async def test_topics_that_came_and_changed_are_told_in_order(world: World, profile: Profile, said: Said) -> None:
    held = [topic("A"), topic("B"), topic("C", queues=8), topic("D"), topic("E", queues=8)]
    await world.call.register(topics=held)
    said()
    sent = [
        *(topic("A", queues=2), topic("A1"), topic("B", queues=2), topic("C", queues=2)),
        *(topic("D"), topic("E", queues=2), topic("E1"), topic("E2", queues=2)),
    ]
    await world.call.register(topics=sent, data_version=version(2))
    assert said("INFO cluster [c]") == [
        f"INFO topic changed, A OLD: {row()} NEW: {row(2)}",
        f"INFO new topic registered, A1 {row()}",
        f"INFO topic changed, B OLD: {row()} NEW: {row(2)}",
        f"INFO topic changed, C OLD: {row(8)} NEW: {row(2)}",
        f"INFO topic changed, E OLD: {row(8)} NEW: {row(2)}",
        f"INFO new topic registered, E1 {row()}",
        f"INFO new topic registered, E2 {row(2)}",
    ]


async def test_a_body_that_does_not_match_its_crc(world: World, profile: Profile, said: Said) -> None:
    await world.client().register(header={"bodyCrc32": "1"})
    assert said() == ["WARNING receive registerBroker request,crc32 not match,from <peer>"]


async def test_registrations_that_only_5_x_refuses(said: Said) -> None:
    async with World(V5) as world:
        await world.call.register(topics=[topic("T", perm=5)])
        assert said() == [
            "WARNING Can't register topicConfigWrapper={T=TopicConfig [topicName=T, readQueueNums=4,"
            " writeQueueNums=4, perm=R-X, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={}]}"
            f" because broker[0]={A} has not registered."
        ]
        await world.call.register(data_version=version(state=2))
        said()
        await world.call.register(addr="10.0.0.4:10911", data_version=version(state=1))
        assert said() == [
            "WARNING Registering Broker conflicts with the existed one, just ignore.: Cluster:c,"
            f" BrokerName:broker-a, BrokerId:0, Old BrokerAddr:{A}, Old Version:2, New BrokerAddr:10.0.0.4:10911,"
            " New Version:1."
        ]


LOST_4_9 = [
    f"INFO the broker's channel destroyed, {A}, clean it's data structure at once",
    f"INFO remove brokerAddr[0, {A}] from brokerAddrTable, because channel destroyed",
    "INFO remove brokerName[broker-a] from brokerAddrTable, because channel destroyed",
    "INFO remove brokerName[broker-a], clusterName[c] from clusterAddrTable, because channel destroyed",
    "INFO remove the clusterName[c] from clusterAddrTable, because channel destroyed and no broker in this cluster",
    f"INFO remove topic[T {row()}], from topicQueueTable, because channel destroyed",
    "INFO remove topic[T] all queue, from topicQueueTable, because channel destroyed",
    f"INFO remove topic[U {row()}], from topicQueueTable, because channel destroyed",
    "INFO remove topic[U] all queue, from topicQueueTable, because channel destroyed",
]
UNREGISTERED_5_X = [
    f"INFO unregisterBroker, remove from brokerLiveTable OK, {INFO_A}",
    f"INFO unregisterBroker, remove addr from brokerAddrTable OK, {INFO_A}",
    "INFO unregisterBroker, remove name from brokerAddrTable OK, broker-a",
    "INFO unregisterBroker, remove name from clusterAddrTable OK, broker-a",
    "INFO unregisterBroker, remove cluster from clusterAddrTable c",
]
LOST_5_X = [
    "INFO the broker's channel destroyed, submit the unregister request at once, broker info:"
    f" UnRegisterBrokerRequestHeader [clusterName=c, brokerAddr={A}, brokerName=broker-a, brokerId=0],"
    " submit result: true",
    *UNREGISTERED_5_X,
]
KV_DUMP = ("INFO ------", "INFO configTable")
CLOSED = "INFO closeChannel: close the connection to remote address[<peer>] result: true"


async def test_a_broker_that_unregisters(world: World, profile: Profile, said: Said) -> None:
    await world.call.register()
    said()
    await world.call(RequestCode.UNREGISTER_BROKER, IDENTITY)
    await world.clock.sleep(0.01)
    if profile is V5:
        assert said() == UNREGISTERED_5_X
        return
    topics = []
    for name in "TU":
        topics.append(f"INFO removeTopicByBrokerName, remove one broker's topic {name} {row()}")
        topics.append(f"INFO removeTopicByBrokerName, remove the topic all queue {name}")
    assert said() == [*(line.replace(INFO_A, A) for line in UNREGISTERED_5_X), *topics]


def test_a_channel_that_comes_and_goes(profile: Profile, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tests.namesrv")

    async def main() -> None:
        async with World(profile) as world:
            await world.call.route()
            world.call.client.close_channel(LISTEN)
            await world.clock.sleep(0.01)

    run(main)
    pipeline = [record.getMessage() for record in caplog.records if "PIPELINE" in record.getMessage()]
    assert [re.sub(r"127\.0\.0\.1:\d+", "<peer>", line) for line in pipeline] == [
        "NETTY SERVER PIPELINE: channelRegistered <peer>",
        "NETTY SERVER PIPELINE: channelActive, the channel[<peer>]",
        "NETTY SERVER PIPELINE: channelInactive, the channel[<peer>]",
        "NETTY SERVER PIPELINE: channelUnregistered, the channel[<peer>]",
    ]


async def test_a_broker_whose_channel_closes(world: World, profile: Profile, said: Said) -> None:
    await world.call.register()
    said()
    world.call.client.close_channel(LISTEN)
    await world.clock.sleep(0.01)
    assert said() == (LOST_4_9 if profile is V4 else LOST_5_X)


async def test_a_broker_that_is_silent_for_too_long(profile: Profile, said: Said) -> None:
    async with World(profile, server_channel_max_idle_time_seconds=1000) as world:
        await world.client(idle_s=1000).register()
        said()
        await world.clock.sleep(131)
        expired = f"WARNING The broker channel expired, {A if profile is V4 else INFO_A} 120000ms"
        lines = said(*KV_DUMP)
        assert lines[0] == expired
        assert CLOSED in lines
        rest = [line for line in lines[1:] if line != CLOSED]
        assert rest == (LOST_4_9[1:] if profile is V4 else LOST_5_X)  # 4.9 has dropped the live entry by then


async def test_a_channel_that_is_idle(profile: Profile, said: Said) -> None:
    async with World(profile, server_channel_max_idle_time_seconds=60) as world:
        await world.client(idle_s=1000).route()
        await world.clock.sleep(61)
        assert said(*KV_DUMP) == ["WARNING NETTY SERVER PIPELINE: IDLE exception [<peer>]", CLOSED]


async def test_write_permission_wiped_and_given(world: World, profile: Profile, said: Said) -> None:
    await world.call.register()
    said()
    await world.call(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    await world.call(RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    assert said() == [
        "INFO wipe write perm of broker[broker-a], client: <peer>, 2",
        "INFO add write perm of broker[broker-a], client: <peer>, 2",
    ]


async def test_a_topic_deleted_in_one_cluster(world: World, profile: Profile, said: Said) -> None:
    await world.call.register()
    said()
    await world.call(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T", "clusterName": "c"})
    assert said() == [
        f"INFO deleteTopic, remove one broker's topic broker-a T {row()}",
        "INFO deleteTopic, remove the topic all queue c T",
    ]


async def test_kv_configs(world: World, profile: Profile, said: Said) -> None:
    call, entry = world.client(), {"namespace": "ns", "key": "k"}
    for value in "xy":
        await call(RequestCode.PUT_KV_CONFIG, {**entry, "value": value})
    await call(RequestCode.DELETE_KV_CONFIG, entry)
    await call(RequestCode.PUT_KV_CONFIG, {**entry, "value": "z"})
    assert said() == [
        "INFO putKVConfig create new Namespace ns",
        "INFO putKVConfig create new config item, Namespace: ns Key: k Value: x",
        "INFO putKVConfig update config item, Namespace: ns Key: k Value: y",
        "INFO deleteKVConfig delete a config item, Namespace: ns Key: k Value: y",
        "INFO putKVConfig create new config item, Namespace: ns Key: k Value: z",
    ]
    await world.clock.sleep(61)
    assert said() == [
        "INFO --------------------------------------------------------",
        "INFO configTable SIZE: 1",
        "INFO configTable NS: ns Key: k Value: z",
    ]


async def test_settings_that_change(world: World, profile: Profile, said: Said) -> None:
    await world.client()(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true\nlistenPort=9876")
    assert said() == [
        "INFO updateConfig called by <peer>",
        "INFO Replace, key: orderMessageEnable, value: false -> true",
    ]


async def test_what_only_5_x_tells(said: Said) -> None:
    async with World(V5, need_wait_for_service=True) as world:
        await world.call.route()
        assert said() == ["WARNING name server not ready. request code 105 "]
        await world.call(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        assert said() == ["WARNING getAllTopicListFromNameserver /<peer> enable true"]
        await world.call.register()
        said()
        one = b'{"queueDatas":[{"brokerName":"broker-a","readQueueNums":4,"writeQueueNums":4,"perm":6}]}'
        for body in (one, one, one.replace(b"broker-a", b"broker-x")):
            await world.call(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "Z"}, body)
        assert said() == [
            f"INFO Register topic route:Z, [{row()}]",
            f"INFO Topic route already exist.Z, {{broker-a={row()}}}",
            f"WARNING Register topic contains illegal broker, Z, {row().replace('broker-a', 'broker-x')}",
        ]
