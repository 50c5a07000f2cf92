"""When a SYNC_MASTER may answer a send "stored, but on no slave": SLAVE_NOT_AVAILABLE, or FLUSH_SLAVE_TIMEOUT.

    slave      at work ──┤ lost                ├─ there again ── copies the log again ──
    its master  SEND_OK ─┤ SLAVE_NOT_AVAILABLE ┴───────────────┤ SEND_OK                  housekeeping + retry + C

The producer has its message stored and is told how safely: a result, and no exception, so that it tries no other
broker (`DefaultMQProducerImpl.sendDefaultImpl`, `retryAnotherBrokerWhenNotStoreOK`). Where it is right such an answer
is as good as any; a master that goes on with it though its slave has had its time is none that works. Plain, over
`World`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...remoting.codes import ResponseCode
from ..topology import broker_name
from .causes import link_causes, process_causes
from .intervals import Stretch, merged, without
from .roles import elects, members_of, unsettled
from .slaves import slaves_of
from .world import World

CODES = (int(ResponseCode.SLAVE_NOT_AVAILABLE), int(ResponseCode.FLUSH_SLAVE_TIMEOUT))
HOUSEKEEPING_MS, RETRY_MS = 20_000.0, 5_000.0
"""`haHousekeepingInterval`: after so long without a word either end gives the other up. A slave then dials each 5 s."""
_ROW_LATE_MS = 1_000.0
"""A fault's row comes when it is complete, and what it does may come before."""
_ALWAYS = (Stretch(-math.inf, math.inf),)


def again_ms(world: World) -> float:
    """How long after its end a fault of a slave may still keep its master from waiting for it."""
    return HOUSEKEEPING_MS + RETRY_MS + world.timers.C_ms


def unreplicated(world: World) -> Mapping[str, Sequence[Stretch]]:
    """Broker name to when its master may be without a slave that it could wait for; names where it never waits are
    left out."""

    def found() -> Mapping[str, Sequence[Stretch]]:
        masters = {node.name for node in world.of_kind("broker")}
        return {name: _of(world, name) for name in members_of(world) if name in masters and _waits(world, name)}

    return world.memoized("unreplicated", found)


def alone(world: World) -> Mapping[str, Sequence[Stretch]]:
    """Broker name to when no process of a slave of its was there, so that its master cannot answer SEND_OK; names whose
    masters never wait, or are elected, are left out."""

    def found() -> Mapping[str, Sequence[Stretch]]:
        masters = [node.name for node in world.of_kind("broker")]
        names = [name for name in masters if not elects(world, name) and _waits(world, name)]
        return {name: gone for name in names if (gone := _without_slaves(world, name))}

    return world.memoized("without any slave", found)


def _without_slaves(world: World, master: str) -> Sequence[Stretch]:
    """From the first slave's start on; a channel that is reset, or lost, shows a delivery later at most."""
    slaves, late_ms = slaves_of(world, master), world.timers.delivery_ms
    lives = [Stretch(life.start_ms, life.end_ms + late_ms) for slave in slaves for life in world.lives_of(slave)]
    by_hand = any(act.f == "switch" and broker_name(act.node or "") == master for act in world.acts)
    return without(lives[0].start_ms, world.end_ms, merged(lives)) if lives and not by_hand else []


def _waits(world: World, name: str) -> bool:
    """Whether whoever is master of the name answers once others have the message, too."""
    return elects(world, name) or world.setting(name, "brokerRole") == "SYNC_MASTER"


def _of(world: World, name: str) -> Sequence[Stretch]:
    slaves, late_ms = slaves_of(world, name), again_ms(world)
    if not slaves:
        return _ALWAYS
    if elects(world, name):
        return merged(Stretch(start_ms, end_ms + late_ms) for start_ms, end_ms in unsettled(world, name))
    there = [stretch for slave in slaves for stretch in without(-math.inf, math.inf, _away(world, name, slave))]
    switched = (act.began_ms for act in world.acts if act.f == "switch" and broker_name(act.node or "") == name)
    alone_from_ms = min(switched, default=math.inf)  # its old slave was its only one, or follows nobody yet
    return merged([*without(-math.inf, math.inf, there), Stretch(alone_from_ms, math.inf)])


def _away(world: World, master: str, slave: str) -> Sequence[Stretch]:
    """When this slave may be none that the master waits for: it, its master, or the link between them is lost, or it
    has only just begun to copy."""
    causes = [*process_causes(world, slave), *process_causes(world, master)]
    causes += [*link_causes(world, slave, master), *link_causes(world, master, slave)]
    late_ms = again_ms(world)
    return merged(Stretch(cause.start_ms - _ROW_LATE_MS, cause.end_ms + late_ms) for cause in causes)
