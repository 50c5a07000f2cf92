"""A broker name has one master.

    claims     where another's claim begins while one lasts (record/claims.py), both are masters until one of them
               claims no more
    told       who registers as slave is answered with the master's address, and copies that master's log
    no id 0    where a slave may act as master, nobody may write to what the name has; where brokers elect their master,
               there is one again in time (elected_masters.py), and -1 is an id for a short time only

Who else a table names, as which id, at which address and with which permission is routes_as_registered's; of a slave
that acts as master, too, where its transport recorded what it read. Names that the run has no broker of, and what
somebody registered by hand, are nobody's to judge here, but where the scenario promises that `masters_stay`
(promised.py).
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....remoting.codes import MASTER_ID
from ...oracle.intervals import Stretch, grouped, longest, without
from ...oracle.name_server import REGISTERED, UNREGISTERED, Request
from ...oracle.roles import elects, members_of, two_masters
from ...oracle.slaves import again_ms
from ...oracle.world import World
from ...topology import broker_name
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Done, Rule, finding, lasting, of_done, rounded, verdict_of
from ..record.claims import claims_of, together
from ..record.control import Control, Row
from ..record.received import received
from .elected_masters import NO_MASTER, NOT_TOLD, of_elections, of_tables
from .promised import masters_stay

SLAVE_TOLD, SLAVE_COPIES = "answers a slave its master", "copies from its master"
SLAVE_TOLD_HA = "answers a slave its master's haServerAddr"
_TOLD_ROW = "registerBroker: a slave is answered with its master's address"
_HA_ROW = "registerBroker: a slave is answered with the haServerAddr that its master registered"
NAMED, _NAMED_ROW = "names a name's brokers", "getBrokerMemberGroup: the brokers that the NameServer has of the name"
_NO_ROUTES = ("two masters", NO_MASTER, NOT_TOLD, SLAVE_TOLD, SLAVE_TOLD_HA, SLAVE_COPIES, NAMED)


@check(
    says="no broker name had two masters at once; a broker name that elects its master had a new master in time; "
    "slaves copied their master's log",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES,),
    tells=lambda measured: _told(measured),
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: names that masters claimed at each NameServer, and tables. Violations: two masters, or none."""
    findings = [*_of_claims(control, world), *of_tables(control, world), *of_elections(control, world)]
    for about, answers in sorted(grouped(_answers(control, world)).items()):
        findings += of_done(about, SLAVE_TOLD, _TOLD_ROW, answers)
    for about, answers in sorted(grouped(_ha_answers(control, world)).items()):
        findings += of_done(about, SLAVE_TOLD_HA, _HA_ROW, answers)
    for about, answers in sorted(grouped(_named(control, world)).items()):
        findings += of_done(about, NAMED, _NAMED_ROW, answers)
    findings += [*_copies(control, world), *masters_stay(control, world)]
    return verdict_of(
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
        noun="registrations, routes or answers showed two masters, none, or a wrong one",
    )


def _told(measured: Mapping[str, Any]) -> str:
    said = (
        f"{measured.get('claims', 0):,} registrations as master, "
        f"two masters at once for {(measured.get('longest_two_masters_ms') or 0) / 1000:.1f} s at most"
    )
    if "longest_without_master_ms" in measured:
        said += f"; no master for {measured['longest_without_master_ms'] / 1000:.1f} s at most"
        if (told_ms := measured.get("longest_until_told_ms")) is not None:
            said += f", clients had its route after {told_ms / 1000:.1f} s"
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
        about = span.start_ms - world.timers.R_ms, max(both.end_ms, span.start_ms)
        allowed = control.lateness.tolerance(world, nodes, *about, window.timers)
        yield finding(
            (name_server, name),
            "two masters",
            span,
            window,
            **lasting(both, window, allowed),
            examined=sum(len(claim.times) for claim in claims),
            more={"masters": ", ".join(sorted({claim.address for claim in claims}))},
        )


def _answers(control: Control, world: World) -> Iterator[tuple[tuple[str, str], Done]]:
    """NameServer and slave, and what it answered the slave, as the slave's transport read it, while it must have had
    one broker as master of the name, from before the slave asked until after the slave was answered."""
    claims, apart_ms, of = claims_of(control, world), world.timers.delivery_ms, received(control, world)
    rows = () if world.acts else control.rows("registration", "broker_dropped")
    said = grouped(((row.node, row.address), row) for row in rows)
    for row in control.rows("register"):
        value, name_server = row.said, world.owners.get(row.name_server, "")
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
            and is_live(of.requests(life), claim.address, from_ms, to_ms)
        }
        if len(masters) == 1 or _is_gone(said.get((name_server, value["master"]), ()), from_ms, to_ms):
            yield (name_server, row.node), Done(row.time_ms, value["master"] in masters)


