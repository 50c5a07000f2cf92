"""For each client and NameServer: when the client lost the NameServer, and by when it must have left it.

    NameServer lost ── found out at a poll (P) ── one call fails (A), where nothing closes ──┬─ left ─── back
    or chosen while it is lost ──────────────────────────────────────────────────────────────┘

Which NameServer a client had chosen only the record knows: a loss says what holds for a client that has chosen this
one. Asked where one fault at a time met the client (quiet.py); faults of other nodes' links do not count, because a
client leaves a NameServer by what the client itself reads. Not judged: a lone NameServer, and faults that may let calls
through.

From section 4 of the project's failure-detection table, of which these are the columns of the two profiles, 4.9.8 and
5.3.3 (`NettyRemotingClient`, `MQClientInstance`), most of it measured on the Java clients. A client that takes the next
one at every request (Go's, ali-ons) leaves without finding anything out: by then its next request was due, and the try
of one that had just begun is over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...remoting.node.profile import Profile
from ..faults.fault import Delay, Loss
from .client_profiles import Advance
from .link import Cause, hung_brokers, link_causes, process_causes
from .lists import in_use
from .lost_brokers import held_to, merged, while_it_lives
from .quiet import alone_until
from .reach import delayed_by_commits, undisturbed
from .windows import NEVER, Timers, Window
from .world import World, once


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerLoss:
    """A NameServer is lost to one process of a client in [start_ms, back_ms), and alone until a second fault begins, in
    [start_ms, end_ms)."""

    client: str
    incarnation: int
    name_server: str
    address: str
    fault_id: str
    start_ms: float
    end_ms: float
    back_ms: float
    window: Window
    """From the loss, or from a later choice of this NameServer: by then another one is chosen."""

    @property
    def from_ms(self) -> float:
        """A client that had chosen it before must have left it by then."""
        return self.start_ms + self.window.latest_ms


def name_server_losses(world: World) -> Sequence[NameServerLoss]:
    """Every stretch of every (client process, NameServer) that outlasts the client's window."""
    return [loss for loss in _all_losses(world) if loss.from_ms < loss.end_ms]


def too_short(world: World) -> Sequence[NameServerLoss]:
    """Those that ended, or met a second fault, before the client had to leave."""
    return [loss for loss in _all_losses(world) if loss.end_ms <= loss.from_ms < NEVER]


def is_any_lost(world: World) -> bool:
    """Whether a NameServer's process, once begun, was gone or stood still at any time, alone or beside other faults."""
    name_servers = world.of_kind("name_server")
    causes = (cause for node in name_servers for cause in process_causes(world, node.name, "name_server"))
    return any(-math.inf < cause.start_ms < world.end_ms for cause in causes)


def clients_that_stay(world: World) -> list[str]:
    """The clients that need never leave a NameServer that went silent: their channel to it stays open
    (clientCloseSocketIfTimeout=false)."""
    return sorted({loss.client for loss in _all_losses(world) if loss.window.latest_ms == NEVER})


@once
def _all_losses(world: World) -> Sequence[NameServerLoss]:
    found: list[NameServerLoss] = []
    name_servers = world.of_kind("name_server")
    gone = {node.name: process_causes(world, node.name, "name_server") for node in name_servers}
    for client in world.of_kind("producer", "consumer"):
        timers = world.timers_of(client.name)
        if len(world.addresses_of(client.name)) < 2:
            continue
        for node in world.listed(client.name):
            causes = [*gone[node.name], *(c for c in link_causes(world, client.name, node.name) if _matters(timers, c))]
            for start_ms, lasted_ms, fault_id in merged(causes, world.end_ms):
                back_ms = while_it_lives(world, client, start_ms, lasted_ms)
                end_ms = min(back_ms, alone_until(world, client.name, start_ms, own_links=True))
                if end_ms <= start_ms or _may_be_alone(world, client.name, node.name, start_ms, end_ms):
                    continue
                here = [cause for cause in causes if cause.start_ms < end_ms and cause.end_ms > start_ms]
                window = _window(world, client.name, start_ms, here)
                life = world.life_at(client.name, start_ms)
                if window is None or life is None or not undisturbed(world, client.name, start_ms, end_ms):
                    continue
                loss = NameServerLoss(
                    client=client.name,
                    incarnation=life.incarnation,
                    name_server=node.name,
                    address=node.address or "",
                    fault_id=fault_id,
                    start_ms=start_ms,
                    end_ms=end_ms,
                    back_ms=back_ms,
                    window=held_to(world, window, "name_servers_left_within_s"),
                )
                found.append(loss)
    return found


def _may_be_alone(world: World, client: str, name_server: str, start_ms: float, end_ms: float) -> bool:
    """Whether a list that the client may have fetched by then names no other NameServer."""
    return world.asks_for_list(client) and any(
        {*one.entries} <= {name_server} for one in in_use(world, client, start_ms, end_ms)
    )


