"""What makes our client wrong in one way each; sabotage.py says by which rule that is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.clients.name_server_client import NameServerClient
from nemesrv.clients.name_servers import Choice
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.remoting.bodies.route import TopicRouteData
from nemesrv.remoting.errors import ConnectError, RequestTimeout, ResponseError, RocketMQError
from nemesrv.remoting.node.network import Address
from tests.conformance.client import Client

POLL = "updateTopicRouteInfoFromNameServer"


def name_server(change: Callable[[NameServerClient, Client], None]) -> Callable[[Client], None]:
    return lambda client: change(client.instance.name_server, client)


# -- choosing


def does_not_shuffle(of: NameServerClient, client: Client) -> None:
    of.selector.shuffle = lambda addresses: None  # type: ignore[method-assign]


def starts_at_the_first(of: NameServerClient, client: Client) -> None:
    selector = of.selector
    selector._start_index = lambda: selector.addresses.index(client.configured[0]) - 1  # type: ignore[method-assign]


def leaves_once(client: Client) -> None:
    """At its third poll it goes to another NameServer, though the one that it has answers."""
    instance, polls = client.instance, 0

    def count() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            instance.name_server.selector.chosen = None

    instance._before_poll = count  # type: ignore[method-assign]


def goes_back(of: NameServerClient, client: Client) -> None:
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


def stays(of: NameServerClient, client: Client) -> None:
    advance = of.selector.advance

    def same_again(old: Address | None) -> Choice:
        chosen = of.selector.chosen
        return advance(old) if chosen is None else Choice(old, chosen, of.selector.addresses.index(chosen))

    of.selector.advance = same_again  # type: ignore[method-assign]


def leaves_on_code(of: NameServerClient, client: Client) -> None:
    query_route = of.query_route

    async def query_and_leave(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        try:
            return await query_route(topic, timeout_s)
        except ResponseError:
            of.selector.chosen = None
            raise

    of.query_route = query_and_leave  # type: ignore[method-assign]


# -- trying


def tries_again(when: type[RocketMQError]) -> Callable[[Client], None]:
    def plant(of: NameServerClient, client: Client) -> None:
        invoke = of._invoke

        async def twice(command: Any, timeout_s: float, tries: Any) -> Any:
            try:
                return await invoke(command, timeout_s, tries)
            except when:
                return await invoke(command, timeout_s, tries)

        of._invoke = twice  # type: ignore[method-assign]

    return name_server(plant)


def is_patient(of: NameServerClient, client: Client) -> None:
    query_route = of.query_route
    of.query_route = lambda topic, timeout_s=4.0: query_route(topic, 4.0)  # type: ignore[method-assign]


def time_outs_add(of: NameServerClient, client: Client) -> None:
    """The answer has its whole time, however long connecting took."""
    invoke = of._invoke

    async def with_time_of_its_own(command: Any, timeout_s: float, tries: Any) -> Any:
        await of._connected(tries)
        return await invoke(command, timeout_s, tries)

    of._invoke = with_time_of_its_own  # type: ignore[method-assign]


def keeps_silent_connections(of: NameServerClient, client: Client) -> None:
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


def takes_turns(of: NameServerClient, client: Client) -> None:
    of.selector.sticky = lambda is_active: None  # type: ignore[method-assign]


# -- polling


def polls_by_itself(wait_s: Callable[[int], float]) -> Callable[[Client], None]:
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


def takes_no_list(client: Client) -> None:
    of = client.instance.name_server
    update = of.update_addresses
    of.update_addresses = lambda addresses, task=None: None if of.selector.addresses else update(addresses, task)  # type: ignore[method-assign]


def storms(of: NameServerClient, client: Client) -> None:
    query_route = of.query_route

    async def five_times(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
        for _ in range(4):
            try:
                return await query_route(topic, timeout_s)
            except ResponseError:
                pass
        return await query_route(topic, timeout_s)

    of.query_route = five_times  # type: ignore[method-assign]


def gives_up(of: NameServerClient, client: Client) -> None:
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


def takes(change: Callable[[TopicRouteData, TopicRouteData], TopicRouteData]) -> Callable[[Client], None]:
    """In place of each new route, what `change` makes of the one that it has and it."""

    def plant(client: Client) -> None:
        cache = client.instance.route_cache
        take = cache.take

        def take_changed(topic: str, route: TopicRouteData, *, needed: bool = False) -> bool:
            old = cache.route(topic)
            return take(topic, route if old is None else change(old, route), needed=needed)

        cache.take = take_changed  # type: ignore[method-assign]

    return plant


def without_new_brokers(old: TopicRouteData, new: TopicRouteData) -> TopicRouteData:
    known = {broker.broker_name for broker in old.broker_datas}
    return replace(
        new,
        broker_datas=tuple(broker for broker in new.broker_datas if broker.broker_name in known),
        queue_datas=tuple(row for row in new.queue_datas if row.broker_name in known),
    )


def tells_of_losses(client: Client) -> None:
    client.said = lambda number, ok: ok and number % 3 > 0  # type: ignore[method-assign]


def rests_after_a_failure(client: Client) -> None:
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


ISOLATES = {
    "send_latency_fault_enable": True,
    "latency_max": (400,),
    "not_available_duration": (600_000,),
}

# -- consumers


def never_rebalances_again(client: Client) -> None:
    """Nor is a change of the group's members told it."""
    assert isinstance(client.node, DefaultMQPushConsumer)
    rebalancer = client.node._rebalancer
    rebalance, clock = rebalancer.rebalance, client.context.clock
    began_s = clock.monotonic_s()

    async def while_it_is_new() -> bool:
        return await rebalance() if clock.monotonic_s() < began_s + 35 else True

    rebalancer.rebalance = while_it_is_new  # type: ignore[method-assign]


def receives_twice(client: Client) -> None:
    tell = client.tell

    def tell_twice(**said: Any) -> None:
        for _ in range(2 if said["f"] == "received" else 1):
            tell(**dict(said))

    client.tell = tell_twice
