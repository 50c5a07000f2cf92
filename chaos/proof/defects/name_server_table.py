"""Defects of a NameServer's table: the NameServer wrongly drops, keeps, adds or invents brokers and topics. Most of
these defects are planted in ns-0 alone, so that ns-0 differs from the correct NameServers. Defects of the scan for
silent brokers also keep the NameServer from closing idle channels, because a close would drop the broker, too.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ....actors.namesrv.route_table import RouteTable
from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import (
    BrokerGroup,
    Dropped,
    DropReason,
    MinBrokerIdChanged,
    Registered,
    Registration,
    Unregistration,
)
from ....actors.namesrv.unregister import Batch, Expired
from ....remoting.bodies.route import DataVersion, QueueData, Row
from ....remoting.codes import PERM_INHERIT
from ....remoting.transport import Connection
from ...defects import around, does_nothing, replace_part
from .planting import NAME_SERVERS, NS_0, Planted, may_find, registering

LATE_DROP_S = 60.0
RESURRECTED_AFTER_S = 20.0
LOST_REGISTRATIONS = 2
"""One alone would be made good by the next tick, which may still be in time."""
LATE_EXPIRY_MS = 6_000
"""5 % of E."""

planted = Planted()


def _without_idle_close(server: NameServer) -> None:
    @around(server, "_channel_lost")
    def channel_lost(lost: Any, connection: Connection, reason: str) -> None:
        if reason != "idle":
            lost(connection, reason)


def _expires_sooner_by(server: NameServer, ms: int) -> None:
    around(server.table, "expire")(lambda expire, *, now_ms: expire(now_ms=now_ms + ms))


def dropped_by(table: RouteTable) -> set[str]:
    """Return a set to which the name of each broker that the NameServer drops from now on is added."""
    gone = set[str]()

    @around(table, "on_channel_destroy")
    def note_and_destroy(destroy: Any, channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        dropped: tuple[Dropped, ...] = destroy(channel_id, remote_address, reason)
        gone.update(broker.broker_name for broker in dropped)
        return dropped

    return gone


def _keeping_rows(server: NameServer, change: Callable[[QueueData], QueueData]) -> None:
    """Changes each topic row of a registration by `change` before it is kept."""

    @around(server.table, "_register_rows")
    def register_changed(register_rows: Any, broker_name: str, rows: Iterable[Row]) -> None:
        register_rows(broker_name, [(topic, change(row)) for topic, row in rows])


# -- liveness and the scan


@planted(NS_0, "broker-partition", caught_by="routes_are_true")
@may_find("answers_are_true registrations_are_kept")
def name_server_never_expires(server: NameServer) -> None:
    """a NameServer never drops brokers that have gone silent, and does not close their idle channels"""
    _without_idle_close(server)
    replace_part(server, "_expire_brokers", does_nothing)


@planted(NS_0, "broker-partition", caught_by="no_false_eviction")
@may_find("answers_are_true client_routes_are_true messages_delivered registrations_are_kept routes_are_true")
def name_server_expires_too_soon(server: NameServer) -> None:
    """a NameServer drops a silent broker after 60 s instead of 120 s"""
    _expires_sooner_by(server, 60_000)


@planted(NS_0, "smoke", caught_by="no_false_eviction routes_are_true")
@may_find(
    "answers_are_true client_routes_are_true messages_delivered prompt_answers registrations_are_kept routes_converge"
)
def name_server_expires_the_living(server: NameServer) -> None:
    """a NameServer drops a broker 20 s after a registration, although registrations come every 30 s"""
    _expires_sooner_by(server, 100_000)


@planted(NS_0, "smoke", caught_by="no_false_eviction routes_are_true")
@may_find(
    "living_are_used prompt_answers answers_are_true availability client_routes_are_true messages_delivered "
    "registrations_are_kept routes_converge"
)
def name_server_scans_the_wrong_way(server: NameServer) -> None:
    """a NameServer's scan drops living brokers instead of silent brokers"""
    table = server.table

    def expire(*, now_ms: int) -> Expired:
        dropped: tuple[Dropped, ...] = ()
        for (_, address), live in list(table.broker_live_table.items()):
            if live.last_update_ms + live.heartbeat_timeout_ms >= now_ms:
                dropped += table.on_channel_destroy(live.channel_id, address, DropReason.EXPIRED)
        return Expired(dropped=dropped)

    replace_part(table, "expire", expire)


