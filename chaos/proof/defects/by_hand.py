"""Defects of admin commands: a NameServer or broker does not execute an operator's command, or undoes the command."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....actors.broker.server import Broker
from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import Registration
from ....remoting.bodies.route import DataVersion, TopicConfig
from ....remoting.node.clock import AdjustableClock
from ...defects import around, does_nothing, replace_part
from .planting import BROKER_A, NS_0, Planted, may_find, registering

_SCENARIO = "acts-by-hand"
_ITS_BROKERS = ("broker-a", "broker-b")

planted = Planted()


def _clock_of(server: NameServer) -> AdjustableClock:
    clock = server._context.clock
    if not isinstance(clock, AdjustableClock):  # outside of an experiment nobody changes it
        clock = AdjustableClock(clock)
    return clock


@planted(NS_0, "clock-steps", caught_by="registrations_are_kept")
def name_server_goes_by_another_clock(server: NameServer) -> None:
    """a NameServer measures a broker's silence by the monotonic clock instead of the wall clock"""
    replace_part(_clock_of(server), "adjust", does_nothing)


@planted(NS_0, "clock-steps", caught_by="no_false_eviction routes_are_true")
@may_find(
    "answers_are_true availability client_routes_are_true duplicates messages_delivered queue_ownership "
    "registrations_are_kept routes_converge recovery_time"
)
def name_server_feels_steps_twice(server: NameServer) -> None:
    """a NameServer's wall clock jumps twice as far as the operator sets the clock, so healthy brokers are dropped"""

    @around(_clock_of(server), "adjust")
    def adjust_twice(adjust: Any, step_ms: float | None, rate: float) -> None:
        adjust(None if step_ms is None else 2 * step_ms, rate)


@planted(NS_0, _SCENARIO, caught_by="done_by_hand")
@may_find("registrations_are_kept")
def name_server_takes_out_nobody(server: NameServer) -> None:
    """a NameServer answers unregistrations without dropping the broker, but still drops brokers for closed channels and
    silence"""
    replace_part(server.table, "unregister", lambda _: ())


@planted(NS_0, _SCENARIO, caught_by="routes_as_registered")
def name_server_counts_all_topics(server: NameServer) -> None:
    """a NameServer answers wipeWritePermOfBroker with the number of all topics, not of the broker's topics"""
    table = server.table
    around(table, "wipe_write_perm")(lambda wipe, name: wipe(name) and len(table.topic_queue_table))


@planted(NS_0, _SCENARIO, caught_by="done_by_hand")
@may_find("routes_as_registered")
def name_server_wipes_nothing(server: NameServer) -> None:
    """a NameServer answers wipeWritePermOfBroker, but changes no permission"""
    replace_part(server.table, "wipe_write_perm", lambda _: 1)


@planted(NS_0, _SCENARIO, caught_by="routes_as_registered")
@may_find("answers_are_true done_by_hand routes_converge")
def name_server_keeps_what_is_wiped(server: NameServer) -> None:
    """a NameServer keeps a broker's write permission wiped even after the broker registers a new data version"""
    table, wiped = server.table, set[str]()
    right = table.wipe_write_perm

    @around(table, "wipe_write_perm")
    def wipe_and_note(wipe: Any, broker_name: str) -> Any:
        wiped.add(broker_name)
        return wipe(broker_name)

    @around(table, "register")
    def register_and_wipe(register: Any, registration: Registration, *, now_ms: int) -> Any:
        answer = register(registration, now_ms=now_ms)
        if registration.broker_name in wiped:
            right(registration.broker_name)
        return answer


@planted(NS_0, "registrations-of-no-rows", caught_by="routes_as_registered")
@may_find("answers_are_true routes_converge")
def name_server_writes_what_is_unchanged(server: NameServer) -> None:
    """a NameServer of 4.9 rewrites a broker's topics at each registration, even with an unchanged data version"""
    around(server.table, "_register_topics_4_9")(lambda register, registration, _: register(registration, True))


@planted(NS_0, "registrations-of-no-rows", caught_by="routes_as_registered")
@may_find("answers_are_true routes_converge")
def name_server_adds_missing_topics(server: NameServer) -> None:
    """a NameServer of 4.9 adds a broker's missing topics at each registration, as 5.x does, even deleted topics"""
    table = server.table

    @around(table, "_register_topics_4_9")
    def register_what_is_missing(register: Any, registration: Registration, rewrite: bool) -> None:
        name = registration.broker_name
        missing = tuple(row for row in registration.rows if name not in table.topic_queue_table.get(row[0], {}))
        register(registration if rewrite else replace(registration, rows=missing), True)


