"""`nemesrv explain`: which routes each NameServer must, may and must not have, and when, computed by the oracle without
a run.

    NameServers     for each broker: must have, may have, must not have, and the formula
    clients         when a lost broker is out of routes and no longer used; when a lost NameServer is left
    recovery        when each operation must succeed again after each change
    quiet           when every operation must succeed

Times are seconds of RocketMQ time from the start of the timeline. In a real run, allowed times count from the moment at
which a fault took effect, and are longer by the machine's measured delays.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from .checks import CHECKS
from .checks.finishing import too_short
from .experiment.expectation import expected_world
from .faults.process_faults import HostAction
from .oracle.intervals import grouped
from .oracle.lost_brokers import absences
from .oracle.lost_name_servers import name_server_losses
from .oracle.promises import Obligation, ObligationKind, obligations, route_states
from .oracle.quiet import calm
from .oracle.reach import moments
from .oracle.recovery import LOOK_UP, bound
from .oracle.timers import Timers
from .oracle.windows import legend, set_values
from .oracle.world import World
from .reports.answers import changes_nothing
from .scenarios.model import Scenario
from .topology import listed
from .verdict import singular

MUST, MUST_NOT, MAY = "must hold", "must not hold", "may hold"
MOMENTS_MAX = 400
"""Most changes whose recovery is shown."""
_OPERATIONS = {"producer": ("send", LOOK_UP), "consumer": ("pull", LOOK_UP)}
_WORDS = {"send": "first good send", "pull": "first answered pull", LOOK_UP: "first answered look-up"}


def explanation(scenario: Scenario) -> dict[str, Any]:
    """Return the whole explanation as one object for `--json`; times are in seconds, null means never."""
    world, unknown = expected_world(scenario)
    return {
        "scenario": scenario.name,
        "profile": str(scenario.profile),
        "time_scale": scenario.timers.time_scale,
        "timers": world.timers.to_json(),
        "node_timers": dict(world.run.get("node_timers") or {}),
        "zones": {zone: list(nodes) for zone, nodes in scenario.topology().zones.items()},
        "hosts": scenario.hosts(),
        "implementations": scenario.implementations(),
        "timeline": [action.model_dump(mode="json") for action in scenario.timeline],
        "end_s": _seconds(world.end_ms),
        "only_a_run_can_tell": list(unknown),
        "name_servers": _holdings(world),
        "clients": _clients(world),
        "recovery": _recoveries(world),
        "recovery_left_out": max(0, len(moments(world)) - MOMENTS_MAX),
        "promises": dict(world.run.get("promises") or {}),
        "too_short": too_short({name: CHECKS[name] for name in scenario.checks}, world),
        "quiet": [[max(0.0, from_ms) / 1000, to_ms / 1000] for from_ms, to_ms in calm(world) if to_ms > 0],
    }


def explain(scenario: Scenario, *, as_json: bool) -> None:
    told = explanation(scenario)
    click.echo(json.dumps(told, ensure_ascii=False) if as_json else "\n".join(_lines(told, scenario)))


# -- what the oracle says, as plain entries


def _holdings(world: World) -> list[dict[str, Any]]:
    """Return what is required of each NameServer and broker, from when to when, and why, without a gap from 0."""
    found: list[dict[str, Any]] = []
    of_pair: dict[tuple[str, str], list[Obligation]] = {
        (server.name, broker.name): []
        for server in world.of_kind("name_server")
        for broker in world.of_kind("broker", "slave")
    }
    for one in obligations(world):
        of_pair[one.name_server, one.broker].append(one)
    for (name_server, broker), demands in of_pair.items():
        at_ms = 0.0
        for one in sorted(demands, key=lambda one: one.from_ms):
            if one.to_ms <= at_ms:
                continue
            if one.from_ms > at_ms:
                why = f"until {one.window.formula} after {_said(one)}" if one.window.formula else ""
                _append(found, name_server, broker, MAY, at_ms, one.from_ms, why)
                at_ms = one.from_ms
            demand = MUST_NOT if one.demand is ObligationKind.DROP else MUST
            _append(found, name_server, broker, demand, at_ms, one.to_ms, _why(one))
            at_ms = one.to_ms
        if at_ms < world.end_ms:
            why = _unbounded(world, name_server, broker, at_ms)
            if all(life.end_ms <= at_ms for life in world.lives_of(name_server)):
                why = f"{name_server} is there no more"
            _append(found, name_server, broker, MAY, at_ms, world.end_ms, why)
    return found


def _unbounded(world: World, name_server: str, broker: str, at_ms: float) -> str:
    """Return why no NameServer must have, or must drop, the broker from then on."""
    of_pair = (s for s in route_states(world) if (s.name_server, s.broker) == (name_server, broker) and not s.judged)
    return next((f"nothing bounds it: {s.window.row}" for s in of_pair if s.end_ms > at_ms), "nothing bounds it")


def _said(one: Obligation) -> str:
    if one.label.fault_id.startswith("absent-"):
        return f"the join of {one.name_server}"
    return str(one.label) if one.label.fault_id else "its start"


def _why(one: Obligation) -> str:
    if one.demand is ObligationKind.KEEP:
        return f"at least {one.window.formula.split(' .. ')[0]} after {_said(one)}"
    return "" if not one.label.fault_id else f"{one.window.formula} after {_said(one)}"


def _append(
    found: list[dict[str, Any]], name_server: str, broker: str, demand: str, from_ms: float, to_ms: float, why: str
) -> None:
    last = found[-1] if found else None
    if last and (last["name_server"], last["broker"], last["demand"]) == (name_server, broker, demand):
        last["to_s"] = _seconds(to_ms)
        last["why"] = "; ".join(dict.fromkeys(text for text in (last["why"], why) if text))
        return
    about = {"name_server": name_server, "broker": broker, "demand": demand}
    found.append({**about, "from_s": _seconds(from_ms), "to_s": _seconds(to_ms), "why": why})


def _clients(world: World) -> list[dict[str, Any]]:
    """Return when clients' routes must lose a failed broker, and when clients must stop using a failed NameServer."""
    found = [
        {
            "client": one.client,
            "lost": one.lost,
            "from_s": _seconds(one.start_ms),
            "to_s": _seconds(one.end_ms),
            "out_of_routes_s": _seconds(one.route_from_ms),
            "not_used_s": _seconds(one.from_ms) if one.from_ms < one.end_ms else None,
            "why": one.window.formula,
            "after": one.fault_id,
        }
        for one in absences(world)
    ]
    found += [
        {
            "client": one.client,
            "lost": one.name_server,
            "from_s": _seconds(one.start_ms),
            "to_s": _seconds(one.end_ms),
            "left_s": _seconds(one.from_ms),
            "why": one.window.formula,
            "after": one.fault_id,
        }
        for one in name_server_losses(world)
    ]
    return found


