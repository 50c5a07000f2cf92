"""Request-reply: a reply is handed to the client that asked."""

import pytest

from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import ReplyMessageRequestHeader
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.message_properties import format_properties, parse_properties

from .world import Peer, World, send_header

REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"


async def requester_of(world: World, code: int = ResponseCode.SUCCESS) -> Peer:
    """A client known by its heartbeat, which answers what is pushed to it with this code."""
    peer = Peer(world, RemotingCommand.response(code))
    await peer.heartbeat("asker", producers="askers")
    return peer


async def reply(world: World, code: int = RequestCode.SEND_REPLY_MESSAGE_V2, **properties: str) -> RemotingCommand:
    header = send_header(topic=REPLY_TOPIC, properties=format_properties({"CORRELATION_ID": "7", **properties}))
    fields = header.to_ext_fields() if code == RequestCode.SEND_REPLY_MESSAGE else header.to_v2()
    return await world.ask(code, fields, b"the answer")


@pytest.mark.parametrize("code", [RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2])
async def test_a_reply_is_pushed_to_the_client_that_asked_and_stored(up: World, code: int) -> None:
    requester = await requester_of(up)
    answer = await reply(up, code, REPLY_TO_CLIENT="asker")
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
    (pushed,) = requester.asked
    assert pushed.code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
    header = ReplyMessageRequestHeader.from_ext_fields(pushed.ext_fields)
    properties = parse_properties(header.properties)
    assert (pushed.body, header.topic, properties["CORRELATION_ID"]) == (b"the answer", REPLY_TOPIC, "7")
    assert int(properties["PUSH_REPLY_TIME"]) == header.store_timestamp == up.clock.now_ms()
    assert header.store_host == "127.0.0.1:10911"
    (stored,) = StoredMessage.decode_all((await up.pull(topic=REPLY_TOPIC)).body, strict=True)
    assert (stored.body, stored.properties["REPLY_TO_CLIENT"]) == (b"the answer", "asker")
    assert answer.ext_fields is not None
    assert answer.ext_fields["msgId"] == stored.offset_msg_id


async def test_a_reply_that_is_not_stored_has_no_message_id(world: World) -> None:
    broker = await world.broker(store_reply_message_enable=False)
    await requester_of(world)
    answer = await reply(world, REPLY_TO_CLIENT="asker")
    assert answer.ext_fields is not None
    assert (answer.code, answer.ext_fields["msgId"], answer.ext_fields["queueOffset"]) == (0, "0", "0")
    assert broker.store.max_physical_offset == 0


async def test_a_requester_that_is_gone_refuses_or_is_silent_is_the_repliers_failure(up: World) -> None:
    nobody = await reply(up)
    assert nobody.remark == "reply message properties[REPLY_TO_CLIENT] is null"
    gone = await reply(up, REPLY_TO_CLIENT="asker")
    assert gone.remark == "push reply message fail, channel of <asker> not found."
    requester = await requester_of(up, code=ResponseCode.SYSTEM_ERROR)
    refused = await reply(up, REPLY_TO_CLIENT="asker")
    requester.answer = None
    before_s = up.clock.monotonic_s()
    silent = await reply(up, REPLY_TO_CLIENT="asker")
    assert up.clock.monotonic_s() - before_s == pytest.approx(10, abs=0.1)
    assert refused.remark == silent.remark == "push reply message to asker fail."
    assert {each.code for each in (nobody, gone, refused, silent)} == {ResponseCode.SYSTEM_ERROR}
