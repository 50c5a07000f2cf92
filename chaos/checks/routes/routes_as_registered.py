"""A NameServer's routes have what brokers registered, and brokers register their true names, ids, addresses and topics.

    broker   has 4 queues, 8 queues       what it registers, at NameServers of its list, is its own name, id, address,
      │                                    all its topics and their queues: else the broker's finding
    `topic`           begins with the topics that the process before it had: else the broker's finding
    request_read      registers
      │                                    the routes are what RouteInfoManager makes of what was read (name_server.py):
    `route`           shows               else the NameServer's finding, by its rule if that shows

What was done by hand is done_by_hand's, and that a broker of the run is missing, or stays, registrations_are_kept's.
Where nobody recorded what a NameServer read (Apache's, logs), its routes are held against what the brokers of the run
are and registered, as they say (registered_rows.py). What clients make of routes is client_routes_are_true's.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise

from ....remoting.node.profile import Profile
from ....remoting.topics import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from ...oracle.broker import misregistered
from ...oracle.intervals import grouped
from ...oracle.link import MOMENT_MS
from ...oracle.name_server import ASKED, BEAT, REGISTERED, UNREGISTERED, Request, RoutesRead, may_refuse
from ...oracle.promises import told_by_hand
from ...oracle.queue_owners import node_of_client
from ...oracle.recorded import Life
from ...oracle.roles import elects, member_at
from ...oracle.slaves import SYNCHRONIZED_MS, made_masters, offsets_copied
from ...oracle.world import World
from ...topology import broker_name, is_slave
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Done, at_no_time, finding, of_done, verdict_of
from ..record.control import Control, Row
from ..record.differences import (
    ACTING,
    ADDRESS,
    NO_ACTING,
    OF_RULES,
    QUEUES,
    ROW,
    TWICE,
    by_hand,
    differences,
    unlike_what_was_sent,
)
from ..record.known_brokers import known_brokers
from ..record.received import received
from ..record.registered_rows import QueueRow, registered_rows, row_of
from ..record.route_tables import Process, route_tables

_ROW = "a route shows what brokers registered"
_KEPT_ROW = "TopicConfigManager: topics.json is written at each change"
_VERSION_ROW = "TopicConfigManager: nextVersion at each change of a topic, and at no other time; topics.json keeps it"
_GROUP_ROW = "ClientManageProcessor.heartBeat: a group's retry topic has retryQueueNums queues, by default 1"
_RETRY_ROW = "ClientManageProcessor.heartBeat: the first heartbeat of a member creates the group's retry topic"
_OF_GROUPS = (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)
_LAST_MS = 1000.0
"""What is done to a broker that is being killed it may not live to record."""
_OWN_ROW = "BrokerController.registerBrokerAll: a broker registers what it is, and all that it has"


@check(
    says="brokers register their own names, ids, addresses and topics; each route lists just what brokers registered",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES, Needs.BROKERS, Needs.TOPICS),
    tells=lambda measured: f"{measured.get('wrong', 0):,} of {measured.get('routes', 0):,} routes were wrong",
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: routes that NameServers held, and what brokers registered. Violations: those that are not so."""
    findings: list[Finding] = []
    for life in world.lives_of_kind("name_server"):
        wrong = [*_wrong(control, world, life)]
        findings += wrong
        findings += _answers(control, world, life)
        findings += _notices(control, world, life)
        of_topics = route_tables(control, world).stretches.get(life.process, {}).values()
        held = [one for stretches in of_topics for one in stretches if one.value is not None]
        if held and not wrong:
            span = min(one.s for one in held), max(one.e for one in held)
            findings.append(finding(life.node, "as registered", span, at_no_time(_ROW), examined=len(held)))
    findings += _Registering(control, world).findings()
    findings += _kept(control, world)
    findings += _versions(control, world)
    findings += _of_groups(control, world)
    return verdict_of(
        findings,
        measured={"routes": sum(f.examined for f in findings), "wrong": sum(f.wrong for f in findings)},
        nothing="no NameServer had a route",
        noun="routes or registrations did not match what the brokers are and have",
    )


