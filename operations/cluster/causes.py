"""Why a client finds no route of a topic, or one that it cannot use: each cause found in what the servers said.

    causes_of(seen) -> the causes, the ones that nothing can contradict first        [] where everybody is routed right

A cause is certain where no answer leaves room for another reading, else likely, and its sentence says what would decide
it. Upstream: RouteInfoManager, MQClientInstance.updateTopicRouteInfoFromNameServer, TopicConfigManager.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ...chaos.reports.words import all_of, any_of
from ...remoting.codes import MASTER_ID, PERM_READ, PERM_WRITE, ResponseCode
from .seen import BrokerSeen, NameServerSeen, Seen

DEFAULT_TOPIC = "TBW102"
SIMILAR = 0.75
NOT_READY = "name server not ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    name: str
    """Short, for programs: one of CAUSES."""
    certain: bool
    about: tuple[str, ...]
    """Whose fault it is: addresses of NameServers, brokers' names, client ids."""
    sentence: str
    """What is wrong, and where."""
    then: str
    """What ends it."""


def causes_of(seen: Seen) -> list[Cause]:
    """All causes that the answers show, certain ones first."""
    found = [cause for find in _FINDERS for cause in find(seen)]
    return sorted(found, key=lambda cause: not cause.certain)


def is_routed_everywhere(seen: Seen) -> bool:
    """Whether every NameServer answers with the same brokers, and none of them is missing."""
    if not seen.name_servers or not all(server.answers and server.route for server in seen.name_servers):
        return False
    return len({server.routed for server in seen.name_servers}) == 1


# --- NameServers -----------------------------------------------------------------------------------------------------


def _no_answer(seen: Seen) -> Iterator[Cause]:
    for server in seen.name_servers:
        if server.why is not None:
            yield Cause(
                name="name-server-gives-no-answer",
                certain=True,
                about=(server.address,),
                sentence=f"NameServer {server.address} gives no answer: {server.why}.",
                then="A client that is at it finds no new topic until its channel fails; start it, or take it off the "
                "clients' lists.",
            )


def _not_ready(seen: Seen) -> Iterator[Cause]:
    for server in seen.answering:
        if server.code == ResponseCode.SYSTEM_ERROR and NOT_READY in (server.remark or ""):
            yield Cause(
                name="name-server-not-ready",
                certain=True,
                about=(server.address,),
                sentence=f"NameServer {server.address} answers code 1, '{NOT_READY}': it has needWaitForService=true "
                "and answers no look-up for waitSecondsForService (45 s) after its start.",
                then="Wait for that time; 5.1.0 to 5.3.1 answer so for ever after their first good answer.",
            )


def _empty(seen: Seen) -> Iterator[Cause]:
    others = [server for server in seen.answering if server.brokers]
    for server in seen.answering:
        if server.brokers:
            continue
        listing = [b for b in seen.masters if b.answers and seen.speaks_our_names(b) and server.address in b.lists]
        unlisting = [
            b for b in seen.masters if b.answers and seen.speaks_our_names(b) and server.address not in b.lists
        ]
        if others and unlisting and not listing:
            yield Cause(
                name="no-broker-lists-this-name-server",
                certain=True,
                about=(server.address,),
                sentence=f"NameServer {server.address} holds no broker at all, and none lists it: {_lists(unlisting)}.",
                then="It is a foreign or removed NameServer: put it on the brokers' namesrvAddr, or take it off the "
                "clients' lists.",
            )
        elif others and listing:
            yield Cause(
                name="name-server-is-empty",
                certain=False,
                about=(server.address,),
                sentence=f"NameServer {server.address} holds no broker at all, though {_names(listing)} list it and "
                f"{_addresses(others)} hold {_them(others)}: it was restarted, with an empty table, or is cut off from "
                "every broker.",
                then="Brokers come back at their own ticks, within registerNameServerPeriod (30 s); asked again later "
                "than that, it is cut off.",
            )
        else:
            yield Cause(
                name="name-server-is-empty",
                certain=False,
                about=(server.address,),
                sentence=f"NameServer {server.address} holds no broker at all: it was restarted less than a "
                "registration period ago, no broker lists it, or all are down.",
                then="Ask again after 30 s, and name a broker with -b to be told whether it lists this NameServer.",
            )


