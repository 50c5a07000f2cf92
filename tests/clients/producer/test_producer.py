"""A producer's sends, its routes at the first send, latency fault tolerance, and what the history says of each call."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.clients.producer.send_result import RouteQueryFailed, SendStatus
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.errors import ClientError, RequestTimeout, RocketMQError, TransportError
from nemesrv.remoting.message import MessageQueue
from nemesrv.remoting.message_properties import message_digest
from nemesrv.remoting.node.profile import Profile
from tests.clients.fakes import route
from tests.clients.producer.producer_bench import BOTH, MESSAGE, Bench


@BOTH
async def test_a_send_returns_where_the_message_is(b: Bench) -> None:
    first, _ = b.first_and_second()
    result = await b.producer.send(MESSAGE)
    (stored,) = first.stored
    assert result.status is SendStatus.SEND_OK
    assert result.queue == MessageQueue("orders", first.name, stored.header.queue_id)
    assert result.queue_offset == 0
    assert len(result.msg_id) == len(result.offset_msg_id) == 32
    assert stored.body == b"hello"


async def test_the_history_has_one_invoke_and_one_outcome_a_send(b: Bench) -> None:
    first, _ = b.first_and_second()
    result = await b.producer.send(MESSAGE)
    invoke, ok = b.world.rows("send")
    op_id = invoke["op_id"]
    base = {"node": "producer-0", "event": "send", "op_id": op_id, "topic": "orders", "msg_key": "k0"}
    assert invoke == {"at_s": 5, "type": "invoke", **base}
    assert ok == {
        "at_s": 5,
        "type": "ok",
        **base,
        "broker_name": first.name,
        "queue_id": result.queue.queue_id,
        "offset": 0,
        "msg_id": result.offset_msg_id,
        "address": str(first.address),
        "digest": message_digest("orders", MESSAGE.body, MESSAGE.properties | {"UNIQ_KEY": result.msg_id}),
        "code": 0,
        "attempt": 1,
        "duration_ms": 0,
    }
    attempt, ended = b.world.rows("send_attempt")
    assert (attempt["type"], attempt["op_id"], attempt["attempt"]) == ("invoke", op_id, 0)
    assert (ended["type"], ended["address"], ended["code"]) == ("ok", str(first.address), 0)


async def test_sends_go_round_the_queues(b: Bench) -> None:
    queues = [(await b.producer.send(MESSAGE)).queue for _ in range(8)]
    assert len(set(queues)) == 4
    assert queues[:4] == queues[4:]


async def test_a_selected_queue_is_tried_once_and_no_other(b: Bench) -> None:
    seen: list[MessageQueue] = []

    def third(queues: Sequence[MessageQueue]) -> MessageQueue:
        seen.extend(queues)
        return queues[2]

    results = [await b.producer.send_selected(MESSAGE, third) for _ in range(3)]
    assert [result.queue for result in results] == [seen[2]] * 3
    assert [result.queue_offset for result in results] == [0, 1, 2]
    assert seen[:4] == sorted(seen[:4])


async def test_a_send_to_a_selected_queue_whose_broker_is_gone_fails(b: Bench) -> None:
    first, _ = b.first_and_second()
    first.crash()
    with pytest.raises(TransportError):
        await b.producer.send_selected(
            MESSAGE, lambda queues: next(queue for queue in queues if queue.broker_name == first.name)
        )
    assert len(b.world.rows("send_attempt", type="invoke")) == 1


# -- routes


@BOTH
async def test_an_unknown_topic_borrows_the_template_until_the_poll_finds_its_own(b: Bench) -> None:
    b.ns.routes["TBW102"] = route(b.a, queues=8, perm=7)
    result = await b.producer.send(replace(MESSAGE, topic="new"))
    assert result.queue.topic == "new"
    (request,) = b.a.sends
    fields = request.command.ext_fields or {}
    assert (fields["b"], fields["c"], fields["d"]) == ("new", "TBW102", "4")
    rows = b.world.rows("route_changed", topic="new")
    assert [row["value"]["queues"] for row in rows] == [{"broker-a": [4, 4, 7, 0]}]
    b.ns.routes["new"] = route(b.a, queues=3)
    await b.world.clock.sleep(30)
    (_, own) = b.world.rows("route_changed", topic="new")
    assert own["value"]["queues"] == {"broker-a": [3, 3, 6, 0]}


async def test_a_topic_without_a_route_or_a_template_is_an_error(b: Bench) -> None:
    with pytest.raises(ClientError, match="No route info of this topic: new") as caught:
        await b.producer.send(replace(MESSAGE, topic="new"))
    assert caught.value.definite
    assert b.outcomes == [("fail", None)]
    assert b.attempts == []


@BOTH
async def test_4_9_polls_the_template_topic_and_5_x_does_not(profile: Profile, b: Bench) -> None:
    await b.world.clock.sleep(30)
    assert bool(b.ns.route_queries("TBW102")) == (profile is Profile.V4_9)


async def test_a_name_server_that_does_not_answer_ends_the_first_send_of_a_topic_and_no_other(b: Bench) -> None:
    b.ns.silent = True
    with pytest.raises(RouteQueryFailed) as caught:
        await b.producer.send(replace(MESSAGE, topic="new"))
    assert caught.value.definite
    assert isinstance(caught.value.__cause__, RequestTimeout)
    assert b.outcomes == [("fail", None)]
    await b.producer.send(MESSAGE)


async def test_a_producer_takes_a_new_route_at_the_next_poll(b: Bench) -> None:
    b.ns.routes["orders"] = route(b.b, queues=2)
    await b.world.clock.sleep(30)
    assert {await b.sent_to() for _ in range(8)} == {"broker-b"}


# -- life


async def test_a_producer_sends_only_while_it_runs(b: Bench) -> None:
    with pytest.raises(ClientError, match="started once"):
        await b.producer.start()
    await b.producer.stop()
    with pytest.raises(ClientError, match="not running"):
        await b.producer.send(MESSAGE)
    assert len(b.a.asked(RequestCode.UNREGISTER_CLIENT)) == 1
    await b.producer.stop()


async def test_two_producers_can_share_a_client(b: Bench) -> None:
    config = replace(b.config, producer_group="others")
    other = DefaultMQProducer(b.world.context("producer-1"), config, client=b.producer.client)
    await other.start()
    await other.send(MESSAGE)
    await other.stop()
    await b.producer.send(MESSAGE)
    same_group = DefaultMQProducer(b.world.context("producer-2"), b.config, client=b.producer.client)
    with pytest.raises(ClientError, match="created before"):
        await same_group.start()


# -- latency fault tolerance


async def failures_of_twelve_sends(b: Bench) -> int:
    failures = 0
    for _ in range(12):
        try:
            await b.producer.send(MESSAGE)
        except RocketMQError:
            failures += 1
    return failures


@BOTH
async def test_with_latency_fault_tolerance_a_hung_broker_costs_one_send(profile: Profile) -> None:
    """windows.md section 3: one failure, then none."""
    async with Bench(profile=profile, send_latency_fault_enable=True) as b:
        b.first_and_second()[0].silent = True
        assert await failures_of_twelve_sends(b) == 1


@BOTH
async def test_without_it_the_hung_broker_costs_a_send_each_round(b: Bench) -> None:
    b.ns.routes["orders"] = route(b.a, b.b, queues=4)
    await b.producer.client.update_route("orders")
    b.a.silent = True
    # Choosing a queue for the try that comes too late moves past the hung broker's other queues.
    assert await failures_of_twelve_sends(b) == 3


async def test_the_5_x_detector_brings_a_broker_back_after_a_good_probe() -> None:
    async with Bench(profile=Profile.V5_X, send_latency_fault_enable=True, start_detector_enable=True) as b:
        first, second = b.first_and_second()
        first.crash()
        await b.producer.send(MESSAGE)
        assert not b.producer._fault.is_reachable(first.name)
        await b.world.clock.sleep(6)
        assert not b.producer._fault.is_reachable(first.name)
        first.revive()
        await b.world.clock.sleep(3)
        assert b.producer._fault.is_reachable(first.name)
        assert first.asked(RequestCode.GET_MAX_OFFSET)
        assert second.asked(RequestCode.GET_MAX_OFFSET)
