"""A broker name has one master.

    claims     where another's claim begins while one lasts (record/claims.py), both are masters until one of them
               claims no more
    no id 0    where a slave may act as master, nobody may write to what the name has; where brokers elect their master,
               there is one again in time (elected_masters.py), and -1 is an id for a short time only

Who else a table names, as which id, at which address and with which permission is routes_as_registered's; of a slave
that acts as master, too, where its transport recorded what it read. Names that the run has no broker of, and what
somebody registered by hand, are nobody's to judge here, but where the scenario promises that `masters_stay`
(promised.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...oracle.intervals import Stretch, longest, merged, without
from ...oracle.roles import NO_ID, Members, election, members_of, two_masters, unsettled
from ...oracle.windows import Window
from ...oracle.world import World
from ...topology import is_slave
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import NEVER, at_no_time, finding, lasting, rounded, verdict_of
from ..record.claims import claims_of, together
from ..record.control import Control, decoded
from ..record.known_brokers import MASTER_ID, words
from ..record.received import received
from ..record.route_tables import route_tables
from ..tolerance import tolerance
from .elected_masters import NO_MASTER, NOT_TOLD, of_elections
from .promised import masters_stay

NAME = "one_master"
_ROW = "one master"
_WRITE = 2
_WAITS = "an id that its broker only waits with"


class _Shown(NamedTuple):
    """What a table showed of a name in [from_ms, to_ms)."""

    from_ms: float
    to_ms: float
    topic: str
    came: str


def judge(control: Control, world: World) -> Verdict:
    """Examined: names that masters claimed at each NameServer, and tables. Violations: two masters, or none."""
    findings = [*_of_claims(control, world), *_of_tables(control, world), *of_elections(control, world)]
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
        nothing="no broker registered as master",
        noun="names had two masters, or none",
    )


CHECK = Check(
    name=NAME,
    says="no broker name had two masters, or no master for longer than an election takes",
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


def _of_claims(control: Control, world: World) -> Iterator[Finding]:
    for (name_server, _, name), claims in sorted(claims_of(control, world).items()):
        window = two_masters(world.timers, members_of(world)[name])
        two = together(claims, may_meet=members_of(world)[name].elects)
        claimed = Stretch(claims[0].first_ms, max(claim.times[-1] for claim in claims))
        both = longest(two)
        span = both if both.end_ms else claimed
        nodes = [node for node in members_of(world)[name].nodes if world.lives_of(node)]
        lag_ms = control.lateness.largest(
            world, nodes, span.start_ms - world.timers.R_ms, max(both.end_ms, span.start_ms)
        )
        yield finding(
            (name_server, name),
            "two masters",
            span,
            window,
            **lasting(both, window, tolerance(world.timers, lag_ms, window.timers)),
            examined=sum(len(claim.times) for claim in claims),
            more={"masters": ", ".join(sorted({claim.address for claim in claims}))},
        )


def _of_tables(control: Control, world: World) -> Iterator[Finding]:
    """Of names whose master changes: for each NameServer one finding of what it showed wrongly, else of all routes."""
    members = {name: of for name, of in members_of(world).items() if of.elects or of.has_acting_master}
    permitted = {act.broker for act in world.acts if act.may_be_done}
    shown: dict[tuple[str, str, str], list[_Shown]] = defaultdict(list)
    for (node, incarnation), topics in route_tables(control, world).stretches.items():
        life = next(life for life in world.lives_of(node) if life.incarnation == incarnation)
        if received(control, world).routes(life) is not None:
            continue
        for topic, stretches in topics.items():
            for st in stretches:
                route = decoded(st.value) or {}
                for name in (route.get("brokers") or {}).keys() & members.keys() - permitted:
                    kind = _kind(members[name], route["brokers"][name], (route.get("queues") or {}).get(name))
                    shown[node, name, kind].append(_Shown(st.s, st.e, topic, words(route)))
    for (node, name, kind), seen in sorted(shown.items()):
        if kind:
            yield _finding(control, world, node, name, kind, seen)
        else:
            span = min(one.from_ms for one in seen), max(one.to_ms for one in seen)
            yield finding((node, name), "as it is", span, at_no_time(_ROW), examined=len(seen))


def _kind(members: Members, ids: Mapping[str, str], row: Sequence[int] | None) -> str:
    """In words, what is wrong; "" for nothing."""
    if str(NO_ID) in ids and members.elects:
        return _WAITS
    is_led = not is_slave(members.owner(ids.get(MASTER_ID, "")) or "broker/1")
    if members.has_acting_master and not members.elects and not is_led and row is not None and row[2] & _WRITE:
        return "without a master, and with the write permission"
    return ""


def _finding(control: Control, world: World, node: str, broker: str, kind: str, seen: Sequence[_Shown]) -> Finding:
    """Of all topics together: for how long the node showed the broker so, at a stretch."""
    window = Window(0, 0, NEVER, _ROW)
    stretches = merged(Stretch(shown.from_ms, max(shown.to_ms, shown.from_ms + 1.0)) for shown in seen)
    if kind == _WAITS:
        window = election(world.timers, members_of(world)[broker])
        away = unsettled(world, broker)
        stretches = [left for one in stretches for left in without(*one, away)]
    worst = longest(stretches)
    lag_ms = control.lateness.largest(world, (node,), worst.start_ms - world.timers.R_ms, worst.end_ms)
    measured = lasting(worst, window, tolerance(world.timers, lag_ms, window.timers))
    return finding(
        (node, broker, seen[0].topic),
        kind,
        (min(shown.from_ms for shown in seen), max(shown.to_ms for shown in seen)),
        window,
        examined=len(seen),
        more={"came": seen[0].came},
        **measured | ({} if kind == _WAITS else {"wrong": 1}),
    )
