"""Our client made wrong in one way each: what exactly one rule must call INVALID. Who plants none is the clean twin.

A defect shows in the situations `only` (its rule's, where it names none), so that every other rule is judged by what
the clean twin did: planted everywhere, many defects are seen by several rules, for good reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nemesrv.chaos.conform.rules import RULES
from nemesrv.chaos.conform.rules.choosing import LEAVES
from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.clients.name_server_client import NameServerClient
from nemesrv.clients.name_servers import Choice
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.remoting.bodies.route import TopicRouteData
from nemesrv.remoting.errors import ConnectError, RequestTimeout, ResponseError, RocketMQError
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from tests.chaos.conform.client import Client

POLL = "updateTopicRouteInfoFromNameServer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    name: str
    rule: str
    what: str
    plant: Callable[[Client], None] = lambda client: None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the producer's or consumer's config."""
    only: tuple[str, ...] = ()
    profile: Profile = Profile.V5_X
    heals: frozenset[str] = frozenset()
    """Rules that even the clean twin breaks, and this client does not."""
    repeats: int = 1
    """So often each situation is needed, where chance is involved."""

    @property
    def situations(self) -> tuple[str, ...]:
        return self.only or RULES[self.rule].situations


def _name_server(change: Callable[[NameServerClient, Client], None]) -> Callable[[Client], None]:
    return lambda client: change(client.instance.name_server, client)


# -- choosing


def _does_not_shuffle(of: NameServerClient, client: Client) -> None:
    of.selector.shuffle = lambda addresses: None  # type: ignore[method-assign]


def _starts_at_the_first(of: NameServerClient, client: Client) -> None:
    selector = of.selector
    selector._start_index = lambda: selector.addresses.index(client.configured[0]) - 1  # type: ignore[method-assign]


def _leaves_once(client: Client) -> None:
    """At its third poll it goes to another NameServer, though the one that it has answers."""
    instance, polls = client.instance, 0

    def count() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            instance.name_server.selector.chosen = None

    instance._before_poll = count  # type: ignore[method-assign]


def _goes_back(of: NameServerClient, client: Client) -> None:
    """Its third choice is the one before the last: 0 1 0 1 2 3."""
    next_index, made = of.selector.next_index, 0

    def there_and_back() -> int:
        nonlocal made
        made += 1
        index = next_index()
        if made == 3:
            assert of.selector._index is not None
            of.selector._index -= 2
            index = of.selector._index % len(of.selector.addresses)
        return index

    of.selector.next_index = there_and_back  # type: ignore[method-assign]


# -- leaving


def _stays(of: NameServerClient, client: Client) -> None:
    advance = of.selector.advance

    def same_again(old: Address | None) -> Choice:
        chosen = of.selector.chosen
        return advance(old) if chosen is None else Choice(old, chosen, of.selector.addresses.index(chosen))

    of.selector.advance = same_again  # type: ignore[method-assign]