@planted(NS_0, "clock-steps", caught_by="timers_kept")
def name_server_keeps_expired_channels_open(server: NameServer) -> None:
    """a NameServer's scan drops silent brokers and leaves their channels open"""
    around(server.table, "expire")(lambda expire, *, now_ms: replace(expire(now_ms=now_ms), channel_ids=()))


@planted(NS_0, "topic-after-restart", caught_by="routes_as_registered")
@may_find("answers_are_true client_routes_are_true routes_are_true routes_converge")
def name_server_takes_one_topic_first(server: NameServer) -> None:
    """a NameServer of 5.x accepts a broker's first registration although the registration contains a single topic"""

    @around(server.table, "_register_into")
    def register_into(register: Any, group: BrokerGroup, one: Registration, *how: Any) -> Registered:
        if len(one.rows) == 1:
            group.addrs.setdefault(one.broker_id, one.broker_addr)
        return register(group, one, *how)


@planted(NS_0, "asks-first", caught_by="no_false_eviction registrations_are_kept")
@may_find("answers_are_true client_routes_are_true messages_delivered prompt_answers routes_are_true routes_converge")
def name_server_forgets_who_only_asks(server: NameServer) -> None:
    """a NameServer of 4.9 does not count a QUERY_DATA_VERSION of an unchanged broker as a sign of life"""
    replace_part(server.table, "heartbeat", does_nothing)


@planted(NS_0, "asks-first", caught_by="routes_as_registered")
def name_server_calls_every_version_changed(server: NameServer) -> None:
    """a NameServer answers every QUERY_DATA_VERSION with "changed" """

    @around(server.table, "query_data_version")
    def changed(query: Any, *of: Any, **more: Any) -> tuple[bool, Any]:
        return True, query(*of, **more)[1]


@planted(NS_0, "broker-partition", caught_by="routes_are_true")
@may_find("answers_are_true registrations_are_kept")
def name_server_keys_liveness_by_cluster(server: NameServer) -> None:
    """a NameServer counts all brokers as alive when any broker registers"""

    @around(server.table, "register")
    def register_all(register: Any, registration: Registration, *, now_ms: int) -> Any:
        registered = register(registration, now_ms=now_ms)
        for live in server.table.broker_live_table.values():
            live.last_update_ms = now_ms
        return registered

    _without_idle_close(server)


@planted(NS_0, "broker-partition", caught_by="routes_are_true")
@may_find("answers_are_true registrations_are_kept")
def name_server_keeps_expired_routes(server: NameServer) -> None:
    """a NameServer closes a silent broker's channel, but keeps the broker's routes"""

    @around(server.table, "on_channel_destroy")
    def destroy_closed(destroy: Any, channel_id: int, remote_address: str, reason: DropReason) -> Any:
        return () if reason in (DropReason.EXPIRED, DropReason.IDLE) else destroy(channel_id, remote_address, reason)


@planted(NAME_SERVERS, "broker-crash", caught_by="routes_as_registered")
@may_find("answers_are_true client_routes_are_true queue_ownership routes_are_true")
def name_servers_keep_queues_of_the_dropped(server: NameServer) -> None:
    """every NameServer removes a dropped broker's address from the routes, but not the broker's queues"""
    table = server.table

    @around(table, "on_channel_destroy")
    def destroy_addresses(destroy: Any, *channel: Any) -> Any:
        held = {topic: dict(rows) for topic, rows in table.topic_queue_table.items()}
        dropped = destroy(*channel)
        for topic, rows in held.items():
            for broker_name, row in rows.items():
                table.topic_queue_table.setdefault(topic, {}).setdefault(broker_name, row)
        return dropped


# -- closed channels and unregistration


