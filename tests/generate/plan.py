"""What a made-up run is: how many nodes, which faults and when, how many messages. Decided by a seed, nothing else.

    started ── steady ── fault, heal ── gap ── fault, heal ── … ── settle ── final reads ── end

Faults follow each other, each on one broker, one NameServer or the links to one. Times are RocketMQ milliseconds, the
timers RocketMQ's defaults at time scale 1. What the nodes do about the faults is simulated in control.py.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from nemesrv.chaos.faults.link_faults import BlackHole, Cut, Heal
from nemesrv.chaos.faults.process_faults import Kill, Pause, Restart, Resume, Stop
from nemesrv.chaos.oracle.timers import Timers
from nemesrv.chaos.scenarios.action import ActionModel
from nemesrv.remoting.node.profile import Profile

BEGIN_MS = 2_000.0
"""Until then every node has started and every NameServer knows every broker."""
TRAFFIC_MS = 3_000.0
QUIET_MS = 190_000.0
"""From the last fault of a long run to the final reads: the longest window of any check, and a minute."""
ROWS_A_MESSAGE = 7
"""send, send_attempt (invoked and ended each), half a pull (invoked and ended), receive, read."""


PlannedKind = Kill | Stop | Pause | Cut | BlackHole


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """One fault of `source` itself, or of the links by which `source` dials `target`: one that a timeline can say."""

    fault_id: str
    kind: PlannedKind
    source: str
    target: str | None = None
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One made-up run. `messages` are sent evenly from TRAFFIC_MS until `settled_ms`, where the final reads begin."""

    seed: int
    profile: Profile = Profile.V4_9
    name_servers: int = 3
    brokers: int = 3
    producers: int = 2
    consumers: int = 2
    topics: int = 1
    queues: int = 4
    """Of each topic at each broker."""
    messages: int = 0
    starts: int = 90
    """Clients that the prober starts, to see which NameServer they choose first."""
    lag_every_ms: float = 1_000.0
    faults: tuple[PlannedFault, ...] = ()
    settled_ms: float = 60_000.0

    @property
    def timers(self) -> Timers:
        return Timers.for_profile(self.profile)

    @property
    def step_ms(self) -> float:
        """From one message to the next; the producers take turns."""
        return (self.settled_ms - 5_000.0 - TRAFFIC_MS) / max(self.messages, 1)

    @property
    def sends_per_s(self) -> float:
        """How many messages each producer sends in a second; 0 without any."""
        return 1000 / (self.producers * self.step_ms) if self.messages and self.producers else 0.0

    @property
    def end_ms(self) -> float:
        """When the final reads are done."""
        return self.settled_ms + 10_000.0

    @property
    def broker_names(self) -> tuple[str, ...]:
        return tuple(f"broker-{chr(ord('a') + index)}" for index in range(self.brokers))

    @property
    def name_server_names(self) -> tuple[str, ...]:
        return tuple(f"ns-{index}" for index in range(self.name_servers))

    @property
    def producer_names(self) -> tuple[str, ...]:
        return tuple(f"producer-{index}" for index in range(self.producers))

    @property
    def consumer_names(self) -> tuple[str, ...]:
        return tuple(f"consumer-{index}" for index in range(self.consumers))

    @property
    def topic_names(self) -> tuple[str, ...]:
        return ("orders", *(f"orders-{index}" for index in range(1, self.topics)))

    @property
    def timeline(self) -> tuple[ActionModel, ...]:
        """The faults as a scenario's timeline says them, and what ends each."""
        entries: list[ActionModel] = []
        for fault in self.faults:
            start_s, end_s = ((at_ms - BEGIN_MS) / 1000 for at_ms in (fault.start_ms, fault.end_ms))
            if fault.target is not None:
                entries.append(ActionModel(at_s=start_s, what=fault.kind, links=(f"{fault.source} -> {fault.target}",)))
                entries.append(ActionModel(at_s=end_s, what=Heal()))
            else:
                ends = Resume() if isinstance(fault.kind, Pause) else Restart()
                entries.append(ActionModel(at_s=start_s, what=fault.kind, nodes=(fault.source,)))
                entries.append(ActionModel(at_s=end_s, what=ends, nodes=(fault.source,)))
        return tuple(entries)

    def with_messages(self, messages: int) -> Plan:
        return replace(self, messages=max(0, messages))