def _foreign(seen: Seen) -> Iterator[Cause]:
    holding = [server for server in seen.answering if server.brokers]
    for server in holding:
        mine = set(server.clusters)
        rest = [other for other in holding if other is not server]
        if rest and server.route is None and all(mine.isdisjoint(other.clusters) for other in rest):
            routed = [other for other in rest if other.route is not None]
            yield Cause(
                name="name-server-of-another-cluster",
                certain=bool(routed),
                about=(server.address,),
                sentence=f"NameServer {server.address} is another cluster's: it holds {', '.join(sorted(mine))}, "
                f"{_addresses(rest)} {_hold(rest)} {', '.join(sorted({c for other in rest for c in other.clusters}))}.",
                then="Take it off the list of the clients of the other cluster.",
            )


# --- the topic and the brokers that have it --------------------------------------------------------------------------


def _nowhere(seen: Seen) -> Iterator[Cause]:
    if not seen.answering or any(server.route for server in seen.answering) or seen.holders:
        return
    silent = [broker for broker in seen.masters if not broker.answers]
    listed = [server.address for server in seen.answering if seen.topic in (server.topics or ())]
    if listed:  # rows whose brokers are gone: 206 still names the topic
        yield Cause(
            name="only-rows-are-left",
            certain=True,
            about=tuple(listed),
            sentence=f"{all_of(listed)} {_still(listed)} {seen.topic} among the topics, but none of the brokers that "
            "have it is registered: its rows outlived them.",
            then="Start these brokers again, or delete the topic (deleteTopic).",
        )
        return
    known = {name for server in seen.answering for name in server.topics or ()}
    known |= {name for broker in seen.brokers for name in broker.topics or ()}
    near = difflib.get_close_matches(seen.topic, sorted(known), n=3, cutoff=SIMILAR)
    folded = [name for name in sorted(known) if name.casefold().endswith(seen.topic.casefold())]
    alike = list(dict.fromkeys([*folded[:3], *near]))
    where = "no NameServer routes it"
    if len(seen.masters) == 1:
        where += f", and {seen.masters[0]} has none of that name"
    else:
        where += f", and none of {_names(seen.masters)} has it" if seen.masters else ", and no broker is registered"
    yield Cause(
        name="topic-is-nowhere",
        certain=not silent and bool(seen.masters),
        about=(seen.topic,),
        sentence=f"There is no topic {seen.topic}: {where}."
        + (f" {_names(silent)} could not be asked." if silent else "")
        + (f" There is {any_of(alike)}." if alike else ""),
        then="Create it with updateTopic, or mend its name in the client.",
    )
    creators = [broker for broker in seen.masters if broker.answers and broker.creates_topics]
    asked = [broker for broker in seen.masters if broker.answers]
    if asked and not creators:
        yield Cause(
            name="topics-are-not-created",
            certain=True,
            about=tuple(str(broker) for broker in asked),
            sentence=f"A first send does not create it: {_names(asked)} {_have(asked)} autoCreateTopicEnable=false.",
            then="Create it with updateTopic; where it is on, a producer borrows the route of TBW102 for a first send.",
        )
    elif creators:
        yield Cause(
            name="nobody-has-sent-yet",
            certain=False,
            about=tuple(str(broker) for broker in creators),
            sentence=f"{_names(creators)} {_have(creators)} autoCreateTopicEnable=true, so a first send would create "
            f"{seen.topic} by the route of {DEFAULT_TOPIC}; a consumer's look-up creates nothing.",
            then="Let a producer send first, or create the topic with updateTopic.",
        )


