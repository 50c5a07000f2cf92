"""Defects in how clients choose and use NameServers, and in how clients use routes. These defects are planted in
producers and consumers; defects of the first choice also in each client that the prober starts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

from ....clients.name_server_client import NameServerClient
from ....remoting.bodies.route import TopicRouteData
from ....remoting.errors import ConnectError, RocketMQError, TopicNotExist, TransportError
from ....remoting.node.network import Address
from ....remoting.node.node import Node
from ....remoting.node.profile import Profile
from ...defects import around, does_nothing, does_nothing_async, replace_part, so_many_times
from ...experiment.workloads.prober import ProberNode
from .planting import EVERY_CLIENT, LASTING_CLIENTS, PRODUCER_0, PRODUCERS, Planted, Where, instance_of, may_find

PATIENCE_S = 60.0
"""How long the client that is too patient waits for an answer, instead of A = 3 s."""

planted = Planted()


def in_every_name_server_client(change: Callable[[NameServerClient], None]) -> Callable[[Node], None]:
    """Plants a defect in every client that looks up routes, the prober's clients included."""

    @wraps(change)
    def plant(node: Node) -> None:
        if isinstance(node, ProberNode):
            node.plant = change
        else:
            change(instance_of(node).name_server)

    return plant


# -- routes


def taking(node: Node, change: Callable[[TopicRouteData | None, TopicRouteData], TopicRouteData]) -> None:
    """Changes each new route that the client takes: `change` gets the old and the new route."""
    cache = instance_of(node).route_cache

    @around(cache, "take")
    def take_changed(take: Any, topic: str, route: TopicRouteData, *, needed: bool = False) -> Any:
        return take(topic, change(cache.route(topic), route), needed=needed)


@planted(LASTING_CLIENTS, "smoke", caught_by="timers_kept")
def client_looks_up_twice(client: Node) -> None:
    """clients look up each topic twice in a route poll"""

    @around(instance_of(client), "update_route")
    async def update(ask: Any, topic: str) -> bool:
        return bool(await ask(topic)) | bool(await ask(topic))


@planted(LASTING_CLIENTS, "broker-crash", caught_by="client_routes_are_true")
@may_find("recovery_time availability queue_ownership no_acknowledged_loss dead_brokers_avoided")
def client_takes_no_broker_back(node: Node) -> None:
    """clients ignore a broker that was not in their previous route of the topic, so no broker comes back"""

    def without_new_brokers(old: TopicRouteData | None, new: TopicRouteData) -> TopicRouteData:
        if old is None:
            return new
        known = {broker.broker_name for broker in old.broker_datas}
        brokers = tuple(broker for broker in new.broker_datas if broker.broker_name in known)
        rows = tuple(row for row in new.queue_datas if row.broker_name in known)
        return replace(new, broker_datas=brokers, queue_datas=rows)

    taking(node, without_new_brokers)


@planted(PRODUCERS, "smoke", caught_by="client_routes_are_true")
def producer_takes_a_queue_less(node: Node) -> None:
    """producers take every route with one write queue less than the NameServer answered"""

    def with_a_queue_less(_old: TopicRouteData | None, new: TopicRouteData) -> TopicRouteData:
        rows = tuple(replace(row, write_queue_nums=max(1, row.write_queue_nums - 1)) for row in new.queue_datas)
        return replace(new, queue_datas=rows)

    taking(node, with_a_queue_less)


@planted(LASTING_CLIENTS, "broker-moves", caught_by="dead_brokers_avoided")
@may_find("availability commits_follow_work living_are_used recovery_time timers_kept")
def client_keeps_the_old_address(node: Node) -> None:
    """clients keep the first address of each broker, even if later routes have another address"""
    first: dict[str, Mapping[int, Address]] = {}

    class Kept(dict[str, Mapping[int, Address]]):
        def __setitem__(self, broker_name: str, addresses: Mapping[int, Address]) -> None:
            super().__setitem__(broker_name, first.setdefault(broker_name, addresses))

        def __delitem__(self, broker_name: str) -> None:
            """Keeps the address even when no route has it."""

    replace_part(instance_of(node).route_cache, "broker_addr_table", Kept())