def _wrong(control: Control, world: World, life: Life) -> Iterator[Finding]:
    found, known = differences(control, world, life), known_brokers(world)
    if found is None:
        found = [*unlike_what_was_sent(control, world, life)]
    else:
        found = [one for one in found if not by_hand(world, life, one)]
        judged = (ROW, ADDRESS, QUEUES, TWICE, ACTING, NO_ACTING, *OF_RULES)
        found = [one for one in found if one.kind in judged or one.name not in known]
    for one in found:
        span = one.from_ms, one.to_ms
        yield finding(
            (life.node, one.name, one.topic),
            one.kind,
            span,
            at_no_time(_ROW),
            out=span,
            tolerance=control.lateness.tolerance(world, (life.node,), one.from_ms, one.from_ms, 1),
            more={"came": one.came, "due": one.due} | ({"because": one.because} if one.because else {}),
        )


_ANSWERS_ROW = (
    "RouteInfoManager: an answer counts the broker's topics, or says whether its data version has changed; 5.x refuses "
    "a first registration of one topic"
)


_TAKES_ROW = "DefaultRequestProcessor.registerBroker: a complete registration is accepted"


def _answers(control: Control, world: World, life: Life) -> Iterator[Finding]:
    """What it answered requests that change its routes, or ask for them."""
    if (routes := received(control, world).routes(life)) is None:
        return
    rows = control.by_process("registration", "write_perm").get(life.process, ())
    told = chain(_answered(routes, rows), _compared(control, world, life, routes))
    for (name, kind), done in grouped(told).items():
        yield from of_done((life.node, name), kind, _ANSWERS_ROW, done)
    answered = (row for row in control.rows("register") if world.owners.get(row.name_server) == life.node)
    refused = chain(_refused(world, life, routes, rows), _refused_by_answer(world, life, routes, answered))
    for name, done in grouped(refused).items():
        yield from of_done((life.node, name), "accepts registrations", _TAKES_ROW, done)


def _answered(routes: RoutesRead, rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str], Done]]:
    """Who asked and what, of requests that change its routes, where the answer has a number, or has to refuse them."""
    for asked, due in routes.answers:
        is_registration, from_ms, to_ms = asked.f == REGISTERED, asked.at_ms - 1.0, asked.at_ms + MOMENT_MS
        about = "registration" if is_registration else "write_perm", asked.name, asked.address
        answered = (row for row in rows if (row.event, row.broker_name, row.address) == about)
        # A NameServer that reads late answers several requests at once: no row says which one it answers.
        if near := [row for row in answered if from_ms <= row.time_ms <= to_ms]:
            said = [row.said for row in near]
            counted = [one.get("wiped", one.get("added")) for one in said]
            numbers = [row.code for row in near] if is_registration else counted
            kind = "refuses a single topic" if is_registration else "counts topics"
            yield (asked.name, kind), Done(near[0].time_ms, due in numbers)


def _refused(world: World, life: Life, routes: RoutesRead, rows: Sequence[Row]) -> Iterator[tuple[str, Done]]:
    """The brokers whose complete registrations it refused."""
    for row in rows:
        if row.event == "registration" and row.code and not may_refuse(world, [life], row.time_ms, row.time_ms):
            read = routes.read.get((row.broker_name, row.address), ())
            at_once = [one for one in read if one.f == REGISTERED and abs(one.at_ms - row.time_ms) < MOMENT_MS]
            if at_once and all(one.is_taken for one in at_once):
                yield row.broker_name, Done(row.time_ms, False)


def _refused_by_answer(world: World, life: Life, routes: RoutesRead, rows: Iterable[Row]) -> Iterator[tuple[str, Done]]:
    """The same by what the brokers were answered."""
    for row in rows:
        span, name = (row.began_ms - MOMENT_MS, row.time_ms + MOMENT_MS), broker_name(row.node)
        if row.code and not may_refuse(world, [life], *span):
            read = routes.read.get((name, world.address_at(row.node, row.time_ms) or ""), ())
            here = [one for one in read if one.f == REGISTERED and span[0] <= one.at_ms <= span[1]]
            if here and all(one.is_taken for one in here):
                yield name, Done(row.time_ms, False)


_NOTICES_ROW = "RouteInfoManager.notifyMinBrokerIdChanged: the brokers of a name are told of a new smallest id"
_TOLD_MS = 1_000.0
"""Within it a NameServer has told, or found nobody."""


