"""Living brokers are used: sends go to the queues of the route in turn, a failed send to another broker, and all queues
are read.

    a producer's sends while nothing fails and its route stays     rule: round robin, so exact
      broker-a 0 1 2 3 │ broker-b 0 1 2 3     n sends over q queues: ⌊n/q⌋ or ⌈n/q⌉ each (turns.py)
    its tries while some fail, and within P / 30 of a poll          each at the queue behind that of the try before
    an ordered workload's sends             rule: the queue of the sharding key's number (turns.py)
    a try that follows a failed one, and whom it isolates           plain/tries.py
    a try at a slave, which no route had as a master                plain/tries.py
    a queue of a living broker; when a pull of a queue begins       queue_reads.py
    a queue that was read at a slave                                read at the master again when the route has it
                                                                    (at_slaves.py)

What is in turn is counted, not tested: one send beyond those bounds is found. q sends in a row decide whether each
queue is used; a producer with fewer is named as not decided. A broker that is back is in its producer's route again
and so among the q (with sendLatencyFaultEnable, when its isolation is over). Whether NameServers are chosen evenly is
name_server_selection's question, and whether each queue has one owner is queue_ownership's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...oracle.time_outs import avoids
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Found, Group, Needs, Section, check
from ..findings import Rule, finding, verdict_of
from ..plain.part import Gathering
from ..plain.tries import ELSEWHERE, ISOLATES, NOT_ISOLATED, OTHER, SAME, TRIES
from ..plain.uses import READS, SHARES, STEPS
from ..record.at_slaves import read_there
from ..record.turns import client_routes, out_of_turn, turns
from ..record.uses import edges
from .queue_reads import begun_pulls, reads


def _of_tries(tries: Found, world: World) -> Iterator[Finding]:
    """All that were on another broker together, and all after which their broker was isolated; and each that broke a
    rule."""
    counts, span = tries.counts, (0.0, world.end_ms)
    right = counts["retries"] - counts.get(SAME, 0)
    unknown = any(avoids(world, node.name) and not node.is_ours for node in world.of_kind("producer"))
    if right > 0 and not unknown:
        yield finding("producers", "tried another broker", span, Rule(OTHER), examined=right)
    if counts["isolating"]:
        right = counts["isolating"] - counts.get(NOT_ISOLATED, 0)
        yield finding("producers", "isolated the broker", span, Rule(ISOLATES), examined=right)
    yield from tries.findings


@check(
    says="producers send to all queues in turn and retry on another broker, and consumers read a live broker's queues",
    group=Group.CLIENT_ROUTES,
    section=Section.CLIENTS,
    accuses_object=(ELSEWHERE,),
    needs=(Needs.MESSAGES,),
    readings=(SHARES, TRIES, READS, STEPS),
    tells=lambda measured: _told(measured),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: producers' turns, retries, and queues that had to be read. Violations: queues that were used more or
    less often than in turn, retries on the broker that had failed, and queues that nobody read, or pulled late."""
    control, routes, tries = history.control, client_routes(history.control), history.counted(TRIES, world)
    shares = history.counted(SHARES, world).plus(history.counted(READS, world))
    misled = {one.subject for one in tries.findings if one.kind == ELSEWHERE}  # where they sent nobody knows
    of_turns = turns(shares, world, routes, edges(control, world), control)
    in_turn = [turn for turn in of_turns if turn.subject not in misled]
    in_turn.sort(key=lambda turn: -turn.more.get("off_by", 0))
    told = {(one.subject, one.object) for one in tries.findings if one.kind == SAME}
    of_steps = out_of_turn(history.counted(STEPS, world).of, routes, world, told)
    of_steps = (one for one in of_steps if one.subject not in misled)
    of_sends = (*_of_tries(tries, world), *in_turn, *of_steps)
    of_reads = (*reads(shares, control, world), *begun_pulls(shares, control, world))
    found = [*of_sends, *of_reads, *read_there(shares, world, control)]
    open_ = _undecided(in_turn, world)
    measured: dict[str, Any] = {
        "sends": sum(finding.more.get("sends", 0) for finding in in_turn),
        "turns": sum(finding.examined for finding in in_turn),
        "retries": tries.counts["retries"],
        "retries_on_same": tries.counts["on_same"],
        "reads": sum(finding.examined for finding in found if finding.kind.startswith(("read", "refused"))),
    }
    nothing = "no producer sent round-robin, no send was tried again, and no queue had to be read"
    if open_:
        nothing = "; ".join(f"{what}: {why}" for what, why in open_.items())
    noun = "uses of living brokers broke a rule"
    said = verdict_of(found, measured=measured, nothing=nothing, noun=noun)
    return replace(said, undecided=open_) if said.examined else said


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,962 sends in turn, 3 retries on another broker, 12 queues read" """
    sends, retries, same, reads = (measured.get(name, 0) for name in ("sends", "retries", "retries_on_same", "reads"))
    on_same = f" and {same:,} on the same broker" if same else ""
    return f"{sends:,} sends in turn, {retries - same:,} retries on another broker{on_same}, {reads:,} queues read"


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