# -- choosing


@planted(EVERY_CLIENT, "smoke", caught_by="name_server_selection")
@in_every_name_server_client
def client_starts_at_the_first(client: NameServerClient) -> None:
    """every client begins with the first NameServer of its configured list"""
    replace_part(client.selector, "shuffle", does_nothing)
    replace_part(client.selector, "_start_index", lambda: -1)


@planted(EVERY_CLIENT, "smoke", caught_by="name_server_selection")
@in_every_name_server_client
def client_never_shuffles(client: NameServerClient) -> None:
    """clients choose their first NameServer at random, but do not shuffle the list"""
    replace_part(client.selector, "shuffle", does_nothing)


@planted(EVERY_CLIENT, "smoke", caught_by="name_server_selection")
@in_every_name_server_client
def client_never_starts_at_the_last(client: NameServerClient) -> None:
    """no client begins with the last NameServer of its configured list"""
    rng = client._context.rng
    replace_part(client.selector, "shuffle", does_nothing)
    replace_part(client.selector, "_start_index", lambda: rng.randrange(2) - 1)


@planted(EVERY_CLIENT, "smoke", caught_by="name_server_selection")
@in_every_name_server_client
def client_knows_only_the_first(client: NameServerClient) -> None:
    """every client uses only the first NameServer of its configured list"""
    replace_part(client, "_configured", client._configured[:1])


@planted(LASTING_CLIENTS, "name-server-partition", caught_by="name_server_selection")
@in_every_name_server_client
def client_skips_an_entry(client: NameServerClient) -> None:
    """when clients move on to another NameServer, they skip every second NameServer of their list"""
    around(client.selector, "next_index")(lambda next_index: (next_index(), next_index())[1])


@planted(LASTING_CLIENTS, "name-server-partition", caught_by="name_server_selection")
@may_find("dead_name_servers_left recovery_time")
@in_every_name_server_client
def client_goes_on_at_random(client: NameServerClient) -> None:
    """clients move on to a random NameServer instead of the next NameServer of their list"""
    selector, rng = client.selector, client._context.rng
    replace_part(selector, "next_index", lambda: rng.randrange(len(selector.addresses)))


# -- staying and leaving


@planted(EVERY_CLIENT, "name-server-partition", caught_by="name_server_selection dead_name_servers_left")
@may_find("client_routes_are_true recovery_time")  # no look-up is answered before the fault ends
@in_every_name_server_client
def client_never_moves_on(client: NameServerClient) -> None:
    """clients choose the NameServer that has just failed again"""
    first: list[int] = []

    @around(client.selector, "next_index")
    def same_again(next_index: Callable[[], int]) -> int:
        if not first:
            first.append(next_index())
        return first[0]


@planted(LASTING_CLIENTS, "smoke", caught_by="name_server_selection")
@in_every_name_server_client
def client_chooses_for_each_request(client: NameServerClient) -> None:
    """clients choose another NameServer for each request, as the Go client does"""
    replace_part(client.selector, "sticky", does_nothing)


@planted(LASTING_CLIENTS, "list-grows", caught_by="name_server_selection")
@in_every_name_server_client
def client_leaves_at_every_new_list(client: NameServerClient) -> None:
    """clients choose another NameServer at each change of their list, even if the list still has the chosen
    NameServer"""

    @around(client.selector, "update")
    def update_and_leave(update: Any, *addresses: Any) -> Any:
        is_new = update(*addresses)
        if is_new:
            client.selector.chosen = None
        return is_new


@planted(LASTING_CLIENTS, "list-shrinks", caught_by="name_server_selection")
@in_every_name_server_client
def client_keeps_the_channel_to_a_lost_name_server(client: NameServerClient) -> None:
    """clients of 5.x leave their channel to a NameServer open that a new list no longer contains"""

    @around(client, "update_addresses")
    def update_as_4_9(update: Any, *args: Any) -> None:
        client._profile = Profile.V4_9
        update(*args)
        client._profile = Profile.V5_X


