"""Ways for a NameServer or a broker not to do, or not to keep, what somebody asks of it by hand."""

from __future__ import annotations

from dataclasses import replace

from ....actors.broker.server import Broker
from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import Dropped, Registered, Registration, Unregistration
from ....remoting.bodies.route import TopicConfig
from ....remoting.node.clock import AdjustableClock
from ...scenarios.defect import Defect, checks, in_its_parts, replace_part
from ...topology import NodeKind

_NAME_SERVER = (NodeKind.NAME_SERVER,)
_ONE = ("ns-0",)
_SCENARIO = "acts-by-hand"


def _takes_out_nobody(server: NameServer) -> None:
    def unregister(_: Unregistration) -> tuple[Dropped, ...]:
        return ()

    replace_part(server.table, "unregister", unregister)


def _wipes_nothing(server: NameServer) -> None:
    def wipe_write_perm(_: str) -> int:
        return 1

    replace_part(server.table, "wipe_write_perm", wipe_write_perm)


def _keeps_what_is_wiped(server: NameServer) -> None:
    table, wiped = server.table, set[str]()
    wipe, register = table.wipe_write_perm, table.register

    def wipe_write_perm(broker_name: str) -> int:
        wiped.add(broker_name)
        return wipe(broker_name)

    def register_and_wipe(registration: Registration, *, now_ms: int) -> Registered:
        answer = register(registration, now_ms=now_ms)
        if registration.broker_name in wiped:
            wipe(registration.broker_name)
        return answer

    replace_part(table, "wipe_write_perm", wipe_write_perm)
    replace_part(table, "register", register_and_wipe)


def _deletes_no_topic(server: NameServer) -> None:
    def delete_topic(topic: str, cluster_name: str | None = None) -> None:
        """It answers that it did."""

    replace_part(server.table, "delete_topic", delete_topic)


def _deletes_of_all_clusters(server: NameServer) -> None:
    delete = server.table.delete_topic

    def delete_topic(topic: str, cluster_name: str | None = None) -> None:
        for cluster in [*server.table.cluster_addr_table] if cluster_name else [None]:
            delete(topic, cluster)

    replace_part(server.table, "delete_topic", delete_topic)


def _knows_its_brokers(server: NameServer) -> None:
    table = server.table
    register = table.register

    def register_known(registration: Registration, *, now_ms: int) -> Registered:
        if registration.broker_name in ("broker-a", "broker-b"):
            return register(registration, now_ms=now_ms)
        return Registered()

    replace_part(table, "register", register_known)


def _keeps_strangers(server: NameServer) -> None:
    table = server.table
    register = table.register

    def register_for_good(registration: Registration, *, now_ms: int) -> Registered:
        strange = registration.broker_name not in ("broker-a", "broker-b")
        return register(
            replace(registration, channel_id=-1) if strange else registration, now_ms=now_ms + strange * 10**9
        )

    replace_part(table, "register", register_for_good)


def _changes_no_topic(broker: Broker) -> None:
    put = broker.services.topics.put

    def put_new(topic: TopicConfig, *, now_ms: int) -> bool:
        return topic.topic_name not in broker.services.topics and put(topic, now_ms=now_ms)

    replace_part(broker.services.topics, "put", put_new)


def _clock_of(server: NameServer) -> AdjustableClock:
    clock = server._context.clock
    if not isinstance(clock, AdjustableClock):  # outside of an experiment nobody changes it
        clock = AdjustableClock(clock)
    return clock


def _never_sees_its_clock_change(server: NameServer) -> None:
    def adjust(step_ms: float | None, rate: float) -> None:
        """It goes by another clock."""

    replace_part(_clock_of(server), "adjust", adjust)


def _feels_steps_twice(server: NameServer) -> None:
    clock = _clock_of(server)
    right = clock.adjust

    def adjust(step_ms: float | None, rate: float) -> None:
        right(None if step_ms is None else 2 * step_ms, rate)

    replace_part(clock, "adjust", adjust)


DEFECTS: tuple[Defect, ...] = (
    Defect(
        name="name-server-goes-by-another-clock",
        what="a NameServer counts a broker's silence by a clock that nobody steps, and not by its wall clock",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="clock-steps",
        caught_by=checks("registrations_are_kept"),
        plant=_never_sees_its_clock_change,
    ),
    Defect(
        name="name-server-feels-steps-twice",
        what="a NameServer whose clock is stepped by a minute drops healthy brokers",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="clock-steps",
        caught_by=checks("no_false_eviction", "routes_are_true"),
        also=checks(
            *("answers_are_true", "availability", "client_routes_are_true", "duplicates", "messages_delivered"),
            *("queue_ownership", "registrations_are_kept", "routes_converge", "recovery_time"),
        ),
        plant=_feels_steps_twice,
    ),
    Defect(
        name="name-server-takes-out-nobody",
        what="a NameServer answers unregistrations and takes nobody out; closes and silence it notices",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario=_SCENARIO,
        caught_by=checks("done_by_hand"),
        plant=_takes_out_nobody,
    ),
    Defect(
        name="name-server-wipes-nothing",
        what="a NameServer answers wipeWritePermOfBroker and leaves every permission as it is",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario=_SCENARIO,
        caught_by=checks("done_by_hand"),
        plant=_wipes_nothing,
    ),
    Defect(
        name="name-server-keeps-what-is-wiped",
        what="a NameServer wipes a broker's write permission for good, though the broker registers a new version",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario=_SCENARIO,
        caught_by=checks("routes_as_registered"),
        also=checks("answers_are_true", "done_by_hand", "routes_converge"),
        plant=_keeps_what_is_wiped,
    ),
    Defect(
        name="name-server-deletes-no-topic",
        what="a NameServer answers deleteTopicInNamesrv and keeps the topic",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario=_SCENARIO,
        caught_by=checks("done_by_hand"),
        also=checks("routes_as_registered", "routes_converge"),
        plant=_deletes_no_topic,
    ),
    Defect(
        name="name-server-deletes-of-all-clusters",
        what="a NameServer that is asked to delete a topic of one cluster deletes the rows of every cluster's brokers",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario=_SCENARIO,
        caught_by=checks("done_by_hand"),
        plant=_deletes_of_all_clusters,
    ),
    Defect(
        name="name-server-knows-its-brokers",
        what="a NameServer acknowledges the registration of a broker that it never saw before, and does not take it in",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario=_SCENARIO,
        caught_by=checks("done_by_hand"),
        plant=_knows_its_brokers,
    ),
    Defect(
        name="name-server-keeps-strangers",
        what="a NameServer keeps brokers that were registered by hand, though they are silent and their channel closed",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario=_SCENARIO,
        caught_by=checks("done_by_hand"),
        plant=_keeps_strangers,
    ),
    Defect(
        name="broker-changes-no-topic",
        what="a broker makes topics, answers that it changed one, and leaves it as it was",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario=_SCENARIO,
        caught_by=checks("done_by_hand"),
        plant=in_its_parts(_changes_no_topic),
    ),
)
