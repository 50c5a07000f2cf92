"""A broker name has one master, and every id in its routes is one of its brokers'.

    claims     a broker claims a name by registering as id 0 (`registration`), and goes on doing so until it registers
               as something else, is dropped, stands still, ends, or leaves a registration out. Where another's claim
               begins meanwhile, both are masters until one of them claims no more.
    id 0       in a table or an answer it is who may be master (oracle/roles.py); a slave that acts as one has no write
               permission, and no other id is smaller
    no id 0    where a slave may act as master, nobody may write to what the name has; where brokers elect their master,
               there is one again in time (elected_masters.py)
    other ids  some broker of the name has them; -1 is nobody's, but for a short time of one that waits for an election
    addresses  one address has one id

Names that the run has no broker of, and what somebody registered by hand, are nobody's to judge here, but where the
scenario promises that `masters_stay` (promised.py).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...oracle.intervals import Stretch, merged, until_next, without
from ...oracle.promises import told_by_hand
from ...oracle.roles import NO_ID, Members, election, has_id, may_be_master, members_of, two_masters, unsettled
from ...oracle.windows import Window
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import NEVER, at_no_time, finding, rounded, verdict_of
from ..record.control import Control, Row, decoded, order
from ..record.known_brokers import MASTER_ID, words
from ..tolerance import tolerance
from .elected_masters import NO_MASTER, NOT_TOLD, of_elections
from .promised import masters_stay

NAME = "one_master"
_ROW = "one master"
_WRITE = 2
_WAITS = "an id that its broker only waits with"


class _Claim(NamedTuple):
    """The registrations of one broker as master of its name at one NameServer, without a gap."""

    address: str
    first_ms: float
    times: list[float]
    """Of each, ascending."""


class _Shown(NamedTuple):
    """A route in a table, an answer or a client's hands in [from_ms, to_ms)."""

    node: str
    is_table: bool
    topic: str
    from_ms: float
    to_ms: float
    value: str


class _Wrong(NamedTuple):
    kind: str
    broker: str
    came: str


def judge(control: Control, world: World) -> Verdict:
    """Examined: names that masters claimed at each NameServer, and routes. Violations: two masters, and ids that nobody
    has."""
    findings = [*_of_claims(control, world), *_of_routes(control, world), *of_elections(control, world)]
    findings += masters_stay(control, world)
    return verdict_of(
        NAME,
        findings,
        measured={
            "claims": sum(f.examined for f in findings if f.kind == "two masters"),
            "routes": sum(f.examined for f in findings if f.kind not in ("two masters", NO_MASTER, NOT_TOLD)),
            **_elections(findings),
            "longest_two_masters_ms": rounded(
                max((f.measured_ms or 0.0 for f in findings if f.kind == "two masters"), default=0.0)
            ),
        },
        nothing="no broker registered as master, and no route was seen",
        noun="names had two masters, none, or an id that is nobody's",
    )


CHECK = Check(
    name=NAME,
    says="no broker name had two masters, none for longer than an election takes, a slave for its master, or an id "
    "that none of its brokers has",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES,),
    judge=judge,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    said = (
        f"{measured.get('claims', 0):,} registrations as master, "
        f"two at once for {(measured.get('longest_two_masters_ms') or 0) / 1000:.1f} s at most"
    )
    if "longest_without_master_ms" in measured:
        said += f"; none for {measured['longest_without_master_ms'] / 1000:.1f} s at most"
        if (told_ms := measured.get("longest_until_told_ms")) is not None:
            said += f", clients told after {told_ms / 1000:.1f} s"
    return said


def _elections(findings: Sequence[Finding]) -> dict[str, float | None]:
    """Of names that elect their masters: for how long after a change NameServers had none, and clients; the longest."""
    found: dict[str, float | None] = {}
    for key, kind in (("longest_without_master_ms", NO_MASTER), ("longest_until_told_ms", NOT_TOLD)):
        times = [f.measured_ms for f in findings if f.kind == kind and f.measured_ms is not None]
        if times:
            found[key] = rounded(max(times))
    return found


# -- who registers as master -----------------------------------------------------------------------------------------


def _of_claims(control: Control, world: World) -> Iterator[Finding]:
    for (name_server, _, name), claims in sorted(_claims(control, world).items()):
        window = two_masters(world.timers, members_of(world)[name])
        two = _both(claims, may_meet=members_of(world)[name].elects)
        both = max(two, default=Stretch(0.0, 0.0), key=lambda one: one.end_ms - one.start_ms)
        first_ms, last_ms = claims[0].first_ms, max(claim.times[-1] for claim in claims)
        length_ms = both.end_ms - both.start_ms
        nodes = [node for node in members_of(world)[name].nodes if world.lives_of(node)]
        from_ms = both.start_ms if length_ms else first_ms
        span = from_ms - world.timers.R_ms, max(both.end_ms, from_ms)
        allowed = tolerance(world.timers, control.lateness.largest(world, nodes, *span), window.timers)
        over_ms = max(length_ms - window.latest_ms, 0.0)
        yield finding(
            (name_server, name),
            "two masters",
            (from_ms, both.end_ms if length_ms else last_ms),
            window,
            out=(both.start_ms + window.latest_ms, both.end_ms) if over_ms else None,
            tolerance=allowed,
            measured_ms=length_ms,
            over_ms=over_ms,
            examined=sum(len(claim.times) for claim in claims),
            more={"masters": ", ".join(sorted({claim.address for claim in claims}))},
        )