def _missing_somewhere(seen: Seen) -> Iterator[Cause]:
    """Of each NameServer that lacks a broker which has the topic: why."""
    for server in seen.answering:
        if not server.brokers:
            continue  # told by _empty
        for broker in seen.holders:
            if broker.name in server.routed:
                continue
            elsewhere = [other.address for other in seen.answering if broker.name in other.routed]
            told = f"{seen.topic} is at {broker} ({broker.address})"
            if elsewhere:
                told += f", which {all_of(elsewhere)} {_route(elsewhere)}"
            data = server.brokers.get(broker.name)
            if data is None:
                yield _unregistered(seen, server, broker, told)
            elif broker.address not in data.broker_addrs.values():
                others = ", ".join(f"{number}: {at}" for number, at in sorted(data.broker_addrs.items()))
                yield Cause(
                    name="another-broker-has-the-name",
                    certain=True,
                    about=(server.address, str(broker)),
                    sentence=f"{told}; NameServer {server.address} holds that name at {others}: two brokers claim it, "
                    "or its address changed.",
                    then="Give each broker a brokerName and brokerId of its own.",
                )
            else:
                yield Cause(
                    name="topic-is-not-at-this-name-server",
                    certain=True,
                    about=(server.address, str(broker)),
                    sentence=f"{told}; NameServer {server.address} holds the broker without this topic: it was deleted "
                    "there alone (216), or came between two registrations of one dataVersion (4.x, #4522).",
                    then="Change any topic of the broker, so that its dataVersion does, or restart the broker.",
                )


def _unregistered(seen: Seen, server: NameServerSeen, broker: BrokerSeen, told: str) -> Cause:
    if seen.speaks_our_names(broker) and server.address not in broker.lists:
        return Cause(
            name="broker-does-not-list-this-name-server",
            certain=True,
            about=(server.address, str(broker)),
            sentence=f"{told}, but not registered at NameServer {server.address}: its namesrvAddr is "
            f"{';'.join(sorted(broker.lists))}.",
            then="Put the NameServer on the broker's namesrvAddr; no timer mends it.",
        )
    listed = seen.speaks_our_names(broker) or server.address in broker.lists
    return Cause(
        name="broker-is-not-registered",
        certain=listed,
        about=(server.address, str(broker)),
        sentence=f"{told}, but not registered at NameServer {server.address}"
        + (", which it lists" if listed else "")
        + ": its registrations do not arrive, or somebody unregistered it.",
        then="Cut off, it comes back within 30 s of the end of that; look for its address in that NameServer's log "
        "(unregisterBroker, channel expired, channel destroyed).",
    )


def _permissions(seen: Seen) -> Iterator[Cause]:
    for bit, word, who in ((PERM_WRITE, "write", "a producer"), (PERM_READ, "read", "a consumer")):
        barred: dict[str, list[str]] = {}
        for server in seen.answering:
            if server.route is None or any(row.perm & bit for row in server.route.queue_datas):
                continue
            if server.route.queue_datas:
                barred.setdefault(_reason(seen, server, bit), []).append(server.address)
        for reason, servers in barred.items():
            yield Cause(
                name=f"no-permission-to-{word}",
                certain=True,
                about=tuple(servers),
                sentence=f"The route that {all_of(servers)} {_give(servers)} has no queue that {who} may {word}: "
                f"{reason}.",
                then="addWritePerm where it was wiped at a NameServer; updateTopic -p 6 where the topic has it so; "
                "brokerPermission=6 where the broker has.",
            )


def _reason(seen: Seen, server: NameServerSeen, bit: int) -> str:
    """Who has taken the permission away."""
    assert server.route is not None
    said = []
    for row in server.route.queue_datas:
        broker = next((one for one in seen.holders if one.name == row.broker_name), None)
        own = None if broker is None or broker.topic is None else broker.topic.perm
        whole = int((broker.settings.get("brokerPermission") if broker is not None else None) or 6)
        if not whole & bit:
            said.append(f"{row.broker_name} has brokerPermission={whole}")
        elif own is not None and own & bit:
            said.append(f"{row.broker_name} was wiped at the NameServer (perm {row.perm}; the broker has {own})")
        else:
            said.append(f"the topic has perm {row.perm} at {row.broker_name}")
    return ", ".join(said)


def _no_master(seen: Seen) -> Iterator[Cause]:
    by_group: dict[tuple[str, ...], list[str]] = {}
    for server in seen.answering:
        if server.route is None:
            continue
        groups = [data for data in server.route.broker_datas if data.broker_addrs]
        without = tuple(sorted(data.broker_name for data in groups if MASTER_ID not in data.broker_addrs))
        if without and len(without) == len(groups):
            by_group.setdefault(without, []).append(server.address)
    for names, servers in by_group.items():
        yield Cause(
            name="no-master",
            certain=True,
            about=(*servers, *names),
            sentence=f"The route that {all_of(servers)} {_give(servers)} has no master, only slaves of "
            f"{all_of(names)}: a producer passes over brokers without id 0.",
            then="Start the master again, or let a slave take over (controller, acting master).",
        )