def _recoveries(world: World) -> list[dict[str, Any]]:
    """Return how soon after each begin or end of a fault each client's next operation of each kind must succeed."""
    found = []
    for moment in moments(world)[:MOMENTS_MAX]:
        for client in world.of_kind("producer", "consumer"):
            for operation in _OPERATIONS[client.kind]:
                window = bound(world, client.name, operation, moment)
                found.append(
                    {
                        "after": f"{moment.fault_id} {moment.phase}",
                        "at_s": _seconds(moment.at_ms),
                        "client": client.name,
                        "operation": operation,
                        "within_s": _seconds(window.latest_ms),
                        "why": window.formula if window.latest_ms < math.inf else window.row,
                    }
                )
    return found


def _seconds(at_ms: float) -> float | None:
    return round(at_ms / 1000, 3) if math.isfinite(at_ms) else None


# -- as a person reads it


def _lines(told: Mapping[str, Any], scenario: Scenario) -> list[str]:
    lines = [
        singular(
            f"{told['scenario']}: profile {told['profile']}, {scenario.cluster.name_servers} NameServers, "
            f"{scenario.cluster.brokers} brokers, {scenario.workload.producers} producers, "
            f"{scenario.workload.consumers} consumers; times are seconds from the start of the timeline"
        ),
        *(f"zone {zone}: {', '.join(nodes)}" for zone, nodes in told["zones"].items()),
        *_hosts(told["hosts"], scenario),
        *_made_by(told["implementations"]),
        "",
    ]
    steps = [(own.joins_at_s, f"{name} joins") for name, own in scenario.nodes.items() if own.joins_at_s is not None]
    steps += [(one.at_s, one.summary) for one in scenario.timeline]
    lines += [f"{at_s:9.1f}  {what}" for at_s, what in sorted(steps, key=lambda step: step[0])]
    lines.append(f"{told['end_s']:9.1f}  end")
    lines += changes_nothing(scenario)
    lines += [f"promised: {name} {value:g}" for name, value in told["promises"].items() if value is not True]
    lines += [f"promised: {name}" for name, value in told["promises"].items() if value is True]
    lines += [f"not told here, because only a run can tell: {text}" for text in told["only_a_run_can_tell"]]
    lines += _block(
        "NameServers",
        told["name_servers"],
        ("name_server", "broker"),
        lambda one: f"{_span(one)}  {one['demand']:<13}  {one['why']}",
    )
    lines += _block(
        "Clients",
        told["clients"],
        ("client", "lost"),
        lambda one: f"{_span(one)}  lost after {one['after']}: {_must(one)}  ({one['why']})",
    )
    recovery = [{**one, "after": f"after {one['after']}"} for one in told["recovery"]]
    lines += _block(
        "Recovery",
        recovery,
        ("client", "after"),
        lambda one: f"             {_WORDS[one['operation']]} {_within(one, told['end_s'])}",
    )
    if more := told["recovery_left_out"]:
        lines.append(f"  and after {more:,} more changes, of which this says nothing")
    quiet = ", ".join(f"{from_s:.1f} .. {to_s:.1f}" for from_s, to_s in told["quiet"])
    lines += ["", f"Every operation must succeed: {quiet or 'at no time'}"]
    lines += [f"{name}: after the last fault {why}" for name, why in told["too_short"].items()]
    formulas = [one["why"] for part in ("name_servers", "clients", "recovery") for one in told[part]]
    values = set_values(Timers.from_json(told), told["node_timers"])
    return [*lines, "", *(f"{symbol}: {meaning}" for symbol, meaning in legend(formulas, values).items())]