@planted(NS_0, _SCENARIO, caught_by="done_by_hand")
@may_find("routes_as_registered routes_converge")
def name_server_deletes_no_topic(server: NameServer) -> None:
    """a NameServer answers deleteTopicInNamesrv, but keeps the topic"""
    replace_part(server.table, "delete_topic", does_nothing)


@planted(NS_0, _SCENARIO, caught_by="done_by_hand")
@may_find("registrations_are_kept")
def name_server_deletes_of_all_clusters(server: NameServer) -> None:
    """a NameServer deletes a topic at the brokers of every cluster, although the request names one cluster"""

    @around(server.table, "delete_topic")
    def delete_everywhere(delete: Any, topic: str, cluster_name: str | None = None) -> None:
        for cluster in [*server.table.cluster_addr_table] if cluster_name else [None]:
            delete(topic, cluster)


@planted(NS_0, _SCENARIO, caught_by="done_by_hand")
def name_server_knows_its_brokers(server: NameServer) -> None:
    """a NameServer acknowledges the registration of a new broker, but does not put the broker into its table"""
    registering(server, lambda registration: registration if registration.broker_name in _ITS_BROKERS else None)


@planted(NS_0, _SCENARIO, caught_by="done_by_hand")
def name_server_keeps_strangers(server: NameServer) -> None:
    """a NameServer keeps brokers that were registered by hand, even if they are silent and their channel is closed"""

    @around(server.table, "register")
    def register_for_good(register: Any, registration: Registration, *, now_ms: int) -> Any:
        if registration.broker_name in _ITS_BROKERS:
            return register(registration, now_ms=now_ms)
        return register(replace(registration, channel_id=-1), now_ms=now_ms + 10**9)


@planted(BROKER_A, _SCENARIO, caught_by="done_by_hand")
def broker_keeps_permissions(broker: Broker) -> None:
    """a broker changes a topic's queues, but not the topic's permission"""
    topics = broker.services.topics

    @around(topics, "put")
    def put_with_the_old(put: Any, topic: TopicConfig, *, now_ms: int) -> Any:
        before = topics.get(topic.topic_name)
        return put(topic if before is None else replace(topic, perm=before.perm), now_ms=now_ms)


@planted(BROKER_A, _SCENARIO, caught_by="routes_as_registered")
def broker_registers_one_topic_with_all_permissions(broker: Broker) -> None:
    """a broker ignores its brokerPermission when it registers a single changed topic"""
    registration = broker._registration
    permitted = registration.as_permitted

    @around(registration, "_command")
    def command_of_one(command: Any, changed: Sequence[TopicConfig], version: DataVersion) -> Any:
        replace_part(registration, "as_permitted", permitted if len(changed) != 1 else lambda topic: topic)
        try:
            return command(changed, version)
        finally:
            replace_part(registration, "as_permitted", permitted)


@planted(BROKER_A, "topic-loses-queues", caught_by="done_by_hand")
@may_find("availability")
def broker_keeps_the_permission_of_a_topic(broker: Broker) -> None:
    """a broker registers the topic orders with the topic's own permission, whatever brokerPermission is"""

    @around(broker._registration, "as_permitted")
    def permitted_but(permitted: Any, topic: TopicConfig) -> Any:
        return topic if topic.topic_name == "orders" else permitted(topic)


@planted(BROKER_A, _SCENARIO, caught_by="done_by_hand")
def broker_changes_no_topic(broker: Broker) -> None:
    """a broker acknowledges changes of a topic without executing the changes, but still creates topics"""
    topics = broker.services.topics

    @around(topics, "put")
    def put_new(put: Any, topic: TopicConfig, *, now_ms: int) -> bool:
        return topic.topic_name not in topics and put(topic, now_ms=now_ms)


@planted(BROKER_A, "topic-made-again", caught_by="commits_follow_work")
def broker_keeps_offsets_of_a_deleted_topic(broker: Broker) -> None:
    """a broker of 5.x keeps the offsets that groups committed of a topic that is deleted"""
    replace_part(broker.services.offsets, "forget_topic", does_nothing)
