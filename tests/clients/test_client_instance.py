"""Polls, heartbeats, look-ups and what brokers ask, on virtual time."""

from typing import Self

import pytest

from nemesrv.clients.client_instance import MQClientInstance
from nemesrv.clients.config import ClientConfig
from nemesrv.clients.route_cache import TopicPublishInfo
from nemesrv.remoting.bodies.client import ConsumerData, GetConsumerListByGroupResponseBody, SubscriptionData
from nemesrv.remoting.codes import LanguageCode, RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ClientError, ConnectError
from nemesrv.remoting.message import MessageQueue
from nemesrv.remoting.node.profile import Profile
from tests.clients.fakes import FakeBroker, FakeNameServer, World, route


class Producer:
    def __init__(self, *topics: str) -> None:
        self.topics: dict[str, TopicPublishInfo | None] = dict.fromkeys(topics)
        self.updates: list[str] = []

    def publish_topics(self) -> list[str]:
        return list(self.topics)

    def is_publish_info_missing(self, topic: str) -> bool:
        info = self.topics.get(topic)
        return info is None or not info.ok

    def update_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        self.topics[topic] = info
        self.updates.append(topic)


class Consumer:
    def __init__(self, world: World, *topics: str) -> None:
        self.world, self.topics = world, topics
        self.updates: dict[str, frozenset[MessageQueue]] = {}
        self.changes = 0
        self.persisted_s: list[float] = []
        self.persisting_s = 0.0

    def subscriptions(self) -> list[SubscriptionData]:
        return [SubscriptionData(topic=topic) for topic in self.topics]

    def consumer_data(self) -> ConsumerData:
        return ConsumerData(group_name="readers", subscription_data_set=tuple(self.subscriptions()))

    async def persist_offsets(self) -> None:
        self.persisted_s.append(round(self.world.clock.monotonic_s(), 2))
        await self.world.clock.sleep(self.persisting_s)

    def on_consumer_ids_changed(self) -> None:
        self.changes += 1

    def update_subscribe_info(self, topic: str, queues: frozenset[MessageQueue]) -> None:
        self.updates[topic] = queues


class Bench:
    def __init__(self, profile: Profile = Profile.V4_9) -> None:
        self.world, self.profile = World(), profile

    async def __aenter__(self) -> Self:
        self.ns: FakeNameServer = await self.world.name_server()
        self.a: FakeBroker = await self.world.broker("broker-a")
        self.b: FakeBroker = await self.world.broker("broker-b")
        self.ns.routes["orders"] = route(self.a, self.b, queues=2)
        config = ClientConfig(profile=self.profile)
        self.instance = MQClientInstance(self.world.context(), config, (self.ns.address,))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.instance.stop()

    async def runs(self, for_s: float, *topics: str) -> None:
        """With a producer of these topics, if any."""
        if topics:
            self.instance.register_producer("writers", Producer(*topics))
        await self.instance.start()
        await self.world.clock.sleep(for_s)


@pytest.fixture
def b() -> Bench:
    return Bench()


async def test_routes_are_polled_first_after_10_ms_then_each_30_s(b: Bench) -> None:
    await b.runs(65, "orders")
    assert [round(query.at_s, 2) for query in b.ns.route_queries("orders")] == [0.01, 30.01, 60.01]


async def test_published_and_subscribed_topics_are_polled_once_each(b: Bench) -> None:
    b.ns.routes["bills"] = route(b.a, queues=1)
    producer, consumer = Producer("orders"), Consumer(b.world, "bills", "orders")
    b.instance.register_producer("writers", producer)
    b.instance.register_consumer("readers", consumer)
    await b.runs(0.5)
    assert len(b.ns.route_queries()) == 2
    assert producer.updates == ["bills", "orders"]
    assert consumer.updates == {
        "bills": {MessageQueue("bills", "broker-a", 0)},
        "orders": {MessageQueue("orders", name, i) for name in ("broker-a", "broker-b") for i in (0, 1)},
    }


async def test_an_unchanged_route_is_handed_only_to_whoever_lacks_it(b: Bench) -> None:
    early, late = Producer("orders"), Consumer(b.world, "orders")
    b.instance.name_server.start()
    b.instance.register_producer("writers", early)
    assert await b.instance.update_route("orders")
    assert not await b.instance.update_route("orders")
    b.instance.register_consumer("readers", late)
    assert await b.instance.update_route("orders")
    assert set(late.updates) == {"orders"}
    assert len(b.world.rows("route_changed")) == 1


async def test_a_topic_that_vanishes_keeps_its_route(b: Bench) -> None:
    producer = Producer("orders")
    b.instance.register_producer("writers", producer)
    await b.runs(1)
    del b.ns.routes["orders"]
    await b.world.clock.sleep(300)
    assert {row["code"] for row in b.world.rows("name_server_call", type="fail")} == {17}
    info = producer.topics["orders"]
    assert info is not None
    assert len(info.queues) == 4
    assert b.instance.find_broker_address_in_publish("broker-b") == b.b.address


