"""Living brokers are used: sends go to the queues of the route in turn, a failed send to another broker, and all queues
are read.

    a producer's sends while nothing fails and its route stays     rule: round robin, so exact
      broker-a 0 1 2 3 │ broker-b 0 1 2 3     n sends over q queues: ⌊n/q⌋ or ⌈n/q⌉ each
    its tries while some fail                                       each at the queue behind that of the try before
                                                                    (turns.py)
    a try that follows a failed one                                 tries.py
    a queue of a living broker                                      queue_reads.py
    a queue that was read at a slave                                read at the master again when the route has it
                                                                    (at_slaves.py)

What is in turn is counted, not tested: one send beyond those bounds is found. q sends in a row decide whether each
queue is used; a producer with fewer is named as not decided. A broker that is back is in its producer's route again
and so among the q (with sendLatencyFaultEnable, when its isolation is over). Whether NameServers are chosen evenly is
name_server_selection's question, and whether each queue has one owner is queue_ownership's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...oracle.time_outs import avoidance
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Reads, Section
from ..findings import Rule, finding, verdict_of
from ..plain.part import Gathering
from ..plain.uses import READS, SHARES, STEPS, TRIES
from ..record.at_slaves import read_there
from ..record.control import Control
from ..record.turns import TURN, Routes, judged, out_of_turn
from ..record.uses import BrokerShares, Queue, Segment, edges
from .queue_reads import reads
from .tries import tries

NAME = "living_are_used"


@dataclass(frozen=True)
class Used:
    """Counts, and the rows that say what there was to use."""

    shares: BrokerShares = field(default_factory=BrokerShares)
    control: Control = field(default_factory=lambda: Control.of_rows(()))


def gather(gathering: Gathering, world: World) -> Used:
    """Sends by queue and segment, retries, and reads by queue and time: counted, but for what is wrong."""
    in_turn, strays = judged(gathering.counted(STEPS, world).of, Routes(gathering.control))
    shares = gathering.counted(SHARES, world)
    for reading in (TRIES, READS):
        shares = shares.plus(gathering.counted(reading, world))
    shares = replace(
        shares,
        same=tuple(sorted(shares.same, key=lambda one: one.time_ms)),
        odd=tuple(sorted(shares.odd, key=lambda one: one.time_ms)),
        given_up=tuple(sorted(shares.given_up, key=lambda one: one.ended_ms)),
        in_turn=in_turn,
        strays=strays,
    )
    return Used(shares, gathering.control)


def judge(used: Used, world: World) -> Verdict:
    """Examined: producers' turns, retries, and queues that had to be read. Violations: queues that were used more or
    less often than in turn, retries on the broker that had failed, and queues that nobody read for 30 s."""
    shares, control = used.shares, used.control
    routes = Routes(control)
    turns = list(_turns(shares, world, routes, edges(control, world)))
    of_tries = (*tries(shares, routes, control, world), *out_of_turn(shares, world))
    found = [*turns, *of_tries, *reads(shares, control, world), *read_there(shares, world, control)]
    open_ = _undecided(turns, world)
    measured: dict[str, Any] = {
        "sends": sum(finding.more.get("sends", 0) for finding in turns),
        "turns": sum(finding.examined for finding in turns),
        "retries": shares.retries,
        "reads": sum(finding.examined for finding in found if finding.kind.startswith(("read", "refused"))),
    }
    nothing = "no producer sent in turn, no send was tried again, and no queue had to be read"
    if open_:
        nothing = "; ".join(f"{what}: {why}" for what, why in open_.items())
    noun = "uses of the living were not as the rules say"
    said = verdict_of(NAME, found, measured=measured, nothing=nothing, noun=noun)
    return replace(said, undecided=open_) if said.examined else said


CHECK = Check(
    name=NAME,
    says="producers use all queues of their routes in turn and retry on other brokers; every queue is read",
    group=Group.CLIENT_ROUTES,
    section=Section.CLIENTS,
    needs=(Needs.MESSAGES,),
    reads=Reads.OPERATIONS,
    gather=gather,
    readings=(SHARES, TRIES, READS, STEPS),
    judge=judge,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,962 sends in turn, 3 retries, 12 queues read" """
    sends, retries, reads = (measured.get(name, 0) for name in ("sends", "retries", "reads"))
    return f"{sends:,} sends in turn, {retries:,} retries on another broker, {reads:,} queues read"


def _turns(shares: BrokerShares, world: World, routes: Routes, all_edges: Sequence[float]) -> Iterator[Finding]:
    """One for each process and segment that is judged: the queue that is furthest from its turn."""
    if world.workload.get("ordered"):
        return  # sharding keys choose the queue
    avoided = avoidance(world)
    after_ms = avoided.longest_ms if avoided else 0.0
    for segment, counts in sorted(shares.sends.items()):
        failed = any(
            number and node == segment.node and _end(all_edges, start_ms) + after_ms > segment.start_ms >= start_ms
            for (node, start_ms), number in shares.failed.items()
        )
        ring = routes.ring(segment.node, segment.incarnation, segment.topic, segment.start_ms)
        if ring and not failed:
            yield _turn(segment, counts, ring, _end(all_edges, segment.start_ms, world.end_ms))


def _end(edges_: Sequence[float], start_ms: float, last_ms: float = float("inf")) -> float:
    at = bisect_right(edges_, start_ms)
    return edges_[at] if at < len(edges_) else last_ms


def _turn(segment: Segment, counts: Mapping[Queue, int], ring: tuple[Queue, ...], until_ms: float) -> Finding:
    sends, queues = sum(counts.values()), len(ring)
    fewest, most = sends // queues, -(-sends // queues)
    strange = sorted(queue for queue in counts if queue not in ring)
    off = {queue: max(fewest - counts.get(queue, 0), counts.get(queue, 0) - most) for queue in ring}
    worst = strange[0] if strange else max(ring, key=lambda queue: (off[queue], -counts.get(queue, 0)))
    wrong = bool(strange) or off[worst] > 0
    decided = sends >= queues
    kind = "out of its route" if strange else "not used in turn" if wrong else "used in turn"
    if wrong and decided and worst[0] not in {broker for broker, _ in counts}:
        kind = f"never used in {sends} sends"
    return finding(
        (segment.node, worst[0], segment.topic),
        kind,
        (segment.start_ms, until_ms),
        Rule(TURN, f"{fewest} to {most} of {sends} sends over {queues} queues"),
        out=(segment.start_ms, until_ms) if wrong else None,
        examined=int(decided or wrong),
        wrong=int(wrong),
        more={
            "queue_id": worst[1],
            "sends": sends,
            "of": queues,
            "its_sends": counts.get(worst, 0),
            "off_by": max(off.values()),
        },
    )


def _undecided(turns: list[Finding], world: World) -> dict[str, str]:
    """What to call each producer's turns that are not decided → how many sends decide them."""
    if world.workload.get("ordered"):
        return {}
    found = {}
    for node in world.of_kind("producer"):
        mine = [finding for finding in turns if finding.subject == node.name]
        if any(finding.examined for finding in mine):
            continue
        needed = max((finding.more["of"] for finding in mine), default=None)
        said = "as many sends in a row as its route has queues decide them" if needed is None else ""
        found[f"turns of {node.name}"] = said or f"{needed} sends in a row decide them"
    return found