def _named(control: Control, world: World) -> Iterator[tuple[tuple[str, str], Done]]:
    """NameServer and broker, and whether the NameServer named all brokers of the broker's name that it must have had as
    it was asked, and nobody whom it said that it had dropped."""
    apart_ms, of = world.timers.delivery_ms, received(control, world)
    rows = () if world.acts else control.rows("registration", "broker_dropped")
    said = grouped(((row.node, row.address), row) for row in rows)
    for row in () if world.acts else control.rows("members_named"):
        name_server, named = world.owners.get(row.name_server, ""), {*row.said.values()}
        span = row.time_ms - apart_ms - world.timers.A_ms, row.time_ms + apart_ms
        members = [one for one in members_of(world)[broker_name(row.node)].nodes if not elects(world, one)]
        must = {
            world.address_at(member, row.time_ms)
            for member in members
            for life in world.lives_of(name_server)
            if of.must_have(life, member, *span)
        }
        gone = {address for address in named if _is_gone(said.get((name_server, address), ()), *span)}
        yield (name_server, row.node), Done(row.time_ms, must <= named and not gone)


def _ha_answers(control: Control, world: World) -> Iterator[tuple[tuple[str, str], Done]]:
    """NameServer and slave, and which haServerAddr the NameServer answered with the master's address: that of the
    master's last registration, or of a registration that was under way."""
    apart_ms, of = world.timers.delivery_ms, received(control, world)
    requests = ((life.node, one) for life in world.lives_of_kind("name_server") for one in of.requests(life))
    came = (((node, one.address), one) for node, one in requests if one.f == REGISTERED and "ha" in one.said)
    registered = grouped(came)
    for row in (row for row in control.rows("register") if row.said.get("master") and "ha" in row.said):
        name_server = world.owners.get(row.name_server, "")
        ones = registered.get((name_server, row.said["master"]), ())
        at = bisect_right(ones, row.began_ms - apart_ms, key=lambda one: one.at_ms)
        to = bisect_right(ones, row.time_ms + apart_ms, key=lambda one: one.at_ms)
        had = {one.said["ha"] for one in ones[max(at - 1, 0) : to]}
        if had:
            yield (name_server, row.node), Done(row.time_ms, row.said["ha"] in had)


def _is_gone(said: Sequence[Row], from_ms: float, to_ms: float) -> bool:
    """Whether the NameServer said before that it dropped this address, and has read no registration of it since."""
    at = bisect_right(said, to_ms, key=lambda row: row.time_ms)
    return at > 0 and said[at - 1].event == "broker_dropped" and said[at - 1].time_ms <= from_ms


def is_live(requests: Iterable[Request], address: str, from_ms: float, to_ms: float) -> bool:
    """Whether nobody unregistered the address, under whichever id, or registered it under another id, since it was
    registered as master: a master without its brokerLiveInfo, or its id 0, no slave is told of."""
    of_address = [one for one in requests if one.address == address and one.f in (REGISTERED, UNREGISTERED)]
    as_master = (
        one.at_ms for one in of_address if one.f == REGISTERED and one.id_ == MASTER_ID and one.at_ms <= from_ms
    )
    since_ms = max(as_master, default=-math.inf)
    return not any(since_ms < one.at_ms <= to_ms and (one.f == UNREGISTERED or one.id_) for one in of_address)


_COPIES_ROW = "updateHaMasterAddress: a slave copies the log of the master that NameServers answered"


def _copies(control: Control, world: World) -> Iterator[Finding]:
    """Whose log each slave copied, since an answer that the slave took named another master. A paused slave copies
    nothing; where brokers elect their master, the controller names it."""
    window = Rule(_COPIES_ROW, "haHousekeepingInterval + 5 s + C", again_ms(world))
    rows = (row for row in control.rows("copies", "register") if row.event == "copies" or row.type == "ok")
    for (slave, incarnation), its in sorted(grouped((r.process, r) for r in rows if not elects(world, r.node)).items()):
        until_ms = min(world.end_ms, world.ended_ms(slave, incarnation))
        for begins, named in _others_named(its, until_ms):
            awake = without(named.start_ms, named.end_ms, world.paused(slave))
            lasts_ms = sum(part.end_ms - part.start_ms for part in awake)
            yield finding(
                (slave, begins),
                SLAVE_COPIES,
                named,
                window,
                out=named,
                tolerance=control.lateness.tolerance(world, [slave], *named, 2),
                measured_ms=lasts_ms,
                over_ms=lasts_ms - again_ms(world),
                examined=1,
            )


def _others_named(rows: Iterable[Row], until_ms: float) -> Iterator[tuple[str, Stretch]]:
    """Each master that a slave was answered instead of the one whose log it copied: its address, from when, and until
    when the slave did not copy its log."""
    copied = ""
    since: tuple[str, float] | None = None
    for row in _taken(rows):
        if row.event == "copies":
            if since is not None:
                yield since[0], Stretch(since[1], row.time_ms)
            copied, since = row.address, None
        elif master := row.said.get("master"):
            if master == copied or not copied:
                since = None
            elif since is None:
                since = master, row.time_ms
    if since is not None:
        yield since[0], Stretch(since[1], until_ms)


def _taken(rows: Iterable[Row]) -> Iterator[Row]:
    """Without all answers but the first of each round of registrations: a slave takes the first answer, even one that
    names no master (`handleRegisterBrokerResult`)."""
    first_ms = -math.inf
    for row in rows:
        if row.event == "copies":
            yield row
        elif row.began_ms >= first_ms:
            first_ms = row.time_ms
            yield row
