"""Defects of timers and waits in any node: too late, too early, once not at all, or without a reason.

Each of these defects changes a setting or wait of its node only; the run's settings stay as in the scenario.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ....actors.broker import client_manager, slave_synchronize
from ....actors.broker.client_manager import ClientManager
from ....actors.broker.long_poll import HeldPull
from ....actors.broker.server import Broker
from ....actors.broker.services import HeldRequest
from ....actors.namesrv.server import NameServer
from ....remoting import top_addressing
from ....remoting.bodies.client import GetConsumerListByGroupResponseBody
from ....remoting.codes import RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.errors import TransportError
from ....remoting.headers.broker import GetConsumerListByGroupRequestHeader
from ....remoting.node.clock import Clock
from ....remoting.node.network import Address
from ....remoting.node.node import Node
from ....remoting.transport import Connection
from ...defects import around, does_nothing, replace_part, so_many_times, with_settings
from ...experiment.workloads.consumer import ConsumerNode
from ...experiment.workloads.producer import ProducerNode
from .planting import (
    BROKER_A,
    BROKERS,
    CONSUMER_0,
    CONSUMERS,
    LASTING_CLIENTS,
    NS_0,
    PRODUCER_0,
    PRODUCERS,
    SLAVE_OF_A,
    Planted,
    Where,
    instance_of,
    may_find,
)

STALL_S = 15.0
STALLED_ROUND = 2
LATE_S = 12.0
LEFT_OUT_S = 65.0
"""Two rounds of heartbeats."""
LISTED_S = 30.0
"""Longer than until the rebalance that follows at once, and the next."""

planted = Planted()


# -- a node for which one time is so many times as long


def registers_every(broker: Broker, factor: float) -> None:
    so_many_times(broker.services, "config", "register_name_server_period", factor)


def scans_every(server: NameServer, factor: float) -> None:
    processor, constants = server.processor, server.processor.config.constants
    so_many_times(processor, "config", "scan_not_active_broker_interval", factor)
    with_settings(processor, "config", constants=replace(constants, scan_4_9_ms=round(constants.scan_4_9_ms * factor)))


def client_setting(node: Node, name: str, factor: float) -> None:
    so_many_times(instance_of(node), "_config", name, factor)


def rebalances_every(node: ConsumerNode, factor: float) -> None:
    so_many_times(node.client._rebalancer, "_config", "rebalance_interval_ms", factor)


def waits_for_answers(node: Node, factor: float) -> None:
    @around(instance_of(node).name_server, "query_route")
    async def query(query_route: Any, topic: str, timeout_s: float = 3.0) -> Any:
        return await query_route(topic, timeout_s * factor)


def sends_within(node: ProducerNode, factor: float) -> None:
    so_many_times(node.client, "_config", "send_msg_timeout_ms", factor)


def connects_within(node: Node, factor: float) -> None:
    remoting = instance_of(node).remoting
    replace_part(remoting, "connect_timeout_s", remoting.connect_timeout_s * factor)


def pulls_again_after(node: ConsumerNode, factor: float) -> None:
    """Make a consumer wait `factor` times as long before it repeats a failed pull."""
    so_many_times(node.client._pull_service, "_config", "pull_time_delay_when_exception_ms", factor)


def holds_pulls(broker: Broker, factor: float) -> None:
    @around(broker.services.holds, "hold")
    def hold_otherwise(hold: Any, topic: str, queue_id: int, pull: HeldPull[HeldRequest]) -> Any:
        pull.deadline_ms = pull.held_ms + round(pull.wait_ms * factor)
        return hold(topic, queue_id, pull)


def forgets_clients_after(broker: Broker, factor: float) -> None:
    manager, expire = broker.services.clients, ClientManager.expire
    shifted_ms = round(client_manager.CHANNEL_EXPIRED_MS * (factor - 1))
    replace_part(manager, "expire", lambda *, now_ms: expire(manager, now_ms=now_ms - shifted_ms))


def isolates(node: ProducerNode, factor: float) -> None:
    """Make a producer avoid slow and failed brokers `factor` times as long."""
    strategy = node.client._fault
    table = tuple((latency_ms, round(isolation_ms * factor)) for latency_ms, isolation_ms in strategy._table)
    replace_part(strategy, "_table", table)


def ends_isolations(node: ProducerNode, earlier_ms: int) -> None:
    """Make a producer stop avoiding a slow or failed broker `earlier_ms` too early (negative: too late)."""

    @around(node.client._fault, "is_available")
    def too_soon(is_available: Any, broker_name: str, *, now_ms: int) -> Any:
        return is_available(broker_name, now_ms=now_ms + earlier_ms)


# -- one time that is so many times as long


def _setting(name: str) -> Callable[[Node, float], None]:
    return lambda node, factor: client_setting(node, name, factor)


_TIMES: Sequence[tuple[str, Where, str, Callable[[Any, Any], None], float, str]] = (
    ("name-server-scans-late", NS_0, "smoke", scans_every, 1.5,
     "a NameServer scans for silent brokers every 15 s instead of every 10 s"),
    ("broker-registers-late", BROKER_A, "smoke", registers_every, 1.1,
     "a broker registers every 33 s instead of every 30 s"),
    ("broker-registers-early", BROKER_A, "smoke", registers_every, 0.9,
     "a broker registers every 27 s instead of every 30 s"),
    ("client-polls-late", LASTING_CLIENTS, "smoke", _setting("poll_name_server_interval_ms"), 1.1,
     "clients ask for routes every 33 s instead of every 30 s"),
    ("client-heartbeats-early", LASTING_CLIENTS, "smoke", _setting("heartbeat_broker_interval_ms"), 0.9,
     "clients send heartbeats every 27 s instead of every 30 s"),
    ("client-waits-too-long-for-answers", LASTING_CLIENTS, "name-server-partition", waits_for_answers, 1.5,
     "clients wait 4.5 s for a NameServer's answer instead of 3 s"),
    ("consumer-commits-late", CONSUMERS, "smoke", _setting("persist_consumer_offset_interval_ms"), 1.1,
     "consumers commit every 5.5 s instead of every 5 s"),
    ("consumer-rebalances-late", CONSUMERS, "smoke", rebalances_every, 1.1,
     "consumers rebalance every 22 s instead of every 20 s"),
    ("producer-waits-too-long-for-acknowledgements", PRODUCER_0, "broker-hang", sends_within, 1.5,
     "a producer waits 4.5 s for an acknowledgement instead of 3 s"),
    ("producer-connects-too-patiently", PRODUCERS, "dials-unanswered", connects_within, 1.5,
     "producers wait 4.5 s for a connection instead of 3 s"),
    ("client-gives-look-ups-up-early", LASTING_CLIENTS, "name-server-partition", waits_for_answers, 0.5,
     "clients wait 1.5 s for a NameServer's answer instead of 3 s"),
    ("consumer-pulls-again-late", CONSUMERS, "broker-crash", pulls_again_after, 3,
     "consumers repeat a failed pull after 3 s instead of 1 s"),
    ("broker-holds-pulls-too-long", BROKER_A, "smoke", holds_pulls, 1.4,
     "a broker lets pulls wait 21 s instead of 15 s"),
    ("broker-gives-pulls-up-early", BROKER_A, "smoke", holds_pulls, 0.6,
     "a broker lets pulls wait 9 s instead of 15 s"),
    ("broker-forgets-clients-early", BROKER_A, "clients-go-silent", forgets_clients_after, 0.5,
     "a broker forgets a silent client after 60 s instead of 120 s"),
    ("broker-forgets-clients-late", BROKER_A, "clients-go-silent", forgets_clients_after, 1.5,
     "a broker forgets a silent client after 180 s instead of 120 s"),
)  # fmt: skip
"""Name of the defect, its nodes, the scenario that shows it, what is changed, the factor, and what is wrong."""


def _plants(change: Callable[[Any, Any], None], factor: float) -> Callable[[Any], None]:
    return lambda node: change(node, factor)


for _name, _where, _scenario, _change, _factor, _what in _TIMES:
    _plant = _plants(_change, _factor)
    if _change is holds_pulls:  # a pull that is answered too soon shows at its consumer, too
        may_find("order_kept")(_plant)
    planted(_where, _scenario, caught_by="timers_kept", name=_name, what=_what)(_plant)


@planted(PRODUCER_0, "slow-broker", caught_by="timers_kept")
@may_find("living_are_used")
def producer_ends_isolations_early(node: ProducerNode) -> None:
    """a producer sends to a slow broker 5 s before the broker's isolation is over"""
    ends_isolations(node, 5_000)


