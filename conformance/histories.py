"""What was seen in each situation as a history of its own, in the columns of any run's, for `nemesrv check` and Spark.

    stands/refused/scenario.yaml, history/part-00000.parquet
                   one stand: its NameServers and brokers, the faults of their fronts, the client

A history is of one world, and each stand is one: NameServers are called the same in all of them and are others. Of the
situation with many processes there is none, for each of them has a stand of its own and is one row of conform.json.
Rows of the client are inferred as those of any client under test are (docs/clients-under-test.md), but that dials are
seen. Nothing is recorded of what servers did, so checks of servers find nothing to look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Any

from ..chaos.experiment.nodes import about
from ..chaos.experiment.outside_clients import about_client, rules_of
from ..chaos.faults.kinds import FAULTS
from ..chaos.faults.process_faults import ProcessFault
from ..chaos.fronts.behaviour import Behaviour, Connected, Dials
from ..chaos.fronts.observed import Behaved, Happened, Observation
from ..chaos.fronts.rows import ClientRows
from ..chaos.fronts.rows import Row as ClientRow
from ..chaos.history.rows import write_parquet
from ..chaos.history.schema import Row
from ..chaos.oracle.client_profiles import PROFILES, ClientProfile, profile_of
from ..chaos.scenarios.loading import parse
from ..chaos.scenarios.model import Scenario
from ..chaos.topology import NodeKind
from .instances import clients_in, parts_of
from .scene import ConformPlan
from .situations import KILL, SITUATIONS, Watched

STANDS, CLIENT, HARNESS = "stands", "client", "harness"
_BEFORE_MS = 1_000.0
"""The servers are there so long before the program."""


def write_histories(watched: Sequence[Watched], plan: ConformPlan, profile: str | None, folder: Path) -> list[Path]:
    """One run folder a situation, and where they are. `profile`: whose rules the client's rows say it is held to; one
    that is no client profile of ours stands for our own clients'."""
    rules = profile_of(profile if profile in PROFILES else None, plan.profile)
    written, clients = [], clients_in(watched)
    for name, of in groupby(watched, key=lambda each: each.situation):
        if not (SITUATIONS[name].many or SITUATIONS[name].by_http):  # a list that changes is told by no row of a front
            run_dir, those = folder / STANDS / name, list(of)
            write_parquet(sorted(rows_of(those, plan, rules, clients), key=lambda row: row["time_ms"]), run_dir)
            (run_dir / "scenario.yaml").write_text(scenario_of(those[0], plan, rules).to_yaml(), encoding="utf-8")
            written.append(run_dir)
    return written


def rows_of(watched: Sequence[Watched], plan: ConformPlan, rules: ClientProfile, clients: int) -> Iterator[Row]:
    """The rows of one stand and its processes, each with so many clients, not in order of time."""
    first = watched[0]
    origin_ms = min([each.began_ms for each in watched] + [one.at_ms for one in first.seen[:1]]) - _BEFORE_MS
    end_ms = max(each.stopping_ms for each in watched)
    addresses = {name: first.addresses.get(name, name) for name in (*first.name_servers, *first.brokers)}
    sequences: dict[str, count[int]] = {}

    def row(node: str, role: str, at_ms: float, event: str, **fields: Any) -> Row:
        seq = next(sequences.setdefault(node, count()))
        stamped = {"time_ms": max(0.0, at_ms - origin_ms), "seq": seq, "node": node, "role": role, "incarnation": 0}
        return {**stamped, "event": event, **fields}

    def told(at_ms: float, event: str, **fields: Any) -> Row:
        return row(HARNESS, HARNESS, at_ms, event, **fields)

    scenario = scenario_of(first, plan, rules)
    begun = {"scenario": scenario.name, "seed": plan.seed, **about(scenario), "defect": None, "clock": "real"}
    yield told(origin_ms, "run_begin", value=begun)
    for kind, names in ((NodeKind.NAME_SERVER, first.name_servers), (NodeKind.BROKER, first.brokers)):
        for name in names:
            yield told(origin_ms, "node", source=name, address=addresses[name], value={"kind": str(kind)})
            yield row(name, str(kind), origin_ms, "started")
    yield told(origin_ms, "phase", phase="steady")
    yield from (told(at_ms, "fault", **fields) for at_ms, fields in _faults(first))
    parts = [part for each in watched for _, part in parts_of(each, clients, every=True)]
    for number, each in enumerate(parts):
        name = CLIENT if number == 0 else f"{CLIENT}-{number + 1}"
        found, kind = _of_client(each, rules, addresses)
        said = about_client(CLIENT, rules, kind, each.unclear)
        yield told(each.began_ms, "node", source=name, address=None, value=said)
        yield row(name, str(kind), each.began_ms, "started")
        for at_ms, event, fields in sorted(found, key=lambda one: one.at_ms):
            yield row(name, str(kind), at_ms, event, **fields)
    yield told(end_ms, "run_end")


