"""Which brokers register as master of a name at a NameServer, and from when until when.

    broker-a      id 0 ├─────────── id 0 ┤ stands still
    broker-a/1                 id 0 ├─────── id 0 ┤            both, until one of them claims it no more

A broker claims a name by registering as id 0 (`registration`), and goes on doing so until it registers as something
else, is dropped, stands still, ends, or leaves a registration out.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...oracle.intervals import Stretch
from ...oracle.promises import told_by_hand
from ...oracle.roles import members_of
from ...oracle.world import World, once
from .control import Control

AtNameServer = tuple[str, int, str]
"""NameServer, its incarnation and broker name."""


class Claim(NamedTuple):
    """The registrations of one broker as master of its name at one NameServer, without a gap."""

    address: str
    first_ms: float
    times: list[float]
    """Of each, ascending."""


@once
def claims_of(control: Control, world: World) -> Mapping[AtNameServer, list[Claim]]:
    """In order of their beginning."""
    found: dict[AtNameServer, list[Claim]] = defaultdict(list)
    open_: dict[AtNameServer, dict[str, Claim]] = defaultdict(dict)
    members, by_hand = members_of(world), told_by_hand(world)
    for row in control.rows("registration", "broker_dropped"):
        name, address = row.broker_name, row.address
        if name not in members or row.time_ms >= world.end_ms or by_hand.may_name(name, str(row.broker_id), address):
            continue
        key = row.node, row.incarnation, name
        if row.event == "broker_dropped" or row.broker_id:
            if address in open_[key]:
                found[key].append(open_[key].pop(address))
            continue
        owner = members[name].owner(address)
        if row.code or row.broker_id is None or not _is_there(world, owner, address, row.time_ms):
            continue
        claim = open_[key].get(address)
        if claim is not None and not _goes_on(world, owner, claim.times[-1], row.time_ms):
            found[key].append(claim)
            claim = None
        if claim is None:
            claim = open_[key][address] = Claim(address, row.time_ms, [])
        claim.times.append(row.time_ms)
    for key, claims in open_.items():
        found[key] += claims.values()
    return {key: sorted(claims, key=lambda claim: claim.first_ms) for key, claims in found.items() if claims}


def _is_there(world: World, node: str | None, address: str, at_ms: float) -> bool:
    """Whether the broker lives, at that address: what a link held back and gives now is nobody's claim."""
    late_ms = world.timers.delivery_ms
    if node is not None and world.had_before(node, address, at_ms - late_ms):
        return False
    lives = () if node is None else world.lives_of(node)
    return not lives or any(life.start_ms - late_ms <= at_ms <= life.end_ms + late_ms for life in lives)


def _goes_on(world: World, node: str | None, last_ms: float, at_ms: float) -> bool:
    """Whether a broker that registered at both times was master in between, too."""
    timers = world.timers if node is None else world.timers_of(node)
    if at_ms - last_ms > timers.registers_ms:
        return False
    return node is None or not any(fault.overlaps(last_ms, at_ms) for fault in world.process_faults(node))


def together(claims: Sequence[Claim], *, may_meet: bool) -> Iterator[Stretch]:
    """From when a second master began until one of the two claimed the name for the last time; where they may not meet
    at all, at least until the first of them did so once more."""
    for number, one in enumerate(claims):
        for later in claims[number + 1 :]:
            if later.address == one.address or later.first_ms > one.times[-1]:
                continue
            until_ms = min(one.times[-1], later.times[-1])
            if not may_meet:
                until_ms = max(until_ms, next(at_ms for at_ms in one.times if at_ms >= later.first_ms))
            yield Stretch(later.first_ms, until_ms)