# -- periods


@planted(PRODUCER_0, "smoke", caught_by="timers_kept")
def producer_stalls_once(node: Node) -> None:
    """a producer's scheduled tasks stop once for 15 s"""
    instance, rounds = instance_of(node), 0

    @around(instance, "_clean_and_heartbeat")
    async def heartbeat_and_stall(heartbeat: Any) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == STALLED_ROUND:
            await instance._context.clock.sleep(STALL_S)
        await heartbeat()


@planted(BROKER_A, "broker-partition", caught_by="timers_kept")
def broker_registers_one_after_another(broker: Broker) -> None:
    """a broker registers with one NameServer after the other, so a hanging NameServer delays the others"""
    last = asyncio.Lock()

    @around(broker._registration, "_register")
    async def register_in_turn(together: Any, *what: Any) -> Any:
        async with last:
            return await together(*what)


@planted(SLAVE_OF_A, "slave-reads", caught_by="timers_kept")
def slave_synchronizes_late(broker: Broker) -> None:
    """a slave copies its master's tables every 12 s instead of every 10 s"""
    slave, context = broker._synchronize, broker._context

    async def run() -> None:
        await context.clock.sleep(slave_synchronize.FIRST_S)
        while True:
            await slave.all()
            context.record("scheduled_task", f=slave_synchronize.TASK, duration_ms=0.0)
            await context.clock.sleep(1.2 * slave_synchronize.PERIOD_S)

    replace_part(slave, "run", run)


