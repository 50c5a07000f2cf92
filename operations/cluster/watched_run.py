"""The record of a watch: the faults that explain it, and the verdicts of the checks that it supports.

    WatchedHistory ─► rows ─► episodes_of ─► rows of likely faults, and of what nobody explains ─► checks ─► verdicts

The checks are those of runs, judged as every control check is (checkers/plain), so without Spark and at any time while
the watch goes on. The faults are inferred anew each time: a later look may change the likely explanation.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...chaos.checks import CHECKS
from ...chaos.checks.check import Needs
from ...chaos.checks.plain.verdicts import verdicts_of_rows
from ...chaos.errors import ScenarioError
from ...chaos.experiment.run_folder import RunFolder, refuse_used
from ...chaos.history.schema import Row
from ...chaos.judging import Engine, History, Judged, keep, named_checks
from ...chaos.scenarios.model import Scenario
from ...chaos.topology import NodeKind
from ...chaos.verdict import Verdict
from ...remoting.node.profile import Profile
from ..importing.fault_rows import fault_rows, missing_row, unexplained
from ..importing.importing import counted_scenario, write_folder
from ..importing.printing import episode_lines
from ..inferring.episodes import episodes_of
from ..logs_to_rows.timeline import timeline_of, wall_text
from ..logs_to_rows.writing import numbered
from .watched_history import WatchedHistory, timers_in

_WIRE = "what passes on the wire, which a watch does not see"
NOT_WATCHED: Mapping[Needs, str] = {
    Needs.ACTS: _WIRE,
    Needs.ACKNOWLEDGEMENTS: _WIRE,
    Needs.WIRE: _WIRE,
    Needs.CLIENTS: "what clients choose and take",
    Needs.MESSAGES: "who sent, pulled and got what",
    Needs.EXPERIMENT: "an experiment: nobody injected these faults",
}
"""What a watch does not see, of a cluster whose faults are inferred."""
LEFT_OUT: Mapping[str, str] = {
    name: f"it needs {NOT_WATCHED[missing[0]]}"
    for name, check in CHECKS.items()
    if (missing := [need for need in check.needs if need in NOT_WATCHED])
}
SUPPORTED = tuple(name for name in CHECKS if name not in LEFT_OUT)
"""The checks that what a watch sees can support."""
RESTARTS = ("kill", "stop")


@dataclass(frozen=True, slots=True)
class Explained:
    """A record with the faults that account for it."""

    rows: list[Row]
    episodes: Sequence[Mapping[str, Any]]
    """As incident.json has them."""
    timeline: Sequence[Mapping[str, Any]]
    not_seen: Sequence[str]


def explained(record: WatchedHistory) -> Explained:
    seen = record.framed()
    timers, end_ms = timers_in(seen), record.now_ms
    inferred = episodes_of(seen).to_json()
    bounds = {node: 1000.0 for node in record.roles}
    timeline = timeline_of(seen, record.of_address, record.origin_wall_ms, bounds)
    faults, stretches = fault_rows(record.roles, inferred["episodes"], end_ms)
    missing = [missing_row(*one) for one in unexplained(timeline, record.roles, stretches, timers, end_ms)]
    for one in record.blind:
        hit = any(one.node in fault.nodes and fault.from_ms <= one.to_ms + 2_000 and one.from_ms <= fault.to_ms
                  for fault in stretches)  # fmt: skip
        if not hit:
            missing.append(missing_row(one.node, one.says, one.from_ms, min(one.to_ms, end_ms)))
    again = [*_started_again(record, seen, faults)]
    rows = numbered([*seen, *faults, *again, *_topics(record, [*seen, *again]), *missing])
    return Explained(rows, inferred["episodes"], timeline, inferred["not_seen"])


def _started_again(record: WatchedHistory, seen: Sequence[Row], faults: Sequence[Row]) -> Iterator[Row]:
    """A process whose end was inferred, and that was back, began when that fault was over, if no row says when."""
    for row in faults:
        node = row["source"]
        if row["phase"] != "end" or row["target"] is not None or row["fault"] not in RESTARTS:
            continue
        bound_ms = float(row["value"].get("bound_ms") or 0.0) + 4_000.0
        if any(
            one["event"] == "started" and one["node"] == node and abs(one["time_ms"] - row["time_ms"]) <= bound_ms
            for one in seen
        ):
            continue
        process = max((one["incarnation"] for one in seen if one["node"] == node), default=0)
        yield {
            "time_ms": row["time_ms"],
            "node": node,
            "role": record.roles[node],
            "incarnation": process + 1,
            "event": "started",
            "address": record.addresses.get(node),
            "value": {"learnt": "inferred"},
        }


def _topics(record: WatchedHistory, rows: Sequence[Row]) -> Iterator[Row]:
    """What each process of a broker has of the recorded topics, from its start on."""
    starts: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: float(row["time_ms"])):
        if row["event"] == "started":
            starts[row["node"]].append(row)
    for broker, of in starts.items():
        changes = [one for one in record.topic_changes if one[1] == broker]
        for start, following in zip(of, [*of[1:], None], strict=True):
            until_ms = math.inf if following is None else following["time_ms"]
            began: dict[str, Mapping[str, Any] | None] = {}
            later: list[tuple[float, str, Mapping[str, Any] | None]] = []
            for at_ms, _, topic, said in changes:
                if at_ms <= start["time_ms"]:
                    began[topic] = said
                elif at_ms < until_ms:
                    later.append((at_ms, topic, said))
            held = [(start["time_ms"], topic, said) for topic, said in began.items() if said is not None]
            for at_ms, topic, said in (*held, *later):
                about = {key: start[key] for key in ("node", "role", "incarnation")}
                value = None if said is None else {**said, "learnt": "inferred"}
                yield {"time_ms": at_ms, **about, "event": "topic", "topic": topic, "value": value}


def verdicts_of(one: Explained, checks: Sequence[str] = SUPPORTED) -> list[Verdict]:
    """Those of the checks that the record supports, in the order of `checks`."""
    wanted = [name for name in checks if name in SUPPORTED]
    found = {verdict.name: verdict for verdict in verdicts_of_rows(one.rows, wanted)}
    return [found[name] for name in wanted]


def lines_of(one: Explained) -> Iterator[str]:
    """For a person, at the end of a watch: the faults that account for what was seen."""
    yield "faults that explain what was seen"
    yield from episode_lines(one.episodes, "nothing that was seen needs one")


def judged(record: WatchedHistory, one: Explained, checks: Sequence[str], out: Path | None) -> Judged:
    """The verdicts, by all that the record supports where none are named; kept in the run folder, if there is one."""
    named = tuple(checks) or SUPPORTED
    found = verdicts_of(one, named)
    left_out = [Verdict.nothing_examined(name, LEFT_OUT[name]) for name in CHECKS if name not in SUPPORTED]
    nothing = [one for one in found if not one.examined and not one.check_failed and not one.undecided]
    if set(named) == set(SUPPORTED) and len(nothing) < len(found):  # nobody died, say: that is no reason for UNKNOWN
        found, left_out = [one for one in found if one not in nothing], [*nothing, *left_out]
    scenario = _scenario(record, one)
    folder = None if out is None else written(out, record, one)
    history = History(where="what was watched" if out is None else str(out), checks=named, scenario=scenario,
                      folder=folder)  # fmt: skip
    return replace(keep(history, found, Engine.PLAIN), left_out=left_out)


def watched_checks(text: str | None) -> tuple[str, ...] | None:
    """The checks of `--check`; None: none. ScenarioError for one that a watch cannot support."""
    names = named_checks(text, "--check", SUPPORTED)
    if names is None or set(names) == set(CHECKS):
        return None if names is None else SUPPORTED
    for name in names:
        if name not in SUPPORTED:
            raise ScenarioError("--check", "", repr(name), f"{', '.join(SUPPORTED)}; of {name}: {LEFT_OUT[name]}")
    return names


def written(out: Path, record: WatchedHistory, one: Explained) -> RunFolder:
    """A run folder of it, which `nemesrv check`, `report` and `replay` read."""
    folder = RunFolder(out)
    document = {
        "format": 1,
        "origin": wall_text(record.origin_wall_ms),
        "sources": [],
        "topology": _topology(record),
        "timers": {},
        "timeline": list(one.timeline),
        "notes": [],
        "episodes": list(one.episodes),
        "not_seen": list(one.not_seen),
    }
    write_folder(folder, one.rows, _scenario(record, one), document)
    return folder


def new_folder(out: Path) -> RunFolder:
    """ScenarioError, HarnessError where it cannot be made."""
    refuse_used(out)
    return RunFolder.create("watched", out)


def _scenario(record: WatchedHistory, one: Explained) -> Scenario:
    begin = next(row["value"] for row in one.rows if row["event"] == "run_begin")
    learnt = f"Watched from {wall_text(record.origin_wall_ms)} on"
    roles = record.roles.values()
    has_clients = NodeKind.CONSUMER in roles  # of which a scenario has none without the prober that makes their topic
    profile = Profile(begin["profile"])
    return counted_scenario("watched", learnt, roles, profile, checks=SUPPORTED, prober=has_clients)


def _topology(record: WatchedHistory) -> dict[str, Any]:
    brokers: dict[str, dict[str, list[str]]] = {}
    for node, role in record.roles.items():
        if role in (NodeKind.BROKER, NodeKind.SLAVE):
            name, _, id_ = node.partition("/")
            brokers.setdefault(name, {})[id_ or "0"] = [record.addresses[node]]
    return {
        "clusters": {},
        "name_servers": {
            node: [record.addresses[node]] for node, role in record.roles.items() if role == NodeKind.NAME_SERVER
        },
        "name_servers_by": {},
        "brokers": brokers,
        "clients": {},
    }
