"""An act by hand has its effect at the servers that were asked, at once, and for as long as RocketMQ's rules say.

    of a NameServer   register, unregister, wipe_write_perm, add_write_perm, delete_topic: its routes are what these
                      and the brokers' own registrations make of each other (differences.py)
    of a broker       update_topic, delete_topic: it has the topic as asked, with its permission, or not at all, and
                      after a restart, too; update_config: with another brokerPermission, each topic has what the
                      brokerPermission leaves of the permission that the topic had before

Only what was answered with success is judged, and of NameServers where their transports recorded what they read.
What brokers have to tell NameServers of it, and what clients do then, is for the other checks.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ....remoting.codes import PERM_READ, PERM_WRITE
from ....remoting.node.profile import Profile
from ....remoting.topics import is_own
from ...oracle.by_hand import Act
from ...oracle.link import resent_after_ms
from ...oracle.name_server import REGISTERED
from ...oracle.roles import elects
from ...oracle.slaves import SYNCHRONIZED_MS, slaves_of
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import at_no_time, finding, verdict_of
from ..record.control import Control
from ..record.differences import MISSING, by_hand, differences
from ..record.received import received
from ..record.registered_rows import row_of
from ..record.route_tables import route_tables
from ..routes.promised import wipes_last

RW, _PERMISSION = PERM_READ | PERM_WRITE, "brokerPermission"
_ROW = "an operator's change is in the table at once, until the next registration or command"
_KINDS = {
    "register": "registered",
    "unregister": "unregistered",
    "wipe_write_perm": "permission",
    "add_write_perm": "permission",
    "delete_topic": "deleted",
}

_ALWAYS_DONE = ("wipe_write_perm", "add_write_perm", "delete_topic")
"""What a NameServer does for everybody, and answers with success, whatever it holds (DefaultRequestProcessor)."""


@check(
    says="an operator's change of a registration, permission or topic works at once and lasts until the next change",
    group=Group.BY_HAND,
    section=Section.ROUTES,
    needs=(Needs.ACTS, Needs.WIRE),
    tells=lambda measured: f"{measured.get('acts', 0):,} acts, {measured.get('wrong', 0):,} wrong",
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: acts that were answered. Violations: what their nodes then held instead, and acts that were refused."""
    servers = {node.name for node in world.of_kind("name_server")}
    findings = [
        found
        for act in world.acts
        if act.is_done
        for found in (_at_name_server if act.node in servers else _at_broker)(control, world, act)
    ]
    refused = (act for act in world.acts if act.node in servers and act.f in _ALWAYS_DONE and act.code)
    findings += [
        _finding(control, world, act, "refused by hand", (act.ended_ms, world.end_ms), {"came": f"code {act.code}"})
        for act in refused
        if not any(one.overlaps(act.began_ms, act.ended_ms + 1000.0) for one in world.process_faults(act.node))
    ]
    findings += wipes_last(route_tables(control, world), world)
    return verdict_of(
        findings,
        measured={"acts": len({finding.after for finding in findings}), "wrong": sum(f.wrong for f in findings)},
        nothing="no operator's command was answered with success, or no NameServer recorded what it read",
        noun="operators' commands did not take effect as they must",
    )


def _at_name_server(control: Control, world: World, act: Act) -> Iterator[Finding]:
    """Of all that differs because of it what differed longest."""
    for life in world.lives_of(act.node):
        if act.f not in _KINDS or not life.start_ms <= act.ended_ms < life.end_ms:
            continue
        found = differences(control, world, life)
        if found is None:
            continue
        wrong = [one for one in found if by_hand(world, life, one) == act.act_id]
        worst = max(wrong, key=lambda one: one.length_ms, default=None)
        more = {} if worst is None else {"came": worst.came, "due": worst.due}
        is_spared = worst is not None and worst.kind == MISSING and act.f in ("unregister", "delete_topic")
        kind = "spared" if is_spared else _KINDS[act.f]
        yield _finding(control, world, act, kind, worst and (worst.from_ms, worst.to_ms), more)


def _at_broker(control: Control, world: World, act: Act) -> Iterator[Finding]:
    if act.f == "update_config":
        yield from _permits(control, world, act)
    if act.f not in ("update_topic", "delete_topic") or _overlaps_another(world, act):
        return
    rows = [row for row in control.rows("topic") if row.node == act.node and row.topic == act.topic]
    has = next((row_of(row.decoded) for row in reversed(rows) if row.time_ms <= act.ended_ms + 0.5), None)
    asked: tuple[Any, ...] | None = None
    if act.f == "update_topic":
        asked = act.value.get("read_queues"), act.value.get("write_queues"), act.value.get("perm", RW)
        asked = asked if _permits_all(world, act) else asked[:2]
    is_right = has is None if asked is None else has is not None and has[: len(asked)] == asked
    more = {} if is_right else {"came": str(has), "due": str(asked)}
    out = None if is_right else (act.ended_ms, act.ended_ms + world.timers.R_ms)
    kind = "the broker's deleted topic" if asked is None else "the broker's topic"
    yield _finding(control, world, act, kind, out, more)
    may_come_back = act.topic in world.topics and any(world.values(act.node, "autoCreateTopicEnable"))
    if asked is None and is_right and not may_come_back and not elects(world, act.node):
        yield from _stays_away(control, world, act, [row.time_ms for row in rows if row.decoded])