@planted(BROKER_A, "list-grows", caught_by="timers_kept")
def broker_asks_for_its_list_late(broker: Broker) -> None:
    """from the second time on, a broker asks the address server for its list of NameServers 12 s too late"""
    is_first = True

    @around(broker._registration, "_task")
    async def begin(task: Any, name: str, work: Any) -> None:
        nonlocal is_first
        if name == top_addressing.TASK:
            if not is_first:
                await broker._context.clock.sleep(LATE_S)
            is_first = False
        await task(name, work)


@planted(BROKER_A, "acts-by-hand", caught_by="timers_kept")
def broker_tells_the_last_of_no_change(broker: Broker) -> None:
    """a broker registers a changed topic with the last NameServer of its list only at its next periodic registration"""

    @around(broker._registration, "_register")
    async def register_all_or_most(everywhere: Any, target: Address, changed: Any, version: Any) -> Any:
        if changed is not None and target == broker._registration_targets()[-1]:
            return None
        return await everywhere(target, changed, version)


@planted(BROKER_A, "acts-by-hand", caught_by="timers_kept")
def broker_tells_its_permission_late(broker: Broker) -> None:
    """a broker registers a changed brokerPermission only at its next periodic registration"""
    replace_part(broker._registration, "changed", does_nothing)


# -- waits


@planted(CONSUMER_0, "quiet", caught_by="timers_kept")
def client_leaves_a_broker_out(node: Node) -> None:
    """a consumer sends broker-a only every second heartbeat"""
    sent = 0

    @around(instance_of(node), "_send_heartbeat")
    async def skip(send: Any, broker_name: str, address: Address, body: bytes) -> None:
        nonlocal sent
        if broker_name == "broker-a":
            sent += 1
            if sent > 2 and sent % 2:
                return
        await send(broker_name, address, body)


