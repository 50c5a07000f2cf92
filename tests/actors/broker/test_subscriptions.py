"""Filters by SQL92, from the check before a consumer starts to what it pulls; and lite pulls of either line."""

import asyncio

import pytest

from nemesrv.remoting.bodies.client import CheckClientRequestBody, ConsumerData, HeartbeatData, SubscriptionData
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.message_properties import format_properties
from nemesrv.remoting.node.profile import Profile

from .world import PROFILES, World, bodies

SQL = "amount > 10 AND TAGS IN ('TagA', 'TagB')"


async def check(world: World, expression: str, kind: str = "SQL92") -> RemotingCommand:
    wanted = SubscriptionData(topic="orders", sub_string=expression, expression_type=kind)
    body = CheckClientRequestBody(client_id="one", group="g", subscription_data=wanted)
    return await world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body.encode())


async def send(world: World, body: bytes, **properties: str) -> None:
    assert (await world.send(body, properties=format_properties(properties))).code == ResponseCode.SUCCESS


async def test_a_broker_refuses_filters_by_sql_before_the_consumer_starts(ready: World) -> None:
    remark = "The broker does not support consumer to filter message by SQL92"
    for answer in (await check(ready, SQL), await ready.pull(expression=SQL, expressionType="SQL92")):
        assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert (await check(ready, "TagA", "TAG")).code == ResponseCode.SUCCESS


async def test_with_property_filters_only_what_matches_is_pulled(world: World) -> None:
    await world.broker(enable_property_filter=True)
    assert (await check(world, SQL)).code == ResponseCode.SUCCESS
    wrong = await check(world, "amount >")
    assert wrong.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert (wrong.remark or "").partition(".")[0] == "Invalid MessageSelector"
    await send(world, b"yes", amount="11", TAGS="TagA")
    await send(world, b"too little", amount="10", TAGS="TagA")
    await send(world, b"no amount", TAGS="TagB")
    await send(world, b"yes, too", amount="12", TAGS="TagB")
    pulled = await world.pull(expression=SQL, expressionType="SQL92")
    assert (bodies(pulled), (pulled.ext_fields or {})["nextBeginOffset"]) == ([b"yes", b"yes, too"], "4")
    wrong = await world.pull(expression="amount >", expressionType="SQL92")
    assert wrong.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


async def test_a_waiting_pull_wakes_for_a_message_that_its_filter_takes(world: World) -> None:
    await world.broker(enable_property_filter=True)
    await world.create_topic()
    subscriptions = tuple(
        SubscriptionData(topic=topic, sub_string=text, sub_version=1, expression_type="SQL92")
        for topic, text in (("orders", SQL), ("other", "amount >"))
    )
    data = ConsumerData(group_name="g", subscription_data_set=subscriptions)
    await world.heartbeat(HeartbeatData(client_id="one", consumer_data_set=(data,)))
    waiting = asyncio.create_task(world.pull(wait_ms=20_000, sysFlag=2, subVersion=1))
    await asyncio.sleep(0.1)
    await send(world, b"no", amount="1", TAGS="TagA")
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await send(world, b"yes", amount="11", TAGS="TagA")
    assert bodies(await waiting) == [b"yes"]
    await world.create_topic("other")
    unreadable = await world.pull(topic="other", sysFlag=0, subVersion=1)
    assert unreadable.code == ResponseCode.FILTER_DATA_NOT_EXIST


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_lite_pull_is_a_request_of_the_5x_line_only(world: World, profile: Profile) -> None:
    await world.broker(profile=profile)
    await world.create_topic()
    header = {"consumerGroup": "g", "topic": "orders", "queueId": 0, "queueOffset": 0, "maxMsgNums": 1}
    header |= {"sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0}
    answer = await world.ask(RequestCode.LITE_PULL_MESSAGE, header)
    if profile is Profile.V4_9:
        assert (answer.code, answer.remark) == (3, " request type 361 not supported")
    else:
        assert answer.code == ResponseCode.PULL_NOT_FOUND