def _brokers_down(seen: Seen) -> Iterator[Cause]:
    routed = {name for server in seen.answering for name in server.routed}
    for broker in seen.masters:
        if broker.why is not None and broker.name in routed:
            yield Cause(
                name="broker-gives-no-answer",
                certain=True,
                about=(str(broker),),
                sentence=f"{broker} ({broker.address}) is routed and gives no answer: {broker.why}.",
                then="A NameServer drops a silent broker 120 to 130 s after its last registration, and clients follow "
                "within pollNameServerInterval (30 s).",
            )


# --- clients ---------------------------------------------------------------------------------------------------------


def _dialect(seen: Seen) -> Iterator[Cause]:
    loose = [server.address for server in seen.answering if server.strict is False]
    if loose and is_routed_everywhere(seen):  # else there is a better reason
        yield Cause(
            name="dialect-that-a-client-may-not-read",
            certain=False,
            about=tuple(loose),
            sentence=f"{all_of(loose)} {_answer(loose)} clients older than 4.9.4 in fastjson's dialect "
            "(`brokerAddrs:{0:…}`, keys without quotes): a client of another language that says such a version and "
            "has a strict JSON parser finds no route in it.",
            then="Only if just such clients are without a route: have them send version 401 or later, or "
            "acceptStandardJsonOnly=true.",
        )


def _elsewhere(seen: Seen) -> Iterator[Cause]:
    ours = {server.address for server in seen.name_servers}
    right = {server.address for server in seen.answering if server.route is not None}
    for client in seen.clients:
        strange = sorted(client.lists - ours)
        if strange and not client.lists & right:
            yield Cause(
                name="client-is-at-other-name-servers",
                certain=False,
                about=(client.client_id,),
                sentence=f"{client.client_id} has the NameServers {';'.join(sorted(client.lists))}, of which none was "
                "asked here: foreign or removed ones, or the same by other names.",
                then="Name them with -n to have them asked, or give the client the right list.",
            )


_FINDERS: tuple[Callable[[Seen], Iterable[Cause]], ...] = (
    _no_answer,
    _not_ready,
    _nowhere,
    _missing_somewhere,
    _empty,
    _foreign,
    _permissions,
    _no_master,
    _brokers_down,
    _elsewhere,
    _dialect,
)

CAUSES = (
    "name-server-gives-no-answer",
    "name-server-not-ready",
    "topic-is-nowhere",
    "topics-are-not-created",
    "nobody-has-sent-yet",
    "only-rows-are-left",
    "broker-does-not-list-this-name-server",
    "broker-is-not-registered",
    "another-broker-has-the-name",
    "topic-is-not-at-this-name-server",
    "no-broker-lists-this-name-server",
    "name-server-is-empty",
    "name-server-of-another-cluster",
    "no-permission-to-write",
    "no-permission-to-read",
    "no-master",
    "broker-gives-no-answer",
    "client-is-at-other-name-servers",
    "dialect-that-a-client-may-not-read",
)
"""Every name that a Cause may have."""


# --- words -----------------------------------------------------------------------------------------------------------


def _names(brokers: Iterable[BrokerSeen]) -> str:
    return all_of(str(broker) for broker in brokers)


def _addresses(servers: Iterable[NameServerSeen]) -> str:
    return all_of(server.address for server in servers)


def _them(servers: Iterable[NameServerSeen]) -> str:
    return all_of(sorted({name for server in servers for name in server.brokers}))


def _lists(brokers: Iterable[BrokerSeen]) -> str:
    return ", ".join(f"{broker} has {';'.join(sorted(broker.lists))}" for broker in brokers)


def _verb(of_one: str, of_many: str) -> Callable[[Iterable[object]], str]:
    return lambda them: of_one if len(list(them)) == 1 else of_many


_hold, _route, _give, _still = (
    _verb("holds", "hold"),
    _verb("routes", "route"),
    _verb("gives", "give"),
    _verb("still has", "still have"),
)
_have, _answer = _verb("has", "have"), _verb("answers", "answer")