@planted(CONSUMER_0, "quiet", caught_by="timers_kept")
@may_find("availability queue_ownership messages_delivered")
def client_closes_its_channel_at_each_heartbeat(node: Node) -> None:
    """a consumer closes its channel to a broker after each heartbeat that the broker answered"""
    instance = instance_of(node)

    @around(instance, "_send_heartbeat")
    async def and_close(send: Any, broker_name: str, address: Address, body: bytes) -> None:
        await send(broker_name, address, body)
        instance.remoting.close_channel(address)


@planted(CONSUMERS, "channels-kept", caught_by="timers_kept")
def client_closes_a_channel_that_it_keeps(node: Node) -> None:
    """consumers close a channel on which a call has timed out, though their clientCloseSocketIfTimeout is false"""
    instance_of(node).remoting.close_on_timeout = True


@planted(CONSUMERS, "slave-reads", caught_by="timers_kept")
@may_find("living_are_used")  # nobody is served where the master is gone
def consumer_heartbeats_masters_only(node: Node) -> None:
    """consumers send heartbeats to masters only, so slaves refuse their pulls"""
    instance = instance_of(node)

    @around(instance, "_send_heartbeat")
    async def to_masters(send: Any, broker_name: str, address: Address, body: bytes) -> None:
        if instance.route_cache.broker_addr_table.get(broker_name, {}).get(0) == address:
            await send(broker_name, address, body)


@planted(CONSUMER_0, "broker-hangs-briefly", caught_by="timers_kept")
def consumer_gives_up_whom_a_heartbeat_missed(node: Node) -> None:
    """after an unanswered heartbeat, a consumer sends the broker no heartbeats for 65 s"""
    instance, left_out_until_s = instance_of(node), dict[Address, float]()

    @around(instance, "_send_heartbeat")
    async def unless_missed(send: Any, broker_name: str, address: Address, body: bytes) -> None:
        began_s = instance._context.clock.monotonic_s()
        if began_s < left_out_until_s.get(address, 0.0):
            return
        await send(broker_name, address, body)
        if instance._context.clock.monotonic_s() - began_s >= instance.api_timeout_s:
            left_out_until_s[address] = began_s + LEFT_OUT_S


@planted(BROKERS, "consumer-crash", caught_by="timers_kept")
@may_find("messages_delivered queue_ownership")
def brokers_tell_nobody(broker: Broker) -> None:
    """brokers do not notify the consumers of a group when the group's members change"""
    replace_part(broker._clients, "_notify", does_nothing)


@planted(CONSUMERS, "broker-hang", caught_by="timers_kept")
def heartbeats_end_at_the_first_failure(node: Node) -> None:
    """consumers' rounds of heartbeats end at the first broker that does not answer"""
    instance, failed = instance_of(node), False

    @around(instance, "_send_heartbeat")
    async def unless_one_failed(send: Any, broker_name: str, address: Address, body: bytes) -> None:
        nonlocal failed
        if failed:
            return
        began_s = instance._context.clock.monotonic_s()
        await send(broker_name, address, body)
        failed = instance._context.clock.monotonic_s() - began_s >= instance.api_timeout_s

    @around(instance, "send_heartbeat_to_all")
    async def round_of_all(to_all: Any) -> None:
        nonlocal failed
        failed = False
        await to_all()