def scenario_of(watched: Watched, plan: ConformPlan, rules: ClientProfile) -> Scenario:
    """What a run with such a stand would have been asked for."""
    document = {
        "name": f"conform-{watched.situation.replace('_', '-')}",
        "description": SITUATIONS[watched.situation].says,
        "seed": plan.seed,
        "cluster": {
            "name_servers": len(watched.name_servers),
            "brokers": len(watched.brokers),
            "profile": str(plan.profile),
            "external": True,
            "clients": {CLIENT: rules.name},
        },
        "timers": {"time_scale": 1},
        "workload": {"producers": 0, "consumers": 0, "client_starts": 0, "prober": False},
        "checks": ["name_server_selection"],
    }
    return parse(document, file="conform")


def _of_client(
    watched: Watched, rules: ClientProfile, addresses: Mapping[str, str]
) -> tuple[list[ClientRow], NodeKind]:
    found: list[ClientRow] = []
    rows = ClientRows(
        found.append,
        rules_of(rules, len(watched.name_servers)),
        {name: addresses[name] for name in watched.name_servers},
        {name: addresses[name] for name in watched.brokers},
        seen=watched.dials_unseen is None,
    )
    for one in watched.seen:
        if one.at_ms <= watched.stopping_ms and not isinstance(one, Happened):
            rows.saw(one)
    rows.end(watched.stopping_ms)
    return found, NodeKind.CONSUMER if rows.is_consumer else NodeKind.PRODUCER


# --- faults -----------------------------------------------------------------------------------------------------------


def _faults(watched: Watched) -> Iterator[tuple[float, dict[str, Any]]]:
    """When which fault began or ended, by what the fronts did, and what happened to brokers."""
    servers = {*watched.name_servers, *watched.brokers}
    now: dict[str, dict[str, float]] = {}
    for number, one in enumerate(_changes(watched)):
        if isinstance(one, Behaved):
            if one.front not in servers:
                continue
            front, wanted = one.front, _meant(one.behaviour)
        else:
            front, wanted = one.whom, {KILL} if one.what == KILL else set()
        running = now.setdefault(front, {})
        for fault in [each for each in running if each not in wanted]:
            yield one.at_ms, _fault(int(running.pop(fault)), fault, front, "end")
        for fault in sorted(wanted - running.keys()):
            yield one.at_ms, _fault(number, fault, front, "start")
            if fault == "reset":  # a moment
                yield one.at_ms, _fault(number, fault, front, "end")
            else:
                running[fault] = number


def _changes(watched: Watched) -> Iterator[Behaved | Happened]:
    def matters(one: Observation) -> bool:
        return isinstance(one, Behaved) or (isinstance(one, Happened) and one.whom in watched.brokers)

    return (one for one in watched.seen if matters(one) and isinstance(one, Behaved | Happened))


def _meant(behaviour: Behaviour) -> set[str]:
    """The faults of a run that look so from where the client dials."""
    found: set[str] = set()
    if behaviour.dials is Dials.REFUSED:
        found.add("kill")
    elif behaviour.dials in (Dials.CLOSED, Dials.RESET):
        found.add("cut")
    else:
        if behaviour.dials is Dials.DROPPED:
            found.add("syn_drop")
        if behaviour.connected is not Connected.KEPT:
            found.add("reset")
        if behaviour.swallows:
            found.add("pause")
        if behaviour.delay_ms:
            found.add("latency")
    return found


def _fault(number: int, fault: str, front: str, phase: str) -> dict[str, Any]:
    about_it = {"fault_id": f"{fault}-{number}", "fault": fault, "phase": phase}
    kind = FAULTS[fault]
    if issubclass(kind, ProcessFault):
        return {**about_it, "injection": kind.injection, "source": front, "target": None}
    return {**about_it, "injection": kind.injection, "source": CLIENT, "target": front, "stream": "both"}
