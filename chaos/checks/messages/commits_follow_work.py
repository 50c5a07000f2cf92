"""Committed offsets follow consumption: never beyond received messages, never back, in time, and kept by the broker
that got them.

    received ── 0 1 2 3 4 · · ·
    commit 5 ─────────────┘ right: all before it was received by then
    commit 7 ─────────────────── ahead: 5 and 6 are lost if its consumer dies now
    commit 4 ── after 5: back, which only a change of hands, a fault or a broker's restart explains (oracle/commits.py)
    taken at 3, 5 s after 5 was committed: the broker answered an older offset than it was told
    nothing committed since 5 was received, by a persistAllConsumerOffset or before the queue goes: uncommitted.py
    committed at a slave though the route has the master: at_slaves.py
    given up, and committed all the same, later than at once: nothing that befell others explains it
    answered 45 though the topic was deleted since: its offsets go with it (5.x)
    told 41 with code 21, and given up at 60: DefaultMQPushConsumerImpl goes on just there

A message counts as worked off when its listener is done with it (`receive`). A group's commits are judged against what
all of its members received; with broadcasting each consumer keeps its own offsets, and none may be at a broker.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import NEVER, Rule, at_no_time, finding, verdict_by_counts
from ..plain.commits import COMMITS, REPEATED, ROW
from ..plain.part import Gathering
from ..record.at_slaves import misplaced
from ..record.commits import commit_rules, unread
from ..record.control import Control

_RULES = {
    "ahead": ("messages committed past before they were received", "skipped a message"),
    "back": ("offsets went back", "went backwards"),
    "older": ("queues were taken at a lower offset", "older offsets answered"),
    "behind": ("times work was not committed in time", "commits late"),
    "left": ("queues were given up without a commit", "queues given up without a commit"),
    "moved": ("queues went on elsewhere than code 21 said", "wrong offsets after code 21"),
    "misplaced": ("commits were at a slave", "commits at a slave"),
    "forgotten": ("offsets were not kept", "offsets not kept"),
    "uncopied": ("offsets were lost at a switch", "offsets lost at a switch"),
    "deleted": ("offsets outlived their topic", "offsets of deleted topics answered"),
    "given_up": ("commits were for queues given up", "commits for queues given up"),
    "at_brokers": ("of broadcasting consumers at a broker", "commits of broadcast groups at a broker"),
}
"""What broke each rule, as the verdict's reason and the terminal's line say it."""
_OF_ONE_ANSWER = ("moved", "deleted", "uncopied")
"""What follows from one answer, whatever else was done by hand."""


@check(
    says="consumers commit in time; brokers keep offsets; no offset goes back without a fault, rebalance or operator",
    group=Group.CONSUMING,
    section=Section.MESSAGES,
    accuses_object=(REPEATED,),
    needs=(Needs.MESSAGES,),
    readings=(COMMITS,),
    tells=lambda measured: _told(measured),
    clients=("consumer",),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: commits that changed an offset, those that should have been, and messages that were committed past
    before they were received. Violations: these messages, commits of older offsets, older offsets answered, work
    that was not committed in time, or not before a queue was given up, offsets that a broker did not keep,
    broadcasters' at a broker. Unsure: their receipts may have died with a killed process, or the machine was late."""
    facts, rules = history.counted(COMMITS, world), commit_rules(history.control, world)
    counts = Counter(facts.counts)
    own = [*_begun(history.control, world), *misplaced(facts.at_slaves, rules.dues, history.control)]
    found = [*facts.findings, *own]
    unclear = world.lost_by_hand
    if unclear and any(counts[rule] for rule in _OF_ONE_ANSWER):
        counts, own = Counter({rule: counts[rule] for rule in ("commits", *_OF_ONE_ANSWER)}), []
        unclear, found = "", [one for one in found if one.more["rule"] in _OF_ONE_ANSWER]
    wrong, unsure = [one for one in found if one.wrong], counts["unsure"] + sum(not one.wrong for one in own)
    first = sorted(wrong or found, key=lambda one: (one.more["rule"] != "forgotten", one.from_ms, one.object))
    at_brokers = [
        _at_brokers(client, commits, world) for client, commits in sorted(facts.at_brokers.items(), key=_unnamed_last)
    ]
    broken = {rule: sum(one.more["rule"] == rule for one in own) + counts[rule] for rule in _RULES}
    broken["at_brokers"] = sum(facts.at_brokers.values())
    bad = sum(broken.values())
    why = f"of {counts['commits']} commits: {', '.join(f'{count} {_RULES[rule][0]}' for rule, count in broken.items())}"
    return verdict_by_counts(
        # Of a growing history old commits are gone when a queue is taken later.
        examined=counts["commits"] + sum(broken[rule] for rule in ("at_brokers", "behind", "left", "ahead")),
        wrong=bad - unsure,
        unsure=bad,
        why=why,
        why_unsure=f"{why}, which a killed consumer's lost rows or the machine's lateness may explain",
        nothing="no offset was committed" if world.of_kind("consumer") else "there was no consumer",
        unclear=unclear,
        measured={"commits": counts["commits"], **broken},
        allowed={"bound_ms": 0.0, "formula": NEVER, "row": ROW},
        findings=(*first[:FINDINGS_MAX], *at_brokers),
    )


def _unnamed_last(one: tuple[str, int]) -> tuple[bool, str]:
    return not one[0], one[0]


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,398 commits: 0 skipped a message, 0 went backwards" """
    shown = [rule for rule in _RULES if rule in ("ahead", "back") or measured.get(rule)]
    said = ", ".join(f"{measured.get(rule, 0):,} {_RULES[rule][1]}" for rule in shown)
    return f"{measured.get('commits', 0):,} commits: {said}"


def _begun(control: Control, world: World) -> Iterator[Finding]:
    """Queues that a consumer began to read elsewhere than at the committed offset that it was answered, or without an
    answer."""
    groups = commit_rules(control, world).groups.values()
    group_of = {member: group.name for group in groups for member in group.members}
    for row in (row for row in control.rows("queue_taken") if row.node in group_of):
        answered = row.said.get("answered")
        is_elsewhere = answered is not None and answered >= 0 and row.offset != answered
        if is_elsewhere or (row.node, row.time_ms) in unread(control):
            said = {"rule": "older", "group": group_of[row.node], "queue_id": row.queue_id, "offset": row.offset}
            yield finding(
                (row.node, row.broker_name, row.topic),
                "began at a wrong offset" if is_elsewhere else "began without an answer",
                (row.time_ms, row.time_ms),
                at_no_time("RebalancePushImpl.computePullFromWhere"),
                out=(row.time_ms, row.time_ms + 1.0),
                examined=1,
                wrong=1,
                more={**said, "answered": answered},
            )


def _at_brokers(client: str, commits: int, world: World) -> Finding:
    return finding(
        client or "consumers",
        "broadcast offsets at a broker",
        (0.0, world.end_ms),
        Rule("with broadcasting each consumer keeps its own offsets"),
        wrong=1,
        more={"rule": "at_brokers", "commits": commits},
    )
