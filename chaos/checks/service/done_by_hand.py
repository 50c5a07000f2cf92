"""What somebody did by hand shows in the routes of whom was asked, at once, and for as long as RocketMQ's rules say.

    register         the broker is there, at that address and id, with those queues, until somebody else registers for
                     it, it is taken out, its connection closes, or it was silent for min(I, the scan after E); then not
    unregister       the address is gone (4.9: whoever has the id), until the broker's own next registration
    wipe_write_perm  no queue of the broker can be written (add_write_perm: each can be read and written), until its
                     dataVersion changes, or it registers as one that is new
    delete_topic     of a NameServer: no route, until a broker registers it anew (5.x: at the next registration); of one
                     cluster: the rows of the others' brokers stay, until their own next registration
    update_topic,    the broker has the topic as asked, or not at all
    delete_topic

Only what was answered with success is judged, and nothing where another registration was on its way at that moment.
What brokers have to tell NameServers of it, and what clients do then, is for the other checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ....remoting.node.profile import Profile
from ...oracle.by_hand import TABLE_ACTS, Act, expires_ms
from ...oracle.link import link_causes, process_causes
from ...oracle.name_server import Sent
from ...oracle.recorded import Life
from ...oracle.schedules import FIRST_SCAN_MS
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import at_no_time, finding, verdict_of
from ..record.control import Control, decoded
from ..record.known_brokers import words
from ..record.registered_rows import READ, WRITE, RegisteredRows, registered_rows, row_of
from ..record.route_tables import route_tables
from ..routes.promised import wipes_last
from ..tolerance import Tolerance, tolerance

NAME = "done_by_hand"
_ROW = "what was done by hand is in the table at once, until a broker or somebody else has the next say"

Route = dict[str, Any]


class _Claim(NamedTuple):
    """In [from_ms, to_ms) the route of each topic must be as `holds` says; `due` in words."""

    kind: str
    topics: Sequence[str]
    from_ms: float
    to_ms: float
    due: str
    holds: Callable[[Route], bool]


def judge(control: Control, world: World) -> Verdict:
    """Examined: acts that were answered with success. Violations: what their nodes then held instead."""
    judged = _Judged(control, world)
    findings = [finding for act in world.acts if act.is_done for finding in judged.of(act)]
    findings += wipes_last(route_tables(control, world), world)
    return verdict_of(
        NAME,
        findings,
        measured={"acts": len({finding.after for finding in findings}), "wrong": sum(f.wrong for f in findings)},
        nothing="nobody did anything by hand, or nothing was answered",
        noun="acts by hand did not show as they must",
    )


CHECK = Check(
    name=NAME,
    says="what somebody registers, wipes, changes or deletes by hand shows at once, and for as long as it must",
    group=Group.BY_HAND,
    section=Section.ROUTES,
    needs=(Needs.ACTS, Needs.WIRE),
    judge=judge,
    tells=lambda measured: f"{measured.get('acts', 0):,} acts, {measured.get('wrong', 0):,} wrong",
)


class _Judged:
    def __init__(self, control: Control, world: World) -> None:
        self._control, self._world = control, world
        self._tables = route_tables(control, world)
        self._rows: RegisteredRows = registered_rows(control, world)
        self._is_5 = world.timers.profile is Profile.V5_X
        self._brokers = {node.name: node.address for node in world.of_kind("broker")}
        self._telling = [node.name for node in world.of_kind("broker", "slave")]
        """Who registers topics: of 5.x slaves, the one with the smallest id where there is no master."""
        self._servers = {node.name for node in world.of_kind("name_server")}

    def of(self, act: Act) -> Iterator[Finding]:
        if act.node not in self._servers:
            yield from self._at_broker(act)
            return
        life = next((one for one in self._world.lives_of(act.node) if one.start_ms <= act.ended_ms < one.end_ms), None)
        if life is None or act.f == "closed":
            return
        for claim in self._claims(act, life):
            to_ms = min(claim.to_ms, life.end_ms, self._world.end_ms)
            if claim.from_ms < to_ms:
                yield self._finding(act, life, claim._replace(to_ms=to_ms))

    def _claims(self, act: Act, life: Life) -> Iterator[_Claim]:
        if self._is_on_its_way(act):
            return
        match act.f:
            case "register":
                yield from self._registered(act, life)
            case "unregister":
                to_ms = min(self._next_of(act, self._same_place(act)), self._registers(act.broker, act, changed=False))
                due = f"without {act.broker} {act.address}"
                yield _Claim("unregistered", self._tables.topics, self._at_once(act), to_ms, due, self._left(act))
            case "wipe_write_perm" | "add_write_perm":
                yield self._perm(act, life)
            case "delete_topic":
                yield self._deleted(act)
                yield from self._spared(act, life)

    # -- register

    def _registered(self, act: Act, life: Life) -> Iterator[_Claim]:
        timers, key = self._world.timers_of(act.node), str(act.broker_id)
        if self._is_refused(act) or (act.address in self._brokers.values() and act.broker not in self._brokers):
            return  # a live entry is its address's: that broker's own registrations keep this one, and its end takes it
        topics = act.value.get("topics") or {}
        perm = act.value.get("perm") or READ | WRITE
        silent_ms = act.ended_ms + min(timers.I_ms, expires_ms(timers))
        others_ms = min(self._next_of(act, self._same_place(act)), self._registers(act.broker, act, changed=False))
        if act.broker_id == 0:

            def held(topic: str) -> Callable[[Route], bool]:
                row = topics[topic], topics[topic], perm
                return lambda route: (
                    _address(route, act.broker, key) == act.address
                    and row_of((route.get("queues") or {}).get(act.broker)) == row
                )

            wiped_ms = self._next_of(act, lambda one: one.f in ("wipe_write_perm", "add_write_perm", "delete_topic"))
            for topic in topics:
                due = f"{act.broker} {act.address} [{topics[topic]} read, {topics[topic]} write, perm {perm}]"
                to_ms = min(silent_ms, others_ms, wiped_ms)
                if self._is_new(act, life) or topic not in self._tables.topics:
                    yield _Claim("registered", [topic], act.ended_ms, to_ms, due, held(topic))
        scans = FIRST_SCAN_MS[timers.profile] + life.start_ms, timers.S_ms
        expired_ms = act.ended_ms + expires_ms(timers)
        scanned_ms = scans[0] + scans[1] * max(0, math.ceil((expired_ms - scans[0]) / scans[1]))
        gone_ms = min(act.ended_ms + timers.I_ms, scanned_ms)
        again_ms = self._next_of(act, lambda one: one.f == "register" and one.address == act.address)  # any keeps it
        if act.address not in self._brokers.values():
            due = f"without {act.broker} {act.address}"
            yield _Claim("silent", self._tables.topics, gone_ms, again_ms, due, self._left(act))

    def _is_new(self, act: Act, life: Life) -> bool:
        """Whether the NameServer had to take what was registered: it is not the same that it has already."""
        before = [
            one
            for one in self._world.acts
            if one.node == act.node and one.ended_ms < act.began_ms and one.began_ms >= life.start_ms
        ]
        return not any(one.f == "register" and one.address == act.address for one in before)

    def _is_refused(self, act: Act) -> bool:
        """5.x: whether another address with a greater stateVersion may have been there."""
        mine = act.value.get("state_version") or 0
        return self._is_5 and any(
            one.f == "register"
            and (one.node, one.broker, one.broker_id) == (act.node, act.broker, act.broker_id)
            and one.address != act.address
            and (one.value.get("state_version") or 0) > mine
            for one in self._world.acts
            if one.began_ms < act.ended_ms
        )

    # -- unregister

    def _left(self, act: Act) -> Callable[[Route], bool]:
        key = str(act.broker_id)
        if self._is_5 or act.f == "register":
            return lambda route: act.address not in ((route.get("brokers") or {}).get(act.broker) or {}).values()
        return lambda route: _address(route, act.broker, key) is None

    def _at_once(self, act: Act) -> float:
        """5.x takes it out in another thread, behind whatever waits there."""
        return act.ended_ms + (self._world.timers.delivery_ms if self._is_5 else 0.0)

    # -- permissions and topics

    def _perm(self, act: Act, life: Life) -> _Claim:
        wipes = act.f == "wipe_write_perm"
        to_ms = min(
            self._registers(act.broker, act, changed=True),
            self._next_of(
                act, lambda one: one.broker == act.broker or one.address == self._brokers.get(act.broker, "none")
            ),
            self._next_of(act, lambda one: one.f == "delete_topic"),
        )
        process = life.node, life.incarnation
        there = [
            topic
            for topic, stretches in self._tables.stretches.get(process, {}).items()
            if any(
                act.broker in ((decoded(st.value) or {}).get("queues") or {})
                for st in stretches
                if st.s <= act.began_ms < st.e
            )
        ]

        def holds(route: Route) -> bool:
            row = row_of((route.get("queues") or {}).get(act.broker))
            return row is None or (not row[2] & WRITE if wipes else row[2] == READ | WRITE)

        due = f"{act.broker} not to be written" if wipes else f"{act.broker} with perm {READ | WRITE}"
        return _Claim("permission", there, act.ended_ms, to_ms, due, holds)

    def _deleted(self, act: Act) -> _Claim:
        of_cluster = self._of_cluster(act)
        to_ms = min(
            [
                self._next_of(act, lambda one: one.f == "register"),
                *(self._registers(broker, act, changed=not self._is_5) for broker in self._telling),
            ]
        )

        def holds(route: Route) -> bool:
            return not of_cluster & (route.get("queues") or {}).keys()

        return _Claim("deleted", [act.topic], act.ended_ms, to_ms, "code 17", holds)

    def _of_cluster(self, act: Act) -> set[str]:
        """The brokers whose rows go: those of the cluster that was named, or all."""
        cluster, own = act.value.get("cluster_name"), self._world.run.get("nodes") or {}
        return {
            broker
            for broker in self._brokers
            if not cluster or ((own.get(broker) or {}).get("cluster_name") or "DefaultCluster") == cluster
        }

    def _spared(self, act: Act, life: Life) -> Iterator[_Claim]:
        """What must stay, where one cluster was named: the row of each other broker that was there when it was asked.

        Not of a broker that somebody registered by hand, which may have put its name into that cluster, too.
        """
        strange = {one.broker for one in self._world.acts if one.f == "register" and one.node == act.node}
        of_process = self._tables.stretches.get((life.node, life.incarnation), {})
        before = next((st.value for st in of_process.get(act.topic, ()) if st.s <= act.began_ms < st.e), None)
        there = ((decoded(before) or {}).get("queues") or {}).keys()
        for broker in sorted((self._brokers.keys() & there) - self._of_cluster(act) - strange):
            dropped = (
                row.time_ms
                for row in self._control.rows("broker_dropped")
                if row.process == (life.node, life.incarnation)
                and row.broker_name == broker
                and row.time_ms >= act.began_ms
            )
            to_ms = min(
                [
                    self._registers(broker, act, changed=True),
                    self._registers(broker, act, changed=False),
                    self._next_of(act, lambda one: one.f == "delete_topic" or one.f in TABLE_ACTS),
                    *dropped,
                ]
            )

            def holds(route: Route, broker: str = broker) -> bool:
                return broker in (route.get("queues") or {})

            yield _Claim("spared", [act.topic], act.ended_ms, to_ms, f"{broker} as it was", holds)

    def _at_broker(self, act: Act) -> Iterator[Finding]:
        if act.f not in ("update_topic", "delete_topic"):
            return
        rows = [
            row
            for row in self._control.rows("topic")
            if row.node == act.node and row.topic == act.topic and row.time_ms <= act.ended_ms + 0.5
        ]
        has = row_of(rows[-1].decoded) if rows else None
        asked = (act.value.get("read_queues"), act.value.get("write_queues")) if act.f == "update_topic" else None
        is_right = has is None if asked is None else has is not None and has[:2] == asked
        tolerance_ = self._tolerance(act.node, act)
        over_ms = 0.0 if is_right else tolerance_.unknown_up_to_ms + self._world.timers.R_ms
        yield finding(
            (act.node, act.act_id, act.topic),
            "the broker's topic",
            (act.began_ms, act.ended_ms),
            at_no_time(_ROW),
            out=(act.ended_ms, act.ended_ms + over_ms) if over_ms else None,
            tolerance=tolerance_,
            measured_ms=over_ms,
            over_ms=over_ms,
            after=act.act_id,
            more={} if is_right else {"came": str(has), "due": str(asked)},
        )

    # -- who has the next say

    def _same_place(self, act: Act) -> Callable[[Act], bool]:
        """Acts that may put something else in the place of this one's broker, or take it out."""
        own = self._brokers.get(act.broker)

        def is_same(one: Act) -> bool:
            if one.f not in TABLE_ACTS:
                return False
            again = one.f == "register" and one.identity == act.identity and act.f == "register"
            return not again and (one.broker == act.broker or one.address in (act.address, own))

        return is_same

    def _next_of(self, act: Act, fits: Callable[[Act], bool]) -> float:
        later = (
            one.began_ms
            for one in self._world.acts
            if one.node == act.node
            and one.began_ms >= act.began_ms
            and one is not act
            and one.may_be_done
            and fits(one)
        )
        return min(later, default=math.inf)

    def _registers(self, broker: str, act: Act, *, changed: bool) -> float:
        """When the broker itself registers there next; `changed`: with another version, or because it was away."""
        sent = self._rows.sent(broker, act.node)
        mine = self._brokers.get(broker)
        if any(one.f == "register" and (one.node, one.address) == (act.node, mine) for one in self._world.acts):
            changed = False  # with its address the stranger has left its own version there, which the broker's is not
        version = self._version_held(broker, act)
        after = (
            one.began_ms for one in sent if one.ended_ms > act.began_ms and (not changed or one.version != version)
        )
        away: Iterable[float] = ()
        if broker in self._brokers:
            causes = [*process_causes(self._world, broker), *link_causes(self._world, broker, act.node)]
            away = (cause.start_ms for cause in causes if cause.end_ms > act.began_ms)
        return min([*after, *away], default=math.inf) if changed else min(after, default=math.inf)

    def _version_held(self, broker: str, act: Act) -> tuple[int, float] | None:
        """What the NameServer process had of the broker when it was asked; None where it had nothing, so that whatever
        comes next is new to it."""
        life = next(one for one in self._world.lives_of(act.node) if one.start_ms <= act.ended_ms < one.end_ms)
        before = [one for one in self._rows.sent(broker, act.node) if one.ended_ms <= act.began_ms and one.is_ok]
        if not before or before[-1].began_ms < life.start_ms:
            return None
        dropped = (
            row.time_ms
            for row in self._control.rows("broker_dropped")
            if row.process == (life.node, life.incarnation) and row.broker_name == broker
        )
        is_gone = any(before[-1].began_ms <= at_ms <= act.ended_ms for at_ms in dropped)
        return None if is_gone else before[-1].version

    def _is_on_its_way(self, act: Act) -> bool:
        """Whether a registration of a broker, or another act, was asked for and not answered when this one was."""

        def overlaps(one: Sent | Act) -> bool:
            return one.began_ms <= act.ended_ms and one.ended_ms >= act.began_ms

        sent = [one for broker in self._telling for one in self._rows.sent(broker, act.node) if overlaps(one)]
        acts = [one for one in self._world.acts if one is not act and one.node == act.node and overlaps(one)]
        paused = process_causes(self._world, act.node, "name_server")
        return bool(sent or acts) or any(c.start_ms <= act.ended_ms and c.end_ms >= act.began_ms for c in paused)

    # -- findings

    def _finding(self, act: Act, life: Life, claim: _Claim) -> Finding:
        tolerance_ = self._tolerance(act.node, act)
        from_ms, to_ms, topic, came = self._worst(life, claim)
        over_ms = max(to_ms - from_ms, 0.0)
        return finding(
            (act.node, act.broker, topic),
            claim.kind,
            (claim.from_ms, claim.to_ms),
            at_no_time(_ROW),
            out=(from_ms, to_ms) if over_ms else None,
            tolerance=tolerance_,
            after=act.act_id,
            more={"came": came, "due": claim.due} if over_ms else {},
        )

    def _worst(self, life: Life, claim: _Claim) -> tuple[float, float, str, str]:
        """The longest time in which the route of a topic was not as it must be."""
        worst = 0.0, 0.0, "", ""
        of_process = self._tables.stretches.get((life.node, life.incarnation), {})
        for topic in claim.topics:
            since_ms = None
            for stretch in of_process.get(topic, ()):
                s, e = max(stretch.s, claim.from_ms), min(stretch.e, claim.to_ms)
                if s >= e:
                    continue
                route = decoded(stretch.value) or {}
                if claim.holds(route):
                    since_ms = None
                    continue
                since_ms = s if since_ms is None else since_ms
                if e - since_ms > worst[1] - worst[0]:
                    worst = since_ms, e, topic, words(route)
        return worst

    def _tolerance(self, node: str, act: Act) -> Tolerance:
        lag_ms = self._control.lateness.largest(self._world, (node,), act.began_ms, act.ended_ms + 1000)
        return tolerance(self._world.timers, lag_ms, 1)


def _address(route: Route, broker: str, id_: str) -> str | None:
    found: str | None = ((route.get("brokers") or {}).get(broker) or {}).get(id_)
    return found
