"""Small print of choosing NameServers, queues and brokers: what is waited for, in which order, what is written down.

Each of these was a mutant of the selection code that no other test noticed.
"""

import asyncio
import logging
import random
from collections import Counter

import pytest

from nemesrv.clients.consumer.rebalance import allocate_averagely, java_order, sort_queues
from nemesrv.clients.name_server_client import NameServerClient
from nemesrv.clients.name_servers import NameServerSelector
from nemesrv.clients.producer.fault_strategy import MQFaultStrategy
from nemesrv.clients.producer.publish_table import QueueRing
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ConnectError, RequestTimeout, ResponseError, TooManyRequests, TopicNotExist
from nemesrv.remoting.message import MessageQueue
from nemesrv.remoting.node.network import Address, ProtocolFactory
from nemesrv.remoting.node.profile import Profile
from tests.clients.test_name_server_client import BOTH, Bench

V4, V5 = Profile.V4_9, Profile.V5_X

# -- one call of a NameServer


@BOTH
async def test_a_route_is_a_success_with_a_body_and_nothing_else(profile: Profile) -> None:
    async with Bench(profile) as b:
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        b.servers[0].answers[code] = lambda _: RemotingCommand.response(ResponseCode.TOPIC_NOT_EXIST, body=b"{}")
        with pytest.raises(TopicNotExist):
            await b.ask()
        b.servers[0].answers[code] = lambda _: RemotingCommand.response()
        with pytest.raises(ResponseError):
            await b.ask()


@BOTH
async def test_calls_of_other_codes_are_in_the_history_by_name_or_by_number(profile: Profile) -> None:
    async with Bench(profile) as b:
        b.servers[0].delay_s = 0.25
        for code in (RequestCode.GET_KV_CONFIG, 9999):
            b.servers[0].answers[code] = lambda _: RemotingCommand.response()
            await b.client.invoke(RemotingCommand.request(code, None))
        await b.ask()
        rows = b.world.rows("name_server_call")
        assert [row["f"] for row in rows] == ["get_kv_config", "9999", "route"]
        assert [row["duration_ms"] for row in rows] == [pytest.approx(250.0)] * 3


async def test_two_calls_at_once_make_one_choice_in_4_9_which_holds_its_lock_while_it_connects() -> None:
    async with Bench(V4) as b:
        await asyncio.gather(b.ask(), b.ask())
        assert b.chosen == b.in_order[:1]


@BOTH
async def test_a_call_of_a_connected_server_does_not_wait_for_another_that_chooses(profile: Profile) -> None:
    async with Bench(profile) as b:
        await b.ask()
        async with b.client._lock:
            begin_s = b.world.clock.monotonic_s()
            await b.ask()
            assert b.world.clock.monotonic_s() == begin_s


@BOTH
async def test_a_call_gives_up_when_another_has_been_choosing_for_3_s(profile: Profile) -> None:
    async with Bench(profile) as b:
        begin_s = b.world.clock.monotonic_s()
        async with b.client._lock:
            with pytest.raises(ConnectError) as caught:
                await b.ask()
        assert b.world.clock.monotonic_s() - begin_s == 3.0
        assert str(caught.value) == "connect to null failed: another call is still choosing a name server"


async def test_the_tries_of_a_call_say_which_connect_failed() -> None:
    async with Bench(V5) as b:
        b.servers[0].crash()
        with pytest.raises(ConnectError):
            await b.ask()
        (row,) = b.world.rows("name_server_call")
        assert row["value"] == {"tried": [{"name_server": b.in_order[0], "outcome": "connect_failed"}]}
        assert (row["type"], row["name_server"]) == ("fail", b.in_order[0])
        await b.ask()
        assert b.world.rows("name_server_chosen")[-1]["value"]["reason"] == "connect_failed"