def _claims(control: Control, world: World) -> Mapping[tuple[str, int, str], list[_Claim]]:
    """NameServer, its incarnation and broker name → the claims in order of their beginning."""
    found: dict[tuple[str, int, str], list[_Claim]] = defaultdict(list)
    open_: dict[tuple[str, int, str], dict[str, _Claim]] = defaultdict(dict)
    members, by_hand = members_of(world), told_by_hand(world)
    for row in sorted(control.rows("registration", "broker_dropped"), key=order):
        name, address = row.broker_name or "", row.address or ""
        if name not in members or row.time_ms >= world.end_ms or by_hand.may_name(name, str(row.broker_id), address):
            continue
        key = row.node, row.incarnation, name
        if row.event == "broker_dropped" or row.broker_id:
            if address in open_[key]:
                found[key].append(open_[key].pop(address))
            continue
        if (
            row.code
            or row.broker_id is None
            or not _is_there(world, members[name].owner(address), address, row.time_ms)
        ):
            continue
        claim = open_[key].get(address)
        if claim is not None and not _goes_on(world, members[name].owner(address), claim.times[-1], row.time_ms):
            found[key].append(claim)
            claim = None
        if claim is None:
            claim = open_[key][address] = _Claim(address, row.time_ms, [])
        claim.times.append(row.time_ms)
    for key, claims in open_.items():
        found[key] += claims.values()
    return {key: sorted(claims, key=lambda claim: claim.first_ms) for key, claims in found.items() if claims}


def _is_there(world: World, node: str | None, address: str, at_ms: float) -> bool:
    """Whether the broker lives, at that address: what a link held back and gives now is nobody's claim."""
    late_ms = world.timers.delivery_ms
    if node is not None and world.had_before(node, address, at_ms - late_ms):
        return False
    lives = () if node is None else world.lives_of(node)
    return not lives or any(life.start_ms - late_ms <= at_ms <= life.end_ms + late_ms for life in lives)


def _goes_on(world: World, node: str | None, last_ms: float, at_ms: float) -> bool:
    """Whether a broker that registered at both times was master in between, too."""
    timers = world.timers if node is None else world.timers_of(node)
    if at_ms - last_ms > timers.R_ms + timers.B_ms + timers.C_ms:
        return False
    return node is None or not any(fault.overlaps(last_ms, at_ms) for fault in world.process_faults(node))


def _both(claims: Sequence[_Claim], *, may_meet: bool) -> Iterator[Stretch]:
    """From when a second master began until one of the two claimed the name for the last time; where they may not meet
    at all, at least until the first of them did so once more."""
    for number, one in enumerate(claims):
        for later in claims[number + 1 :]:
            if later.address == one.address or later.first_ms > one.times[-1]:
                continue
            until_ms = min(one.times[-1], later.times[-1])
            if not may_meet:
                until_ms = max(until_ms, next(at_ms for at_ms in one.times if at_ms >= later.first_ms))
            yield Stretch(later.first_ms, until_ms)


# -- what routes show ------------------------------------------------------------------------------------------------


def _of_routes(control: Control, world: World) -> Iterator[Finding]:
    judged = _Judged(world)
    right: dict[str, list[_Shown]] = defaultdict(list)
    wrong: dict[tuple[str, str, str], list[tuple[_Shown, _Wrong]]] = defaultdict(list)
    for shown in _routes(control, world):
        found = list(judged.wrong(shown))
        if not found and judged.names(shown):
            right[shown.node].append(shown)
        for one in found:
            wrong[shown.node, one.broker, one.kind].append((shown, one))
    for (node, broker, kind), seen in sorted(wrong.items()):
        yield _finding(control, world, node, broker, kind, seen)
    for node, routes in sorted(right.items()):
        yield finding(
            node,
            "as it is",
            (routes[0].from_ms, max(shown.to_ms for shown in routes)),
            at_no_time(_ROW),
            examined=len(routes),
        )


