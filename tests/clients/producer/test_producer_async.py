"""Asynchronous and oneway sends: what is tried again, and what nobody knows."""

import asyncio
from typing import Any

import pytest

from nemesrv.clients.producer.send_result import SendError, SendResult
from nemesrv.remoting.errors import ClientError, ConnectionLost, RequestTimeout, ResponseError, RocketMQError
from nemesrv.remoting.message import Message
from tests.clients.producer.producer_bench import BOTH, MESSAGE, Bench


async def error_of(b: Bench, **options: Any) -> RocketMQError:
    with pytest.raises(RocketMQError) as caught:
        await b.producer.send_async(MESSAGE, **options)
    return caught.value


@BOTH
async def test_an_asynchronous_send_gives_its_result_to_the_task_and_the_callback(b: Bench) -> None:
    told: list[tuple[SendResult | None, RocketMQError | None]] = []
    result = await b.producer.send_async(MESSAGE, lambda *outcome: told.append(outcome))
    await asyncio.sleep(0)
    assert told == [(result, None)]
    assert b.outcomes == [("ok", 0)]


async def test_many_asynchronous_sends_are_under_way_at_once(b: Bench) -> None:
    b.a.delay_s = b.b.delay_s = 1
    await asyncio.gather(*(b.producer.send_async(MESSAGE) for _ in range(20)))
    assert b.elapsed_s == 1
    assert len(b.a.stored) == len(b.b.stored) == 10


@BOTH
@pytest.mark.parametrize("code", [17, 14, 1, 16, 2, 13])
async def test_an_error_code_is_never_tried_again(b: Bench, code: int) -> None:
    first, _ = b.first_and_second()
    first.next_codes.append(code)
    error = await error_of(b)
    assert isinstance(error, ResponseError)
    assert [(name, reply) for name, _, reply in b.attempts] == [(first.name, code)]


@BOTH
async def test_a_transport_failure_is_tried_again_elsewhere_with_the_same_request(b: Bench) -> None:
    first, second = b.first_and_second()
    first.crash()
    await b.world.clock.sleep(1)
    result = await b.producer.send_async(MESSAGE)
    assert result.queue.broker_name == second.name
    assert b.attempts == [(first.name, "fail", None), (second.name, "ok", 0)]
    (sent,) = second.stored
    assert sent.header.broker_name == first.name  # Java does not write the request anew


@BOTH
async def test_it_is_tried_again_twice_at_most(b: Bench) -> None:
    b.a.crash()
    b.b.crash()
    await b.world.clock.sleep(1)
    error = await error_of(b)
    assert len(b.attempts) == 3
    assert error.definite
    assert b.outcomes == [("fail", None)]


@BOTH
async def test_a_timeout_uses_all_the_time_and_keeps_the_channel(b: Bench) -> None:
    first, _ = b.first_and_second()
    first.silent = True
    error = await error_of(b)
    assert isinstance(error, RequestTimeout)
    assert b.elapsed_s == 3
    assert b.attempts == [(first.name, "info", None)]
    assert b.outcomes == [("info", None)]
    assert b.producer.client.remoting.is_active(first.address)


async def test_a_connection_lost_under_it_is_tried_again_while_there_is_time(b: Bench) -> None:
    first, second = b.first_and_second()
    first.silent = True
    b.world.clock.call_later(1, first.close_connections)
    result = await b.producer.send_async(MESSAGE)
    assert (result.queue.broker_name, b.elapsed_s) == (second.name, 1)


async def test_a_loss_followed_by_refusals_is_not_definite(b: Bench) -> None:
    first, second = b.first_and_second()
    first.silent = True
    second.crash()
    b.world.clock.call_later(1, first.crash)
    error = await error_of(b)
    assert not error.definite
    assert b.outcomes == [("info", None)]


async def test_no_retries_when_none_are_configured() -> None:
    async with Bench(retry_times_when_send_async_failed=0) as b:
        first, _ = b.first_and_second()
        first.silent = True
        b.world.clock.call_later(1, first.close_connections)
        assert isinstance(await error_of(b), ConnectionLost)


async def test_the_callback_gets_the_error(b: Bench) -> None:
    told: list[tuple[SendResult | None, RocketMQError | None]] = []
    b.first_and_second()[0].next_codes.append(13)
    b.producer.send_async(MESSAGE, lambda *outcome: told.append(outcome))
    await b.world.clock.sleep(1)
    ((result, error),) = told
    assert result is None
    assert isinstance(error, ResponseError)


async def test_a_broker_without_an_address_ends_it_before_anything_is_sent(b: Bench) -> None:
    first, _ = b.first_and_second()
    del b.producer.client.route_cache.broker_addr_table[first.name]
    error = await error_of(b)
    assert isinstance(error, SendError)
    assert error.definite


async def test_a_bad_message_is_refused_before_a_task_is_made(b: Bench) -> None:
    with pytest.raises(ClientError):
        b.producer.send_async(Message("orders", b""))
    assert b.world.rows("send") == []


async def test_stopping_leaves_asynchronous_sends_unknown(b: Bench) -> None:
    b.a.silent = b.b.silent = True
    task = b.producer.send_async(MESSAGE)
    await b.world.clock.sleep(1)
    b.a.silent = b.b.silent = False
    await b.producer.stop()
    assert task.cancelled()
    assert b.outcomes == [("info", None)]


@BOTH
async def test_a_oneway_send_arrives_and_its_outcome_is_unknown(b: Bench) -> None:
    first, _ = b.first_and_second()
    await b.producer.send_oneway(MESSAGE)
    await b.world.clock.sleep(1)
    assert [stored.body for stored in first.stored] == [b"hello"]
    assert b.attempts == [(first.name, "info", None)]
    assert b.outcomes == [("info", None)]


async def test_a_oneway_send_is_not_tried_again(b: Bench) -> None:
    first, _ = b.first_and_second()
    first.crash()
    await b.world.clock.sleep(1)
    with pytest.raises(SendError) as caught:
        await b.producer.send_oneway(MESSAGE)
    assert caught.value.definite
    assert b.attempts == [(first.name, "fail", None)]
    assert b.outcomes == [("fail", None)]
