"""Ways for a NameServer to lose, keep or make up what is in its table, within the windows of a heal or by little."""

from __future__ import annotations

from collections.abc import Callable

from ...actors.namesrv.server import NameServer
from ...actors.namesrv.tables import Dropped, DropReason, Registered, Registration
from ..topology import NodeKind
from .model import Defect, checks, replace_part
from .name_server import _without_idle_close

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
    table, gone = server.table, set[str]()
    register, destroy = table.register, table.on_channel_destroy

    def register_later(registration: Registration, *, now_ms: int) -> Registered:
        if registration.broker_name in gone:
            gone.discard(registration.broker_name)
            return Registered()
        return register(registration, now_ms=now_ms)

    def on_channel_destroy(channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
        dropped = destroy(channel_id, remote_address, reason)
        gone.update(broker.broker_name for broker in dropped)
        return dropped

    replace_part(table, "register", register_later)
    replace_part(table, "on_channel_destroy", on_channel_destroy)


DEFECTS = (
    Defect(
        name="name-server-expires-late",
        what=f"a NameServer drops a silent broker {LATE_MS / 1000:g} s too late, 5 % of 120 s, by its scan alone",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("registrations_are_kept"),
        plant=_expires_later_by(LATE_MS),
    ),
    Defect(
        name="name-server-forgets-an-acknowledged-registration",
        what="a NameServer acknowledges a broker's first registration after it dropped it, and forgets it",
        kinds=_NAME_SERVER,
        nodes=_ONE,
        scenario="broker-partition",
        caught_by=checks("registrations_are_kept"),
        also=checks("routes_are_true", "routes_converge"),
        plant=_forgets_the_first_after_a_drop,
    ),
)
