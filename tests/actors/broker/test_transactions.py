"""Transactions: half messages, their end, and the check that asks producers."""

import asyncio
from typing import Any

import pytest

from nemesrv.actors.broker.server import Broker
from nemesrv.actors.broker.transactions import COMMIT, GROUP, NOT_ENDED, ROLLBACK
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.message_id import parse_offset_msg_id
from nemesrv.remoting.message_properties import format_properties
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.topics import HALF_TOPIC, OP_TOPIC, TRANSACTION_DISCARD_TOPIC

from .world import PROFILES, World, beat, bodies

PREPARED = 4


class Producer:
    """A producer that has said who it is, remembers what it is asked, and ends what it was asked about by `answer`."""

    def __init__(self, world: World, group: str = "p", answer: int | None = None) -> None:
        self.world, self.group, self.answer = world, group, answer
        self.asked: list[tuple[CheckTransactionStateRequestHeader, StoredMessage]] = []
        self.client = world.new_client(self._asked)

    async def start(self) -> None:
        await self.world.heartbeat(beat(producers=self.group), self.client)

    async def send(self, body: bytes = b"paid", **properties: Any) -> RemotingCommand:
        given = {"TAGS": "TagA", "UNIQ_KEY": "U" * 32, "TRAN_MSG": "true", "PGROUP": self.group, **properties}
        born = self.world.clock.now_ms()
        sent = await self.world.send(
            body, queue_id=2, properties=format_properties(given), sys_flag=PREPARED, born_timestamp=born
        )
        assert sent.code == ResponseCode.SUCCESS, sent
        return sent

    async def end(self, sent: RemotingCommand, said: int, **changed: Any) -> RemotingCommand:
        assert sent.ext_fields is not None
        values: dict[str, Any] = {
            "producer_group": self.group,
            "tran_state_table_offset": int(sent.ext_fields["queueOffset"]),
            "commit_log_offset": parse_offset_msg_id(sent.ext_fields["msgId"])[1],
            "commit_or_rollback": said,
            "msg_id": "U" * 32,
            **changed,
        }
        header = EndTransactionRequestHeader(**values)
        return await self.world.ask(RequestCode.END_TRANSACTION, header.to_ext_fields(), client=self.client)

    def _asked(self, connection: Any, request: RemotingCommand) -> None:
        assert (request.code, request.is_oneway) == (RequestCode.CHECK_TRANSACTION_STATE, True)
        header = CheckTransactionStateRequestHeader.from_ext_fields(request.ext_fields)
        message, _ = StoredMessage.decode_at(request.body, strict=True)
        self.asked.append((header, message))
        if self.answer is not None:
            end = EndTransactionRequestHeader(
                producer_group=self.group,
                tran_state_table_offset=header.tran_state_table_offset,
                commit_log_offset=header.commit_log_offset,
                commit_or_rollback=self.answer,
                from_transaction_check=True,
                msg_id=header.msg_id or "",
            )
            connection.send(RemotingCommand.request(RequestCode.END_TRANSACTION, end, oneway=True))


async def delivered(world: World) -> list[StoredMessage]:
    return StoredMessage.decode_all((await world.pull(queue_id=2)).body, strict=True)


def half_offset(broker: Broker) -> int:
    return broker.services.offsets.query(GROUP, HALF_TOPIC, 0)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_half_message_reaches_consumers_only_when_it_is_committed(world: World, profile: Profile) -> None:
    broker = await world.broker(profile=profile)
    producer = Producer(world)
    sent = await producer.send(KEYS="k1")
    assert sent.ext_fields is not None
    assert (sent.ext_fields["queueId"], sent.ext_fields["queueOffset"]) == ("2", "0")
    assert await delivered(world) == []
    assert (await producer.end(sent, COMMIT)).code == ResponseCode.SUCCESS
    (stored,) = await delivered(world)
    assert (stored.body, stored.topic, stored.queue_offset, stored.sys_flag) == (b"paid", "orders", 0, COMMIT)
    assert stored.prepared_transaction_offset == parse_offset_msg_id(sent.ext_fields["msgId"])[1]
    kept = {"TRAN_MSG": "true", "REAL_TOPIC": "orders", "REAL_QID": "2", "KEYS": "k1", "PGROUP": "p"}
    assert kept.items() <= stored.properties.items()
    # its tag filters
    pulled = await world.pull(queue_id=2, expression="TagB")
    assert pulled.remark == "NO_MATCHED_MESSAGE"
    assert broker.store.max_offset(OP_TOPIC, 0) == 1


async def test_a_rolled_back_message_is_never_seen_and_never_asked_about(world: World) -> None:
    broker = await world.broker()
    producer = Producer(world)
    await producer.start()
    sent = await producer.send()
    assert (await producer.end(sent, ROLLBACK)).code == ResponseCode.SUCCESS
    await asyncio.sleep(300)
    assert (producer.asked, await delivered(world), half_offset(broker)) == ([], [], 1)


