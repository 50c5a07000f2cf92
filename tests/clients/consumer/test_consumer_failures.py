"""Messages that a listener does not take: sent back, to the retry topic, tried again; and dropped in broadcasting."""

from typing import Any

from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import ConsumerSendMsgBackRequestHeader, SendMessageRequestHeader
from nemesrv.remoting.message_properties import parse_properties

from .consumer_world import CLOCK, RETRY, World


async def test_a_failed_message_is_sent_back_and_not_received(world: World) -> None:
    consuming = await world.consumer(listener=lambda message: message.body != b"1")
    await world.fill(3, then_s=1)
    assert consuming.bodies == [b"0", b"2"]
    (request,) = world.a.asked(RequestCode.CONSUMER_SEND_MSG_BACK)
    header = ConsumerSendMsgBackRequestHeader.from_ext_fields(request.command.ext_fields)
    assert (header.offset, header.group, header.delay_level) == (1000, "group", 0)
    assert (header.origin_topic, header.max_reconsume_times) == ("orders", 16)
    await consuming.stop()
    assert world.a.committed["group", "orders", 0] == 3
    assert [row["msg_key"] for row in consuming.recorded("receive")] == ["k0", "k2"]


async def test_a_listener_that_raises_has_failed(world: World) -> None:
    consuming = await world.consumer(listener=lambda message: 1 / 0 > 1)
    await world.fill(1, then_s=1)
    assert consuming.received == []
    assert len(world.a.asked(RequestCode.CONSUMER_SEND_MSG_BACK)) == 1


async def test_a_message_that_the_broker_does_not_take_back_is_sent_to_the_retry_topic(world: World) -> None:
    world.a.answers[RequestCode.CONSUMER_SEND_MSG_BACK] = lambda _: RemotingCommand.response(1, "full")
    consuming = await world.consumer(listener=lambda message: message.topic != "orders" or bool(message.body != b"0"))
    await world.fill(1, then_s=1)
    (request,) = world.a.asked(RequestCode.SEND_MESSAGE_V2)
    header = SendMessageRequestHeader.from_v2(request.command.ext_fields)
    properties = parse_properties(header.properties)
    assert (header.topic, header.reconsume_times, header.max_reconsume_times) == (RETRY, 1, 16)
    assert (properties["RETRY_TOPIC"], properties["DELAY"], properties["KEYS"]) == ("orders", "3", "k0")
    assert consuming.recorded("send") == [], "it is no operation of the workload"


async def test_a_message_that_nobody_takes_back_is_tried_again_after_five_seconds(world: World) -> None:
    for code in (RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2):
        world.a.answers[code] = lambda _: RemotingCommand.response(13, "no")
    tries: list[int] = []

    def third_time(message: Any) -> bool:
        tries.append(message.reconsume_times)
        return len(tries) == 3

    consuming = await world.consumer(listener=third_time)
    await world.fill(1, then_s=4.9)
    assert tries == [0]
    await CLOCK.sleep(5.5)
    assert tries == [0, 1, 2]
    assert len(consuming.received) == 1


async def test_a_retried_message_reaches_the_listener_under_its_own_topic(world: World) -> None:
    consuming = await world.consumer()
    await world.a.append(RETRY, 0, b"again", RETRY_TOPIC="orders", KEYS="k9")
    await CLOCK.sleep(1)
    assert [(message.topic, message.body) for message in consuming.received] == [("orders", b"again")]
    assert [(row["topic"], row["offset"]) for row in consuming.recorded("receive")] == [(RETRY, 0)]