def plan_of(events: int, seed: int, profile: Profile = Profile.V4_9) -> Plan:
    """A run of about that many rows: the more rows, the more nodes, faults and minutes. `messages` is still 0."""
    rng = random.Random(f"{seed} plan")
    if events < 20_000:
        size = {"starts": 300, "lag_every_ms": 20_000.0}
        faults = 3
    elif events < 2_000_000:
        size = {"brokers": 4, "producers": 4, "consumers": 4, "starts": 300}
        if events < 100_000:  # or there would be timers' lateness and hardly a message
            size["lag_every_ms"] = 20_000.0
        faults = 3
    elif events < 20_000_000:
        size = {"brokers": 6, "producers": 16, "consumers": 8, "topics": 2, "starts": 3_000}
        faults = 5
    else:
        size = {"name_servers": 4, "brokers": 8, "producers": 32, "consumers": 16, "topics": 4, "starts": 4_000}
        faults = 8
    plan = Plan(seed=seed, profile=profile, **size)  # type: ignore[arg-type]
    return _with_faults(plan, rng, faults, gaps_s=(100.0, 140.0), long=True)


def random_plan(seed: int) -> Plan:
    """A small run of a few hundred rows with random nodes, profile and faults, some of them too short to matter."""
    rng = random.Random(f"{seed} random plan")
    plan = Plan(
        seed=seed,
        profile=rng.choice(list(Profile)),
        name_servers=rng.choice((1, 2, 3)),
        brokers=rng.choice((1, 2, 3)),
        producers=rng.choice((1, 2)),
        consumers=rng.choice((1, 2)),
        topics=rng.choice((1, 1, 2)),
        queues=rng.choice((1, 2, 4)),
        messages=rng.randrange(10, 60),
        starts=rng.choice((0, 3, 12)),
        lag_every_ms=20_000.0,
    )
    return _with_faults(plan, rng, rng.choice((0, 1, 1, 2, 3)), gaps_s=(20.0, 140.0), long=False)


def _with_faults(plan: Plan, rng: random.Random, count: int, *, gaps_s: tuple[float, float], long: bool) -> Plan:
    """The plan with so many faults, one after another. `long` ones outlast every window that they open."""
    timers, faults = plan.timers, []
    now_ms = BEGIN_MS + rng.uniform(40_000.0, 70_000.0)
    for number in range(count):
        kind, source, target = _fault(plan, rng, number if long else None)
        span_s = _span_s(kind, source, long=long, rng=rng, timers=timers)
        fault_id = f"{kind.do.replace('_', '-')}-{number + 1}"
        faults.append(
            PlannedFault(
                fault_id=fault_id,
                kind=kind,
                source=source,
                target=target,
                start_ms=now_ms,
                end_ms=now_ms + span_s * 1000,
            )
        )
        now_ms += span_s * 1000 + rng.uniform(*gaps_s) * 1000
    if long and faults:
        now_ms = max(now_ms, faults[-1].end_ms + QUIET_MS)
    return replace(plan, faults=tuple(faults), settled_ms=max(now_ms, BEGIN_MS + 90_000.0))


def _fault(plan: Plan, rng: random.Random, number: int | None) -> tuple[PlannedKind, str, str | None]:
    """kind, source, target. With a `number` the kinds take turns, so that a long run has every one of them."""
    choices: list[tuple[PlannedKind, str]] = [
        (Kill(), "broker"),
        (Pause(), "broker"),
        (Kill(), "name_server"),
        (Cut(), "link"),
        (Stop(), "broker"),
        (BlackHole(), "link"),
        (Pause(), "name_server"),
    ]
    kind, of = choices[number % len(choices)] if number is not None else rng.choice(choices)
    broker, name_server = rng.choice(plan.broker_names), rng.choice(plan.name_server_names)
    if of == "link":
        return kind, broker, name_server
    return kind, (broker if of == "broker" else name_server), None


def _span_s(kind: PlannedKind, source: str, *, long: bool, rng: random.Random, timers: Timers) -> float:
    if isinstance(kind, Pause) and source.startswith("ns-"):  # shorter than B: no broker gives up on it
        return rng.uniform(1.0, timers.B_ms / 1000 - 1.5)
    longest_s = (timers.E_ms + timers.S_ms + timers.P_ms + timers.Qr_ms) / 1000 + 20
    if long:
        return longest_s if isinstance(kind, Pause) else rng.uniform(90.0, 120.0)
    return rng.uniform(5.0, longest_s if isinstance(kind, Pause) else 100.0)