def _notices(control: Control, world: World, life: Life) -> Iterator[Finding]:
    """Whom it told of a new smallest id of a broker name, and what (905), against what it read. Changes of a name that
    follow each other at once are told together, or one by one, and not judged; who leaves at once, too, need not be
    told."""
    routes, tells = received(control, world).routes(life), "notifyMinBrokerIdChanged"
    if routes is None or world.timers_of(life.node).profile is not Profile.V5_X:
        return
    due = routes.notices if world.setting(life.node, tells) else ()
    if any(act.f == "update_config" and act.node == life.node for act in world.acts):
        return
    fields = "minBrokerId", "minBrokerAddr", "offlineBrokerAddr"
    rows = control.by_process("min_broker_id_told").get(life.process, ())
    saying = ((row, [str(row.said.get(field) or "") for field in fields]) for row in rows)
    told = grouped((row.broker_name, (row.began_ms, (row.address, *said))) for row, said in saying)
    drops = [(row.address, row.time_ms) for row in control.by_process("broker_dropped").get(life.process, ())]
    for name in {one.name for one in due} | told.keys():
        changes, here = [one for one in due if one.name == name], told.get(name, [])
        unasked = (at_ms for at_ms, _ in here if not any(abs(one.at_ms - at_ms) <= _TOLD_MS for one in changes))
        done = [Done(at_ms, False) for at_ms in unasked]
        for one in changes:
            alone = all(other is one or abs(other.at_ms - one.at_ms) > 2 * _TOLD_MS for other in changes)
            until_ms, lag_ms = one.at_ms + _TOLD_MS, control.lateness.largest(world, (life.node,), one.at_ms, one.at_ms)
            stood = any(fault.overlaps(one.at_ms, until_ms) for fault in world.process_faults(life.node))
            is_judged = alone and not stood and until_ms < world.end_ms and (lag_ms or 0.0) < _TOLD_MS / 2
            said = {said for at_ms, said in here if abs(at_ms - one.at_ms) <= _TOLD_MS}
            gone = {address for address, at_ms in drops if abs(at_ms - one.at_ms) <= _TOLD_MS}
            must = {due_ for due_ in one.due() if due_[0] not in gone}
            done.append(Done(one.at_ms, not is_judged or must <= said <= {*one.due()}))
        span = life.start_ms, min(life.end_ms, world.end_ms)
        yield from of_done((life.node, name), "tells the smallest id", _NOTICES_ROW, sorted(done), span=span)


def _compared(control: Control, world: World, life: Life, routes: RoutesRead) -> Iterator[tuple[tuple[str, str], Done]]:
    """Each answer to 322 that a broker read; right is the answer to one of the questions that this process read during
    the broker's call. A process that reads late answers several at once."""
    apart_ms = world.timers.delivery_ms
    for row in control.rows("data_version"):
        if row.type != "ok" or world.owners.get(row.name_server) != life.node:
            continue
        from_ms, to_ms = row.began_ms - apart_ms, row.time_ms + apart_ms
        due = {
            is_changed
            for asked, is_changed in routes.compared
            if from_ms <= asked.at_ms <= to_ms and world.owners.get(asked.address) == row.node
        }
        if due and None not in due:
            yield (row.node, "compares data versions"), Done(row.time_ms, row.said["changed"] in due)


# -- what brokers register


