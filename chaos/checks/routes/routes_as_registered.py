"""A NameServer's routes have what brokers registered, and brokers register their true names, ids, addresses and topics.

    broker   has 4 queues, 8 queues       what it registers, at NameServers of its list, is its own name, id, address,
      │                                    all its topics and their queues: else the broker's finding
    request_read      registers
      │                                    the routes are what RouteInfoManager makes of what was read (name_server.py):
    `route`           shows               else the NameServer's finding

What was done by hand is done_by_hand's, and that a broker of the run is missing, or stays, registrations_are_kept's.
Where nobody recorded what a NameServer read (Apache's, logs), its routes are held against what the brokers of the run
are and registered, as they say (registered_rows.py). What clients make of routes is client_routes_are_true's.
"""

from collections import defaultdict
from collections.abc import Iterator

from ...oracle.broker import misregistered
from ...oracle.name_server import Request
from ...oracle.promises import told_by_hand
from ...oracle.recorded import Life
from ...oracle.roles import member_at
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import at_no_time, finding, of_many, verdict_of
from ..record.control import Control
from ..record.differences import ADDRESS, QUEUES, ROW, by_hand, differences, unlike_what_was_sent
from ..record.known_brokers import known_brokers
from ..record.received import REGISTERED, received
from ..record.registered_rows import registered_rows
from ..record.route_tables import route_tables
from ..tolerance import tolerance

NAME = "routes_as_registered"
_ROW = "a route shows what brokers registered"
_OWN_ROW = "BrokerController.registerBrokerAll: a broker registers what it is, and all that it has"


def judge(control: Control, world: World) -> Verdict:
    """Examined: routes that NameServers held, and what brokers registered. Violations: those that are not so."""
    findings: list[Finding] = []
    for node in world.of_kind("name_server"):
        for life in world.lives_of(node.name):
            wrong = [*_wrong(control, world, life)]
            findings += wrong
            of_topics = route_tables(control, world).stretches.get((life.node, life.incarnation), {}).values()
            held = [one for stretches in of_topics for one in stretches if one.value is not None]
            if held and not wrong:
                span = min(one.s for one in held), max(one.e for one in held)
                findings.append(finding(life.node, "as registered", span, at_no_time(_ROW), examined=len(held)))
    findings += _Registering(control, world).findings()
    return verdict_of(
        NAME,
        findings,
        measured={"routes": sum(f.examined for f in findings), "wrong": sum(f.wrong for f in findings)},
        nothing="no NameServer held a route",
        noun="routes, or registrations, named what no broker is, or has",
    )


CHECK = Check(
    name=NAME,
    says="every route lists existing brokers with the addresses, queues and permissions that these brokers registered",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES, Needs.BROKERS, Needs.TOPICS),
    judge=judge,
    tells=lambda measured: f"{measured.get('wrong', 0):,} of {measured.get('routes', 0):,} routes were wrong",
)


def _wrong(control: Control, world: World, life: Life) -> Iterator[Finding]:
    found, known = differences(control, world, life), known_brokers(world)
    if found is None:
        found = [*unlike_what_was_sent(control, world, life)]
    else:
        found = [one for one in found if not by_hand(world, life, one)]
        found = [one for one in found if one.kind in (ROW, ADDRESS, QUEUES) or one.name not in known]
    for one in found:
        lag_ms = control.lateness.largest(world, (life.node,), one.from_ms, one.from_ms)
        yield finding(
            (life.node, one.name, one.topic),
            one.kind,
            (one.from_ms, one.to_ms),
            at_no_time(_ROW),
            out=(one.from_ms, one.to_ms),
            tolerance=tolerance(world.timers, lag_ms, 1),
            more={"came": one.came, "due": one.due},
        )


# -- what brokers register


class _Registering:
    """What NameServers read of each broker, against the broker."""

    def __init__(self, control: Control, world: World) -> None:
        self._world, self._rows, self._received = world, registered_rows(control, world), received(control, world)
        self._by_hand, self._is_open = told_by_hand(world), world.run.get("scenario") == "up"
        self._owners = {at: node.name for node in world.of_kind("broker", "slave") for at in node.addresses}

    def findings(self) -> Iterator[Finding]:
        of: dict[str, list[tuple[str, Request, str]]] = defaultdict(list)
        for node in self._world.of_kind("name_server"):
            for life in self._world.lives_of(node.name):
                for one in {id(one.said): one for one in self._received.requests(life) if one.f == REGISTERED}.values():
                    if one.said and not self._by_hand.may_name(one.name, str(one.id_), one.address):
                        broker = self._owners.get(one.address) or member_at(self._world, one.name, one.id_, one.address)
                        had = self._rows.had(broker)
                        of[broker].append((life.node, one, misregistered(self._world, broker, one, life.node, had)))
        for broker, read in of.items():
            if self._is_open and broker not in self._owners.values():
                continue
            wrong = [each for each in read if each[2]]
            name_server, first, kind = wrong[0] if wrong else read[0]
            last_ms = (wrong or read)[-1][1].at_ms
            yield of_many(
                (broker, name_server),
                kind or "registers what it is and has",
                (first.at_ms, last_ms),
                _OWN_ROW,
                len(read),
                [one.at_ms for _, one, _ in wrong],
                to_ms=last_ms + 1.0,
                more={"came": f"{first.name} {first.id_}: {first.address}"} if wrong else {},
            )
