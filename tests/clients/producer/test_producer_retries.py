"""Every row of the synchronous retry table, and which errors are definite."""

from dataclasses import replace

import pytest

from nemesrv.clients.producer.send_result import SendError, SendStatus
from nemesrv.remoting.errors import ConnectError, ResponseError, TooManyRequests
from nemesrv.remoting.node.profile import Profile
from tests.clients.fakes import route
from tests.clients.producer.producer_bench import BOTH, MESSAGE, Bench

# -- the retry table


@BOTH
async def test_a_refused_connection_is_retried_on_another_broker(b: Bench) -> None:
    first, second = b.first_and_second()
    first.crash()
    await b.world.clock.sleep(1)
    assert await b.sent_to() == second.name
    assert b.attempts == [(first.name, "fail", None), (second.name, "ok", 0)]
    assert b.elapsed_s == 1


async def test_a_connection_that_closes_under_the_send_is_retried(b: Bench) -> None:
    first, second = b.first_and_second()
    first.silent = True
    b.world.clock.call_later(1, first.close_connections)
    assert await b.sent_to() == second.name
    assert b.attempts == [(first.name, "info", None), (second.name, "ok", 0)]
    assert b.elapsed_s == 1


@BOTH
async def test_a_broker_that_hangs_uses_the_whole_budget(b: Bench) -> None:
    first, _ = b.first_and_second()
    first.silent = True
    error = await b.error()
    assert b.elapsed_s == 3
    assert not error.definite
    assert b.attempts[0] == (first.name, "info", None)
    assert b.outcomes == [("info", None)]
    assert not b.producer.client.remoting.is_active(first.address)


async def test_5_x_can_cap_each_try_but_the_last() -> None:
    async with Bench(profile=Profile.V5_X, send_msg_max_timeout_per_request_ms=1000) as b:
        first, second = b.first_and_second()
        first.silent = True
        assert await b.sent_to() == second.name
        assert b.elapsed_s == 1


async def test_4_9_knows_no_cap() -> None:
    async with Bench(profile=Profile.V4_9, send_msg_max_timeout_per_request_ms=1000) as b:
        b.first_and_second()[0].silent = True
        await b.error()
        assert b.elapsed_s == 3


@pytest.mark.parametrize(
    ("profile", "code"),
    [(profile, code) for profile in Profile for code in (17, 14, 1, 16, 204, 205)]
    + [(Profile.V5_X, 2), (Profile.V5_X, 1500)],
)
async def test_these_codes_are_retried_on_another_broker(b: Bench, code: int) -> None:
    first, second = b.first_and_second()
    first.next_codes.append(code)
    assert await b.sent_to() == second.name
    assert [(name, reply) for name, _, reply in b.attempts] == [(first.name, code), (second.name, 0)]


@pytest.mark.parametrize(
    ("profile", "code"),
    [(profile, code) for profile in Profile for code in (13, 29, 3, 4, 215)]
    + [(Profile.V4_9, 2), (Profile.V4_9, 1500)],
)
async def test_other_codes_are_raised_at_once(b: Bench, code: int) -> None:
    first, _ = b.first_and_second()
    first.next_codes.append(code)
    error = await b.error()
    assert isinstance(error, ResponseError)
    assert error.code == code
    assert len(b.attempts) == 1


@BOTH
async def test_after_three_tries_it_gives_up(b: Bench) -> None:
    b.a.next_codes += [14] * 3
    b.b.next_codes += [14] * 3
    first, second = b.first_and_second()
    error = await b.error()
    assert isinstance(error, SendError)
    assert (error.code, error.definite) == (14, True)
    assert isinstance(error.__cause__, ResponseError)
    # the third try is past the last broker: back on the first
    assert [name for name, _, _ in b.attempts] == [first.name, second.name, first.name]
    assert b.outcomes == [("fail", 14)]


async def test_with_one_broker_the_retries_stay_on_it(b: Bench) -> None:
    b.ns.routes["orders"] = route(b.a, queues=2)
    await b.producer.client.update_route("orders")
    b.a.next_codes += [17, 17]
    assert await b.sent_to() == "broker-a"
    assert b.attempts == [("broker-a", "fail", 17), ("broker-a", "fail", 17), ("broker-a", "ok", 0)]