class _Registering:
    """What NameServers read of each broker, against the broker."""

    def __init__(self, control: Control, world: World) -> None:
        self._world, self._rows, self._received = world, registered_rows(control, world), received(control, world)
        self._by_hand, self._is_open = told_by_hand(world), world.run.get("scenario") == "up"
        self._asked = {(UNREGISTERED, act.node, *act.identity) for act in world.acts if act.f == "unregister"}
        self._owners = {at: node.name for node in world.of_kind("broker", "slave") for at in node.addresses}
        answers = (row for row in control.rows("register") if row.type == "ok" and is_slave(row.node))
        self._told = grouped((row.node, (row.time_ms, row.said.get("master"))) for row in answers)
        """By slave, when which master it was told by an answer to its registration."""

    def _read(self) -> Iterator[tuple[str, tuple[str, Request, str]]]:
        """Broker; and NameServer, what it read of the broker, and what of that is wrong, in words."""
        for life in self._world.lives_of_kind("name_server"):
            came = (one for one in self._received.requests(life) if one.said or one.f == UNREGISTERED)
            told = (one for one in came if one.f in (REGISTERED, UNREGISTERED, ASKED, BEAT))
            of_channel = dict[str, str]()
            for one in {(*one[1:7], one.said.get("cluster"), id(one.said.get("topics"))): one for one in told}.values():
                who = one.name, one.address, one.id_
                if (one.f, life.node, *who) in self._asked or self._by_hand.may_name(who[0], str(who[2]), who[1]):
                    continue
                broker = self._owners.get(one.address) or member_at(self._world, one.name, one.id_, one.address)
                if one.f == REGISTERED:
                    of_channel[one.channel] = broker
                elif one.f in (ASKED, BEAT):  # by the channel of one broker's registrations, of this broker
                    broker = of_channel.get(one.channel, broker)
                had = self._rows.had(broker)
                kind = misregistered(self._world, broker, one, life.node, had) or self._uncopied(broker, one)
                yield broker, (life.node, one, kind)

    def findings(self) -> Iterator[Finding]:
        for broker, read in grouped(self._read()).items():
            if self._is_open and broker not in self._owners.values():
                continue
            told = [each for each in read if each[2]] or read
            (name_server, first, kind), last_ms = told[0], told[-1][1].at_ms
            yield from of_done(
                (broker, name_server),
                kind or "registers what it is and has",
                _OWN_ROW,
                [Done(one.at_ms, not wrong) for _, one, wrong in read],
                span=(first.at_ms, last_ms),
                to_ms=last_ms + 1.0,
                more={"came": self._said(broker, first)} if kind else {},
            )

    def _uncopied(self, broker: str, one: Request) -> str:
        """In words, that a slave registers all its topics without one that it must have copied."""
        topics, due = one.said.get("topics") or {}, self._due(broker, one)
        lacks = len(topics) > 1 and any([*topics.get(topic, ())[:2]] != [*row[:2]] for topic, row in due.items())
        return "registers other topics than its master has" if lacks else ""

    def _due(self, broker: str, one: Request) -> Mapping[str, QueueRow]:
        """What a slave must have copied from its master by then: it has known the master for two copies."""
        copied = offsets_copied(self._world, broker_name(broker)) if is_slave(broker) else ()
        since_ms = one.at_ms - 2 * SYNCHRONIZED_MS
        known_ms = since_ms - self._world.timers_of(broker).R_ms
        told = [master for at_ms, master in self._told.get(broker, ()) if known_ms <= at_ms < one.at_ms]
        is_told = {self._owners.get(str(master)) for master in told} == {broker_name(broker)}
        if not is_told or not any(sure.start_ms <= one.at_ms < sure.end_ms for sure in copied):
            return {}
        return self._rows.unchanged(broker_name(broker), since_ms, one.at_ms)

    def _said(self, broker: str, one: Request) -> str:
        """What a wrong registration named: topics that it lacked, or else the broker, its id and its address."""
        lives = (life.incarnation for life in self._world.lives_of(broker) if life.start_ms <= one.at_ms)
        topics = one.said.get("topics") or {}
        had = self._rows.topics(broker, (max(lives, default=0), one.said["version"][2])) if topics else ()
        if not (lacks := sorted({*had, *self._due(broker, one)} - {*topics} if topics else ())):
            return f"{one.name} {one.id_}: {one.address}"
        more = f" and {len(lacks) - 3} more" if len(lacks) > 3 else ""
        return f"{len(topics)} topics, without {', '.join(lacks[:3])}{more}"


def _kept(control: Control, world: World) -> Iterator[Finding]:
    """Whether each process of a broker of ours began with all topics, and their queues and permissions, that the one
    before it had; where an operator changed brokerPermission, which is in all rows, only the queues count."""
    ours = {process: of for process, of in control.by_process("topic").items() if world.is_ours(process[0])}
    had = {process: grouped((row.topic, row) for row in of) for process, of in ours.items()}
    permits = {act.node for act in world.acts if act.broker_permission is not None}
    began: dict[tuple[str, int], float] = {}
    for row in control.rows("register"):
        began.setdefault(row.process, row.began_ms)
    for (broker, one), (again, other) in pairwise(sorted(had)):
        first_ms = began.get((again, other), -math.inf)
        has = partial(_queues, with_perm=broker not in permits)
        now = {topic: has(of[0]) for topic, of in had[again, other].items() if of[0].time_ms <= first_ms}
        ended_ms = world.ended_ms(broker, one)
        late = any(act.node == broker and abs(act.began_ms - ended_ms) < _LAST_MS for act in world.acts)
        if broker != again or late or not now:
            continue
        due = {topic: has(of[-1]) for topic, of in had[broker, one].items()}
        lost = sorted(topic for topic, queues in due.items() if queues and now.get(topic) != queues)
        span = ended_ms, max(first_ms, ended_ms)
        about = broker, "topics", lost[0] if lost else ""
        done = [Done(first_ms, topic not in lost) for topic in due]
        yield from of_done(about, "keeps topics over a restart", _KEPT_ROW, done, span=span)