@planted(NAME_SERVERS, "broker-crash", caught_by="registrations_are_kept routes_are_true dead_brokers_avoided")
@may_find("answers_are_true client_routes_are_true queue_ownership recovery_time routes_converge")
def name_server_ignores_close(server: NameServer) -> None:
    """every NameServer keeps a broker after the broker's connection closed, until the registration expires"""
    replace_part(server, "_channel_lost", does_nothing)


@planted(NAME_SERVERS, "broker-crash", caught_by="registrations_are_kept routes_are_true")
@may_find("answers_are_true client_routes_are_true dead_brokers_avoided routes_converge")
def name_server_drops_late(server: NameServer) -> None:
    """every NameServer drops a broker 60 s after the broker's connection closed"""
    clock = server._context.clock
    around(server, "_channel_lost")(lambda lost, *channel: clock.call_later(LATE_DROP_S, lost, *channel))


@planted(NS_0, "broker-crash-late", caught_by="no_false_eviction routes_are_true routes_converge")
@may_find("answers_are_true client_routes_are_true dead_brokers_avoided messages_delivered registrations_are_kept")
def name_server_drops_the_wrong_broker(server: NameServer) -> None:
    """when a broker's connection closes, a NameServer drops another broker instead"""

    @around(server.table, "on_channel_destroy")
    def destroy_another(destroy: Any, channel_id: int, remote_address: str, reason: DropReason) -> Any:
        channels = [live.channel_id for live in server.table.broker_live_table.values()]
        others = [channel for channel in channels if channel != channel_id]
        wrong = others[0] if channel_id in channels and others else channel_id
        return destroy(wrong, remote_address, reason)


@planted(NS_0, "broker-crash", caught_by="routes_are_true routes_converge")
@may_find("answers_are_true client_routes_are_true dead_brokers_avoided messages_delivered registrations_are_kept")
def name_server_drops_whole_topics(server: NameServer) -> None:
    """a NameServer that drops a broker also drops the broker's topics at all other brokers"""

    @around(server.table, "_remove_row")
    def remove_rows(remove_row: Any, topic: str, broker_name: str) -> Any:
        removed = remove_row(topic, broker_name)
        for other in list(server.table.topic_queue_table.get(topic, ())):
            remove_row(topic, other)
        return removed


@planted(NAME_SERVERS, "broker-stop", caught_by="registrations_are_kept routes_are_true dead_brokers_avoided")
@may_find("answers_are_true client_routes_are_true queue_ownership")
def name_server_unregisters_by_half(server: NameServer) -> None:
    """every NameServer removes an unregistered broker from its table of live brokers, but keeps the broker's routes"""
    table = server.table

    def unregister(request: Unregistration) -> tuple[Dropped, ...]:
        table.broker_live_table.pop(table._live_key(request.cluster_name, request.broker_addr), None)
        return ()

    replace_part(table, "unregister", unregister)


@planted(NAME_SERVERS, "broker-crash-5x", caught_by="registrations_are_kept routes_are_true dead_brokers_avoided")
@may_find("answers_are_true client_routes_are_true")
def name_server_throws_batches_away(server: NameServer) -> None:
    """every NameServer (5.x) removes unregistrations from its queue without executing them"""

    def run_unregistrations() -> Batch:
        server.table._unregister_queue.clear()
        return Batch()

    replace_part(server.table, "run_unregistrations", run_unregistrations)


# -- registrations


@planted(NS_0, "broker-partition", caught_by="routes_are_true routes_converge")
@may_find("answers_are_true client_routes_are_true messages_delivered registrations_are_kept")
def name_server_takes_nobody_back(server: NameServer) -> None:
    """a NameServer ignores registrations of a broker that it has dropped before"""
    gone = dropped_by(server.table)
    registering(server, lambda registration: None if registration.broker_name in gone else registration)


