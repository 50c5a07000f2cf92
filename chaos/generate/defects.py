"""Planted defects of made-up runs: each makes exactly the named checks INVALID, whatever the run's size.

Each needs the same stage: the first fault kills a broker for a minute and a half or longer, and at the end nothing
happens for a minute and a half. Runs of `plan_of` have both; a random one gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .control import Simulation, role_of
from .plan import BEGIN_MS, Kind, Plan, PlannedFault
from .traffic import FAIL, Messages, Plant


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A defect: what it is, who finds it, and where it is put in (any of the three)."""

    what: str
    found_by: frozenset[str]
    plan: Callable[[Plan], Plan] | None = None
    control: Callable[[Simulation], None] | None = None
    traffic: Callable[[Plan], Plant] | None = None


def defect_of(name: str | None) -> Planted | None:
    """The defect of that name; None for None. ValueError for one that does not exist."""
    if name is None:
        return None
    if name not in DEFECTS:
        raise ValueError(f"defect {name!r}; allowed are {', '.join(DEFECTS)}")
    return DEFECTS[name]


# -- the stage


def _kill(plan: Plan) -> PlannedFault:
    return plan.faults[0]


def _quiet_ms(plan: Plan) -> float:
    """A minute after the last fault: every window is over, and nothing happens for half a minute."""
    return plan.faults[-1].end_ms + 60_000.0


def staged(plan: Plan) -> Plan:
    """The plan, with a broker's death and a quiet end where it lacks them."""
    first = plan.faults[0] if plan.faults else None
    if first is not None and first.kind is Kind.KILL and first.source in plan.broker_names:
        quiet = plan.settled_ms - plan.faults[-1].end_ms >= 99_000 and first.end_ms - first.start_ms >= 89_000
        if quiet and plan.brokers > 1 and plan.name_servers > 1:
            return plan
    start_ms = BEGIN_MS + 60_000.0
    kill = PlannedFault(
        fault_id="kill-1", kind=Kind.KILL, source="broker-a", start_ms=start_ms, end_ms=start_ms + 95_000.0
    )
    return replace(
        plan,
        name_servers=max(plan.name_servers, 2),
        brokers=max(plan.brokers, 2),
        starts=max(plan.starts, 90),
        messages=max(plan.messages, 200),
        faults=(kill,),
        settled_ms=kill.end_ms + 110_000.0,
    )


# -- what NameServers show


def _stale_route(simulation: Simulation) -> None:
    fault, rows = _kill(simulation.plan), simulation.result.rows
    rows[:] = [
        row
        for row in rows
        if not (
            row["node"] == "ns-0"
            and row["event"] in ("route", "broker_dropped")
            and fault.start_ms <= row["time_ms"] < fault.end_ms
        )
    ]


def _shows(simulation: Simulation, name_server: str, at_ms: float, route: Any) -> None:
    """This NameServer's route of the first topic changes, for whatever reason."""
    about = {
        "node": name_server,
        "role": role_of(name_server),
        "event": "route",
        "topic": simulation.plan.topic_names[0],
    }
    inc = max(inc for time_ms, inc in simulation.result.lives[name_server] if time_ms <= at_ms)
    simulation.result.rows.append({"time_ms": at_ms, **about, "incarnation": inc, "value": route})


def _false_eviction(simulation: Simulation) -> None:
    at_ms, names = _quiet_ms(simulation.plan), simulation.plan.broker_names
    _shows(simulation, "ns-0", at_ms, simulation.route(names[1:]))
    _shows(simulation, "ns-0", at_ms + 20_000.0, simulation.route(names))


def _resurrection(simulation: Simulation) -> None:
    fault, names = _kill(simulation.plan), simulation.plan.broker_names
    for name_server in simulation.plan.name_server_names:
        _shows(simulation, name_server, fault.start_ms + 40_000.0, simulation.route(names))
        _shows(
            simulation,
            name_server,
            fault.start_ms + 55_000.0,
            simulation.route(name for name in names if name != fault.source),
        )


def _unequal_queues(simulation: Simulation) -> None:
    at_ms, names = _quiet_ms(simulation.plan), simulation.plan.broker_names
    _shows(simulation, "ns-0", at_ms, simulation.route(names, queues=simulation.plan.queues + 1))
    _shows(simulation, "ns-0", at_ms + 20_000.0, simulation.route(names))