async def test_a_transport_failure_ends_the_round_and_an_error_code_does_not(b: Bench) -> None:
    b.ns.routes["last"] = route(b.a)
    b.instance.register_producer("writers", Producer("nothing", "orders", "last"))
    await b.runs(10)
    assert [len(b.ns.route_queries(topic)) for topic in ("nothing", "orders", "last")] == [1, 1, 1]
    b.ns.silent = True
    await b.world.clock.sleep(30)  # the poll of 30.01 s times out at the first topic
    assert [len(b.ns.route_queries(topic)) for topic in ("nothing", "orders", "last")] == [2, 1, 1]
    b.ns.silent = False
    await b.world.clock.sleep(30)
    assert [len(b.ns.route_queries(topic)) for topic in ("nothing", "orders", "last")] == [3, 2, 2]


async def test_update_route_says_when_the_name_server_cannot_be_reached(b: Bench) -> None:
    await b.instance.start()
    b.ns.crash()
    with pytest.raises(ConnectError):
        await b.instance.update_route("orders")


async def test_a_second_route_update_waits_3_s_for_the_first_and_gives_up(b: Bench) -> None:
    await b.instance.start()
    b.ns.delay_s = 2.9
    await b.instance._route_lock.acquire()
    begin_s = b.world.clock.monotonic_s()
    assert not await b.instance.update_route("orders")
    assert b.world.clock.monotonic_s() - begin_s == 3.0


async def test_heartbeats_go_to_all_brokers_after_1_s_then_each_30_s(b: Bench) -> None:
    await b.runs(65, "orders")
    assert [round(beat.at_s) for beat in b.a.asked(RequestCode.HEART_BEAT)] == [1, 31, 61]
    assert [round(beat.at_s) for beat in b.b.asked(RequestCode.HEART_BEAT)] == [1, 31, 61]
    (producer,) = b.a.heartbeats[0].producer_data_set
    assert (b.a.heartbeats[0].client_id, producer.group_name) == (b.instance.client_id, "writers")
    assert b.instance.client_id.startswith("127.0.0.1@client-0#")


async def test_slaves_hear_only_from_clients_that_consume(b: Bench) -> None:
    slave = await b.world.broker("broker-a", broker_id=1)
    b.ns.routes["orders"] = route(b.a, slave)
    await b.runs(2, "orders")
    assert (len(b.a.heartbeats), len(slave.heartbeats)) == (1, 0)
    b.instance.register_consumer("readers", Consumer(b.world, "orders"))
    await b.instance.send_heartbeat_to_all()
    assert (len(b.a.heartbeats), len(slave.heartbeats)) == (2, 1)
    assert b.a.heartbeats[-1].consumer_data_set[0].group_name == "readers"


async def test_brokers_that_left_every_route_are_forgotten_before_the_heartbeat(b: Bench) -> None:
    await b.runs(20, "orders")
    b.ns.routes["orders"] = route(b.a)
    await b.world.clock.sleep(10.5)  # the poll at 30.01 s
    assert b.instance.find_broker_address_in_publish("broker-b") == b.b.address
    await b.world.clock.sleep(1)  # the heartbeat at 31 s
    assert b.instance.find_broker_address_in_publish("broker-b") is None
    assert len(b.b.heartbeats) == 1


async def test_a_broker_that_hangs_delays_the_next_poll(b: Bench) -> None:
    """windows.md section 3: J, three seconds for each unreachable broker of the heartbeat round."""
    hung = [await b.world.broker(f"broker-{number}") for number in range(11)]
    b.ns.routes["orders"] = route(b.a, *hung)
    for broker in hung:
        broker.silent = True
    await b.runs(70, "orders")
    # the heartbeat round of 1 s takes 33 s
    assert [round(query.at_s, 1) for query in b.ns.route_queries("orders")] == [0.0, 34.0, 67.0]


async def test_offsets_are_persisted_after_10_s_then_each_5_s_on_the_same_task(b: Bench) -> None:
    consumer = Consumer(b.world, "orders")
    b.instance.register_consumer("readers", consumer)
    await b.runs(21)
    assert consumer.persisted_s == [10, 15, 20]
    consumer.persisting_s = 8
    await b.world.clock.sleep(13)
    assert consumer.persisted_s[3:] == [25, 33]
    assert [round(query.at_s, 2) for query in b.ns.route_queries("orders")] == [0.01]  # due at 30.01, after 33


async def test_a_broker_is_found_for_publishing_by_its_master_only(b: Bench) -> None:
    slave = await b.world.broker("broker-s", broker_id=1)
    b.ns.routes["orders"] = route(b.a, slave)
    b.instance.name_server.start()
    await b.instance.update_route("orders")
    assert b.instance.find_broker_address_in_publish("broker-a") == b.a.address
    assert b.instance.find_broker_address_in_publish("broker-s") is None
    assert b.instance.find_broker_address_in_publish("unknown") is None