@planted(BROKERS, "consumer-crash", caught_by="queue_ownership")
@may_find("timers_kept")
def brokers_list_who_has_left(broker: Broker) -> None:
    """brokers list a consumer as a member of its group for 30 s after the consumer's channel was closed"""
    clock, clients, listed = broker._context.clock, broker.services.clients, broker._clients.consumer_list
    left = list[tuple[float, str, str]]()

    @around(clients, "_remove_consumer")
    def note_and_remove(remove: Any, group: str, channel_id: int) -> Any:
        if (client_id := clients.client_id(group, channel_id)) is not None:
            left.append((clock.monotonic_s(), group, client_id))
        return remove(group, channel_id)

    def consumer_list(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        response = listed(connection, request)
        group = GetConsumerListByGroupRequestHeader.from_ext_fields(request.ext_fields).consumer_group
        since_s = clock.monotonic_s() - LISTED_S
        if response.code != ResponseCode.SUCCESS:
            return response
        ids = GetConsumerListByGroupResponseBody.decode(response.body).consumer_id_list
        ids += tuple(one for at_s, of, one in left if of == group and at_s > since_s and one not in ids)
        return RemotingCommand.response(body=GetConsumerListByGroupResponseBody(consumer_id_list=ids).encode())

    broker._processor._methods[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = consumer_list


@planted(PRODUCER_0, "slow-broker", caught_by="timers_kept")
@may_find("living_are_used")  # the broker misses its turns
def producer_isolates_too_long(node: ProducerNode) -> None:
    """a producer avoids slow or failed brokers for 10 % longer than notAvailableDuration says"""
    isolates(node, 1.1)


@planted(PRODUCER_0, "broker-hangs-briefly", caught_by="living_are_used")
def producer_isolates_at_the_second_failure(node: ProducerNode) -> None:
    """a producer avoids a broker only after two failed tries in a row"""
    failed_last = set[str]()

    @around(node.client._fault, "_update")
    def unless_first(update: Any, name: str, latency_ms: int, failed: bool, *more: Any) -> None:
        is_first = failed and name not in failed_last
        (failed_last.add if failed else failed_last.discard)(name)
        if not is_first:
            update(name, latency_ms, failed, *more)


# -- unasked


def _each(node: Node, clock: Clock, period_s: float, act: Callable[[], Awaitable[None] | None]) -> None:
    """Runs this action repeatedly from the node's start on, besides the node's own work."""
    acting: list[asyncio.Task[None]] = []

    async def go_on() -> None:
        while True:
            await clock.sleep(period_s)
            done = act()
            if done is not None:
                await done

    @around(node, "start")
    async def start_and_act(start: Any) -> None:
        await start()
        acting.append(asyncio.create_task(go_on()))

    @around(node, "stop")
    async def stop_acting(stop: Any) -> None:
        for task in acting:
            task.cancel()
        await stop()


@planted(LASTING_CLIENTS, "smoke", caught_by="timers_kept")
def client_asks_between_polls(node: Node) -> None:
    """clients ask for their routes every 3 s, in addition to the regular polls"""
    instance = instance_of(node)
    _each(node, instance._context.clock, 3.0, instance.poll_routes)


@planted(LASTING_CLIENTS, "smoke", caught_by="name_server_selection")
def client_dials_every_name_server(node: Node) -> None:
    """clients keep a channel to every NameServer of their list, though they ask only the chosen NameServer"""
    instance = instance_of(node)

    @around(instance, "start")
    async def start_and_dial(start: Any) -> None:
        await start()
        for address in instance.name_server.selector.addresses:
            with suppress(TransportError):
                await instance.remoting.connect(address)


@planted(LASTING_CLIENTS, "broker-crash", caught_by="timers_kept")
def client_forgets_no_address(node: Node) -> None:
    """clients go on connecting and sending heartbeats to a broker that is in none of their routes"""
    replace_part(instance_of(node).route_cache, "clean_offline_brokers", tuple)


@planted(BROKER_A, "smoke", caught_by="timers_kept")
def broker_tells_of_no_change(broker: Broker) -> None:
    """a broker tells consumer groups every 5 s that their members have changed, although no member has changed"""
    notify, groups = broker._clients._notify, broker.services.clients.consumers
    _each(broker, broker._context.clock, 5.0, lambda: notify(list(groups)))


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
def consumer_rebalances_unasked(node: ConsumerNode) -> None:
    """a consumer rebalances every 2 s, although nothing has changed"""
    _each(node, node.instance._context.clock, 2.0, node.client._rebalancer.wake)
