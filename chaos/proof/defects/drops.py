"""Ways for a NameServer to drop brokers wrongly: liveness, the scan, closed channels and unregistration.

Most are planted in ns-0 alone, so that the others stay right and the difference shows. Where a defect is about the
scan, the idle close, which would take the broker out at the same time, is planted away with it.
"""

from __future__ import annotations

from collections.abc import Callable

from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import Dropped, DropReason, Registered, Registration, Unregistration
from ....actors.namesrv.unregister import Batch, Expired
from ....remoting.bodies.route import QueueData
from ....remoting.transport import Connection
from ...scenarios.defect import Defect, checks, replace_part
from ...topology import NodeKind

LATE_DROP_S = 60.0

_NAME_SERVER = (NodeKind.NAME_SERVER,)
_ONE = ("ns-0",)


def _without_idle_close(server: NameServer) -> None:
    lost = server._channel_lost

    def channel_lost(connection: Connection, reason: str) -> None:
        if reason != "idle":
            lost(connection, reason)

    replace_part(server, "_channel_lost", channel_lost)


# -- liveness and the scan


def _never_expires(server: NameServer) -> None:
    _without_idle_close(server)
    replace_part(server, "_expire_brokers", lambda: None)


def _expires_sooner_by(ms: int) -> Callable[[NameServer], None]:
    def plant(server: NameServer) -> None:
        expire = server.table.expire
        replace_part(server.table, "expire", lambda *, now_ms: expire(now_ms=now_ms + ms))

    return plant


def _scans_the_wrong_way(server: NameServer) -> None:
    table = server.table

    def expire(*, now_ms: int) -> Expired:
        dropped: tuple[Dropped, ...] = ()
        for (_, address), live in list(table.broker_live_table.items()):
            if live.last_update_ms + live.heartbeat_timeout_ms >= now_ms:
                dropped += table.on_channel_destroy(live.channel_id, address, DropReason.EXPIRED)
        return Expired(dropped=dropped)

    replace_part(table, "expire", expire)


def _keeps_liveness_by_cluster(server: NameServer) -> None:
    table = server.table
    register = table.register

    def register_all(registration: Registration, *, now_ms: int) -> Registered:
        registered = register(registration, now_ms=now_ms)
        for live in table.broker_live_table.values():
            live.last_update_ms = now_ms
        return registered

    _without_idle_close(server)
    replace_part(table, "register", register_all)