async def test_a_broker_is_found_for_consuming_by_id_then_next_id_then_any(b: Bench) -> None:
    second = await b.world.broker("broker-a", broker_id=2)
    b.ns.routes["orders"] = route(b.a, second)
    b.instance.name_server.start()
    await b.instance.update_route("orders")
    find = b.instance.find_broker_address_in_subscribe
    assert find("broker-a", 0) == (b.a.address, False, 0)
    assert find("broker-a", 2) == (second.address, True, 0)
    assert find("broker-a", 1) == (second.address, True, 0)  # id + 1
    assert find("broker-a", 5) == (b.a.address, False, 0)  # any
    assert find("unknown", 0) is None
    b.instance.register_consumer("readers", Consumer(b.world, "orders"))
    await b.instance.send_heartbeat_to_all()
    found = find("broker-a", 0)
    assert found is not None
    assert found.version == 409


async def test_the_consumer_list_comes_from_a_broker_of_the_topic(b: Bench) -> None:
    b.ns.routes["orders"] = route(b.a)
    b.instance.name_server.start()
    assert await b.instance.find_consumer_id_list("orders", "readers") is None  # code 1: nobody yet
    body = GetConsumerListByGroupResponseBody(consumer_id_list=("x@1", "y@2")).encode()
    b.a.answers[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = lambda _: RemotingCommand.response(body=body)
    assert await b.instance.find_consumer_id_list("orders", "readers") == ["x@1", "y@2"]
    assert await b.instance.find_consumer_id_list("nothing", "readers") is None
    b.a.silent = True
    assert await b.instance.find_consumer_id_list("orders", "readers") is None


async def test_a_topics_broker_is_its_master_or_else_a_slave(b: Bench) -> None:
    slave = await b.world.broker("broker-s", broker_id=1)
    b.ns.routes["orders"] = route(b.a)
    b.ns.routes["bills"] = route(slave)
    b.instance.name_server.start()
    await b.instance.update_route("orders")
    await b.instance.update_route("bills")
    assert b.instance.find_broker_address_by_topic("orders") == b.a.address
    assert b.instance.find_broker_address_by_topic("bills") == slave.address
    assert b.instance.find_broker_address_by_topic("nothing") is None


async def test_a_broker_that_says_the_members_changed_wakes_every_consumer(b: Bench) -> None:
    consumer = Consumer(b.world, "orders")
    b.instance.register_consumer("readers", consumer)
    await b.runs(2)
    joined = consumer.changes
    b.a.notify_members("readers")
    await b.world.clock.sleep(1)
    assert consumer.changes == joined + 1


async def test_other_requests_of_a_broker_are_refused_with_code_3_unless_somebody_handles_them(b: Bench) -> None:
    await b.runs(2, "orders")
    (connection,) = b.a.connections

    async def asked() -> RemotingCommand:
        request = RemotingCommand.request(RequestCode.CONSUME_MESSAGE_DIRECTLY)
        return await connection.invoke(request, timeout_s=1)

    refused = await asked()
    assert refused.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert refused.remark == " request type 309 not supported"


async def test_a_group_is_registered_once_and_leaves_with_35_at_every_broker(b: Bench) -> None:
    b.instance.register_producer("writers", Producer("orders"))
    with pytest.raises(ClientError):
        b.instance.register_producer("writers", Producer())
    await b.runs(2)
    b.a.crash()
    await b.instance.unregister_producer("writers")
    (left,) = b.b.asked(RequestCode.UNREGISTER_CLIENT)
    assert left.command.ext_fields == {"clientID": b.instance.client_id, "producerGroup": "writers"}


async def test_channels_are_in_the_history(b: Bench) -> None:
    await b.runs(2, "orders")
    b.b.crash()
    await b.world.clock.sleep(30)
    of_b = b.world.rows("channel", address=str(b.b.address))
    assert [row["f"] for row in of_b] == ["open", "close", "connect_failed"]
    assert all(row["value"]["reason"] for row in of_b)


@pytest.mark.parametrize(("profile", "version"), [(Profile.V4_9, 409), (Profile.V5_X, 479)])
async def test_requests_carry_language_python_and_the_profiles_version(profile: Profile, version: int) -> None:
    async with Bench(profile) as b:
        await b.runs(2, "orders")
        sent = {(request.command.language, request.command.version) for request in b.ns.requests + b.a.requests}
        assert sent == {(LanguageCode.PYTHON, version)}


async def test_a_poll_round_begins_with_the_hook(b: Bench) -> None:
    calls: list[float] = []
    b.instance.route_cache._before_poll = lambda: calls.append(b.world.clock.monotonic_s())  # type: ignore[method-assign]
    await b.runs(31)
    assert len(calls) == 2
