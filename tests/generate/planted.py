"""Planted defects of made-up runs: each makes exactly the named checks INVALID, whatever the run's size.

Each needs the same stage: the first fault kills a broker for a minute and a half or longer, and at the end nothing
happens for three minutes. Runs of `plan_of` have both; a random one gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nemesrv.chaos.faults.process_faults import Kill

from .control import Simulation
from .outcome import role_of
from .plan import BEGIN_MS, QUIET_MS, Plan, PlannedFault
from .traffic import FAIL, INFO, Messages, Plant


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A defect: what it is, who finds it, and where it is put in: plan, simulation, its rows, or messages."""

    what: str
    found_by: frozenset[str]
    plan: Callable[[Plan], Plan] | None = None
    before: Callable[[Simulation], None] | None = None
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
    """After the last fault: every window is over, that of a queue's new owner (R + C + P + Qr + A + H) too."""
    return plan.faults[-1].end_ms + QUIET_MS - 50_000.0


def staged(plan: Plan) -> Plan:
    """The plan, with a broker's death and a quiet end where it lacks them."""
    first = plan.faults[0] if plan.faults else None
    if first is not None and isinstance(first.kind, Kill) and first.source in plan.broker_names:
        quiet = plan.settled_ms - plan.faults[-1].end_ms >= QUIET_MS and first.end_ms - first.start_ms >= 89_000
        if quiet and min(plan.brokers, plan.name_servers, plan.consumers, plan.queues) > 1:
            return plan
    start_ms = BEGIN_MS + 60_000.0
    kill = PlannedFault(
        fault_id="kill-1", kind=Kill(), source="broker-a", start_ms=start_ms, end_ms=start_ms + 95_000.0
    )
    return replace(
        plan,
        name_servers=max(plan.name_servers, 2),
        brokers=max(plan.brokers, 2),
        consumers=max(plan.consumers, 2),
        queues=max(plan.queues, 2),
        starts=max(plan.starts, 90),
        messages=max(plan.messages, 1_200),
        faults=(kill,),
        settled_ms=kill.end_ms + QUIET_MS,
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


def _happens(simulation: Simulation, node: str, at_ms: float, event: str, **fields: Any) -> None:
    inc = max(inc for time_ms, inc in simulation.result.lives[node] if time_ms <= at_ms)
    about = {"node": node, "role": role_of(node), "incarnation": inc, "event": event}
    simulation.result.rows.append({"time_ms": at_ms, **about, **fields})


def _shows(simulation: Simulation, name_server: str, at_ms: float, route: Any) -> None:
    """This NameServer's route of the first topic changes, for whatever reason."""
    topic = simulation.plan.topic_names[0]
    _happens(simulation, name_server, at_ms, "route", topic=topic, value=route)


def _late_timer(simulation: Simulation) -> None:
    """Only the runs themselves: the registrations stay where they are, so that no table is wrong."""
    node = simulation.plan.broker_names[-1]
    runs = [row for row in simulation.result.rows if row["node"] == node and row["event"] == "scheduled_task"]
    for number, row in enumerate(runs):
        row["time_ms"] += number * simulation.timers.R_ms / 10


def _false_eviction(simulation: Simulation) -> None:
    at_ms, names = _quiet_ms(simulation.plan), simulation.plan.broker_names
    where = {"broker_name": names[0], "broker_id": 0, "address": simulation.result.addresses[names[0]]}
    _happens(simulation, "ns-0", at_ms, "broker_dropped", value={"reason": "expired"}, **where)
    _shows(simulation, "ns-0", at_ms, simulation.route(names[1:]))
    _shows(simulation, "ns-0", at_ms + 20_000.0, simulation.route(names))


def _two_masters(simulation: Simulation) -> None:
    at_ms, name = _quiet_ms(simulation.plan), simulation.plan.broker_names[0]
    for late_ms in (0.0, simulation.timers.R_ms):
        where = {"broker_name": name, "broker_id": 0, "address": "10.9.9.9:10911"}
        _happens(simulation, "ns-0", at_ms + late_ms, "registration", code=0, **where)


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


def _wrong_answer(simulation: Simulation) -> None:
    at_ms, plan = _quiet_ms(simulation.plan), simulation.plan
    called = min(
        (row for row in simulation.result.rows if row["event"] == "name_server_call" and row["time_ms"] >= at_ms),
        key=lambda row: row["time_ms"],
    )
    kept = {name: called[name] for name in ("node", "role", "incarnation", "name_server", "topic")}
    wrong = simulation.route(plan.broker_names, queues=plan.queues + 1)
    answer = {"event": "route_answer", "time_ms": called["time_ms"] - 0.01, "value": wrong}
    simulation.result.rows.append({**kept, **answer})


def _slow_answers(simulation: Simulation) -> None:
    """The last look-ups, long after every fault, took two seconds each."""
    calls = [row for row in simulation.result.rows if row["event"] == "name_server_call" and row["code"] == 0]
    for row in sorted(calls, key=lambda row: row["time_ms"]):
        if row["time_ms"] >= _quiet_ms(simulation.plan):
            row["duration_ms"] = 2_000.0


def _stale_client(simulation: Simulation) -> None:
    """A producer keeps the first route of each topic, whatever it is told."""
    rows, producer = simulation.result.rows, simulation.plan.producer_names[0]
    first: set[str | None] = set()
    for row in [row for row in rows if row["event"] == "route_changed" and row["node"] == producer]:
        if row["topic"] in first:
            rows.remove(row)
        first.add(row["topic"])


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


def _lost_name_server(plan: Plan) -> Plan:
    """The stage with the death of the NameServer that most clients chose, as the simulation will have it."""
    plan = staged(plan)
    return replace(plan, faults=(replace(_kill(plan), source="ns-0"), *plan.faults[1:]))


def _stuck(simulation: Simulation) -> None:
    simulation.never_leave = frozenset(simulation.plan.producer_names)


def _two_owners(simulation: Simulation) -> None:
    rows, at_ms, plan = simulation.result.rows, _quiet_ms(simulation.plan), simulation.plan
    topic = plan.topic_names[0]
    has: dict[str, Any] = {}
    for row in sorted(rows, key=lambda row: row["time_ms"]):
        if row["event"] == "assigned" and row["topic"] == topic and row["time_ms"] < at_ms:
            has[row["node"]] = row["value"]
    greedy, robbed = plan.consumer_names[:2]
    _happens(simulation, greedy, at_ms, "assigned", topic=topic, value=[*has[greedy], has[robbed][0]])
    _happens(simulation, greedy, at_ms + 20_000.0, "assigned", topic=topic, value=has[greedy])


def _unasked_answer(simulation: Simulation) -> None:
    address = simulation.result.addresses[simulation.plan.broker_names[0]]
    fields = {"address": address, "value": {"reason": "nothing waits for it"}}
    _happens(simulation, simulation.plan.producer_names[0], _quiet_ms(simulation.plan), "unasked_answer", **fields)


# -- what becomes of messages


def _between(from_ms: float, to_ms: float, change: Callable[[Messages, Any], None], most: int) -> Plant:
    """Changes the first `most` stored messages of the first producer that are sent in [from_ms, to_ms)."""
    left = [most]

    def plant(made: Messages) -> None:
        during = (made.sent_ms >= from_ms) & (made.sent_ms < to_ms)
        here = np.flatnonzero(made.stored & during & (made.producer == 0))[: left[0]]
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


def _skipped_message(plan: Plan) -> Plant:
    def change(made: Messages, here: Any) -> None:
        made.receiver[here] = -1

    return _between(_quiet_ms(plan), _quiet_ms(plan) + 20_000.0, change, 2)


def _same_broker(_plan: Plan) -> Plant:
    def plant(made: Messages) -> None:
        made.second[:] = np.where(made.second >= 0, made.first, -1)

    return plant


def _failed(made: Messages, here: Any) -> None:
    """These sends were answered by nobody."""
    made.stored[here] = made.kept[here] = False
    made.receiver[here] = made.second[here] = made.stored_on[here] = -1
    made.ended[here] = made.first_type[here] = INFO
    made.first_took_ms[here] = 3_000.0
    made.acked_ms[here] = made.first_ms[here] + 3_000.0


def _failing_sends(plan: Plan) -> Plant:
    return _between(_quiet_ms(plan), _quiet_ms(plan) + 20_000.0, _failed, 3)


def _slow_recovery(plan: Plan) -> Plant:
    kill = _kill(plan)

    def plant(made: Messages) -> None:
        during = (made.sent_ms >= kill.start_ms) & (made.sent_ms < kill.end_ms)
        _failed(made, np.flatnonzero(during & (made.producer == 0)))

    return plant


def _order_broken(plan: Plan) -> Plant:
    done: list[bool] = []

    def plant(made: Messages) -> None:
        if done:
            return
        at = np.flatnonzero(made.stored & (made.producer == 0))
        for first in at[:50]:
            like = at[
                (made.sent_ms[at] > made.acked_ms[first] + 1.0)
                & (made.topic[at] == made.topic[first])
                & (made.stored_on[at] == made.stored_on[first])
                & (made.queue[at] == made.queue[first])
            ]
            if like.size:
                pair = np.array([first, like[0]])
                made.offset[pair] = made.offset[pair[::-1]]
                done.append(True)
                return

    return plant


def _received_twice(plan: Plan) -> Plant:
    def change(made: Messages, here: Any) -> None:
        made.again[here] = 1

    return _between(0.0, plan.settled_ms - 20_000.0, change, 2)


def _found_by(*checks: str) -> frozenset[str]:
    return frozenset(checks)


DEFECTS: Mapping[str, Planted] = {
    "stale_route": Planted(
        what="a NameServer keeps the route of a dead broker",
        found_by=_found_by("routes_are_true", "routes_converge"),
        plan=staged,
        control=_stale_route,
    ),
    "false_eviction": Planted(
        what="a NameServer drops a live broker for twenty seconds",
        found_by=_found_by("routes_are_true", "routes_converge", "no_false_eviction", "registrations_are_kept"),
        plan=staged,
        control=_false_eviction,
    ),
    "two_masters": Planted(
        what="two brokers register with a NameServer as the master of one name",
        found_by=_found_by("one_master"),
        plan=staged,
        control=_two_masters,
    ),
    "resurrection": Planted(
        what="every NameServer shows a dead broker again for fifteen seconds",
        found_by=_found_by("routes_are_true", "no_resurrection"),
        plan=staged,
        control=_resurrection,
    ),
    "unequal_queues": Planted(
        what="a NameServer has another number of queues than the others",
        found_by=_found_by("routes_converge", "routes_as_registered"),
        plan=staged,
        control=_unequal_queues,
    ),
    "wrong_answer": Planted(
        what="a NameServer answers a client with a queue more than it holds",
        found_by=_found_by("answers_are_true"),
        plan=staged,
        control=_wrong_answer,
    ),
    "slow_answers": Planted(
        what="NameServers answer after two seconds",
        found_by=_found_by("prompt_answers"),
        plan=staged,
        control=_slow_answers,
    ),
    "stale_client": Planted(
        what="a producer keeps the first route of each topic",
        found_by=_found_by("client_routes_are_true"),
        plan=staged,
        control=_stale_client,
    ),
    "biased_choice": Planted(
        what="every client chooses the same NameServer first",
        found_by=_found_by("name_server_selection"),
        plan=staged,
        control=_biased_choice,
    ),
    "unsticky": Planted(
        what="a producer changes its NameServer although nothing failed",
        found_by=_found_by("name_server_selection"),
        plan=staged,
        control=_unsticky,
    ),
    "stuck": Planted(
        what="producers never leave a dead NameServer",
        found_by=_found_by("dead_name_servers_left", "name_server_selection", "recovery_time"),
        plan=_lost_name_server,
        before=_stuck,
    ),
    "late_timer": Planted(
        what="a broker's registration timer is a tenth slow",
        found_by=_found_by("timers_kept"),
        plan=staged,
        control=_late_timer,
    ),
    "two_owners": Planted(
        what="a consumer takes a queue that another one has",
        found_by=_found_by("queue_ownership"),
        plan=staged,
        control=_two_owners,
    ),
    "unasked_answer": Planted(
        what="a broker answers what nobody asked",
        found_by=_found_by("answers_asked_for"),
        plan=staged,
        control=_unasked_answer,
    ),
    "late_use": Planted(
        what="a producer tries a dead broker again after its window",
        found_by=_found_by("dead_brokers_avoided"),
        plan=staged,
        traffic=_late_use,
    ),
    "same_broker": Planted(
        what="producers try a refused send again on the broker that refused it",
        found_by=_found_by("living_are_used"),
        plan=staged,
        traffic=_same_broker,
    ),
    "lost_message": Planted(
        what="an acknowledged message is neither received nor read",
        found_by=_found_by("no_acknowledged_loss"),
        plan=staged,
        traffic=_lost_message,
    ),
    "skipped_message": Planted(
        what="a consumer goes on without having received a message that its broker keeps",
        found_by=_found_by("commits_follow_work", "messages_delivered"),
        plan=staged,
        traffic=_skipped_message,
    ),
    "order_broken": Planted(
        what="a producer's later message has the lower offset",
        found_by=_found_by("order_kept"),
        plan=staged,
        traffic=_order_broken,
    ),
    "received_twice": Planted(
        what="a consumer is handed a message twice from one holding of its queue",
        found_by=_found_by("duplicates"),
        plan=staged,
        traffic=_received_twice,
    ),
    "failing_sends": Planted(
        what="sends fail in a quiet time",
        found_by=_found_by("availability"),
        plan=staged,
        traffic=_failing_sends,
    ),
    "slow_recovery": Planted(
        what="a producer succeeds in nothing while one of several brokers is dead",
        found_by=_found_by("recovery_time", "availability"),
        plan=staged,
        traffic=_slow_recovery,
    ),
}
