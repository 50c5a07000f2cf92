"""Ways for a NameServer to lose, keep, change or make up what is in its table, alone or all alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import Dropped, DropReason, Registered, Registration
from ....remoting.bodies.route import Row
from ....remoting.codes import PERM_INHERIT
from ...scenarios.defect import Defect, checks, replace_part
from ...topology import NodeKind
from .drops import _without_idle_close

LATE_MS = 6_000
"""5 % of E."""

_NAME_SERVER = (NodeKind.NAME_SERVER,)
_ONE = ("ns-0",)


def _expires_later_by(ms: int) -> Callable[[NameServer], None]:
    def plant(server: NameServer) -> None:
        expire = server.table.expire
        _without_idle_close(server)
        replace_part(server.table, "expire", lambda *, now_ms: expire(now_ms=now_ms - ms))

    return plant


def _forgets_the_first_after_a_drop(server: NameServer) -> None:
    """Of each channel: what a black hole held back comes at its heal, on channels that hear no answer."""
    table, gone, heard = server.table, set[str](), set[int]()
    register, destroy = table.register, table.on_channel_destroy

    def register_later(registration: Registration, *, now_ms: int) -> Registered:
        if registration.broker_name in gone and registration.channel_id not in heard:
            heard.add(registration.channel_id)
            return Registered()
        return register(registration, now_ms=now_ms)

    def on_channel_destroy(channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        dropped = destroy(channel_id, remote_address, reason)
        gone.update(broker.broker_name for broker in dropped)
        return dropped

    replace_part(table, "register", register_later)
    replace_part(table, "on_channel_destroy", on_channel_destroy)


def _with_rows(change: Callable[[Row], Row | None]) -> Callable[[NameServer], None]:
    """Each row of a registration is kept as what `change` makes of it, or not at all."""

    def plant(server: NameServer) -> None:
        register_rows = server.table._register_rows

        def register_changed_rows(broker_name: str, rows: Iterable[Row]) -> None:
            register_rows(broker_name, [changed for row in rows if (changed := change(row)) is not None])

        replace_part(server.table, "_register_rows", register_changed_rows)

    return plant


def _invents_a_broker(server: NameServer) -> None:
    table = server.table
    register = table.register

    def register_two(registration: Registration, *, now_ms: int) -> Registered:
        invented = replace(registration, broker_name="broker-z", broker_addr="10.9.9.9:10911", channel_id=-1)
        register(invented, now_ms=now_ms)
        return register(registration, now_ms=now_ms)

    replace_part(table, "register", register_two)


def _keeps_the_first_address(server: NameServer) -> None:
    register, first = server.table.register, dict[tuple[str, int], str]()

    def register_there(registration: Registration, *, now_ms: int) -> Registered:
        of = registration.broker_name, registration.broker_id
        return register(
            replace(registration, broker_addr=first.setdefault(of, registration.broker_addr)), now_ms=now_ms
        )

    replace_part(server.table, "register", register_there)


def _swaps_addresses(server: NameServer) -> None:
    register = server.table.register
    swapped: dict[str, str] = {}

    def register_swapped(registration: Registration, *, now_ms: int) -> Registered:
        swapped[registration.broker_name] = registration.broker_addr
        names = sorted(swapped)
        other = swapped[names[(names.index(registration.broker_name) + 1) % len(names)]]
        return register(replace(registration, broker_addr=other), now_ms=now_ms)

    replace_part(server.table, "register", register_swapped)


DEFECTS = (
    Defect(
        name="name-servers-count-a-queue-less",
        what="every NameServer keeps every topic with one read queue less than its broker registered",
        kinds=_NAME_SERVER,
        scenario="smoke",
        caught_by=checks("routes_as_registered"),
        also=checks("living_are_used", "answers_are_true", "messages_delivered"),
        plant=_with_rows(lambda row: (row[0], replace(row[1], read_queue_nums=row[1].read_queue_nums - 1))),
    ),
    Defect(
        name="name-servers-keep-another-permission",
        what="every NameServer keeps every topic with the permission to inherit from it",
        kinds=_NAME_SERVER,
        scenario="smoke",
        caught_by=checks("routes_as_registered"),
        also=checks("answers_are_true"),
        plant=_with_rows(lambda row: (row[0], replace(row[1], perm=row[1].perm | PERM_INHERIT))),
    ),
    Defect(
        name="name-servers-drop-a-topic",
        what="no NameServer keeps the workload's topic, whoever registers it",
        kinds=_NAME_SERVER,
        scenario="smoke",
        caught_by=checks("routes_are_true", "registrations_are_kept"),
        also=checks("answers_are_true", "availability", "messages_delivered"),
        plant=_with_rows(lambda row: None if row[0] == "orders" else row),
    ),
    Defect(
        name="name-server-invents-a-broker",
        what="a NameServer tells of a broker that there is not, with the queues of one that there is",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("routes_as_registered"),
        also=checks(
            "answers_are_true",
            "availability",
            "duplicates",
            "living_are_used",
            "queue_ownership",
            "routes_converge",
        ),
        plant=_invents_a_broker,
    ),
    Defect(
        name="name-servers-swap-addresses",
        what="every NameServer keeps each broker under the address of the next",
        kinds=_NAME_SERVER,
        scenario="smoke",
        caught_by=checks("routes_as_registered", "routes_are_true"),
        also=checks(
            "one_master",
            "answers_are_true",
            "availability",
            "client_routes_are_true",
            "commits_follow_work",
            "duplicates",
            "one_master",
            "registrations_are_kept",
            "routes_converge",
        ),
        plant=_swaps_addresses,
    ),
    Defect(
        name="name-server-keeps-the-old-address",
        what="a NameServer goes on naming the first address that it had of a broker, wherever that comes back",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-moves",
        caught_by=checks("routes_are_true", "answers_are_true", "routes_converge"),
        also=checks(
            *("availability", "client_routes_are_true", "commits_follow_work", "dead_brokers_avoided"),
            *("living_are_used", "messages_delivered", "recovery_time", "registrations_are_kept"),
        ),  # of the clients that sit there
        plant=_keeps_the_first_address,
    ),
    Defect(
        name="name-server-expires-late",
        what=f"a NameServer drops a silent broker {LATE_MS / 1000:g} s too late, 5 % of 120 s, by its scan alone",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("registrations_are_kept"),
        also=checks("answers_are_true"),
        plant=_expires_later_by(LATE_MS),
    ),
    Defect(
        name="name-server-forgets-an-acknowledged-registration",
        what="a NameServer forgets each channel's first registration by a broker that it has dropped once",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("registrations_are_kept"),
        also=checks(
            "answers_are_true", "client_routes_are_true", "messages_delivered", "routes_are_true", "routes_converge"
        ),
        plant=_forgets_the_first_after_a_drop,
    ),
)