def _overlaps_another(world: World, act: Act) -> bool:
    """Whether another act on the topic ran at the same time: the broker may have handled either first."""
    others = (one for one in world.acts if (one.node, one.topic) == (act.node, act.topic) and one != act)
    return any(one.began_ms < act.ended_ms and act.began_ms < one.ended_ms for one in others)


def _stays_away(control: Control, world: World, act: Act, had_ms: Sequence[float]) -> Iterator[Finding]:
    """Of a topic that the act deleted at a broker, and that no send creates there: whether the broker had it again
    before another act, and whether a slave registered it when it had copied its master's topics since."""
    others = (one for one in world.acts if (one.node, one.topic) == (act.node, act.topic))
    until_ms = min((one.began_ms for one in others if one.began_ms > act.began_ms), default=world.end_ms)
    back_ms = next((at_ms for at_ms in had_ms if act.ended_ms + 0.5 < at_ms < until_ms), None)
    yield _finding(control, world, act, "comes back", None if back_ms is None else (back_ms, until_ms), {})
    from_ms, of, links = act.ended_ms + 2 * SYNCHRONIZED_MS, received(control, world), world.link_faults
    for slave in slaves_of(world, act.node):
        hit = (fault.overlaps(act.began_ms, from_ms) for fault in world.way_faults(slave, act.node))
        if back_ms is not None or from_ms >= until_ms or any(hit):
            continue
        named_ms = [
            one.at_ms
            for life in world.lives_of_kind("name_server")
            for one in of.requests(life)
            if one.f == REGISTERED and one.address == world.address_at(slave, one.at_ms)
            if act.topic in one.said.get("topics", ()) and from_ms < one.at_ms < until_ms
            if not any(f.start_ms < one.at_ms <= f.end_ms + resent_after_ms(f) for f in links(slave, life.node))
        ]
        out = (min(named_ms), max(until_ms, min(named_ms) + 1.0)) if named_ms else None
        yield _finding(control, world, act._replace(node=slave), "comes back", out, {})


def _permits(control: Control, world: World, act: Act) -> Iterator[Finding]:
    """Of an act that changes a broker's permission: whether each topic that nobody else changed since has what the
    permission leaves of the topic's own: the bits of both, and in 4.9 the broker's permission alone."""
    acts = [one for one in world.acts if one.node == act.node]
    changes = [one for one in acts if one.broker_permission is not None]
    permission = act.broker_permission
    was_whole = int(str(world.setting(act.node, _PERMISSION))) & RW == RW
    if permission is None or not was_whole or not all(one.is_done for one in changes if one.began_ms <= act.began_ms):
        return
    named = {one.topic for one in acts if one.ended_ms > changes[0].began_ms}
    rows = [row for row in control.rows("topic") if row.node == act.node and row.topic not in named]
    had, has = (
        {row.topic: (row_of(row.decoded) or ())[2:] for row in rows if row.time_ms <= until_ms}
        for until_ms in (changes[0].began_ms, act.ended_ms + 0.5)
    )
    is_whole, of_both = permission & RW == RW, world.timers_of(act.node).profile is Profile.V5_X
    due = {
        topic: perm if is_whole else tuple(permission & bits if of_both else permission for bits in perm)
        for topic, perm in had.items()
    }
    other = min((topic for topic in due if due[topic] != has[topic]), key=lambda it: (is_own(it), it), default=None)
    out = None if other is None else (act.ended_ms, act.ended_ms + world.timers.R_ms)
    yield _finding(control, world, act._replace(topic=other or ""), "the broker's topic", out, {})


def _permits_all(world: World, act: Act) -> bool:
    """Whether the broker's own permission, which limits that of its topics, was to read and write."""
    before = (one for one in world.acts if one.node == act.node and one.began_ms < act.ended_ms)
    changes = [one for one in before if one.broker_permission is not None]
    said = [world.setting(act.node, _PERMISSION), *(one.broker_permission for one in changes[-1:])]
    return all(one.is_done for one in changes[-1:]) and all(int(str(permission)) & RW == RW for permission in said)


def _finding(
    control: Control, world: World, act: Act, kind: str, out: tuple[float, float] | None, more: dict[str, Any]
) -> Finding:
    allowed = control.lateness.tolerance(world, (act.node,), act.began_ms, act.ended_ms + 1000, 1)
    over_ms = 0.0 if out is None else out[1] - out[0]
    return finding(
        (act.node, act.act_id, act.topic or act.broker),
        kind,
        (act.began_ms, act.ended_ms),
        at_no_time(_ROW),
        out=out,
        tolerance=allowed,
        over_ms=over_ms,
        after=act.act_id,
        more=more if over_ms > allowed.valid_up_to_ms else {},
    )
