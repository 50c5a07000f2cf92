"""Where registrations land and their answers do not, a broker comes and goes: B of every R in the table.

    fault ─ ≤ R ─ tick ── held B ──┐          tick ── held B ──┐          tick ── …
                                   └ missing R - B ┘           └ missing ┘

Judged per (NameServer, broker, topic) and stretch of such a fault: no stay longer than B, no gap longer than R - B (a
full R where the broker changed a topic meanwhile, because that registers too and shifts the turns), and the first stay
over by R + B. Part of routes_are_true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...oracle.obligations import FlappingRoute, flapping_routes
from ...oracle.windows import NEVER
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Rule, finding
from ..record.control import Control
from ..record.route_tables import Presence, RouteTables, route_tables
from ..tolerance import tolerance

_CHAINED = 2
"""A tick and a time-out."""


class _OfTopic(NamedTuple):
    """What one topic did in one flapping stretch."""

    topic: str
    measured_ms: float
    """Of the stretch that is nearest to its bound, or furthest over it: how long it was, and that bound."""
    bound_ms: float
    worst: Presence


def flapping_findings(control: Control, world: World) -> list[Finding]:
    """One finding per flapping route and topic; none where no fault makes brokers come and go."""
    routes = [r for r in flapping_routes(world) if r.to_ms - r.from_ms > r.pulse.first_ms]
    if not routes:
        return []
    late = (((r.name_server, r.broker), r.from_ms - world.timers.R_ms, r.to_ms) for r in routes)
    lags = control.lateness.largest_of_each(world, late)
    tables = route_tables(control, world)
    shifted = _shifted(control, world, routes)
    found: list[Finding] = []
    for number, route in enumerate(routes):
        tolerance_ = tolerance(world.timers, lags[number], _CHAINED)
        for of in _of_topics(tables, world, route, is_shifted=number in shifted):
            over_ms = max(of.measured_ms - of.bound_ms, 0.0)
            found.append(
                finding(
                    (route.name_server, route.broker, of.topic),
                    "held too long" if of.worst.present else "missing too long",
                    (route.from_ms, route.to_ms),
                    Rule(route.pulse.row, route.pulse.formula, of.bound_ms),
                    out=(of.worst.s, of.worst.e) if over_ms else None,
                    tolerance=tolerance_,
                    measured_ms=of.measured_ms,
                    over_ms=over_ms,
                    after=f"{route.fault_id} start",
                )
            )
    return found


def _shifted(control: Control, world: World, routes: Sequence[FlappingRoute]) -> set[int]:
    """The routes during which the broker changed a topic."""
    changes = [(row.node, row.time_ms) for row in control.rows("topic")]
    return {
        number
        for number, r in enumerate(routes)
        if any(node == r.broker and r.from_ms - world.timers.R_ms <= at_ms < r.to_ms for node, at_ms in changes)
    }


def _of_topics(tables: RouteTables, world: World, route: FlappingRoute, *, is_shifted: bool) -> Iterator[_OfTopic]:
    """The topics that the broker had in the NameServer's table when the fault began."""
    pulse, missing_ms = route.pulse, route.pulse.missing_ms
    if missing_ms < NEVER:
        missing_ms = world.timers.C_ms + (world.timers.R_ms if is_shifted else missing_ms)
    for topic in tables.topics:
        found: list[_OfTopic] = []
        had = False
        for present, s, e in tables.presence((route.name_server, route.incarnation), topic, route.broker):
            if s >= route.to_ms or e <= route.from_ms:
                continue
            stretch = Presence(present, s, min(e, route.to_ms))
            length_ms = stretch.e - s
            if present and s <= route.from_ms:
                had = True
                found.append(_OfTopic(topic, stretch.e - route.from_ms, pulse.first_ms, stretch))
            elif present:
                found.append(_OfTopic(topic, length_ms, pulse.held_ms, stretch))
            elif s > route.from_ms:
                found.append(_OfTopic(topic, length_ms, missing_ms, stretch))
        if had and found:
            yield max(found, key=lambda one: one.measured_ms - one.bound_ms)