def connects_take(b: Bench, delay_s: float) -> None:
    """From now on."""
    connect = b.world.network.connect

    async def connect_slowly(address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        await b.world.clock.sleep(delay_s)
        return await connect(address, factory)

    b.world.network.connect = connect_slowly  # type: ignore[method-assign]


@BOTH
async def test_the_tries_of_a_call_say_whether_it_was_answered_or_sent_at_all(profile: Profile) -> None:
    async with Bench(profile) as b:

        def tried() -> list[dict[str, str]]:
            return b.world.rows("name_server_call")[-1]["value"]["tried"]

        await b.ask()
        assert tried() == [{"name_server": b.in_order[0], "outcome": "answered"}]
        b.servers[0].silent = True
        with pytest.raises(RequestTimeout):
            await b.ask()
        assert tried() == [{"name_server": b.in_order[0], "outcome": "no_answer"}]
        connects_take(b, 1.0)
        with pytest.raises(TooManyRequests) as caught:
            await b.client.query_route("orders", 0.5)
        assert str(caught.value) == f"connecting to {b.in_order[1]} took the call's 0.5 s"
        assert tried() == [{"name_server": b.in_order[1], "outcome": "not_sent"}]


@pytest.mark.parametrize(("profile", "timeout_s", "stays"), [(V5, 0.4, True), (V5, 0.3, False), (V4, 0.4, False)])
async def test_5_x_blames_no_server_for_an_answer_under_way(profile: Profile, timeout_s: float, stays: bool) -> None:
    async with Bench(profile) as b:
        b.servers[0].silent = True
        connects_take(b, timeout_s - 0.09)
        with pytest.raises(RequestTimeout):
            await b.client.query_route("orders", timeout_s)
        assert b.instance.remoting.is_active(b.servers[0].address) is stays


async def test_a_round_without_any_connect_names_the_whole_list() -> None:
    async with Bench(V4) as b:
        for server in b.servers:
            server.crash()
        with pytest.raises(ConnectError) as caught:
            await b.ask()
        listed = ", ".join(str(address) for address in b.client.selector.addresses)
        assert str(caught.value) == f"connect to [{listed}] failed"


@BOTH
async def test_a_client_without_any_list_says_so(profile: Profile) -> None:
    async with Bench(profile) as b:
        empty = NameServerClient(b.world.context(), b.instance.remoting, (), profile)
        empty.start()
        with pytest.raises(ConnectError) as caught:
            await empty.query_route("orders")
        expected = {V4: "connect to [] failed", V5: "connect to null failed: no name server address is set"}
        assert str(caught.value) == expected[profile]


async def test_lists_choices_and_calls_are_logged_as_java_does(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tests.clients")
    async with Bench(V4) as b:
        b.servers[0].delay_s = 0.25
        await b.world.clock.sleep(5)
        await b.ask()
        listed = ";".join(str(address) for address in b.client.selector.addresses)
        index = b.client.selector.addresses.index(b.servers[0].address)
        said = [record.getMessage() for record in caplog.records]
        assert f"name server address list: {listed}" in said
        assert f"new name server is chosen. OLD: None , NEW: {b.in_order[0]}. index = {index}" in said
        assert "name server call took 0.250 s" in said
        b.servers[0].close_connections()
        await b.world.clock.sleep(1)
        await b.ask()
        said = [record.getMessage() for record in caplog.records]
        assert any(text.startswith(f"new name server is chosen. OLD: {b.in_order[0]} , NEW:") for text in said)


def test_a_choice_says_what_was_chosen_before() -> None:
    selector = NameServerSelector(random.Random(1))
    assert selector.chosen is None
    servers = [Address("10.0.0.1", port) for port in (1, 2)]
    selector.update(servers)
    assert selector.advance(servers[0]).old == servers[0]


# -- queues and brokers


def queues(*broker_names: str) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue("orders", name, 0) for name in broker_names)


def test_looking_ahead_goes_forward() -> None:
    ring = QueueRing(queues("a", "b", "c", "d"), random.Random(0))
    start = (ring._index + 1) % 4
    refused = ring.queues[start]
    found = ring.ahead_that(lambda queue: queue != refused)
    assert found == ring.queues[(start + 1) % 4]


def strategy(profile: Profile, **how: bool) -> MQFaultStrategy:
    return MQFaultStrategy(profile, random.Random(0), **how)


def test_a_strategy_isolates_nobody_and_probes_nobody_unless_it_is_asked_to() -> None:
    plain, isolating = strategy(V5), strategy(V5, enabled=True)
    for made in (plain, isolating):
        made.transport_failed("a", 3000, now_ms=0)
    assert plain.is_available("a", now_ms=1)
    assert not isolating.is_available("a", now_ms=1)
    assert isolating.due_probes(now_ms=10_000) == ()


def test_a_first_try_goes_on_where_the_last_send_stopped() -> None:
    ring = QueueRing(queues("a", "b", "c"), random.Random(0))
    made = strategy(V5, enabled=True)
    turns = [made.select(ring, None, now_ms=0, write_queue_nums={}).broker_name for _ in range(6)]
    assert turns[:3] == turns[3:]
    assert set(turns) == {"a", "b", "c"}


FAILURES = ("transport_failed", "client_refused", "broker_refused")


@pytest.mark.parametrize("how", FAILURES)
def test_of_isolated_brokers_those_that_were_quicker_are_used_in_turn(how: str) -> None:
    made = strategy(V4, enabled=True)
    for name, latency_ms in (("a", 900), ("b", 700), ("c", 800), ("d", 600)):
        getattr(made, how)(name, latency_ms, now_ms=0)
    write = dict.fromkeys("abcd", 1)
    ring = QueueRing(queues(*"abcd"), random.Random(0))
    picks = [made.select(ring, None, now_ms=1, write_queue_nums=write) for _ in range(6)]
    assert picks[0] != picks[1]
    assert Counter(pick.broker_name for pick in picks) == {"b": 3, "d": 3}
    assert {(pick.topic, pick.queue_id) for pick in picks} == {("orders", 0)}


def test_turns_among_isolated_brokers_move_by_one() -> None:
    made = strategy(V4, enabled=True)
    names = "abcdef"
    for latency_ms, name in enumerate(names):
        made.transport_failed(name, latency_ms, now_ms=0)
    ring = QueueRing(queues(*names), random.Random(0))
    picks = [made.select(ring, None, now_ms=1, write_queue_nums=dict.fromkeys(names, 1)).broker_name for _ in range(4)]
    assert "".join(picks) in "abcabcabc"


def test_an_isolation_that_ends_now_counts_as_over_and_a_broker_without_queues_here_is_forgotten() -> None:
    made = strategy(V4, enabled=True)
    made.attempt_succeeded("elsewhere", 900, now_ms=0)
    made.attempt_succeeded("a", 600, now_ms=10)
    ring = QueueRing(queues("a"), random.Random(0))
    assert made.select(ring, None, now_ms=30_000, write_queue_nums={"a": 1}).broker_name == "a"
    assert set(made._items) == {"a"}


def test_a_broker_that_was_never_isolated_can_be_forgotten() -> None:
    made = strategy(V5, enabled=True)
    made.forget("nobody")
    assert made.is_available("nobody", now_ms=0)


# -- allocation

SUPPLEMENTARY, HIGH = "\U00010000", "￮"
"""Java compares UTF-16 units, by which the first of these comes first; by code points it comes last."""


def test_queues_and_members_are_sorted_by_utf_16_units() -> None:
    both = [MessageQueue("orders", name, 0) for name in (HIGH, SUPPLEMENTARY)]
    assert [queue.broker_name for queue in sort_queues(both)] == [SUPPLEMENTARY, HIGH]
    (first,) = allocate_averagely(SUPPLEMENTARY, both, [HIGH, SUPPLEMENTARY])
    assert first.broker_name == SUPPLEMENTARY


def test_half_a_surrogate_pair_can_be_sorted() -> None:
    assert sorted(["\ud800", "b", "a"], key=java_order) == ["a", "b", "\ud800"]
