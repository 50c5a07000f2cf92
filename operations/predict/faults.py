"""Makes the scenario of `--fault KIND`. Also finds each fault in a scenario: its begin, its end, and the nodes that it
separates."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...chaos.errors import ScenarioError, nearest
from ...chaos.experiment.expectation import expected_world
from ...chaos.oracle.intervals import grouped
from ...chaos.oracle.world import World
from ...chaos.scenarios.document import change
from ...chaos.scenarios.loading import parse
from ...chaos.scenarios.model import Scenario

AT_S = 20.0
"""When the fault of `--fault` begins."""
LASTS_S = 240.0
"""Default length of a fault: more than E + S + P and a round of rebalance."""


class FaultKind(NamedTuple):
    """A kind of fault of `--fault`, from faults.toml."""

    says: str
    begins: Mapping[str, Any]
    """The entry of the timeline."""
    undo: str = "heal"
    """Action (`do`) of the timeline entry that ends the fault."""
    lasts_s: float = LASTS_S


_FILE = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))
KINDS = {name: FaultKind(**about) for name, about in _FILE.items()}
_MEANS = {
    "packet_loss": " (no packet passes, so no connection can be opened)",
    "black_hole": " (no data passes, while connections can be opened)",
}
_BY_WORD = {kind.begins["do"]: name for name, kind in reversed([*KINDS.items()])}
"""The first kind of each fault by its word in a scenario and in `nemesrv fault`: `kill` is `crash`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    fault: str
    """A name of KINDS, or a scenario's word."""
    lasts_s: float | None = None
    name_servers: int = 3
    brokers: int = 3
    producers: int = 4
    consumers: int = 2
    profile: str = "4.9"
    retries: int | None = None
    sends_per_s: float = 2.0


def scenario_of(asked: PredictOptions, sets: tuple[str, ...] = ()) -> Scenario:
    """Return a scenario in which the fault that the user asked for happens once. Raises ScenarioError for an unknown
    fault or setting."""
    name = _BY_WORD.get(asked.fault, asked.fault)
    if name not in KINDS:
        allowed = f"one of {', '.join(KINDS)}{nearest(name, (*KINDS, *_BY_WORD))}"
        raise ScenarioError("--fault", "", repr(name), allowed)
    kind = KINDS[name]
    lasts_s = kind.lasts_s if asked.lasts_s is None else asked.lasts_s
    begins = {"at_s": AT_S, **kind.begins}
    if begins.get("nodes") == []:  # all NameServers
        begins["nodes"] = [f"ns-{number}" for number in range(asked.name_servers)]
    ends: dict[str, Any] = {"at_s": AT_S + lasts_s, "do": kind.undo}
    if "nodes" in begins:
        ends = {**begins, **ends}
    document: dict[str, Any] = {
        "name": f"predict-{name}",
        "description": f"{kind.says}, for {lasts_s:g} s.",
        "cluster": {"name_servers": asked.name_servers, "brokers": asked.brokers, "profile": asked.profile},
        "workload": {
            "producers": asked.producers,
            "consumers": asked.consumers,
            "sends_per_s": asked.sends_per_s,
            "client_starts": 0,
        },
        "timeline": [begins, ends],
        "settle_s": 40,
        "checks": ["exercised"],
    }
    if asked.retries is not None:
        document["config"] = {"producers": {"retryTimesWhenSendFailed": asked.retries}}
    for one in sets:
        change(one, document, Scenario.model_fields)
    return parse(document, file="--set" if sets else "--fault")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpan:
    """One fault: the nodes that the fault separates, the fault's begin and end. Times are milliseconds from the start
    of the timeline."""

    do: str
    what: str
    """The fault's name in words."""
    means: str = ""
    """What passes during the fault, if its name does not say it."""
    start_ms: float
    end_ms: float
    unheard: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Broker to the NameServers that do not get its registrations."""
    silent: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """NameServer to the clients that cannot reach it."""
    wiped: str = ""
    """The broker without write permission."""

    @property
    def lasts_ms(self) -> float:
        return self.end_ms - self.start_ms

    @property
    def brokers(self) -> tuple[str, ...]:
        return (self.wiped,) if self.wiped else tuple(self.unheard)


def faults_of(scenario: Scenario) -> tuple[FaultSpan, ...]:
    """Return every fault in the scenario's timeline, in order. Raises ScenarioError if the timeline has no fault."""
    world, _ = expected_world(scenario)
    groups = grouped((fault.fault_id, fault) for fault in world.faults if fault.start_ms > -1 and fault.injected)
    found = [_fault(world, parts) for parts in groups.values()] + _wipes(scenario)
    if not found:
        allowed = "at least one fault; the scenario.yaml of an import has none: `nemesrv replay` writes one that has"
        raise ScenarioError(scenario.name, "timeline", "", allowed)
    return tuple(sorted(found, key=lambda one: one.start_ms))


def _fault(world: World, parts: list[Any]) -> FaultSpan:
    brokers, servers, clients = (
        {node.name for node in world.of_kind(*kinds)}
        for kinds in (("broker", "slave"), ("name_server",), ("producer", "consumer"))
    )
    unheard: dict[str, set[str]] = {}
    silent: dict[str, set[str]] = {}
    for part in parts:
        targets = servers | clients if part.target is None else {part.target}
        if part.source in brokers and targets & servers:
            unheard.setdefault(part.source, set()).update(targets & servers)
        elif part.source in servers and part.target is None:
            silent.setdefault(part.source, set()).update(clients)
        elif part.source in clients and part.target in servers:
            silent.setdefault(part.target, set()).add(part.source)
    # brokers that do not reach a NameServer which no client reaches either matter to nobody
    unheard = {broker: by - set(silent) for broker, by in unheard.items() if by - set(silent)}
    whom = sorted({*unheard, *silent}) or sorted({part.source for part in parts})
    return FaultSpan(
        do=parts[0].fault,
        what=f"{_between(parts, whom)}: {parts[0].kind.words}",
        means=_MEANS.get(parts[0].fault, "") if parts[0].stream in (None, "both") else "",
        start_ms=min(part.start_ms for part in parts),
        end_ms=min(max(part.end_ms for part in parts), world.end_ms),
        unheard={name: frozenset(by) for name, by in unheard.items()},
        silent={name: frozenset(by) for name, by in silent.items()},
    )


def _between(parts: list[Any], whom: list[str]) -> str:
    """Return the link with the fault, `broker-a <-> ns-0`; for several links the nodes that the links cut off."""
    links = {(part.source, part.target) for part in parts if part.target is not None}
    return " <-> ".join(*links) if len(links) == 1 else ", ".join(whom)


def _wipes(scenario: Scenario) -> list[FaultSpan]:
    steps = scenario.unfolded()
    last_s = max((step.at_s for step in steps), default=0.0) + scenario.settle_s
    return [
        FaultSpan(
            do=step.do,
            what=f"write permission of {getattr(step.what, 'broker', '')} wiped at {', '.join(step.nodes)}",
            start_ms=1000 * step.at_s,
            end_ms=1000 * next((later.at_s for later in steps[number:] if later.do == "add_write_perm"), last_s),
            wiped=str(getattr(step.what, "broker", "")),
        )
        for number, step in enumerate(steps)
        if step.do == "wipe_write_perm"
    ]
