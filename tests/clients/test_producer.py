"""Every row of the synchronous retry table, routes at the first send, and what the history says of each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.producer import DefaultMQProducer
from nemesrv.clients.send_result import RouteQueryFailed, SendError, SendStatus
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.errors import (
    ClientError,
    ConnectError,
    RequestTimeout,
    ResponseError,
    RocketMQError,
    TooManyRequests,
    TransportError,
)
from nemesrv.remoting.message import Message, MessageQueue
from nemesrv.remoting.profile import Profile
from tests.clients.fakes import FakeBroker, FakeNameServer, World, route
from tests.virtual import run

BOTH = pytest.mark.parametrize("profile", list(Profile))
MESSAGE = Message.create("orders", b"hello", keys="k0")


class Bench:
    """One NameServer, brokers a and b with two queues of `orders` each, and a producer that knows the route."""

    def __init__(self) -> None:
        self.world = World()

    async def start(self, **settings: Any) -> Bench:
        self.ns: FakeNameServer = await self.world.name_server()
        self.a: FakeBroker = await self.world.broker("broker-a")
        self.b: FakeBroker = await self.world.broker("broker-b")
        self.ns.routes["orders"] = route(self.a, self.b, queues=2)
        self.config = ProducerConfig(namesrv_addr=(self.ns.address,), **settings)
        self.producer = DefaultMQProducer(self.world.context("producer-0"), self.config)
        await self.producer.start()
        await self.producer._publish_table.find("orders")
        await self.world.clock.sleep(5)  # connected by the first heartbeat
        self.begin_s = self.world.clock.monotonic_s()
        return self

    @property
    def elapsed_s(self) -> float:
        return round(self.world.clock.monotonic_s() - self.begin_s, 3)

    async def error(self, **options: Any) -> RocketMQError:
        """The error that a send ends in."""
        with pytest.raises(RocketMQError) as caught:
            await self.producer.send(MESSAGE, **options)
        return caught.value

    @property
    def attempts(self) -> list[tuple[str, str, int | None]]:
        """How each attempt ended: broker, type, code."""
        rows = [row for row in self.world.rows("send_attempt") if row["type"] != "invoke"]
        return [(row["broker_name"], row["type"], row["code"]) for row in rows]

    @property
    def outcomes(self) -> list[tuple[str, int | None]]:
        rows = [row for row in self.world.rows("send") if row["type"] != "invoke"]
        return [(row["type"], row.get("code")) for row in rows]

    def first_and_second(self) -> tuple[FakeBroker, FakeBroker]:
        """The broker that the next send tries first, and the other one."""
        ring = self.producer._publish_table._table["orders"].ring  # type: ignore[union-attr]
        index = ring._index
        first = ring.next().broker_name
        ring._index = index
        return (self.a, self.b) if first == "broker-a" else (self.b, self.a)


def bench(body: Callable[[Bench], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        made = await Bench().start(**settings)
        await body(made)
        await made.producer.stop()

    run(main)


@BOTH
def test_a_send_returns_where_the_message_is(profile: Profile) -> None:
    async def body(b: Bench) -> None:
        first, _ = b.first_and_second()
        result = await b.producer.send(MESSAGE)
        (stored,) = first.stored
        assert result.status is SendStatus.SEND_OK
        assert result.queue == MessageQueue("orders", first.name, stored.header.queue_id)
        assert result.queue_offset == 0
        assert len(result.msg_id) == len(result.offset_msg_id) == 32
        assert stored.body == b"hello"

    bench(body, profile=profile)


def test_the_history_has_one_invoke_and_one_outcome_a_send() -> None:
    async def body(b: Bench) -> None:
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
            "code": 0,
            "attempt": 1,
            "duration_ms": 0,
        }
        attempt, ended = b.world.rows("send_attempt")
        assert (attempt["type"], attempt["op_id"], attempt["attempt"]) == ("invoke", op_id, 0)
        assert (ended["type"], ended["address"], ended["code"]) == ("ok", str(first.address), 0)

    bench(body)


def test_sends_go_round_the_queues() -> None:
    async def body(b: Bench) -> None:
        queues = [(await b.producer.send(MESSAGE)).queue for _ in range(8)]
        assert len(set(queues)) == 4
        assert queues[:4] == queues[4:]

    bench(body)


def test_a_selected_queue_is_tried_once_and_no_other() -> None:
    async def body(b: Bench) -> None:
        seen: list[MessageQueue] = []

        def third(queues: Sequence[MessageQueue]) -> MessageQueue:
            seen.extend(queues)
            return queues[2]

        results = [await b.producer.send_selected(MESSAGE, third) for _ in range(3)]
        assert [result.queue for result in results] == [seen[2]] * 3
        assert [result.queue_offset for result in results] == [0, 1, 2]
        assert seen[:4] == sorted(seen[:4])

    bench(body)


def test_a_send_to_a_selected_queue_whose_broker_is_gone_fails() -> None:
    async def body(b: Bench) -> None:
        first, _ = b.first_and_second()
        first.crash()
        with pytest.raises(TransportError):
            await b.producer.send_selected(
                MESSAGE, lambda queues: next(queue for queue in queues if queue.broker_name == first.name)
            )
        assert len(b.world.rows("send_attempt", type="invoke")) == 1

    bench(body)


# -- the retry table


@BOTH
def test_a_refused_connection_is_retried_on_another_broker(profile: Profile) -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        first.crash()
        await b.world.clock.sleep(1)
        result = await b.producer.send(MESSAGE)
        assert result.queue.broker_name == second.name
        assert b.attempts == [(first.name, "fail", None), (second.name, "ok", 0)]
        assert b.elapsed_s == 1

    bench(body, profile=profile)


def test_a_connection_that_closes_under_the_send_is_retried() -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        first.silent = True
        b.world.clock.call_later(1, first.close_connections)
        result = await b.producer.send(MESSAGE)
        assert result.queue.broker_name == second.name
        assert b.attempts == [(first.name, "info", None), (second.name, "ok", 0)]
        assert b.elapsed_s == 1

    bench(body)


@BOTH
def test_a_broker_that_hangs_uses_the_whole_budget(profile: Profile) -> None:
    async def body(b: Bench) -> None:
        first, _ = b.first_and_second()
        first.silent = True
        error = await b.error()
        assert b.elapsed_s == 3
        assert not error.definite
        assert b.attempts[0] == (first.name, "info", None)
        assert b.outcomes == [("info", None)]
        assert not b.producer.client.remoting.is_active(first.address)

    bench(body, profile=profile)


def test_5_x_can_cap_each_try_but_the_last() -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        first.silent = True
        result = await b.producer.send(MESSAGE)
        assert result.queue.broker_name == second.name
        assert b.elapsed_s == 1

    bench(body, profile=Profile.V5_X, send_msg_max_timeout_per_request_ms=1000)


def test_4_9_knows_no_cap() -> None:
    async def body(b: Bench) -> None:
        b.first_and_second()[0].silent = True
        await b.error()
        assert b.elapsed_s == 3

    bench(body, profile=Profile.V4_9, send_msg_max_timeout_per_request_ms=1000)


@pytest.mark.parametrize(
    ("profile", "code"),
    [(profile, code) for profile in Profile for code in (17, 14, 1, 16, 204, 205)]
    + [(Profile.V5_X, 2), (Profile.V5_X, 1500)],
)
def test_these_codes_are_retried_on_another_broker(profile: Profile, code: int) -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        first.next_codes.append(code)
        result = await b.producer.send(MESSAGE)
        assert result.queue.broker_name == second.name
        assert [(name, reply) for name, _, reply in b.attempts] == [(first.name, code), (second.name, 0)]

    bench(body, profile=profile)


@pytest.mark.parametrize(
    ("profile", "code"),
    [(profile, code) for profile in Profile for code in (13, 29, 3, 4, 215)]
    + [(Profile.V4_9, 2), (Profile.V4_9, 1500)],
)
def test_other_codes_are_raised_at_once(profile: Profile, code: int) -> None:
    async def body(b: Bench) -> None:
        first, _ = b.first_and_second()
        first.next_codes.append(code)
        error = await b.error()
        assert isinstance(error, ResponseError)
        assert error.code == code
        assert len(b.attempts) == 1

    bench(body, profile=profile)


def test_a_code_can_be_added_to_the_retried_ones() -> None:
    async def body(b: Bench) -> None:
        b.first_and_second()[0].next_codes.append(13)
        await b.producer.send(MESSAGE)
        assert len(b.attempts) == 2

    bench(body, extra_retry_response_codes=frozenset({13}))


@BOTH
def test_after_three_tries_it_gives_up(profile: Profile) -> None:
    async def body(b: Bench) -> None:
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

    bench(body, profile=profile)


def test_with_one_broker_the_retries_stay_on_it() -> None:
    async def body(b: Bench) -> None:
        b.ns.routes["orders"] = route(b.a, queues=2)
        await b.producer.client.update_route("orders")
        b.a.next_codes += [17, 17]
        assert (await b.producer.send(MESSAGE)).queue.broker_name == "broker-a"
        assert b.attempts == [("broker-a", "fail", 17), ("broker-a", "fail", 17), ("broker-a", "ok", 0)]

    bench(body)


def test_the_number_of_retries_can_be_set() -> None:
    async def body(b: Bench) -> None:
        b.a.next_codes += [14] * 9
        b.b.next_codes += [14] * 9
        await b.error()
        assert len(b.attempts) == 1

    bench(body, retry_times_when_send_failed=0)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_stored_less_safely_is_a_result(code: int, status: SendStatus) -> None:
    async def body(b: Bench) -> None:
        first, _ = b.first_and_second()
        first.next_codes.append(code)
        result = await b.producer.send(MESSAGE)
        assert (result.status, result.queue.broker_name) == (status, first.name)
        assert b.attempts == [(first.name, "info", code)]
        assert b.outcomes == [("info", code)]

    bench(body)


@pytest.mark.parametrize("code", [10, 11, 12])
def test_stored_less_safely_is_retried_when_asked_for(code: int) -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        first.next_codes.append(code)
        result = await b.producer.send(MESSAGE)
        assert (result.status, result.queue.broker_name) == (SendStatus.SEND_OK, second.name)
        assert len(first.stored) == len(second.stored) == 1

    bench(body, retry_another_broker_when_not_store_ok=True)


def test_a_result_is_not_lost_to_the_failure_of_a_later_try() -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        first.next_codes += [10, 13]
        second.next_codes.append(13)
        result = await b.producer.send(MESSAGE)
        assert (result.status, result.queue.broker_name) == (SendStatus.FLUSH_DISK_TIMEOUT, first.name)
        assert len(b.attempts) == 2

    bench(body, retry_another_broker_when_not_store_ok=True)


def test_time_used_up_before_a_try_is_too_many_requests() -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        for broker in (first, second):
            broker.delay_s = 0.7
            broker.next_codes += [14] * 3
        error = await b.error(timeout_ms=1300)
        # 0.7 s for the first try, the second has 0.6 s and times out; the third begins at 1.3 s, with nothing left
        assert b.elapsed_s == 1.3
        assert not error.definite
        first.delay_s = second.delay_s = 0
        b.ns.delay_s = 2
        b.ns.routes["slow"] = route(b.a)
        with pytest.raises(TooManyRequests) as caught:
            await b.producer.send(replace(MESSAGE, topic="slow"), timeout_ms=1500)
        assert caught.value.definite
        assert b.outcomes[-1] == ("fail", None)

    bench(body)


def test_a_broker_without_an_address_is_a_failed_try() -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        del b.producer.client.route_cache.broker_addr_table[first.name]
        result = await b.producer.send(MESSAGE)
        assert result.queue.broker_name == second.name
        assert b.attempts == [(first.name, "fail", None), (second.name, "ok", 0)]

    bench(body)


# -- definite or not


@pytest.mark.parametrize(
    ("first_code", "definite"),
    [(14, True), (16, True), (17, True), (1, False), (204, False)],
)
def test_a_call_is_definite_only_when_no_try_may_have_stored(first_code: int, definite: bool) -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        first.next_codes.append(first_code)
        second.next_codes.append(13)
        error = await b.error()
        assert isinstance(error, ResponseError)
        assert (error.code, error.definite) == (13, definite)
        assert b.outcomes == [("fail" if definite else "info", 13)]

    bench(body)


def test_refused_by_all_is_definite() -> None:
    async def body(b: Bench) -> None:
        b.a.crash()
        b.b.crash()
        await b.world.clock.sleep(1)
        error = await b.error()
        assert isinstance(error.__cause__, ConnectError)
        assert error.definite
        assert error.retriable
        assert b.outcomes == [("fail", None)]

    bench(body)


def test_lost_once_and_then_refused_is_not_definite() -> None:
    async def body(b: Bench) -> None:
        first, second = b.first_and_second()
        first.silent = True
        second.crash()
        b.world.clock.call_later(0.5, first.crash)
        error = await b.error()
        assert b.attempts == [(first.name, "info", None), (second.name, "fail", None), (first.name, "fail", None)]
        assert not error.definite
        assert b.outcomes == [("info", None)]

    bench(body)


# -- routes


def test_an_unknown_topic_borrows_the_template_until_the_poll_finds_its_own() -> None:
    for profile in Profile:

        async def body(b: Bench) -> None:
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

        bench(body, profile=profile)


def test_a_topic_without_a_route_or_a_template_is_an_error() -> None:
    async def body(b: Bench) -> None:
        with pytest.raises(ClientError, match="No route info of this topic: new") as caught:
            await b.producer.send(replace(MESSAGE, topic="new"))
        assert caught.value.definite
        assert b.outcomes == [("fail", None)]
        assert b.attempts == []

    bench(body)


def test_4_9_polls_the_template_topic_and_5_x_does_not() -> None:
    for profile in Profile:

        async def body(b: Bench) -> None:
            await b.world.clock.sleep(30)
            assert bool(b.ns.route_queries("TBW102")) == (b.config.profile is Profile.V4_9)

        bench(body, profile=profile)


def test_only_4_9_borrows_from_another_create_topic_key() -> None:
    for profile, asked in ((Profile.V4_9, "TEMPLATE"), (Profile.V5_X, "TBW102")):

        async def body(b: Bench) -> None:
            b.ns.routes["TEMPLATE"] = b.ns.routes["TBW102"] = route(b.a)
            before = len(b.ns.requests)
            await b.producer.send(replace(MESSAGE, topic="new"))
            topics = [(query.command.ext_fields or {})["topic"] for query in b.ns.requests[before:]]
            assert topics == ["new", asked]  # noqa: B023

        bench(body, profile=profile, create_topic_key="TEMPLATE")


def test_a_name_server_that_does_not_answer_ends_the_first_send_of_a_topic_and_no_other() -> None:
    async def body(b: Bench) -> None:
        b.ns.silent = True
        with pytest.raises(RouteQueryFailed) as caught:
            await b.producer.send(replace(MESSAGE, topic="new"))
        assert caught.value.definite
        assert isinstance(caught.value.__cause__, RequestTimeout)
        assert b.outcomes == [("fail", None)]
        await b.producer.send(MESSAGE)

    bench(body)


def test_a_producer_takes_a_new_route_at_the_next_poll() -> None:
    async def body(b: Bench) -> None:
        b.ns.routes["orders"] = route(b.b, queues=2)
        await b.world.clock.sleep(30)
        assert {(await b.producer.send(MESSAGE)).queue.broker_name for _ in range(8)} == {"broker-b"}

    bench(body)


# -- batch, one queue, life


def test_a_batch_is_one_request_with_consecutive_offsets() -> None:
    async def body(b: Bench) -> None:
        first, _ = b.first_and_second()
        messages = [Message.create("orders", body, keys=f"k{number}") for number, body in enumerate((b"a", b"b", b"c"))]
        result = await b.producer.send_batch(messages)
        assert [stored.body for stored in first.stored] == [b"a", b"b", b"c"]
        assert len(first.asked(RequestCode.SEND_BATCH_MESSAGE)) == 1
        assert len(result.msg_id.split(",")) == 3
        done = b.world.rows("send", type="ok")
        assert [(row["msg_key"], row["offset"]) for row in done] == [("k0", 0), ("k1", 1), ("k2", 2)]
        assert len({row["op_id"] for row in done}) == 3

    bench(body)


def test_a_send_to_a_queue_is_tried_once_there() -> None:
    async def body(b: Bench) -> None:
        queue = MessageQueue("orders", "broker-b", 1)
        assert (await b.producer.send(MESSAGE, queue=queue)).queue == queue
        b.b.next_codes.append(14)
        error = await b.error(queue=queue)
        assert isinstance(error, ResponseError)
        assert len(b.attempts) == 2
        with pytest.raises(ClientError, match="topic"):
            await b.producer.send(MESSAGE, queue=MessageQueue("bills", "broker-b", 1))

    bench(body)


def test_a_producer_sends_only_while_it_runs() -> None:
    async def body(b: Bench) -> None:
        with pytest.raises(ClientError, match="started once"):
            await b.producer.start()
        await b.producer.stop()
        with pytest.raises(ClientError, match="not running"):
            await b.producer.send(MESSAGE)
        assert len(b.a.asked(RequestCode.UNREGISTER_CLIENT)) == 1
        await b.producer.stop()

    bench(body)


def test_two_producers_can_share_a_client() -> None:
    async def body(b: Bench) -> None:
        config = replace(b.config, producer_group="others")
        other = DefaultMQProducer(b.world.context("producer-1"), config, client=b.producer.client)
        await other.start()
        await other.send(MESSAGE)
        await other.stop()
        await b.producer.send(MESSAGE)
        same_group = DefaultMQProducer(b.world.context("producer-2"), b.config, client=b.producer.client)
        with pytest.raises(ClientError, match="created before"):
            await same_group.start()

    bench(body)


# -- latency fault tolerance


@BOTH
def test_with_latency_fault_tolerance_a_hung_broker_costs_one_send(profile: Profile) -> None:
    """windows.md section 3: one failure, then none."""

    async def body(b: Bench) -> None:
        b.first_and_second()[0].silent = True
        failures = 0
        for _ in range(12):
            try:
                await b.producer.send(MESSAGE)
            except RocketMQError:
                failures += 1
        assert failures == 1

    bench(body, profile=profile, send_latency_fault_enable=True)


@BOTH
def test_without_it_the_hung_broker_costs_a_send_each_round(profile: Profile) -> None:
    async def body(b: Bench) -> None:
        b.ns.routes["orders"] = route(b.a, b.b, queues=4)
        await b.producer.client.update_route("orders")
        b.a.silent = True
        failures = 0
        for _ in range(12):
            try:
                await b.producer.send(MESSAGE)
            except RocketMQError:
                failures += 1
        # Choosing a queue for the try that comes too late moves past the hung broker's other queues.
        assert failures == 3

    bench(body, profile=profile)


def test_the_5_x_detector_brings_a_broker_back_after_a_good_probe() -> None:
    async def body(b: Bench) -> None:
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

    bench(body, profile=Profile.V5_X, send_latency_fault_enable=True, start_detector_enable=True)
