"""A broker name has one master.

    claims     where another's claim begins while one lasts (record/claims.py), both are masters until one of them
               claims no more
    told       who registers as slave is answered with the master's address
    no id 0    where a slave may act as master, nobody may write to what the name has; where brokers elect their master,
               there is one again in time (elected_masters.py), and -1 is an id for a short time only

Who else a table names, as which id, at which address and with which permission is routes_as_registered's; of a slave
that acts as master, too, where its transport recorded what it read. Names that the run has no broker of, and what
somebody registered by hand, are nobody's to judge here, but where the scenario promises that `masters_stay`
(promised.py).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...oracle.intervals import Stretch, longest
from ...oracle.roles import members_of, two_masters
from ...oracle.world import World
from ...topology import broker_name
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import finding, lasting, of_many, rounded, verdict_of
from ..record.claims import claims_of, together
from ..record.control import Control
from ..record.received import received
from ..tolerance import tolerance
from .elected_masters import NO_MASTER, NOT_TOLD, of_elections, of_tables
from .promised import masters_stay

NAME = "one_master"
SLAVE_TOLD = "tells a slave its master"
_NO_ROUTES = ("two masters", NO_MASTER, NOT_TOLD, SLAVE_TOLD)


def judge(control: Control, world: World) -> Verdict:
    """Examined: names that masters claimed at each NameServer, and tables. Violations: two masters, or none."""
    findings = [*_of_claims(control, world), *of_tables(control, world), *of_elections(control, world)]
    findings += [*_answers(control, world), *masters_stay(control, world)]
    return verdict_of(
        NAME,
        findings,
        measured={
            "claims": sum(f.examined for f in findings if f.kind == "two masters"),
            "routes": sum(f.examined for f in findings if f.kind not in _NO_ROUTES),
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
    says="no broker name had two masters at once, or was without a master for longer than an election takes",
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


def _answers(control: Control, world: World) -> Iterator[Finding]:
    """What each NameServer answered a slave, as the slave's transport read it, while it must have had one broker as
    master of the name, from before the slave asked until after the slave was answered."""
    claims, apart_ms, of = claims_of(control, world), world.timers.delivery_ms, received(control, world)
    told: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    for row in control.rows("register"):
        value, name_server = row.decoded or {}, world.owners.get(row.name_server or "", "")
        if "master" not in value:
            continue
        from_ms, to_ms = row.began_ms - apart_ms, row.time_ms + apart_ms
        masters = {
            claim.address
            for life in world.lives_of(name_server)
            for claim in claims.get((name_server, life.incarnation, broker_name(row.node)), ())
            if claim.first_ms <= from_ms
            and to_ms <= claim.times[-1]
            and of.must_have(life, world.owners.get(claim.address, ""), from_ms, to_ms)
        }
        if len(masters) == 1:
            told[name_server, row.node].append((row.time_ms, value["master"] not in masters))
    for about, answers in sorted(told.items()):
        wrong = [at_ms for at_ms, is_wrong in answers if is_wrong]
        told_row = "registerBroker: a slave is answered with its master's address"
        yield of_many(about, SLAVE_TOLD, (answers[0][0], answers[-1][0]), told_row, len(answers), wrong)