def _hosts(hosts: Mapping[str, Sequence[str]], scenario: Scenario) -> Iterable[str]:
    for host, nodes in hosts.items():
        yield f"host {host}: {', '.join(nodes) or 'no node'}"
    if not hosts and scenario.placement != type(scenario.placement)():
        yield "hosts: who is where depends on the Ray cluster (--ray); `placement: {hosts: [...]}` with `host` says it"
    for action in scenario.timeline:
        if isinstance(action.what, HostAction):
            yield f"{action.summary} at {action.at_s:g} s: {action.what.consists_of}".replace("`", "")


def _made_by(implementations: Mapping[str, str]) -> Iterable[str]:
    """Return the nodes' implementations, if not all are ours. Windows are the profile's in any case."""
    for text in dict.fromkeys(implementations.values()):
        yield f"{text}: {', '.join(node for node, said in implementations.items() if said == text)}"


def _span(one: Mapping[str, Any]) -> str:
    to_s = "end" if one["to_s"] is None else f"{one['to_s']:.1f}"
    return f"{one['from_s']:9.1f} .. {to_s:>7}"


def _must(one: Mapping[str, Any]) -> str:
    if "left_s" in one:
        return f"left by {one['left_s']:.1f}, where it was chosen"
    used = "" if one["not_used_s"] is None else f", not used from {one['not_used_s']:.1f}"
    return f"out of its routes from {one['out_of_routes_s']:.1f}{used}"


def _within(one: Mapping[str, Any], end_s: float) -> str:
    if one["within_s"] is None:
        return f"not bounded: {one['why']}"
    by_s = one["at_s"] + one["within_s"]
    late_s = math.ceil(by_s - end_s)
    late = f", after the end of this run: {late_s} s more of `settle_s` let the run see it" if late_s > 0 else ""
    return f"within {one['within_s']:.1f} s, by {by_s:.1f}{late}  ({one['why']})"


def _block(
    title: str, entries: Sequence[Mapping[str, Any]], who: tuple[str, str], text: Callable[[Mapping[str, Any]], str]
) -> Iterable[str]:
    """Return the text in which nodes with equal lines share a block, in the order of the first node."""
    said = grouped(((one[who[0]], one[who[1]]), text(one).rstrip()) for one in entries)
    blocks = grouped(((second, tuple(lines)), first) for (first, second), lines in said.items())
    yield from ["", title] if entries else []
    for (second, same), firsts in blocks.items():
        yield f"  {listed(firsts)}: {second}"
        yield from same
