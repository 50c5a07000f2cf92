"""Part of living_are_used: after a failed try a send goes to another broker, but only while it has tries and time left.

    without sendLatencyFaultEnable      another broker than the one that failed, where the route has one
    with it                             one that is not isolated: in 5.x another one than the one that failed, in 4.9
                                        while the one that failed is isolated; which of the isolated is the least bad
                                        decides the rest

Each try that failed, or was slow by latencyMax, leaves a `broker_isolated` row. How long a failed try isolates its
broker is counted by the producer's table (oracle/time_outs.py), and not by what it says; whom an outside client
isolates nobody knows.

Upstream: `DefaultMQProducerImpl.sendDefaultImpl`, `MQFaultStrategy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ....remoting.node.profile import Profile
from ...oracle.recorded import OURS
from ...oracle.time_outs import avoids
from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding
from ..findings import Rule, at_a_moment, finding
from ..record.control import Control
from ..record.timer_acts import by_process
from ..record.turns import Routes
from ..record.uses import BrokerShares, Isolated, Try, isolated

_OTHER = "selectOneMessageQueue: a retry avoids the broker that failed"
_MASTER = "topicRouteData2TopicPublishInfo: only broker names with an id 0 are published to"
_ISOLATES = "MQFaultStrategy.updateFaultItem: each try that failed, or was slow by latencyMax, isolates its broker"
_AVOIDS = "LatencyFaultToleranceImpl.FaultItem: no send to an isolated broker while another broker is available"
_TRIED = "sendDefaultImpl: a message is sent again while it is not stored, and a try and time are left"
_ROUNDING_MS = 1.0
_NEAR_MS = 50.0


def tries(shares: BrokerShares, routes: Routes, control: Control, world: World) -> Iterator[Finding]:
    """All that were on another broker together; each that was not though there was one, that should not have been, or
    that was missing."""
    wrong = [one for one in shares.same if _has_another(one, routes, isolated(control, world), world)]
    right = shares.retries - len(wrong)
    unknown = any(avoids(world, node.name) and node.implementation != OURS for node in world.of_kind("producer"))
    if right > 0 and not unknown:
        yield finding("producers", "tried another broker", (0.0, world.end_ms), Rule(_OTHER), examined=right)
    if shares.isolating:
        span = 0.0, world.end_ms
        right = shares.isolating - len(shares.not_isolated)
        yield finding("producers", "isolated the broker", span, Rule(_ISOLATES), examined=right)
    to_slaves = (one for one in shares.to_slaves if _is_no_master(one, routes, world))
    missing = (
        one
        for one in shares.given_up
        if (not _asked_in_vain(one, control) if one.broker_name else _is_routed(one, routes, world))
    )
    of_rules = (
        (_MASTER, to_slaves),
        (_OTHER, wrong),
        (_ISOLATES, shares.not_isolated),
        (_AVOIDS, (one for one in shares.to_isolated if _has_another(one, routes, isolated(control, world), world))),
        (_TRIED, shares.odd),
        (_TRIED, missing),
    )
    for rule, those in of_rules:
        for one in islice(those, FINDINGS_MAX):
            left = {} if one.left_ms is None else {"left_ms": round(one.left_ms, 3)}
            more = {"op_id": one.op_id, "attempt": one.attempt, **left}
            yield at_a_moment(one.node, one.broker_name, one.kind, one.time_ms, rule, more)


def _has_another(one: Try, routes: Routes, away: Isolated, world: World) -> bool:
    # For all its tries a send goes by the route that it began with, T ago at the earliest.
    began_ms = one.time_ms - world.timers_of(one.node).T_ms
    named = (routes.brokers(one.node, one.incarnation, at_ms) for at_ms in (began_ms, one.time_ms))
    others = set.intersection(*named) - {one.broker_name}
    if not avoids(world, one.node):
        return bool(others)
    until_ms = away.until_ms(one.node, one.incarnation, one.time_ms)
    is_isolated = until_ms.get(one.broker_name, 0.0) > one.time_ms + _ROUNDING_MS
    is_avoided = is_isolated or world.timers.profile is Profile.V5_X
    return is_avoided and any(until_ms.get(name, 0.0) < one.time_ms - _ROUNDING_MS for name in others)


def _is_no_master(one: Try, routes: Routes, world: World) -> bool:
    """Whether none of the addresses that the node has had is one that the producer's routes have named under id 0."""
    addresses = [address for address, node in world.owners.items() if node == one.broker_name]
    return not routes.masters(one.node, one.incarnation, one.time_ms).intersection(addresses)


def _is_routed(one: Try, routes: Routes, world: World) -> bool:
    """Whether the producer had a route with a queue to write to when the send that it never tried began and ended."""
    began_ms = one.time_ms - world.timers_of(one.node).T_ms + (one.left_ms or 0.0)
    return all(routes.brokers(one.node, one.incarnation, at_ms) for at_ms in (began_ms, one.time_ms))


def _asked_in_vain(one: Try, control: Control) -> bool:
    """Whether a look-up failed just then: a send that needs an address ends with it."""
    calls = by_process(control, "name_server_call").get((one.node, one.incarnation), ())
    until_ms = one.time_ms + (one.left_ms or 0.0) + _NEAR_MS
    return any(one.time_ms - _NEAR_MS <= call.ended_ms <= until_ms and call.row.type != "ok" for call in calls)