def _versions(control: Control, world: World) -> Iterator[Finding]:
    """Whether each process of a broker of ours raised its dataVersion only as a topic changed, and began with the one
    that the process before it had written. A change of brokerPermission raises the dataVersion and writes no
    topics.json (AdminBrokerProcessor.updateBrokerConfig). A deleted topic's row has no version."""
    changes = [act for act in world.acts if act.broker_permission is not None]
    masters = {node.name for node in world.ours("broker") if not elects(world, node.name)}
    had, unwritten = defaultdict[Process, set[int]](set), defaultdict[Process, set[int]](set)
    deleted, registered = set[Process](), dict[Process, dict[float, int]]()
    for row in control.rows("topic", "register"):
        if row.node not in masters:
            continue
        version = row.said.get("version")
        if row.event == "register" and version is not None:
            registered.setdefault(row.process, {})[row.began_ms] = version
        elif row.event == "topic" and version is not None:
            had[row.process].add(version)
            if any(act.node == row.node and act.began_ms <= row.time_ms <= act.ended_ms for act in changes):
                unwritten[row.process].add(version)
        elif row.event == "topic" and not row.decoded:
            deleted.add(row.process)

    def of_version(process: Process, kind: str, wrong: Collection[int]) -> Iterator[Finding]:
        done = sorted(Done(at_ms, version not in wrong) for at_ms, version in registered[process].items())
        span = min(registered[process]), max(registered[process]) + 1.0
        return of_done((process[0], "version"), kind, _VERSION_ROW, done, span=span, to_ms=span[1])

    for process in registered:
        if (known := had.get(process)) and process not in deleted:
            raised = {version for version in registered[process].values() if version > min(known)}
            yield from of_version(process, "changes its version", raised - known)
    for one, other in pairwise(sorted(registered)):
        if one[0] == other[0]:
            last = max({*registered[one].values()} - unwritten[one], default=0)
            older = {version for version in registered[other].values() if version < last}
            yield from of_version(other, "keeps its version", older)


def _of_groups(control: Control, world: World) -> Iterator[Finding]:
    """The topics that a broker of ours makes for consumer groups: retry, and dead letters. Of a group that no heartbeat
    makes there, or whose topic a slave that was made master had not copied, a send may make the retry topic, as any
    other topic."""
    new_masters = {made.node for made in made_masters(world).values()}
    asked = {act.topic for act in world.acts if act.f == "update_topic"}
    made = (row for row in control.rows("topic") if row.decoded and row.topic.startswith(_OF_GROUPS))
    made = (row for row in made if row.node not in new_masters)
    made = (row for row in made if all(world.values(row.node, "autoCreateSubscriptionGroup")))
    of = grouped((row.node, row) for row in made if world.is_ours(row.node) and row.topic not in asked)
    for broker, rows in of.items():
        wrong = [row for row in rows if _queues(row) != (1, 1)]
        about, more = (broker, "topics", (wrong or rows)[0].topic or ""), {}
        if wrong:
            more = {"came": f"{_queues(wrong[0])} queues"}
        done = (Done(row.time_ms, row not in wrong) for row in rows)
        yield from of_done(about, "one queue for a group", _GROUP_ROW, done, more=more)
    yield from _of_members(control, world, {act.topic for act in world.acts}, of)


def _of_members(
    control: Control, world: World, by_hand: Collection[str], of: Mapping[str, Iterable[Row]]
) -> Iterator[Finding]:
    """Whether each of these brokers had the retry topics that heartbeats of members named."""
    masters = {node.name for node in world.ours("broker") if not elects(world, node.name)}
    named: dict[tuple[str, str], Row] = {}
    for row in control.rows("client_heartbeat"):
        makes = row.node in masters and world.permits(row.node, node_of_client(row))
        for topic in row.said.get("versions") or () if makes else ():
            if topic.startswith(RETRY_GROUP_TOPIC_PREFIX) and topic not in by_hand:
                named.setdefault((row.node, topic), row)
    for (broker, topic), row in named.items():
        made_ms = min((one.time_ms for one in of.get(broker, ()) if one.topic == topic), default=world.end_ms)
        span, about = (row.time_ms, made_ms), (broker, "topics", topic)
        allowed = control.lateness.tolerance(world, (broker,), *span, 1)
        yield finding(about, "makes a retry topic", span, at_no_time(_RETRY_ROW), out=span, tolerance=allowed)


def _queues(row: Row, *, with_perm: bool = False) -> tuple[int, ...] | None:
    queues = row_of(row.decoded)
    return queues if with_perm else queues and queues[:2]