async def test_the_number_of_retries_can_be_set() -> None:
    async with Bench(retry_times_when_send_failed=0) as b:
        b.a.next_codes += [14] * 9
        b.b.next_codes += [14] * 9
        await b.error()
        assert len(b.attempts) == 1


@pytest.mark.parametrize(
    ("code", "status"),
    [(10, SendStatus.FLUSH_DISK_TIMEOUT), (11, SendStatus.SLAVE_NOT_AVAILABLE), (12, SendStatus.FLUSH_SLAVE_TIMEOUT)],
)
async def test_stored_less_safely_is_a_result(code: int, status: SendStatus, b: Bench) -> None:
    first, _ = b.first_and_second()
    first.next_codes.append(code)
    result = await b.producer.send(MESSAGE)
    assert (result.status, result.queue.broker_name) == (status, first.name)
    assert b.attempts == [(first.name, "info", code)]
    assert b.outcomes == [("info", code)]


@pytest.mark.parametrize("code", [10, 11, 12])
async def test_stored_less_safely_is_retried_when_asked_for(code: int) -> None:
    async with Bench(retry_another_broker_when_not_store_ok=True) as b:
        first, second = b.first_and_second()
        first.next_codes.append(code)
        result = await b.producer.send(MESSAGE)
        assert (result.status, result.queue.broker_name) == (SendStatus.SEND_OK, second.name)
        assert len(first.stored) == len(second.stored) == 1


async def test_a_result_is_not_lost_to_the_failure_of_a_later_try() -> None:
    async with Bench(retry_another_broker_when_not_store_ok=True) as b:
        first, second = b.first_and_second()
        first.next_codes += [10, 13]
        second.next_codes.append(13)
        result = await b.producer.send(MESSAGE)
        assert (result.status, result.queue.broker_name) == (SendStatus.FLUSH_DISK_TIMEOUT, first.name)
        assert len(b.attempts) == 2


async def test_time_used_up_before_a_try_is_too_many_requests() -> None:
    async with Bench(send_msg_timeout_ms=1300) as b:
        first, second = b.first_and_second()
        for broker in (first, second):
            broker.delay_s = 0.7
            broker.next_codes += [14] * 3
        error = await b.error()
        # 0.7 s for the first try, the second has 0.6 s and times out; the third begins at 1.3 s, with nothing left
        assert b.elapsed_s == 1.3
        assert not error.definite
        first.delay_s = second.delay_s = 0
        b.ns.delay_s = 2
        b.ns.routes["slow"] = route(b.a)
        with pytest.raises(TooManyRequests) as caught:
            await b.producer.send(replace(MESSAGE, topic="slow"))
        assert caught.value.definite
        assert b.outcomes[-1] == ("fail", None)


async def test_a_broker_without_an_address_is_a_failed_try(b: Bench) -> None:
    first, second = b.first_and_second()
    del b.producer.client.route_cache.broker_addr_table[first.name]
    assert await b.sent_to() == second.name
    assert b.attempts == [(first.name, "fail", None), (second.name, "ok", 0)]


# -- definite or not


@pytest.mark.parametrize(("first_code", "definite"), [(14, True), (16, True), (17, True), (1, False), (204, False)])
async def test_a_call_is_definite_only_when_no_try_may_have_stored(first_code: int, definite: bool, b: Bench) -> None:
    first, second = b.first_and_second()
    first.next_codes.append(first_code)
    second.next_codes.append(13)
    error = await b.error()
    assert isinstance(error, ResponseError)
    assert (error.code, error.definite) == (13, definite)
    assert b.outcomes == [("fail" if definite else "info", 13)]


async def test_refused_by_all_is_definite(b: Bench) -> None:
    b.a.crash()
    b.b.crash()
    await b.world.clock.sleep(1)
    error = await b.error()
    assert isinstance(error.__cause__, ConnectError)
    assert error.definite
    assert error.retriable
    assert b.outcomes == [("fail", None)]


async def test_lost_once_and_then_refused_is_not_definite(b: Bench) -> None:
    first, second = b.first_and_second()
    first.silent = True
    second.crash()
    b.world.clock.call_later(0.5, first.crash)
    error = await b.error()
    assert b.attempts == [(first.name, "info", None), (second.name, "fail", None), (first.name, "fail", None)]
    assert not error.definite
    assert b.outcomes == [("info", None)]