@pytest.mark.parametrize(("profile", "period_s"), [(Profile.V4_9, 60), (Profile.V5_X, 30)])
async def test_a_silent_producer_is_asked_at_the_check_after_6_s(world: World, profile: Profile, period_s: int) -> None:
    await world.broker(profile=profile)
    producer = Producer(world, answer=COMMIT)
    await producer.start()
    sent = await producer.send()
    await asyncio.sleep(period_s - 5)
    await producer.send(b"too young")
    assert producer.asked == []
    await asyncio.sleep(6)
    ((header, message),) = producer.asked
    assert sent.ext_fields is not None
    assert header.msg_id == header.transaction_id == "U" * 32
    assert header.offset_msg_id not in (None, sent.ext_fields["msgId"])
    assert header.tran_state_table_offset == 2  # put back behind the young one
    assert (message.topic, message.queue_id, message.body) == ("orders", 2, b"paid")
    assert message.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert header.broker_name == (None if profile is Profile.V4_9 else "broker-a")
    assert [stored.body for stored in await delivered(world)] == [b"paid"]
    await asyncio.sleep(period_s)
    assert [stored.body for stored in await delivered(world)] == [b"paid", b"too young"]
    await asyncio.sleep(10 * period_s)
    assert len(producer.asked) == 2


async def test_who_does_not_know_is_asked_again_and_at_last_the_message_is_set_aside(world: World) -> None:
    broker = await world.broker(transaction_check_max=3, transaction_check_interval=10_000)
    producer = Producer(world, answer=NOT_ENDED)
    await producer.start()
    await producer.send()
    await asyncio.sleep(1000)
    times = [message.properties["TRANSACTION_CHECK_TIMES"] for _, message in producer.asked]
    assert times == ["1", "2", "3"]
    assert await delivered(world) == []
    assert bodies(await world.pull(topic=TRANSACTION_DISCARD_TOPIC)) == [b"paid"]
    assert half_offset(broker) == broker.store.max_offset(HALF_TOPIC, 0) == 4


async def test_without_a_producer_of_the_group_the_message_waits_for_one(up: World) -> None:
    producer = Producer(up, answer=COMMIT)
    await producer.send()
    await asyncio.sleep(130)
    assert await delivered(up) == []
    await producer.start()
    await asyncio.sleep(60)
    assert len(await delivered(up)) == 1


async def test_a_message_names_its_own_time_in_which_nobody_is_asked(up: World) -> None:
    producer = Producer(up, answer=COMMIT)
    await producer.start()
    sent = await producer.send(b"patient", CHECK_IMMUNITY_TIME_IN_SECONDS="150")
    await producer.send(b"behind it")
    await asyncio.sleep(61)
    assert [message.body for _, message in producer.asked] == [b"behind it"]
    # by the offset that its producer knows, though it was put back at another
    await producer.end(sent, COMMIT)
    await asyncio.sleep(300)
    assert [stored.body for stored in await delivered(up)] == [b"behind it", b"patient"]


async def test_5x_refuses_an_end_that_comes_after_the_messages_own_time(world: World) -> None:
    await world.broker(profile=Profile.V5_X)
    producer = Producer(world)
    sent = await producer.send(CHECK_IMMUNITY_TIME_IN_SECONDS="5")
    await asyncio.sleep(6)
    assert (await producer.end(sent, COMMIT)).code == ResponseCode.ILLEGAL_OPERATION
    assert (await producer.end(sent, COMMIT, from_transaction_check=True)).code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("changed", "remark"),
    [
        ({"producer_group": "other"}, "The producer group wrong"),
        ({"tran_state_table_offset": 7}, "The transaction state table offset wrong"),
        ({"commit_log_offset": 12345}, "Find prepared transaction message failed"),
    ],
)
async def test_an_end_of_something_else_is_refused(up: World, changed: dict[str, Any], remark: str) -> None:
    producer = Producer(up)
    sent = await producer.send()
    answer = await producer.end(sent, COMMIT, **changed)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert await delivered(up) == []


async def test_after_a_restart_only_what_was_not_ended_is_asked_about(world: World) -> None:
    broker = await world.broker()
    producer = Producer(world)
    for number in range(6):
        sent = await producer.send(b"%d" % number)
        if number != 4:
            await producer.end(sent, COMMIT if number % 2 else ROLLBACK)
    await world.stop(broker)
    await world.broker()
    await producer.start()
    await asyncio.sleep(61)
    assert [message.body for _, message in producer.asked] == [b"4"]
    assert [stored.body for stored in await delivered(world)] == [b"1", b"3", b"5"]


async def test_a_broker_may_refuse_transactions(world: World) -> None:
    await world.broker(reject_transaction_message=True)
    refused = await world.send(properties="TRAN_MSG\x01true\x02")
    assert refused.code == ResponseCode.NO_PERMISSION
    assert "sending transaction message is forbidden" in (refused.remark or "")


@pytest.mark.parametrize(("profile", "made_s"), [(Profile.V4_9, 60), (Profile.V5_X, 0)])
async def test_the_half_topic_is_made_at_a_check_in_4_9_only(world: World, profile: Profile, made_s: int) -> None:
    """Seen at Apache's 4.9.7 (`nemesrv compare`) and read in `TopicConfigManager.init` of 5.3.3."""
    broker = await world.broker(profile=profile)
    if made_s:
        await asyncio.sleep(made_s - 1)
        assert HALF_TOPIC not in broker.services.topics
        await asyncio.sleep(2)
    made = broker.services.topics.topic_config_table[HALF_TOPIC]
    assert (made.read_queue_nums, made.write_queue_nums, made.perm) == (1, 1, 6)
    await asyncio.sleep(130)
    assert OP_TOPIC in broker.services.topics or profile is Profile.V4_9
    assert GROUP not in broker.services.offsets.encode().decode()