def _keeps_routes_of_the_expired(server: NameServer) -> None:
    destroy = server.table.on_channel_destroy

    def on_channel_destroy(channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        return () if reason in (DropReason.EXPIRED, DropReason.IDLE) else destroy(channel_id, remote_address, reason)

    replace_part(server.table, "on_channel_destroy", on_channel_destroy)


def _keeps_queues_of_the_dropped(server: NameServer) -> None:
    table = server.table
    destroy = table.on_channel_destroy

    def on_channel_destroy(channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        held = {topic: dict(rows) for topic, rows in table.topic_queue_table.items()}
        dropped = destroy(channel_id, remote_address, reason)
        for topic, rows in held.items():
            for broker_name, row in rows.items():
                table.topic_queue_table.setdefault(topic, {}).setdefault(broker_name, row)
        return dropped

    replace_part(table, "on_channel_destroy", on_channel_destroy)


# -- closed channels and unregistration


def _keeps_brokers_of_closed_channels(server: NameServer) -> None:
    replace_part(server, "_channel_lost", lambda connection, reason: None)


def _drops_late(server: NameServer) -> None:
    lost, clock = server._channel_lost, server._context.clock
    replace_part(
        server, "_channel_lost", lambda connection, reason: clock.call_later(LATE_DROP_S, lost, connection, reason)
    )


def _drops_another(server: NameServer) -> None:
    table = server.table
    destroy = table.on_channel_destroy

    def on_channel_destroy(channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        channels = [live.channel_id for live in table.broker_live_table.values()]
        others = [channel for channel in channels if channel != channel_id]
        wrong = others[0] if channel_id in channels and others else channel_id
        return destroy(wrong, remote_address, reason)

    replace_part(table, "on_channel_destroy", on_channel_destroy)


def _drops_whole_topics(server: NameServer) -> None:
    table = server.table
    remove_row = table._remove_row

    def remove_rows(topic: str, broker_name: str) -> QueueData | None:
        removed = remove_row(topic, broker_name)
        for other in list(table.topic_queue_table.get(topic, ())):
            remove_row(topic, other)
        return removed

    replace_part(table, "_remove_row", remove_rows)


def _unregisters_liveness_only(server: NameServer) -> None:
    table = server.table

    def unregister(request: Unregistration) -> tuple[Dropped, ...]:
        table.broker_live_table.pop(table._live_key(request.cluster_name, request.broker_addr), None)
        return ()

    replace_part(table, "unregister", unregister)


def _throws_batches_away(server: NameServer) -> None:
    table = server.table

    def run_unregistrations() -> Batch:
        table._unregister_queue.clear()
        return Batch()

    replace_part(table, "run_unregistrations", run_unregistrations)


DEFECTS = (
    Defect(
        name="name-server-never-expires",
        what="a NameServer keeps brokers that have gone silent: no expiry, no idle close",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("routes_are_true"),
        also=checks("answers_are_true", "registrations_are_kept"),
        plant=_never_expires,
    ),
    Defect(
        name="name-server-expires-too-soon",
        what="a NameServer drops a silent broker after 60 s instead of 120 s",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("no_false_eviction"),
        also=checks(
            "answers_are_true",
            "client_routes_are_true",
            "messages_delivered",
            "registrations_are_kept",
            "routes_are_true",
        ),
        plant=_expires_sooner_by(60_000),
    ),
    Defect(
        name="name-server-expires-the-living",
        what="a NameServer drops a broker 20 s after its registration, 10 s before the next one",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("no_false_eviction", "routes_are_true"),
        also=checks(
            "answers_are_true",
            "client_routes_are_true",
            "messages_delivered",
            "prompt_answers",
            "registrations_are_kept",
            "routes_converge",
        ),
        plant=_expires_sooner_by(100_000),
    ),
    Defect(
        name="name-server-scans-the-wrong-way",
        what="a NameServer's scan drops the brokers that are not silent",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("no_false_eviction", "routes_are_true"),
        also=checks(
            "living_are_used",
            "prompt_answers",
            "answers_are_true",
            "availability",
            "client_routes_are_true",
            "messages_delivered",
            "registrations_are_kept",
            "routes_converge",
        ),
        plant=_scans_the_wrong_way,
    ),
    Defect(
        name="name-server-keys-liveness-by-cluster",
        what="a NameServer takes any broker's registration for a sign of life of them all",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("routes_are_true"),
        also=checks("answers_are_true", "registrations_are_kept"),
        plant=_keeps_liveness_by_cluster,
    ),
    Defect(
        name="name-server-keeps-expired-routes",
        what="a NameServer closes a silent broker's channel and keeps its routes",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("routes_are_true"),
        also=checks("answers_are_true", "registrations_are_kept"),
        plant=_keeps_routes_of_the_expired,
    ),
    Defect(
        name="name-servers-keep-queues-of-the-dropped",
        what="every NameServer takes a dropped broker's address out of the routes, and leaves its queues in them",
        kinds=_NAME_SERVER,
        scenario="broker-crash",
        caught_by=checks("routes_as_registered"),
        also=checks("answers_are_true", "client_routes_are_true", "queue_ownership", "routes_are_true"),
        plant=_keeps_queues_of_the_dropped,
    ),
    Defect(
        name="name-server-ignores-close",
        what="every NameServer keeps a broker whose connection closed, until it expires",
        kinds=_NAME_SERVER,
        scenario="broker-crash",
        caught_by=checks("routes_are_true", "dead_brokers_avoided"),
        also=checks(
            "answers_are_true", "client_routes_are_true", "queue_ownership", "recovery_time", "routes_converge"
        ),
        plant=_keeps_brokers_of_closed_channels,
    ),
    Defect(
        name="name-server-drops-late",
        what=f"every NameServer drops a broker {LATE_DROP_S:g} s after its connection closed",
        kinds=_NAME_SERVER,
        scenario="broker-crash",
        caught_by=checks("routes_are_true"),
        also=checks("answers_are_true", "client_routes_are_true", "dead_brokers_avoided", "routes_converge"),
        plant=_drops_late,
    ),
    Defect(
        name="name-server-drops-the-wrong-broker",
        what="a NameServer drops another broker than the one whose connection closed",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-crash-late",
        caught_by=checks("no_false_eviction", "routes_are_true", "routes_converge"),
        also=checks(
            "answers_are_true",
            "client_routes_are_true",
            "dead_brokers_avoided",
            "messages_delivered",
            "registrations_are_kept",
        ),
        plant=_drops_another,
    ),
    Defect(
        name="name-server-drops-whole-topics",
        what="with a broker's last address a NameServer drops the topics it had, of the other brokers too",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-crash",
        caught_by=checks("routes_are_true", "routes_converge"),
        also=checks(
            "answers_are_true",
            "client_routes_are_true",
            "dead_brokers_avoided",
            "messages_delivered",
            "registrations_are_kept",
        ),
        plant=_drops_whole_topics,
    ),
    Defect(
        name="name-server-unregisters-by-half",
        what="every NameServer forgets that a broker which unregistered lives, and keeps its routes",
        kinds=_NAME_SERVER,
        scenario="broker-stop",
        caught_by=checks("routes_are_true", "dead_brokers_avoided"),
        also=checks("answers_are_true", "client_routes_are_true", "queue_ownership"),
        plant=_unregisters_liveness_only,
    ),
    Defect(
        name="name-server-throws-batches-away",
        what="every NameServer (5.x) takes unregistrations off its queue and does nothing about them",
        kinds=_NAME_SERVER,
        scenario="broker-crash-5x",
        caught_by=checks("routes_are_true", "dead_brokers_avoided"),
        also=checks("answers_are_true", "client_routes_are_true"),
        plant=_throws_batches_away,
    ),
)
