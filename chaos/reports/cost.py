"""Computes what a run cost its clients: time without a broker, failed sends, messages that waited.

    producer-0 at broker-a   ok ok ok ok ──────── 41 s ──────── ok ok ok
                                        └ fault ┘

    history ─► cost_of ─► verdicts.json ─► the sentence on the terminal and in the report

A client is without a broker while none of the client's sends and pulls at the broker is answered. A time without a
broker is reported if it overlaps a fault of the broker, takes more than 5 s (LEAST_MS), and is over twice as long as
any without a fault.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...remoting.topics import is_own
from ..faults.process_faults import Kill, Pause, Stop
from ..oracle.intervals import Stretch, grouped, until_next, without
from ..oracle.quiet import settle_ms
from ..oracle.world import World
from ..verdict import seconds

if TYPE_CHECKING:
    from .columns import Array, Recorded

LEAST_MS = 5000.0
"""A waiting pull is tested every 5 s, so shorter times are no wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Without:
    """The longest time in which one client had no answer from one broker."""

    client: str
    broker: str
    from_s: float
    """In seconds since the start of the timeline."""
    to_s: float
    took_ms: float
    came_back: bool
    """False: it lasted until the end of the client's work."""
    because: str = ""
    """`broker-a was killed`, if this and the recovery that RocketMQ's timers allow explain the whole time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The entry `cost` of verdicts.json. Lengths are in milliseconds."""

    longest_without_broker_ms: float
    """0: no client was without a broker."""
    without_broker: tuple[Without, ...]
    """One for each client and broker, the longest first."""
    sends: Mapping[str, int]
    """ok, failed, unanswered."""
    messages: Mapping[str, float]
    """waited: messages received more than LEAST_MS after their send; longest_ms: the longest such wait; never_received:
    messages acknowledged and not received."""
    failed_of: Mapping[str, int] = field(default_factory=dict)
    """By client, the sends that failed or ended without an answer."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        without = tuple(Without(**one) for one in document["without_broker"])
        return cls(**{**document, "without_broker": without})

    def renamed(self, names: Mapping[str, str]) -> Cost:
        """Return the cost with nodes renamed by `names` (old name to new name)."""
        without = (
            replace(one, client=names.get(one.client, one.client), broker=names.get(one.broker, one.broker))
            for one in self.without_broker
        )
        failed_of = {names.get(client, client): count for client, count in self.failed_of.items()}
        return replace(self, without_broker=tuple(without), failed_of=failed_of)

    @property
    def sentence(self) -> str:
        return self.told()

    def told(self, guilty: Collection[str] = ()) -> str:
        """Return `consumer-0 was without broker-a for 41.0 s (20.1 to 61.1 s); 65 messages arrived …`. Failed sends
        come first if a guilty node sent some of them. If nothing was lost, the sentence says that no client was
        without a broker and no send failed."""
        of_broker = grouped((one.broker, one) for one in self.without_broker)
        said = [_without(broker, of) for broker, of in of_broker.items()]
        if failed := self.sends["failed"] + self.sends["unanswered"]:
            of_guilty = {client: count for client, count in self.failed_of.items() if client in guilty}
            told = [f"{'all' if count == failed else f'{count:,}'} of them {one}'s" for one, count in of_guilty.items()]
            text = f"{failed:,} of {failed + self.sends['ok']:,} sends failed or ended without an answer"
            said.insert(0 if told else len(said), ", ".join((text, *told)))
        if waited := self.messages["waited"]:
            noun = "message" if waited == 1 else "messages"
            at_most = f", {seconds(self.messages['longest_ms'])} at most"
            said.append(f"{waited:,} {noun} arrived more than {LEAST_MS / 1000:g} s after their send{at_most}")
        if behind := self.messages["never_received"]:
            were = "message was" if behind == 1 else "messages were"
            said.append(f"{behind:,} acknowledged {were} not received before the run ended")
        nothing = f"no client was without a broker, and no message waited, for more than {LEAST_MS / 1000:g} s"
        return "; ".join(said) or f"{nothing}; no send failed"


def _without(broker: str, gaps: Sequence[Without]) -> str:
    longest = gaps[0]
    span = f"{longest.from_s:.1f} to {longest.to_s:.1f} s"
    when = f"{seconds(longest.took_ms)} ({span}{'' if longest.came_back else ', the end of its work'})"
    when += f", because {longest.because}" if longest.because and all(gap.because for gap in gaps) else ""
    if len(gaps) == 1:
        return f"{longest.client} was without {broker} for {when}"
    return f"{len(gaps)} clients were without {broker}, {longest.client} the longest, for {when}"


def of_sides(costs: Iterable[tuple[str, str | None]]) -> list[str]:
    """Return a line for each run: `replay: consumer-0 was without broker-a for …`. `costs` has each run's name and the
    sentence of its cost (None if no client worked)."""
    unknown = "not known: no send or pull is recorded, as in RocketMQ's logs"
    return [f"{side}: {sentence or unknown}" for side, sentence in costs]


def sides_of_replay(document: Mapping[str, Any]) -> list[str]:
    """Return a line with the cost of the original run, of the replay, and of each `--vary` run. `document` is
    replay.json."""
    variants = ((f"with {one['vary']}", one["cost"][1]) for one in document["variants"])
    return of_sides([*document["cost"].items(), *variants])


def cost_of(run_dir: Path) -> Cost | None:
    """Return the cost of the run whose history is in `run_dir`; None if no client worked."""
    from .columns import read  # pyarrow, which commands that judge nothing need not wait for
    from .flow import read_flow

    recorded = read(run_dir)
    sends = {outcome: int(recorded.traffic.where("send", outcome).sum()) for outcome in ("ok", "fail", "info")}
    if not sum(sends.values()) and not recorded.traffic.where("pull", "ok").any():
        return None
    failed = Counter(recorded.traffic.node[recorded.traffic.where("send", "fail", "info")].tolist())
    gaps = _gaps_of(recorded, World.of_rows(recorded.world_rows, last_ms=recorded.last_ms))
    flow = read_flow(recorded)
    slow = flow.took_ms[flow.took_ms > LEAST_MS]
    return Cost(
        longest_without_broker_ms=max((gap.took_ms for gap in gaps), default=0.0),
        without_broker=tuple(sorted(gaps, key=lambda gap: -gap.took_ms)),
        sends={"ok": sends["ok"], "failed": sends["fail"], "unanswered": sends["info"]},
        messages={
            "waited": len(slow),
            "longest_ms": round(float(slow.max(initial=0.0)), 1),
            "never_received": len(flow.acknowledged_ms) - len(flow.received_ms),
        },
        failed_of={recorded.traffic.nodes[at]: count for at, count in sorted(failed.items())},
    )


def _gaps_of(recorded: Recorded, world: World) -> list[Without]:
    troubled = _troubles(recorded, world)
    if not troubled or not len(recorded.traffic.time_ms):
        return []
    found = []
    answered = recorded.traffic.by_pair("ok", answered=True)
    works_until: dict[str, float] = {}
    for (client, _), times in answered.items():
        works_until[client] = max(works_until.get(client, 0.0), float(times[-1]))
    everybody_until = max(works_until.values(), default=0.0)
    for (client, broker), times in answered.items():
        if broker not in troubled or client == "prober" or len(times) < 2:
            continue
        end_ms = max(works_until[client], everybody_until)
        gap = _longest(times, end_ms, troubled[broker])
        if gap is not None and (away := elsewhere(recorded.notable, client, broker, end_ms)):
            gap = _longest(times, end_ms, troubled[broker], away)
        if gap is not None and _lives(world, client, *gap):
            from_ms, to_ms = gap
            span = {"from_s": round(from_ms / 1000, 1), "to_s": round(to_ms / 1000, 1)}
            took_ms, back = round(to_ms - from_ms, 1), to_ms < end_ms
            why = _because(world, broker, from_ms, to_ms)
            found.append(Without(client=client, broker=broker, **span, took_ms=took_ms, came_back=back, because=why))
    return found


def _because(world: World, broker: str, from_ms: float, to_ms: float) -> str:
    recovery_ms = settle_ms(world)
    for fault in world.faults:
        is_process = fault.target is None and fault.source == broker and isinstance(fault.kind, Kill | Stop | Pause)
        if is_process and fault.overlaps(from_ms, to_ms) and to_ms <= fault.end_ms + recovery_ms:
            return f"{broker} {'' if fault.stood_still else 'was '}{fault.kind.title}"
    return ""


def elsewhere(notable: Iterable[Mapping[str, Any]], client: str, broker: str, end_ms: float) -> list[Stretch]:
    """Return the times in which the consumer owned no queue of the broker, but another consumer did, in each topic of
    the consumer. RocketMQ's own topics do not count. For a producer the list is empty."""
    assigned = (row for row in notable if row["event"] == "assigned" and not is_own(row["topic"]))
    by_topic = grouped((row["topic"], row) for row in assigned)
    topics = [rows for rows in by_topic.values() if any(row["node"] == client for row in rows)]
    own_or_nobodys = []
    for rows in topics:
        holders: set[str] = set()
        for row, until_ms in until_next(rows, end_ms, itemgetter("time_ms")):
            has_one = any(name == broker for name, _ in json.loads(row["value"]))
            (holders.add if has_one else holders.discard)(row["node"])
            if client in holders or not holders:
                own_or_nobodys.append(Stretch(row["time_ms"], until_ms))
    return without(0.0, end_ms, own_or_nobodys) if topics else []