def _leaves_on_code(of: NameServerClient, client: Client) -> None:
    query_route = of.query_route

    async def query_and_leave(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        try:
            return await query_route(topic, timeout_s)
        except ResponseError:
            of.selector.chosen = None
            raise

    of.query_route = query_and_leave  # type: ignore[method-assign]


# -- trying


def _tries_again(when: type[RocketMQError]) -> Callable[[Client], None]:
    def plant(of: NameServerClient, client: Client) -> None:
        invoke = of._invoke

        async def twice(command: Any, timeout_s: float, tries: Any) -> Any:
            try:
                return await invoke(command, timeout_s, tries)
            except when:
                return await invoke(command, timeout_s, tries)

        of._invoke = twice  # type: ignore[method-assign]

    return _name_server(plant)


def _is_patient(of: NameServerClient, client: Client) -> None:
    query_route = of.query_route
    of.query_route = lambda topic, timeout_s=4.0: query_route(topic, 4.0)  # type: ignore[method-assign]


def _time_outs_add(of: NameServerClient, client: Client) -> None:
    """The answer has its whole time, however long connecting took."""
    invoke = of._invoke

    async def with_time_of_its_own(command: Any, timeout_s: float, tries: Any) -> Any:
        await of._connected(tries)
        return await invoke(command, timeout_s, tries)

    of._invoke = with_time_of_its_own  # type: ignore[method-assign]


def _keeps_silent_connections(of: NameServerClient, client: Client) -> None:
    """It goes on to the next one, and leaves the connection open."""
    client.instance.remoting._close_on_timeout = False
    query_route = of.query_route

    async def query_and_leave(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        try:
            return await query_route(topic, timeout_s)
        except RequestTimeout:
            of.selector.chosen = None
            raise

    of.query_route = query_and_leave  # type: ignore[method-assign]


def _takes_turns(of: NameServerClient, client: Client) -> None:
    of.selector.sticky = lambda is_active: None  # type: ignore[method-assign]


# -- polling


def _polls_by_itself(wait_s: Callable[[int], float]) -> Callable[[Client], None]:
    """In place of the fixed rate: so long after the end of each round."""

    def plant(client: Client) -> None:
        instance = client.instance
        poll = instance.poll_routes
        held: list[asyncio.Task[None]] = []

        async def poll_for_ever() -> None:
            number = 0
            while True:
                try:
                    await poll()
                except RocketMQError:
                    pass
                number += 1
                await client.context.clock.sleep(wait_s(number))

        async def begin() -> None:
            if not held:
                held.append(asyncio.create_task(poll_for_ever()))

        instance.poll_routes = begin  # type: ignore[method-assign]

    return plant


def _takes_no_list(client: Client) -> None:
    of = client.instance.name_server
    update = of.update_addresses
    of.update_addresses = lambda addresses, task=None: None if of.selector.addresses else update(addresses, task)  # type: ignore[method-assign]


def _storms(of: NameServerClient, client: Client) -> None:
    query_route = of.query_route

    async def five_times(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        for _ in range(4):
            try:
                return await query_route(topic, timeout_s)
            except ResponseError:
                pass
        return await query_route(topic, timeout_s)

    of.query_route = five_times  # type: ignore[method-assign]


def _gives_up(of: NameServerClient, client: Client) -> None:
    """After two failures it asks no more."""
    query_route, failed = of.query_route, 0

    async def until_two_failed(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        nonlocal failed
        if failed >= 2:
            raise ConnectError("given up")
        try:
            return await query_route(topic, timeout_s)
        except ConnectError:
            failed += 1
            raise

    of.query_route = until_two_failed  # type: ignore[method-assign]


# -- brokers


def _takes(change: Callable[[TopicRouteData, TopicRouteData], TopicRouteData]) -> Callable[[Client], None]:
    """In place of each new route, what `change` makes of the one that it has and it."""

    def plant(client: Client) -> None:
        cache = client.instance.route_cache
        take = cache.take

        def take_changed(topic: str, route: TopicRouteData, *, needed: bool = False) -> bool:
            old = cache.route(topic)
            return take(topic, route if old is None else change(old, route), needed=needed)

        cache.take = take_changed  # type: ignore[method-assign]

    return plant


def _without_new_brokers(old: TopicRouteData, new: TopicRouteData) -> TopicRouteData:
    known = {broker.broker_name for broker in old.broker_datas}
    return replace(
        new,
        broker_datas=tuple(broker for broker in new.broker_datas if broker.broker_name in known),
        queue_datas=tuple(row for row in new.queue_datas if row.broker_name in known),
    )


def _tells_of_losses(client: Client) -> None:
    client.said = lambda number, ok: ok and number % 3 > 0  # type: ignore[method-assign]


def _rests_after_a_failure(client: Client) -> None:
    """After 20 sends it sends nothing for 25 s."""
    assert isinstance(client.node, DefaultMQProducer)
    send, sent = client.node.send, 0

    async def send_and_rest(*args: Any, **kwargs: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == 20:
            await client.context.clock.sleep(25.0)
        return await send(*args, **kwargs)

    client.node.send = send_and_rest  # type: ignore[method-assign]


_ISOLATES = {
    "send_latency_fault_enable": True,
    "latency_max": (400,),
    "not_available_duration": (600_000,),
}

# -- consumers


def _never_rebalances_again(client: Client) -> None:
    """Nor is a change of the group's members told it."""
    assert isinstance(client.node, DefaultMQPushConsumer)
    rebalancer = client.node._rebalancer
    rebalance, clock = rebalancer.rebalance, client.context.clock
    began_s = clock.monotonic_s()

    async def while_it_is_new() -> bool:
        return await rebalance() if clock.monotonic_s() < began_s + 35 else True

    rebalancer.rebalance = while_it_is_new  # type: ignore[method-assign]


def _receives_twice(client: Client) -> None:
    tell = client.tell

    def tell_twice(**said: Any) -> None:
        for _ in range(2 if said["f"] == "received" else 1):
            tell(**dict(said))

    client.tell = tell_twice


def _leaving(rule: str) -> Defect:
    situation = RULES[rule].situations[0]
    return Defect(
        name=f"stays-{situation.replace('_', '-')}",
        rule=rule,
        what=f"does not leave a NameServer that is put through {situation}",
        plant=_name_server(_stays),
        only=(situation,),
    )


_ALL = (
    Defect(
        name="does-not-shuffle",
        rule="list_order",
        what="the list in use is as it was told",
        plant=_name_server(_does_not_shuffle),
        only=(*LEAVES, "all_gone"),
        repeats=3,
    ),
    Defect(
        name="starts-at-the-first",
        rule="start",
        what="the first NameServer is always the first that it was told",
        plant=_name_server(_starts_at_the_first),
    ),
    Defect(
        name="leaves-once",
        rule="sticky",
        what="leaves a NameServer that answers, at its third poll",
        plant=_leaves_once,
    ),
    Defect(
        name="goes-back",
        rule="next",
        what="goes back to the one before at its third choice",
        plant=_name_server(_goes_back),
        only=("all_gone",),
    ),
    *(
        _leaving(rule)
        for rule in (
            "leaves_on_refused",
            "leaves_on_syn_dropped",
            "leaves_on_silence",
            "leaves_on_close",
            "leaves_on_reset",
            "leaves_on_closed_at_accept",
        )
    ),
    Defect(
        name="leaves-on-code-1",
        rule="leaves_on_error_code",
        what="goes to another NameServer after an error code",
        plant=_name_server(_leaves_on_code),
        only=("error_code",),
    ),
    Defect(
        name="leaves-on-code-17",
        rule="leaves_on_code_17",
        what="goes to another NameServer after TOPIC_NOT_EXIST",
        plant=_name_server(_leaves_on_code),
        only=("topic_not_exist",),
    ),
    Defect(
        name="one-try-too-many",
        rule="tries_refused",
        what="tries another NameServer in the same call when one refuses",
        plant=_tries_again(ConnectError),
    ),
    Defect(
        name="goes-on-after-silence",
        rule="tries_silent",
        what="tries another NameServer in the same call when one does not answer",
        plant=_tries_again(RequestTimeout),
    ),
    Defect(
        name="connects-too-long",
        rule="connect_timeout_s",
        what="waits 3.5 s for a connection",
        settings={"connect_timeout_ms": 3_500},
        only=("one_unreachable",),
    ),
    Defect(
        name="waits-too-long",
        rule="answer_timeout_s",
        what="waits 4 s for an answer",
        plant=_name_server(_is_patient),
        only=("silent", "black_hole", "one_dead"),
    ),
    Defect(
        name="time-outs-add",
        rule="timeouts_add",
        what="an answer has 3 s after a connect that took 3 s",
        plant=_name_server(_time_outs_add),
        heals=frozenset({"failover"}),  # so it is what 4.9.8 lacks
        profile=Profile.V4_9,
    ),
    Defect(
        name="keeps-silent-connections",
        rule="closes_on_silence",
        what="leaves the connection open when it leaves a silent NameServer",
        plant=_name_server(_keeps_silent_connections),
    ),
    Defect(
        name="takes-turns",
        rule="phase_lock",
        what="takes turns, the dead NameServer's included",
        plant=_name_server(_takes_turns),
        only=("one_dead",),
    ),
    Defect(name="never-recovers", rule="failover", what="is 4.9.8 (apache/rocketmq#7056)", profile=Profile.V4_9),
    Defect(
        name="polls-late",
        rule="poll_period_s",
        what="polls each 33 s",
        settings={"poll_name_server_interval_ms": 33_000},
        only=("quiet", "slow"),
    ),
    Defect(
        name="fixed-delay",
        rule="poll_kind",
        what="polls 30 s after the end of the last round",
        plant=_polls_by_itself(lambda number: 30.0),
    ),
    Defect(
        name="one-poll-late",
        rule="poll_jitter_s",
        what="its third poll comes 2 s late",
        plant=_polls_by_itself(lambda number: 32.0 if number == 3 else 30.0),
        only=("quiet",),
    ),
    Defect(
        name="takes-no-list", rule="list_change_s", what="keeps the first list that it was given", plant=_takes_no_list
    ),
    Defect(
        name="storms", rule="storm", what="asks five times for a route that is not there", plant=_name_server(_storms)
    ),
    Defect(
        name="gives-up",
        rule="back_after_all_gone_s",
        what="asks no NameServer after two failures",
        plant=_name_server(_gives_up),
    ),
    Defect(
        name="keeps-a-dead-broker",
        rule="killed_broker_s",
        what="takes no route without a broker that it knows",
        plant=_takes(lambda old, new: old),
        only=("broker_killed",),
    ),
    *(
        Defect(
            name=f"isolates-{rule.removesuffix('_broker_s')}",
            rule=rule,
            what="sends nothing to a broker after it failed once",
            settings=_ISOLATES,
        )
        for rule in ("silent_broker_s", "refusing_broker_s", "unreachable_broker_s")
    ),
    Defect(
        name="keeps-an-unrouted-broker",
        rule="unrouted_broker_s",
        what="takes no route without a broker that it knows",
        plant=_takes(lambda old, new: old),
    ),
    Defect(
        name="tells-of-losses",
        rule="sends_lost",
        what="tells of every third send that it failed",
        plant=_tells_of_losses,
    ),
    Defect(name="rests", rule="send_stall_s", what="sends nothing for 25 s", plant=_rests_after_a_failure),
    Defect(
        name="no-retries",
        rule="send_retries",
        what="tries one broker",
        settings={"retry_times_when_send_failed": 0},
    ),
    Defect(
        name="takes-no-broker-back",
        rule="returned_broker_s",
        what="takes no brokers but those that it had",
        plant=_takes(_without_new_brokers),
    ),
    Defect(
        name="keeps-its-queues-killed",
        rule="queues_of_killed_s",
        what="takes no queues of another consumer after its first 35 s",
        plant=_never_rebalances_again,
    ),
    Defect(
        name="keeps-its-queues-stopped",
        rule="queues_of_stopped_s",
        what="takes no queues of another consumer after its first 35 s",
        plant=_never_rebalances_again,
    ),
    Defect(
        name="receives-twice",
        rule="received_twice",
        what="hands every message to its listener twice",
        plant=_receives_twice,
    ),
)

DEFECTS: Mapping[str, Defect] = {defect.name: defect for defect in _ALL}