@planted(NS_0, "name-server-crash", caught_by="routes_are_true routes_converge")
@may_find("answers_are_true availability client_routes_are_true messages_delivered registrations_are_kept")
def name_server_loses_first_registrations(server: NameServer) -> None:
    """a NameServer acknowledges each broker's first 2 registrations, but ignores these registrations"""
    seen = Counter[str]()

    def later(registration: Registration) -> Registration | None:
        seen[registration.broker_name] += 1
        return registration if seen[registration.broker_name] > LOST_REGISTRATIONS else None

    registering(server, later)


@planted(NS_0, "smoke", caught_by="routes_are_true routes_converge")
@may_find("answers_are_true client_routes_are_true messages_delivered registrations_are_kept")
def name_server_keeps_the_older_version(server: NameServer) -> None:
    """a NameServer takes over a broker's topics only if their data version is older than the stored version"""
    table = server.table

    def is_changed(cluster_name: str, broker_addr: str, version: DataVersion) -> bool:
        held = table.data_version(cluster_name, broker_addr)
        return held is None or (version.timestamp, version.counter) < (held.timestamp, held.counter)

    replace_part(table, "is_changed", is_changed)


@planted(NS_0, "broker-crash", caught_by="no_resurrection routes_are_true routes_converge")
@may_find("answers_are_true client_routes_are_true dead_brokers_avoided")
def name_server_brings_back_the_dead(server: NameServer) -> None:
    """a NameServer puts a dropped broker back into its table 20 s later, without a registration"""
    table, clock, last = server.table, server._context.clock, dict[str, Registration]()
    right = table.register

    def remember(registration: Registration) -> Registration:
        last[registration.broker_name] = registration
        return registration

    def bring_back(broker_name: str) -> None:
        right(last[broker_name], now_ms=clock.now_ms())
        server._settle(())

    registering(server, remember)

    @around(table, "on_channel_destroy")
    def destroy_for_a_while(destroy: Any, *channel: Any) -> Any:
        dropped = destroy(*channel)
        for broker in dropped:
            clock.call_later(RESURRECTED_AFTER_S, bring_back, broker.broker_name)
        return dropped


@planted(NS_0, "smoke", caught_by="routes_are_true routes_converge")
@may_find(
    "one_master answers_are_true availability client_routes_are_true commits_follow_work duplicates "
    "messages_delivered order_kept prompt_answers queue_ownership registrations_are_kept routes_as_registered"
)
def name_server_gives_all_one_address(server: NameServer) -> None:
    """a NameServer stores for every broker the address of the broker that registered first"""
    first = list[str]()

    def at_the_first(registration: Registration) -> Registration:
        first.append(registration.broker_addr)
        return replace(registration, broker_addr=first[0])

    registering(server, at_the_first)


@planted(NS_0, "smoke", caught_by="routes_converge")
@may_find("living_are_used answers_are_true messages_delivered routes_as_registered")
def name_server_counts_a_queue_less(server: NameServer) -> None:
    """a NameServer stores every topic with one queue less than the broker registered"""

    def smaller(row: QueueData) -> QueueData:
        return replace(row, read_queue_nums=row.read_queue_nums - 1, write_queue_nums=row.write_queue_nums - 1)

    _keeping_rows(server, smaller)


# -- what is in the table


@planted(NAME_SERVERS, "smoke", caught_by="routes_as_registered")
@may_find("living_are_used answers_are_true messages_delivered")
def name_servers_count_a_queue_less(server: NameServer) -> None:
    """every NameServer stores every topic with one read queue less than the broker registered"""
    _keeping_rows(server, lambda row: replace(row, read_queue_nums=row.read_queue_nums - 1))


@planted(NAME_SERVERS, "smoke", caught_by="routes_as_registered")
@may_find("answers_are_true")
def name_servers_keep_another_permission(server: NameServer) -> None:
    """every NameServer adds the inherit permission to every topic"""
    _keeping_rows(server, lambda row: replace(row, perm=row.perm | PERM_INHERIT))


@planted(NAME_SERVERS, "smoke", caught_by="routes_are_true registrations_are_kept")
@may_find("answers_are_true availability messages_delivered")
def name_servers_drop_a_topic(server: NameServer) -> None:
    """no NameServer stores the workload's topic"""

    @around(server.table, "_register_rows")
    def register_others(register_rows: Any, broker_name: str, rows: Iterable[Row]) -> None:
        register_rows(broker_name, [row for row in rows if row[0] != "orders"])


