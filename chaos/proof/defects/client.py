"""Ways for any client to be wrong about NameServers: the first choice, the order, staying, leaving, polling.

Planted in producers and consumers, and where it is about the first choice also in each client that the prober starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....clients.client_instance import MQClientInstance
from ....clients.name_server_client import NameServerClient
from ....remoting.bodies.route import TopicRouteData
from ....remoting.errors import ConnectError, RocketMQError, TopicNotExist, TransportError
from ....remoting.node.network import Address
from ....remoting.node.node import Node
from ...experiment.workloads.consumer import ConsumerNode
from ...experiment.workloads.prober import ProberNode
from ...experiment.workloads.producer import ProducerNode
from ...scenarios.defect import CLIENTS, Defect, checks, replace_part
from ...topology import NodeKind

PATIENCE_S = 60.0
"""How long the client that is too patient waits for an answer, instead of A = 3 s."""

_LASTING = (NodeKind.PRODUCER, NodeKind.CONSUMER)


def instance_of(node: Node) -> MQClientInstance:
    assert isinstance(node, ProducerNode | ConsumerNode)
    return node.instance


def _in_every_name_server_client(change: Callable[[NameServerClient], None]) -> Callable[[Node], None]:
    def plant(node: Node) -> None:
        if isinstance(node, ProberNode):
            node.plant = change
        else:
            change(instance_of(node).name_server)

    return plant


# -- choosing


def _always_starts_at_the_first(client: NameServerClient) -> None:
    replace_part(client.selector, "shuffle", lambda addresses: None)
    replace_part(client.selector, "_start_index", lambda: -1)


def _never_shuffles(client: NameServerClient) -> None:
    replace_part(client.selector, "shuffle", lambda addresses: None)


def _never_starts_at_the_last(client: NameServerClient) -> None:
    rng = client._context.rng
    replace_part(client.selector, "shuffle", lambda addresses: None)
    replace_part(client.selector, "_start_index", lambda: rng.randrange(2) - 1)


def _knows_only_the_first(client: NameServerClient) -> None:
    replace_part(client, "_configured", client._configured[:1])


def _skips_an_entry(client: NameServerClient) -> None:
    next_index = client.selector.next_index

    def next_but_one() -> int:
        next_index()
        return next_index()

    replace_part(client.selector, "next_index", next_but_one)


def _leaves_at_every_new_list(client: NameServerClient) -> None:
    selector = client.selector
    update = selector.update

    def update_and_leave(addresses: Sequence[Address]) -> bool:
        is_new = update(addresses)
        if is_new:
            selector.chosen = None
        return is_new

    replace_part(selector, "update", update_and_leave)


def _goes_on_at_random(client: NameServerClient) -> None:
    selector, rng = client.selector, client._context.rng
    replace_part(selector, "next_index", lambda: rng.randrange(len(selector.addresses)))


# -- staying and leaving


def _never_moves_on(client: NameServerClient) -> None:
    first: list[int] = []
    next_index = client.selector.next_index

    def same_again() -> int:
        if not first:
            first.append(next_index())
        return first[0]

    replace_part(client.selector, "next_index", same_again)


def _chooses_for_each_request(client: NameServerClient) -> None:
    replace_part(client.selector, "sticky", lambda is_active: None)


def _leaves_at_every_poll(node: Node) -> None:
    instance = instance_of(node)

    def forget_choice() -> None:
        instance.name_server.selector.chosen = None

    replace_part(instance, "_before_poll", forget_choice)


def _keeps_a_silent_channel(node: Node) -> None:
    replace_part(instance_of(node).remoting, "_close_on_timeout", False)


def _is_too_patient(node: Node) -> None:
    client = instance_of(node).name_server
    query_route = client.query_route
    replace_part(client, "query_route", lambda topic, timeout_s=PATIENCE_S: query_route(topic, PATIENCE_S))


# -- polling


def _polls_half_as_often(node: Node) -> None:
    instance = instance_of(node)
    slower = replace(instance._config, poll_name_server_interval_ms=2 * instance._config.poll_name_server_interval_ms)
    replace_part(instance, "_config", slower)


def _stops_polling_after_a_failure(node: Node) -> None:
    instance = instance_of(node)
    poll, failed = instance.poll_routes, False

    async def poll_until_it_fails() -> None:
        nonlocal failed
        if failed:
            return
        try:
            await poll()
        except RocketMQError:
            failed = True
            raise

    replace_part(instance, "poll_routes", poll_until_it_fails)


def _gives_up_after_a_failure(node: Node) -> None:
    client = instance_of(node).name_server
    query_route, failed = client.query_route, False

    async def query_until_it_fails(topic: str, *timeout_s: Any) -> TopicRouteData:
        nonlocal failed
        if failed:
            raise ConnectError("a name server has failed before")
        try:
            return await query_route(topic, *timeout_s)
        except TransportError:
            failed = True
            raise

    replace_part(client, "query_route", query_until_it_fails)


def _clears_routes_that_are_not_there(node: Node) -> None:
    instance = instance_of(node)
    client = instance.name_server
    query_route = client.query_route

    async def query_and_clear(topic: str, *timeout_s: Any) -> TopicRouteData:
        try:
            return await query_route(topic, *timeout_s)
        except TopicNotExist:
            instance.route_cache.topic_route_table.pop(topic, None)
            instance._on_route_applied(topic, TopicRouteData())
            raise

    replace_part(client, "query_route", query_and_clear)


def _taking(change: Callable[[TopicRouteData | None, TopicRouteData], TopicRouteData]) -> Callable[[Node], None]:
    """Clients take, in place of each new route, what `change` makes of the one they have and it."""

    def plant(node: Node) -> None:
        cache = instance_of(node).route_cache
        take = cache.take

        def take_changed(topic: str, route: TopicRouteData, *, needed: bool = False) -> bool:
            return take(topic, change(cache.route(topic), route), needed=needed)

        replace_part(cache, "take", take_changed)

    return plant


def _without_new_brokers(old: TopicRouteData | None, new: TopicRouteData) -> TopicRouteData:
    if old is None:
        return new
    known = {broker.broker_name for broker in old.broker_datas}
    return replace(
        new,
        broker_datas=tuple(broker for broker in new.broker_datas if broker.broker_name in known),
        queue_datas=tuple(row for row in new.queue_datas if row.broker_name in known),
    )


def _keeps_the_first_address(node: Node) -> None:
    cache = instance_of(node).route_cache
    first: dict[str, Mapping[int, Address]] = {}

    class Kept(dict[str, Mapping[int, Address]]):
        def __setitem__(self, broker_name: str, addresses: Mapping[int, Address]) -> None:
            super().__setitem__(broker_name, first.setdefault(broker_name, addresses))

        def __delitem__(self, broker_name: str) -> None:
            """Not even when no route names it."""

    replace_part(cache, "broker_addr_table", Kept())


def _with_a_queue_less(_old: TopicRouteData | None, new: TopicRouteData) -> TopicRouteData:
    rows = tuple(replace(row, write_queue_nums=max(1, row.write_queue_nums - 1)) for row in new.queue_datas)
    return replace(new, queue_datas=rows)


DEFECTS = (
    Defect(
        name="client-takes-no-broker-back",
        what="clients take no route's brokers but those that they had before",
        kinds=_LASTING,
        scenario="broker-crash",
        caught_by=checks("client_routes_are_true"),
        also=checks("recovery_time", "availability", "queue_ownership", "no_acknowledged_loss", "dead_brokers_avoided"),
        plant=_taking(_without_new_brokers),
    ),
    Defect(
        name="producer-takes-a-queue-less",
        what="producers take every route with one write queue less than they were told",
        kinds=(NodeKind.PRODUCER,),
        scenario="smoke",
        caught_by=checks("client_routes_are_true", "routes_as_registered"),
        plant=_taking(_with_a_queue_less),
    ),
    Defect(
        name="client-keeps-the-old-address",
        what="clients go on at the first address that they had of a broker, whatever routes say later",
        kinds=_LASTING,
        scenario="broker-moves",
        caught_by=checks("dead_brokers_avoided"),
        also=checks("availability", "commits_follow_work", "living_are_used", "recovery_time", "timers_kept"),
        plant=_keeps_the_first_address,
    ),
    Defect(
        name="client-starts-at-the-first",
        what="every client takes the first NameServer of the list as it was given",
        kinds=CLIENTS,
        scenario="smoke",
        caught_by=checks("name_server_selection"),
        plant=_in_every_name_server_client(_always_starts_at_the_first),
    ),
    Defect(
        name="client-never-shuffles",
        what="clients keep the order in which the list was given, and draw their first entry only",
        kinds=CLIENTS,
        scenario="smoke",
        caught_by=checks("name_server_selection"),
        plant=_in_every_name_server_client(_never_shuffles),
    ),
    Defect(
        name="client-never-starts-at-the-last",
        what="no client starts at the last NameServer of the list as it was given",
        kinds=CLIENTS,
        scenario="smoke",
        caught_by=checks("name_server_selection"),
        plant=_in_every_name_server_client(_never_starts_at_the_last),
    ),
    Defect(
        name="client-knows-only-the-first",
        what="every client takes one NameServer of its list for the whole list",
        kinds=CLIENTS,
        scenario="smoke",
        caught_by=checks("name_server_selection"),
        plant=_in_every_name_server_client(_knows_only_the_first),
    ),
    Defect(
        name="client-skips-an-entry",
        what="clients leave out every other NameServer of their list when they move on",
        kinds=_LASTING,
        scenario="name-server-partition",
        caught_by=checks("name_server_selection"),
        plant=_in_every_name_server_client(_skips_an_entry),
    ),
    Defect(
        name="client-goes-on-at-random",
        what="clients move on to a random NameServer instead of the next of their list",
        kinds=_LASTING,
        scenario="name-server-partition",
        caught_by=checks("name_server_selection"),
        also=checks("dead_name_servers_left", "recovery_time"),
        plant=_in_every_name_server_client(_goes_on_at_random),
    ),
    Defect(
        name="client-never-moves-on",
        what="clients go back to the NameServer that has just failed them",
        kinds=CLIENTS,
        scenario="name-server-partition",
        caught_by=checks("name_server_selection", "dead_name_servers_left"),
        also=checks("client_routes_are_true", "recovery_time"),  # no look-up is answered before the heal
        plant=_in_every_name_server_client(_never_moves_on),
    ),
    Defect(
        name="client-chooses-for-each-request",
        what="clients choose another NameServer for each request, as Go's do",
        kinds=_LASTING,
        scenario="smoke",
        caught_by=checks("name_server_selection"),
        plant=_in_every_name_server_client(_chooses_for_each_request),
    ),
    Defect(
        name="client-leaves-at-every-new-list",
        what="clients choose another NameServer whenever their list changes, though theirs is on the new one",
        kinds=_LASTING,
        scenario="list-grows",
        caught_by=checks("name_server_selection"),
        plant=_in_every_name_server_client(_leaves_at_every_new_list),
    ),
    Defect(
        name="client-leaves-at-every-poll",
        what="clients choose another NameServer at every route poll",
        kinds=_LASTING,
        scenario="smoke",
        caught_by=checks("name_server_selection"),
        plant=_leaves_at_every_poll,
    ),
    Defect(
        name="client-keeps-a-silent-channel",
        what="clients keep a channel that does not answer, and so never leave its NameServer",
        kinds=_LASTING,
        scenario="name-server-partition",
        caught_by=checks("name_server_selection", "dead_name_servers_left"),
        also=checks("client_routes_are_true", "recovery_time", "timers_kept"),  # no look-up is answered before the heal
        plant=_keeps_a_silent_channel,
    ),
    Defect(
        name="client-is-too-patient",
        what=f"clients wait {PATIENCE_S:g} s for a NameServer's answer",
        kinds=_LASTING,
        scenario="name-server-partition",
        caught_by=checks("dead_name_servers_left"),
        also=checks(
            "timers_kept", "client_routes_are_true", "name_server_selection", "recovery_time"
        ),  # the first answered look-up comes as late
        plant=_is_too_patient,
    ),
    Defect(
        name="producer-polls-half-as-often",
        what="producers ask for routes every 60 s instead of every 30 s",
        kinds=(NodeKind.PRODUCER,),
        scenario="broker-crash",
        caught_by=checks("timers_kept"),
        also=checks("dead_brokers_avoided", "client_routes_are_true", "recovery_time"),  # by phase
        plant=_polls_half_as_often,
    ),
    Defect(
        name="client-stops-polling-after-a-failure",
        what="clients never ask for routes again after a poll that failed",
        kinds=_LASTING,
        scenario="name-server-then-broker",
        caught_by=checks("dead_brokers_avoided"),
        also=checks("timers_kept", "availability", "client_routes_are_true", "dead_name_servers_left", "recovery_time"),
        plant=_stops_polling_after_a_failure,
    ),
    Defect(
        name="producer-gives-up-after-a-failure",
        what="one producer asks no NameServer any more after one that did not answer",
        kinds=_LASTING,
        nodes=("producer-0",),
        scenario="name-server-partition",
        caught_by=checks("recovery_time"),
        also=checks("timers_kept", "availability", "client_routes_are_true", "dead_name_servers_left"),
        plant=_gives_up_after_a_failure,
    ),
    Defect(
        name="client-clears-routes-on-17",
        what="clients forget a topic's route when a NameServer that has just started does not know it yet",
        kinds=_LASTING,
        scenario="name-servers-restart",
        caught_by=checks("availability"),
        also=checks(
            "client_routes_are_true", "commits_follow_work", "messages_delivered", "queue_ownership", "recovery_time"
        ),
        plant=_clears_routes_that_are_not_there,
    ),
)
