"""Ways for a NameServer to take registrations wrongly, or to put others into its table than came.

Most are planted in ns-0 alone, so that the others stay right and the difference shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import Dropped, DropReason, Registered, Registration
from ....remoting.bodies.route import DataVersion, QueueData, Row
from ...scenarios.defect import Defect, checks, replace_part
from ...topology import NodeKind

RESURRECTED_AFTER_S = 20.0
LOST_REGISTRATIONS = 2
"""One alone would be made good by the next tick, which may still be in time."""

_NAME_SERVER = (NodeKind.NAME_SERVER,)
_ONE = ("ns-0",)


def _takes_nobody_back(server: NameServer) -> None:
    table, gone = server.table, set[str]()
    register, destroy = table.register, table.on_channel_destroy

    def register_others(registration: Registration, *, now_ms: int) -> Registered:
        return Registered() if registration.broker_name in gone else register(registration, now_ms=now_ms)

    def on_channel_destroy(channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        dropped = destroy(channel_id, remote_address, reason)
        gone.update(broker.broker_name for broker in dropped)
        return dropped

    replace_part(table, "register", register_others)
    replace_part(table, "on_channel_destroy", on_channel_destroy)


def _loses_first_registrations(server: NameServer) -> None:
    register, seen = server.table.register, Counter[str]()

    def register_later(registration: Registration, *, now_ms: int) -> Registered:
        seen[registration.broker_name] += 1
        if seen[registration.broker_name] <= LOST_REGISTRATIONS:
            return Registered()
        return register(registration, now_ms=now_ms)

    replace_part(server.table, "register", register_later)


def _keeps_the_older_version(server: NameServer) -> None:
    table = server.table

    def is_changed(cluster_name: str, broker_addr: str, version: DataVersion) -> bool:
        held = table.data_version(cluster_name, broker_addr)
        return held is None or (version.timestamp, version.counter) < (held.timestamp, held.counter)

    replace_part(table, "is_changed", is_changed)


def _brings_back_the_dead(server: NameServer) -> None:
    table, clock, last = server.table, server._context.clock, dict[str, Registration]()
    register, destroy = table.register, table.on_channel_destroy

    def remember(registration: Registration, *, now_ms: int) -> Registered:
        last[registration.broker_name] = registration
        return register(registration, now_ms=now_ms)

    def bring_back(broker_name: str) -> None:
        register(last[broker_name], now_ms=clock.now_ms())
        server._settle(())

    def on_channel_destroy(channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        dropped = destroy(channel_id, remote_address, reason)
        for broker in dropped:
            clock.call_later(RESURRECTED_AFTER_S, bring_back, broker.broker_name)
        return dropped

    replace_part(table, "register", remember)
    replace_part(table, "on_channel_destroy", on_channel_destroy)


def _gives_all_one_address(server: NameServer) -> None:
    register, first = server.table.register, list[str]()

    def register_at_the_first(registration: Registration, *, now_ms: int) -> Registered:
        first.append(registration.broker_addr)
        return register(replace(registration, broker_addr=first[0]), now_ms=now_ms)

    replace_part(server.table, "register", register_at_the_first)


def _counts_a_queue_less(server: NameServer) -> None:
    register_rows = server.table._register_rows

    def smaller(row: QueueData) -> QueueData:
        return replace(row, read_queue_nums=row.read_queue_nums - 1, write_queue_nums=row.write_queue_nums - 1)

    def register_smaller_rows(broker_name: str, rows: Iterable[Row]) -> None:
        register_rows(broker_name, [(topic, smaller(row)) for topic, row in rows])

    replace_part(server.table, "_register_rows", register_smaller_rows)


DEFECTS = (
    Defect(
        name="name-server-takes-nobody-back",
        what="a NameServer ignores the registrations of a broker that it has dropped once",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("routes_are_true", "routes_converge"),
        also=checks("answers_are_true", "client_routes_are_true", "messages_delivered", "registrations_are_kept"),
        plant=_takes_nobody_back,
    ),
    Defect(
        name="name-server-loses-first-registrations",
        what=f"a NameServer acknowledges each broker's first {LOST_REGISTRATIONS} registrations and loses them",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="name-server-crash",
        caught_by=checks("routes_are_true", "routes_converge"),
        also=checks(
            "answers_are_true", "availability", "client_routes_are_true", "messages_delivered", "registrations_are_kept"
        ),
        plant=_loses_first_registrations,
    ),
    Defect(
        name="name-server-keeps-the-older-version",
        what="a NameServer takes a broker's topics only with an older data version",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("routes_are_true", "routes_converge"),
        also=checks("answers_are_true", "client_routes_are_true", "messages_delivered", "registrations_are_kept"),
        plant=_keeps_the_older_version,
    ),
    Defect(
        name="name-server-brings-back-the-dead",
        what=f"a NameServer takes a broker in again {RESURRECTED_AFTER_S:g} s after it dropped it, unasked",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-crash",
        caught_by=checks("no_resurrection", "routes_are_true", "routes_converge"),
        also=checks("answers_are_true", "client_routes_are_true", "dead_brokers_avoided"),
        plant=_brings_back_the_dead,
    ),
    Defect(
        name="name-server-gives-all-one-address",
        what="a NameServer keeps every broker under the address of the first that registered",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("routes_are_true", "routes_converge"),
        also=checks(
            "one_master",
            "answers_are_true",
            "availability",
            "client_routes_are_true",
            "commits_follow_work",
            "duplicates",
            "messages_delivered",
            "one_master",
            "prompt_answers",
            "queue_ownership",
            "registrations_are_kept",
            "routes_as_registered",
        ),
        plant=_gives_all_one_address,
    ),
    Defect(
        name="name-server-counts-a-queue-less",
        what="a NameServer keeps every topic with one queue less than its broker registered",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("routes_converge"),
        also=checks("living_are_used", "answers_are_true", "messages_delivered", "routes_as_registered"),
        plant=_counts_a_queue_less,
    ),
)