@planted(LASTING_CLIENTS, "list-grows", caught_by="name_server_selection")
@in_every_name_server_client
def client_shuffles_the_same_list(client: NameServerClient) -> None:
    """clients treat the same NameServers in another order as a new list, and shuffle the list"""

    @around(client.selector, "update")
    def forget_and_update(update: Any, *addresses: Any) -> Any:
        client.selector.addresses = ()
        return update(*addresses)


@planted(LASTING_CLIENTS, "smoke", caught_by="name_server_selection")
def client_leaves_at_every_poll(node: Node) -> None:
    """clients choose another NameServer at every route poll"""
    instance = instance_of(node)

    def forget_choice() -> None:
        instance.name_server.selector.chosen = None

    replace_part(instance, "_before_poll", forget_choice)


@planted(LASTING_CLIENTS, "name-server-partition", caught_by="name_server_selection dead_name_servers_left")
@may_find("client_routes_are_true recovery_time timers_kept")  # no look-up is answered before the fault ends
def client_keeps_a_silent_channel(node: Node) -> None:
    """clients keep a channel after an unanswered request, so they go on asking a NameServer that does not answer"""
    replace_part(instance_of(node).remoting, "close_on_timeout", False)


@planted(LASTING_CLIENTS, "name-server-partition", caught_by="dead_name_servers_left")
@may_find("timers_kept client_routes_are_true name_server_selection recovery_time")  # the first answer comes as late
def client_is_too_patient(node: Node) -> None:
    """clients wait 60 s for a NameServer's answer"""
    around(instance_of(node).name_server, "query_route")(lambda query, topic, *_, **__: query(topic, PATIENCE_S))


# -- polling


@planted(PRODUCERS, "broker-crash", caught_by="timers_kept")
@may_find("dead_brokers_avoided client_routes_are_true recovery_time")  # by phase
def producer_polls_half_as_often(node: Node) -> None:
    """producers ask for routes every 60 s instead of every 30 s"""
    so_many_times(instance_of(node), "_config", "poll_name_server_interval_ms", 2)


@planted(LASTING_CLIENTS, "name-server-then-broker", caught_by="dead_brokers_avoided")
@may_find("timers_kept availability client_routes_are_true dead_name_servers_left recovery_time")
def client_stops_polling_after_a_failure(node: Node) -> None:
    """clients never ask for routes again after a poll that failed"""
    failed = False

    @around(instance_of(node), "poll_routes")
    async def poll_until_it_fails(poll: Any) -> None:
        nonlocal failed
        if failed:
            return
        try:
            await poll()
        except RocketMQError:
            failed = True
            raise


@planted(Where(LASTING_CLIENTS.kinds, PRODUCER_0.nodes), "name-server-partition", caught_by="recovery_time")
@may_find("timers_kept availability client_routes_are_true dead_name_servers_left")
def producer_gives_up_after_a_failure(node: Node) -> None:
    """one producer sends no more route requests to any NameServer after one request has failed"""
    failed = False

    @around(instance_of(node).name_server, "query_route")
    async def query_until_it_fails(query_route: Any, topic: str, *timeout_s: Any) -> Any:
        nonlocal failed
        if failed:
            raise ConnectError("a name server has failed before")
        try:
            return await query_route(topic, *timeout_s)
        except TransportError:
            failed = True
            raise


@planted(LASTING_CLIENTS, "name-servers-restart", caught_by="timers_kept availability")
@may_find("client_routes_are_true commits_follow_work living_are_used messages_delivered queue_ownership recovery_time")
def client_clears_routes_on_17(node: Node) -> None:
    """clients forget a topic's route when a NameServer answers code 17, as a newly started NameServer does"""
    instance = instance_of(node)

    @around(instance.name_server, "query_route")
    async def query_and_clear(query_route: Any, topic: str, *timeout_s: Any) -> Any:
        try:
            return await query_route(topic, *timeout_s)
        except TopicNotExist:
            instance.route_cache.topic_route_table.pop(topic, None)
            instance._on_route_applied(topic, TopicRouteData())
            raise


@planted(LASTING_CLIENTS, "consumer-stop", caught_by="timers_kept")
def client_leaves_without_a_word(node: Node) -> None:
    """clients do not unregister at brokers when the clients shut down"""
    replace_part(instance_of(node), "_unregister_client", does_nothing_async)