def _longest(
    times: Array, end_ms: float, troubles: Sequence[tuple[float, float]], away: Sequence[Stretch] = ()
) -> tuple[float, float] | None:
    """Return the longest time between two answers that overlaps a trouble, from the trouble's begin on, and without the
    times of `away`. The result is None if other times are at least half as long."""
    starts = np.sort(np.append(times, [at_ms for stretch in away for at_ms in stretch]))
    ends = np.append(starts[1:], max(end_ms, float(starts[-1])))
    lengths = ends - starts
    for from_ms, to_ms in away:
        lengths[(starts >= from_ms) & (ends <= to_ms)] = 0.0
    met = np.zeros(len(starts), dtype=bool)
    begun = ends.copy()
    for start_ms, stop_ms in troubles:
        meets = (starts < stop_ms) & (ends > start_ms)
        met |= meets
        begun[meets] = np.minimum(begun[meets], np.maximum(starts[meets], start_ms))
    usual_ms = float(lengths[~met].max()) if (~met).any() else 0.0
    if not met.any():
        return None
    at = int(np.argmax(np.where(met, lengths, 0.0)))
    if lengths[at] <= max(LEAST_MS, 2 * usual_ms):
        return None
    return float(begun[at]), float(ends[at])


def _troubles(recorded: Recorded, world: World) -> Mapping[str, list[tuple[float, float]]]:
    """Return for each broker the times of faults on the broker or its links, and the times in which a NameServer lacked
    the broker after a drop, each with the time that clients then take to ask for their routes (P)."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    brokers = {node.name for node in world.of_kind("broker")}
    for fault in world.faults:
        for name in {fault.source, fault.target} & brokers:
            found[str(name)].append((fault.start_ms, min(fault.end_ms, world.end_ms)))
    back: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in recorded.notable:
        if row["event"] == "registration" and not row["code"]:
            back[row["node"], row["broker_name"]].append(row["time_ms"])
    for row in recorded.notable:
        if row["event"] == "broker_dropped" and row["broker_name"] in brokers and row["time_ms"] < world.end_ms:
            later = (at_ms for at_ms in back[row["node"], row["broker_name"]] if at_ms > row["time_ms"])
            until_ms = next(later, world.end_ms) + world.timers.P_ms
            found[row["broker_name"]].append((row["time_ms"], min(until_ms, world.end_ms)))
    return found


def _lives(world: World, client: str, from_ms: float, to_ms: float) -> bool:
    """Whether one process of the client ran all the time without a pause."""
    there = any(life.start_ms <= from_ms and life.end_ms >= to_ms - 1 for life in world.lives_of(client))
    own = any(f.source == client and f.target is None and f.start_ms < to_ms for f in world.faults)
    return there and not own
