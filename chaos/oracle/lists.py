"""Which list of NameServers a broker or client may use, if it gets its list from an address server.

    served   ── list 0 ──────────────┬── list 1 ─────────────────────────
    in use   ── list 0 ──────────────┴ 0 or 1 ─────┴── list 1 ───────────
                                     └── N + 3 s ──┘ later where the node cannot reach the address server meanwhile

Plain functions over `World`. N: a client asks each 120 s, a broker each 120 s (4.9) or 10 s (5.x).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...remoting.top_addressing import CLIENT_PERIOD_S, FIRST_S, TASK, TIMEOUT_S, broker_period_s
from ..faults.fault import Loss
from ..topology import ADDRESS_SERVER
from .intervals import Stretch, merged
from .recorded import Fault, Served
from .timers import Schedule
from .world import World


class Off(NamedTuple):
    """The served list does not name the NameServer in [from_ms, to_ms)."""

    from_ms: float
    to_ms: float
    from_late_ms: float
    """How much later the node may take the list without it."""
    to_late_ms: float
    """How much later the node may take the list that has it again."""
    change_id: str
    """Which change left it out; empty for the first list."""
    back_id: str
    """Which change brought it back."""


class NoList(NamedTuple):
    """A process may have no list in [start_ms, end_ms); `is_certain`: it has none."""

    start_ms: float
    end_ms: float
    is_certain: bool


_NOTHING_FETCHED = frozenset(
    {Loss.CRASH, Loss.GRACEFUL, Loss.CLOSED, Loss.SILENT, Loss.DROPPED, Loss.RESET, Loss.UNDIALLED}
    | {Loss.BACKWARD_PACKETS, Loss.BACKWARD_PROXY}
)
"""No new connection brings an answer."""


def period_ms(world: World, node: str) -> float:
    """N: how often this node asks."""
    is_broker = world.kind_of(node) in ("broker", "slave")
    return 1000 * (broker_period_s(world.timers.profile) if is_broker else CLIENT_PERIOD_S)


def fetches(world: World, node: str, row: str) -> tuple[Schedule, ...]:
    """Its task, where an address server has the list."""
    if not world.asks_for_list(node):
        return ()
    return (Schedule(TASK, "N", 1000 * FIRST_S, period_ms(world, node), row, shared=True),)


def due_ms(world: World, node: str, served: Served) -> float:
    """By when the node must have fetched this list, or a later one."""
    if not math.isfinite(served.from_ms):
        return served.from_ms
    return world.memoized(("list due", node, served.from_ms), lambda: _due_ms(world, node, served.from_ms))


def _due_ms(world: World, node: str, at_ms: float) -> float:
    round_ms = period_ms(world, node) + 1000 * TIMEOUT_S
    due = at_ms + round_ms
    later = [(stretch.start_ms, stretch.end_ms + round_ms) for stretch in out_of_reach(world, node)]
    # A process that begins asks at once, or, a broker, at its first tick; then the period counts from there.
    later += [(life.start_ms, life.start_ms + 1000 * (FIRST_S + TIMEOUT_S)) for life in world.lives_of(node)]
    for begins_ms, until_ms in sorted(later):
        if begins_ms <= due and until_ms > at_ms:
            due = max(due, until_ms)
    return due


def out_of_reach(world: World, node: str) -> list[Stretch]:
    """When the node may be unable to ask the address server: that, its link to it, or the node itself is not as it
    should be."""
    faults = [*_of_address_server(world, node), *world.process_faults(node)]
    return merged(Stretch(one.start_ms, one.end_ms) for one in faults if not one.harmless(world.timers))


def _of_address_server(world: World, node: str) -> list[Fault]:
    return [*world.process_faults(ADDRESS_SERVER), *world.link_faults(node, ADDRESS_SERVER)]


def without_list(world: World, node: str) -> list[NoList]:
    """When a process of the broker or client may have no list at all, for it could not ask the address server when it
    first would; its next turn to ask is up to a period after the end of each. Over a link that is slow, or was not
    lost yet as it began, it may have got one all the same."""
    if not world.asks_for_list(node):
        return []
    found = []
    lost = [one for one in _of_address_server(world, node) if one.loss(world.timers_of(node)) in _NOTHING_FETCHED]
    certain = merged(Stretch(one.start_ms, one.end_ms) for one in lost)
    for life in world.lives_of(node):
        until_ms, ends_ms = life.start_ms + 1000 * (FIRST_S + TIMEOUT_S), None
        for stretch in out_of_reach(world, node):
            if stretch.start_ms <= until_ms and stretch.end_ms > life.start_ms:
                ends_ms = stretch.end_ms
                until_ms = stretch.end_ms + fetch_ms(world, node)
        if ends_ms is not None:
            ends_ms = min(ends_ms, life.end_ms)
            sure = (min(one.end_ms, ends_ms) for one in certain if one.start_ms <= life.start_ms < one.end_ms)
            sure_ms = next(sure, life.start_ms)
            found += [NoList(life.start_ms, sure_ms, True), NoList(sure_ms, ends_ms, False)]
    return [one for one in found if one.start_ms < one.end_ms]


def fetch_ms(world: World, node: str) -> float:
    """How long after the address server is in reach the node has its list at the latest."""
    return period_ms(world, node) + 1000 * TIMEOUT_S


def in_use(world: World, node: str, from_ms: float, to_ms: float) -> Sequence[Served]:
    """The lists that the node may have at some time in [from_ms, to_ms], the oldest first."""
    served = world.served
    first = max((at for at, one in enumerate(served) if due_ms(world, node, one) <= from_ms), default=0)
    return [one for one in served[first:] if one.from_ms <= to_ms] or served[first : first + 1]


def may_have(world: World, node: str, name_server: str, from_ms: float, to_ms: float) -> bool:
    """Whether the NameServer may be on the node's list at some time in [from_ms, to_ms]."""
    if not world.asks_for_list(node):
        return world.lists(node, name_server)
    return any(name_server in one.entries for one in in_use(world, node, from_ms, to_ms))


