"""For each client and NameServer: when the NameServer was lost to the client, and from when it must have been left.

    NameServer lost ── found out at a poll (P) ── one call fails (A), where nothing closes ──┬─ left ─── back
    or chosen while it is lost ──────────────────────────────────────────────────────────────┘

Plain functions over `World`. Which NameServer a client had chosen only the record knows: an exile says what holds for
a client that has chosen this one. Not judged: a lone NameServer, and faults that may let calls through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .causes import Cause, link_causes, process_causes
from .client_profiles import Advance
from .hung import hung_brokers
from .lists import in_use
from .lost_brokers import alive, merged, while_it_lives
from .name_server_windows import Reach, leave_window
from .reach import delayed_by_commits
from .windows import NEVER, Timers, Window, poll_delay_ms
from .world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerLoss:
    """A NameServer is lost to one process of a client in [start_ms, end_ms)."""

    id: int
    client: str
    incarnation: int
    name_server: str
    address: str
    fault_id: str
    start_ms: float
    end_ms: float
    window: Window
    """From the loss, or from a later choice of this NameServer: by then another one is chosen."""

    @property
    def from_ms(self) -> float:
        """A client that had chosen it before must have left it by then."""
        return self.start_ms + self.window.latest_ms


def name_server_losses(world: World) -> tuple[NameServerLoss, ...]:
    """Every stretch of every (client process, NameServer) that outlasts the client's window."""
    return world.memoized("exiles", lambda: tuple(_name_server_losses(world)))


def _name_server_losses(world: World) -> list[NameServerLoss]:
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
                end_ms = while_it_lives(world, client, start_ms, lasted_ms)
                here = [cause for cause in causes if cause.start_ms < end_ms and cause.end_ms > start_ms]
                window = _window(world, client.name, start_ms, here)
                if window is None or not alive(world, client.name, start_ms, end_ms):
                    continue
                if world.asks_for_list(client.name) and any(
                    len(one.entries) < 2 for one in in_use(world, client.name, start_ms, end_ms)
                ):
                    continue
                life = next(life for life in world.lives_of(client.name) if life.start_ms <= start_ms < life.end_ms)
                loss = NameServerLoss(
                    id=len(found),
                    client=client.name,
                    incarnation=life.incarnation,
                    name_server=node.name,
                    address=node.address or "",
                    fault_id=fault_id,
                    start_ms=start_ms,
                    end_ms=end_ms,
                    window=window,
                )
                if loss.from_ms < end_ms:
                    found.append(loss)
    return found


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
        reach = Reach.of(cause.loss, cause.delay, timers, packets=cause.packets)
        if reach is None:
            return None
        window = leave_window(
            timers, reach, name_servers=len(world.addresses_of(client)), each_request=_takes_turns(world, client)
        )
        widest = max(widest, window, key=lambda window: window.latest_ms)
    if widest.latest_ms == NEVER:
        return None
    fetched_ms = max((cause.begins_late_ms for cause in causes), default=0.0)
    if fetched_ms:
        widest = widest.plus(fetched_ms, "N")
    hung = hung_brokers(world, client, start_ms, start_ms + widest.latest_ms)
    if hung:
        widest = widest.plus(poll_delay_ms(timers, hung), f"J (A·{hung} hung brokers)")
    return delayed_by_commits(world, client, widest, start_ms)