@planted(NS_0, "smoke", caught_by="routes_as_registered")
@may_find("answers_are_true availability duplicates living_are_used queue_ownership routes_converge")
def name_server_invents_a_broker(server: NameServer) -> None:
    """a NameServer's routes contain a broker that does not exist, with the queues of an existing broker"""

    @around(server.table, "register")
    def register_two(register: Any, registration: Registration, *, now_ms: int) -> Any:
        invented = replace(registration, broker_name="broker-z", broker_addr="10.9.9.9:10911", channel_id=-1)
        register(invented, now_ms=now_ms)
        return register(registration, now_ms=now_ms)


@planted(NAME_SERVERS, "smoke", caught_by="routes_as_registered routes_are_true")
@may_find(
    "one_master order_kept answers_are_true availability client_routes_are_true commits_follow_work duplicates "
    "registrations_are_kept routes_converge"
)
def name_servers_swap_addresses(server: NameServer) -> None:
    """every NameServer stores for each broker the address of another broker"""
    addresses: dict[str, str] = {}

    def at_the_next(registration: Registration) -> Registration:
        addresses[registration.broker_name] = registration.broker_addr
        names = sorted(addresses)
        following = names[(names.index(registration.broker_name) + 1) % len(names)]
        return replace(registration, broker_addr=addresses[following])

    registering(server, at_the_next)


@planted(NS_0, "broker-moves", caught_by="routes_are_true registrations_are_kept routes_converge")
@may_find(
    "availability client_routes_are_true commits_follow_work dead_brokers_avoided living_are_used "
    "messages_delivered recovery_time"
)  # of the clients that use this NameServer
def name_server_keeps_the_old_address(server: NameServer) -> None:
    """a NameServer keeps a broker's first address, even if the broker comes back at another address"""
    first: dict[tuple[str, int], str] = {}

    def at_the_first(registration: Registration) -> Registration:
        broker = registration.broker_name, registration.broker_id
        return replace(registration, broker_addr=first.setdefault(broker, registration.broker_addr))

    registering(server, at_the_first)


@planted(NS_0, "broker-partition", caught_by="registrations_are_kept")
@may_find("answers_are_true")
def name_server_expires_late(server: NameServer) -> None:
    """a NameServer's scan drops silent brokers 6 s too late (5 % of 120 s)"""
    _without_idle_close(server)
    _expires_sooner_by(server, -LATE_EXPIRY_MS)


@planted(NS_0, "broker-partition", caught_by="registrations_are_kept")
@may_find("answers_are_true client_routes_are_true messages_delivered routes_are_true routes_converge")
def name_server_forgets_an_acknowledged_registration(server: NameServer) -> None:
    """a NameServer acknowledges, but ignores, a dropped broker's first registration on each new channel"""
    gone, heard = dropped_by(server.table), set[int]()

    def later(registration: Registration) -> Registration | None:
        if registration.broker_name not in gone or registration.channel_id in heard:
            return registration
        heard.add(registration.channel_id)
        return None

    registering(server, later)


# -- what it tells brokers


@planted(NS_0, "smallest-id-told", caught_by="routes_as_registered")
def name_server_tells_no_smallest_id(server: NameServer) -> None:
    """a NameServer with notifyMinBrokerIdChanged tells no broker of a new smallest broker id (905)"""
    replace_part(server, "_notify", does_nothing)


@planted(NS_0, "smallest-id-told", caught_by="routes_as_registered")
def name_server_tells_a_wrong_smallest_id(server: NameServer) -> None:
    """a NameServer tells brokers a smallest broker id (905) that is 1 too high"""

    @around(server, "_notify_one")
    async def notify_otherwise(notify: Any, address: str, notification: MinBrokerIdChanged) -> None:
        await notify(address, replace(notification, min_broker_id=notification.min_broker_id + 1))