# -- how clients choose


def _biased_choice(simulation: Simulation) -> None:
    favourite = simulation.result.addresses["ns-0"]
    listed: list[str] = []
    for row in simulation.result.rows:
        if row["node"] != "prober":
            continue
        if row["event"] == "name_server_list":
            listed = row["value"]
        elif row["event"] == "name_server_chosen":
            row["name_server"] = favourite
            row["value"] = {**row["value"], "index": listed.index(favourite)}
        elif row["event"] == "name_server_call":
            row["name_server"] = favourite


def _unsticky(simulation: Simulation) -> None:
    rows, at_ms = simulation.result.rows, _quiet_ms(simulation.plan)
    node = simulation.plan.producer_names[0]
    mine = [row for row in rows if row["node"] == node and row["time_ms"] < at_ms]
    listed = max((row for row in mine if row["event"] == "name_server_list"), key=lambda row: row["time_ms"])["value"]
    last = max((row for row in mine if row["event"] == "name_server_chosen"), key=lambda row: row["time_ms"])
    index = (last["value"]["index"] + 1) % len(listed)
    value = {"index": index, "old": last["name_server"], "reason": "not_active"}
    rows.append({**last, "time_ms": at_ms, "name_server": listed[index], "value": value})


# -- what becomes of messages


def _between(from_ms: float, to_ms: float, change: Callable[[Messages, Any], None], most: int) -> Plant:
    """Changes the first `most` stored messages of the run that are sent in [from_ms, to_ms)."""
    left = [most]

    def plant(made: Messages) -> None:
        here = np.flatnonzero(made.stored & (made.sent_ms >= from_ms) & (made.sent_ms < to_ms))[: left[0]]
        left[0] -= len(here)
        if len(here):
            change(made, here)

    return plant


def _late_use(plan: Plan) -> Plant:
    dead = plan.broker_names.index(_kill(plan).source)

    def change(made: Messages, here: Any) -> None:
        made.second[here], made.second_type[here] = made.stored_on[here], made.first_type[here]
        made.first[here], made.first_type[here], made.first_took_ms[here] = dead, FAIL, 0.1

    start_ms = _kill(plan).start_ms
    return _between(start_ms + 45_000.0, start_ms + 85_000.0, change, 3)


def _lost_message(plan: Plan) -> Plant:
    def change(made: Messages, here: Any) -> None:
        made.kept[here], made.receiver[here] = False, -1

    return _between(0.0, plan.settled_ms, change, 1)


DEFECTS: Mapping[str, Planted] = {
    "stale_route": Planted(
        what="a NameServer keeps the route of a dead broker",
        found_by=frozenset({"routes_are_true", "routes_converge"}),
        plan=staged,
        control=_stale_route,
    ),
    "false_eviction": Planted(
        what="a NameServer drops a live broker for twenty seconds",
        found_by=frozenset({"routes_are_true", "routes_converge"}),
        plan=staged,
        control=_false_eviction,
    ),
    "resurrection": Planted(
        what="every NameServer shows a dead broker again for fifteen seconds",
        found_by=frozenset({"routes_are_true"}),
        plan=staged,
        control=_resurrection,
    ),
    "unequal_queues": Planted(
        what="a NameServer has another number of queues than the others",
        found_by=frozenset({"routes_converge"}),
        plan=staged,
        control=_unequal_queues,
    ),
    "biased_choice": Planted(
        what="every client chooses the same NameServer first",
        found_by=frozenset({"name_server_selection"}),
        plan=staged,
        control=_biased_choice,
    ),
    "unsticky": Planted(
        what="a producer changes its NameServer although nothing failed",
        found_by=frozenset({"name_server_selection"}),
        plan=staged,
        control=_unsticky,
    ),
    "late_use": Planted(
        what="a producer tries a dead broker again after its window",
        found_by=frozenset({"dead_brokers_avoided"}),
        plan=staged,
        traffic=_late_use,
    ),
    "lost_message": Planted(
        what="an acknowledged message is neither received nor read",
        found_by=frozenset({"no_acknowledged_loss"}),
        plan=staged,
        traffic=_lost_message,
    ),
}