def _matters(timers: Timers, cause: Cause) -> bool:
    """Whether calls may go without an answer: not where every round trip is over within A."""
    return cause.delay is None or cause.delay.round_trip_max_ms >= timers.A_ms


def _takes_turns(world: World, client: str) -> bool:
    """Whether its profile has the next NameServer asked at every request; not of one that chooses by no profile."""
    try:
        return world.client_profile_of(client).advance is Advance.EVERY_REQUEST
    except KeyError:
        return False


def _window(world: World, client: str, start_ms: float, causes: Sequence[Cause]) -> Window | None:
    """The widest window of these causes, J later; None when one of them may let calls through."""
    timers, widest = world.timers_of(client), Window(0, 0, "", "")
    for cause in causes:
        reach = Reach.of(cause.loss, cause.delay, timers, packets=cause.lost_for_ms is not None)
        if reach is None:
            return None
        window = leave_window(timers, reach, each_request=_takes_turns(world, client))
        widest = max(widest, window, key=lambda window: window.latest_ms)
    if widest.latest_ms == NEVER:
        return widest
    widest = widest.plus(max((cause.begins_late_ms for cause in causes), default=0.0), "N")
    span = start_ms, start_ms + widest.latest_ms
    brokers = [node.name for node in world.of_kind("broker", "slave")]
    # A heartbeat waits for the answer of a slow broker; who takes A or longer is hung.
    slow_ms = sum(ms for ms in world.round_trips_ms(client, brokers, *span) if ms < timers.A_ms)
    widest = widest.behind(timers, hung_brokers(world, client, *span))
    widest = widest.plus(slow_ms, f"{slow_ms / 1000:g} s for slow brokers")
    return delayed_by_commits(world, client, widest, start_ms)


_CLIENTS = {Profile.V4_9: "4.9.1 to 4.9.8", Profile.V5_X: "5.3.0 on"}
"""The Java clients that choose and leave NameServers as ours of a profile do."""


class Reach(StrEnum):
    """How a lost NameServer looks to a client: the rows of the table."""

    REFUSED = "port refused"
    SYN_DROPPED = "SYN dropped"
    UNANSWERED = "accepts, never answers"
    RESETS = "resets at its next bytes"

    @classmethod
    def of(cls, loss: Loss, delay: Delay | None, timers: Timers, *, packets: bool = False) -> Reach | None:
        """The row of a loss, of `packets` or of bytes; None if the table has none. Who dials a process that is gone
        is refused, as by a disabled proxy."""
        if delay is not None:
            return cls.UNANSWERED if delay.round_trip_min_ms >= timers.A_ms else None
        if loss in (Loss.CLOSED, Loss.CRASH, Loss.GRACEFUL):
            return cls.REFUSED
        if loss is Loss.RESET:
            return cls.RESETS
        if loss in (Loss.SILENT, Loss.BACKWARD_PACKETS) and packets:
            return cls.SYN_DROPPED
        if loss in (Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.BACKWARD_PROXY, Loss.DROPPED):
            return cls.UNANSWERED
        return None


def leave_window(timers: Timers, reach: Reach, *, each_request: bool = False) -> Window:
    """When a client has chosen another NameServer than the one that is lost: found out at a poll, left at the next.

    A channel that closes says so by itself, so the next call chooses, and dials that are refused cost nothing; one that
    does not answer, or is reset by the call's own bytes, costs one call first. Polls keep to their ticks, so the call
    that fails (A) lies within the P until the next; where A is longer than P, the next poll is overdue when that call
    fails. Where a dial itself has no answer, it is the one to another NameServer that comes C later. A client that
    takes the next one at `each_request` makes one within P, and its try of the lost one takes C at most where it cannot
    connect, and A where it waits, whether or not the channel closes.
    """
    who = "that takes the next one at every request" if each_request else _CLIENTS[timers.profile]
    row = f"client leaves a NameServer: {reach}, client {who}"
    if reach is Reach.REFUSED:
        return Window(0, timers.P_ms, "P", row, 2)
    if each_request and reach is Reach.SYN_DROPPED:
        return Window(0, timers.P_ms + timers.C_ms, "P + C", row, 3)
    if each_request:
        return Window(0, timers.P_ms + timers.A_ms, "P + A", row, 3)
    if reach in (Reach.UNANSWERED, Reach.SYN_DROPPED) and not timers.Z:
        return Window(0, NEVER, "never: its channel stays open (clientCloseSocketIfTimeout=false)", row)
    overdue = timers.A_ms > timers.P_ms
    left = Window(0, timers.P_ms + max(timers.P_ms, timers.A_ms), "P + A" if overdue else "P + 1·P", row, 3)
    return left.plus(timers.C_ms, "C") if reach is Reach.SYN_DROPPED else left