def _routes(control: Control, world: World) -> Iterator[_Shown]:
    """Every route that a process held, got or took, and when: until its next of the topic, or the process' end."""
    ends = {(life.node, life.incarnation): min(life.end_ms, world.end_ms) for life in world.lives}
    of: dict[tuple[str, str, int, str, str], list[Row]] = defaultdict(list)
    for row in control.rows("route", "route_answer", "route_changed"):
        if row.time_ms < world.end_ms:
            asked = (row.name_server or "") if row.event == "route_answer" else ""
            of[row.event, row.node, row.incarnation, asked, row.topic or ""].append(row)
    for (event, node, incarnation, _, topic), rows in of.items():
        end_ms = ends.get((node, incarnation), world.end_ms)
        for row, to_ms in until_next(rows, end_ms):
            if row.value is not None and row.value != "null":
                yield _Shown(node, event == "route", topic, row.time_ms, to_ms, row.value)


class _Judged:
    """What every route is held against."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._members = members_of(world)
        self._by_hand = told_by_hand(world)
        self._permitted = {act.broker for act in world.acts if act.f == "add_write_perm"}
        """The names that somebody gave the write permission by hand."""

    def names(self, shown: _Shown) -> bool:
        """Whether the route names any broker of the run."""
        route = decoded(shown.value)
        return isinstance(route, Mapping) and any(name in self._members for name in route.get("brokers") or {})

    def wrong(self, shown: _Shown) -> Iterator[_Wrong]:
        """One entry for each broker name that is shown wrongly."""
        route = decoded(shown.value)
        if not isinstance(route, Mapping):
            return
        for name, ids in (route.get("brokers") or {}).items():
            members = self._members.get(name)
            if members is None:
                continue
            ids = {id_: at for id_, at in ids.items() if not self._by_hand.may_name(name, id_, at)}
            kinds = [self._kind(shown, name, members, id_, at, route) for id_, at in ids.items()]
            row = (route.get("queues") or {}).get(name)
            is_writable = row is not None and bool(row[2] & _WRITE) and name not in self._permitted
            if members.has_acting_master and shown.is_table and MASTER_ID not in ids and is_writable:
                kinds.append("without a master, and with the write permission")
            if len(set(ids.values())) < len(ids):
                kinds.append("one address under two ids")
            if kind := next((kind for kind in kinds if kind), ""):
                yield _Wrong(kind, name, words(route))

    def _kind(
        self, shown: _Shown, name: str, members: Members, id_: str, address: str, route: Mapping[str, Any]
    ) -> str:
        """In words, what is wrong with an entry; "" for nothing."""
        # A client keeps a route for as long as nobody gives it another.
        from_ms = shown.from_ms if shown.is_table else -math.inf
        if id_ == str(NO_ID) and members.elects:
            return _WAITS if shown.is_table else ""
        number = int(id_) if id_.lstrip("-").isdigit() else NO_ID
        if id_ != MASTER_ID:
            return (
                "" if has_id(self._world, name, number, from_ms, shown.to_ms) else "an id that none of its brokers has"
            )
        owner = members.owner(address)
        if owner is None:
            return "a master that is none of its brokers"
        if may_be_master(self._world, owner, shown.to_ms):
            return ""
        if not members.has_acting_master:
            return "a slave as master"
        others = (route.get("brokers") or {}).get(name, {}).keys() - {MASTER_ID}
        ids = self._world.ids_of(owner, from_ms, shown.to_ms)
        if any(int(other) < min(ids) for other in others):
            return "a slave that acts as master beside one with a smaller id"
        row = (route.get("queues") or {}).get(name)
        if row is not None and row[2] & _WRITE:
            return "a slave that acts as master with the write permission"
        return ""


def _finding(
    control: Control, world: World, node: str, broker: str, kind: str, seen: Sequence[tuple[_Shown, _Wrong]]
) -> Finding:
    """Of all topics together: for how long the node showed the broker so, at a stretch."""
    window = Window(0, 0, NEVER, _ROW)
    stretches = merged(Stretch(shown.from_ms, max(shown.to_ms, shown.from_ms + 1.0)) for shown, _ in seen)
    if kind == _WAITS:
        window = election(world.timers, members_of(world)[broker])
        away = unsettled(world, broker)
        stretches = [left for one in stretches for left in without(*one, away)]
    longest = max(stretches, default=Stretch(0.0, 0.0), key=lambda one: one.end_ms - one.start_ms)
    length_ms = longest.end_ms - longest.start_ms
    over_ms = max(length_ms - window.latest_ms, 0.0)
    lag_ms = control.lateness.largest(world, (node,), longest.start_ms - world.timers.R_ms, longest.end_ms)
    allowed = tolerance(world.timers, lag_ms, window.timers)
    first, what = seen[0]
    return finding(
        (node, broker, first.topic),
        kind,
        (min(shown.from_ms for shown, _ in seen), max(shown.to_ms for shown, _ in seen)),
        window,
        out=(longest.start_ms + window.latest_ms, longest.end_ms) if over_ms else None,
        tolerance=allowed,
        measured_ms=length_ms,
        over_ms=over_ms,
        examined=len(seen),
        more={"came": what.came},
        **({} if kind == _WAITS else {"wrong": 1}),
    )