def must_have(world: World, node: str, name_server: str, from_ms: float, to_ms: float) -> bool:
    """Whether the NameServer is on the node's list all the time in [from_ms, to_ms]."""
    if not world.asks_for_list(node):
        return world.lists(node, name_server)
    return all(name_server in one.entries for one in in_use(world, node, from_ms, to_ms))


def off(world: World, node: str, name_server: str) -> Sequence[Off]:
    """When the list that is served to this node does not name this NameServer."""
    if not world.asks_for_list(node):
        return ()
    found: list[Off] = []
    since: Served | None = None
    for one in world.served:
        if name_server not in one.entries:
            since = since or one
        elif since is not None:
            found.append(_off(world, node, since, one))
            since = None
    if since is not None:
        found.append(_off(world, node, since, None))
    return found


def _off(world: World, node: str, since: Served, back: Served | None) -> Off:
    from_late_ms = due_ms(world, node, since) - since.from_ms if math.isfinite(since.from_ms) else 0.0
    if back is None:
        return Off(since.from_ms, math.inf, from_late_ms, 0.0, since.change_id, "")
    return Off(
        since.from_ms,
        back.from_ms,
        from_late_ms,
        due_ms(world, node, back) - back.from_ms,
        since.change_id,
        back.change_id,
    )


def certainly_off(world: World, node: str, name_server: str) -> list[Stretch]:
    """When the NameServer cannot be on the node's list."""
    found = (Stretch(one.from_ms + one.from_late_ms, one.to_ms) for one in off(world, node, name_server))
    return [stretch for stretch in found if stretch.start_ms < stretch.end_ms]


def changing(world: World) -> list[Stretch]:
    """From each change of the served list until the last broker and client must have it."""
    nodes = [
        one.name for one in world.of_kind("broker", "slave", "producer", "consumer") if world.asks_for_list(one.name)
    ]
    return [
        Stretch(served.from_ms, max(due_ms(world, node, served) for node in nodes))
        for served in world.served
        if nodes and math.isfinite(served.from_ms)
    ]
