"""Finds the causes for which a client has no usable route of a topic, in the answers of NameServers and brokers."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from ...chaos.reports.text import all_of, any_of
from ...remoting.codes import MASTER_ID, PERM_READ, PERM_WRITE, ResponseCode
from .causes import NoRouteCause, cause, in_order, not_created
from .server_answers import BrokerAnswer, NameServerAnswer, ServerAnswers

SIMILAR = 0.75
NOT_READY = "name server not ready"


def causes_of(answers: ServerAnswers) -> list[NoRouteCause]:
    """Return every cause of a missing route that the servers' answers show, certain causes first. The list is empty if
    the answers show none."""
    return in_order(found for find in _FINDERS for found in find(answers))


def is_routed_everywhere(answers: ServerAnswers) -> bool:
    """Whether every NameServer has a route of the topic, with the same brokers as all other NameServers."""
    servers = answers.name_servers
    if not servers or not all(server.answers and server.route for server in servers):
        return False
    return len({server.routed for server in servers}) == 1


# --- NameServers -----------------------------------------------------------------------------------------------------


def _no_answer(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    for server in answers.name_servers:
        if server.why is not None:
            yield cause("name-server-gives-no-answer", server.address, server=server.address, how=server.why)


def _not_ready(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    for server in answers.answering:
        if server.code == ResponseCode.SYSTEM_ERROR and NOT_READY in (server.remark or ""):
            yield cause("name-server-not-ready", server.address, server=server.address, how="")


def _empty(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    others = [server for server in answers.answering if server.brokers]
    brokers = [broker for broker in answers.masters if broker.answers and answers.speaks_our_names(broker)]
    for server in answers.answering:
        if server.brokers:
            continue
        at = server.address
        listing = [broker for broker in brokers if at in broker.lists]
        if others and brokers and not listing:
            lists = ", ".join(f"{broker} has {_list(broker)}" for broker in brokers)
            how = f"it holds no broker at all, and {lists}"
            yield cause("no-broker-lists-this-name-server", at, server=at, how=how)
            continue
        how = "it was restarted less than a registration period ago, no broker lists it, or all are down"
        if others and listing:
            held = sorted({name for other in others for name in other.brokers})
            how = (
                f"{all_of(map(str, listing))} list it and {_addresses(others)} hold {all_of(held)}, so it was "
                "restarted, with an empty table, or is cut off from every broker"
            )
        yield cause("name-server-is-empty", at, certain=False, server=at, how=how)


def _foreign(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    holding = [server for server in answers.answering if server.brokers]
    for server in holding:
        rest = [other for other in holding if other is not server]
        theirs = {cluster for other in rest for cluster in other.clusters}
        if rest and server.route is None and theirs.isdisjoint(server.clusters):
            yield cause(
                "name-server-of-another-cluster",
                server.address,
                certain=any(other.route is not None for other in rest),
                server=server.address,
                clusters=", ".join(sorted(server.clusters)),
                how=f"{_addresses(rest)} {'holds' if len(rest) == 1 else 'hold'} {', '.join(sorted(theirs))}",
            )


# --- the topic and the brokers that have it --------------------------------------------------------------------------


def _nowhere(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    topic = answers.topic
    if not answers.answering or any(server.route for server in answers.answering) or answers.holders:
        return
    listed = [server.address for server in answers.answering if topic in (server.topics or ())]
    if listed:  # rows whose brokers are gone: 206 still names the topic
        yield cause("only-rows-are-left", *listed, servers=all_of(listed), have=_has(listed), topic=topic)
        return
    masters = answers.masters
    silent = [broker for broker in masters if not broker.answers]
    asked = [broker for broker in masters if broker.answers]
    how = "no NameServer routes it, "
    if len(masters) == 1:
        how += f"and {masters[0]} has none of that name"
    else:
        how += f"and none of {all_of(map(str, masters))} has it" if masters else "and no broker is registered"
    how += f". {all_of(map(str, silent))} could not be asked" if silent else ""
    alike = _alike(answers)
    how += f". There is {any_of(alike)}" if alike else ""
    yield cause("topic-is-nowhere", topic, certain=bool(masters) and not silent, topic=topic, how=how)
    creators = [broker for broker in asked if broker.creates_topics]
    if asked and not creators:
        yield not_created(asked)
    elif creators:
        how = (
            f"{all_of(map(str, creators))} {_has(creators)} autoCreateTopicEnable=true, so a first send would create "
            "it by the route of TBW102; a consumer's look-up creates nothing"
        )
        yield cause("nobody-has-sent-yet", *map(str, creators), certain=False, topic=topic, how=how)


def _alike(answers: ServerAnswers) -> list[str]:
    """Return existing topics with a similar name, topics of another namespace first."""
    known = {name for server in answers.answering for name in server.topics or ()}
    known |= {name for broker in answers.brokers for name in broker.topics or ()}
    near = difflib.get_close_matches(answers.topic, sorted(known), n=3, cutoff=SIMILAR)
    folded = [name for name in sorted(known) if name.casefold().endswith(answers.topic.casefold())]
    return list(dict.fromkeys([*folded[:3], *near]))


def _missing_somewhere(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    for server in answers.answering:
        for broker in answers.holders if server.brokers else ():  # an empty one is for _empty
            if broker.name not in server.routed:
                yield _missing(answers, server, broker)


def _missing(answers: ServerAnswers, server: NameServerAnswer, broker: BrokerAnswer) -> NoRouteCause:
    elsewhere = [other.address for other in answers.answering if broker.name in other.routed]
    routed = f", routed by {all_of(elsewhere)}" if elsewhere else ""
    about = server.address, str(broker)
    words: dict[str, Any] = {
        "topic": answers.topic,
        "server": server.address,
        "broker": f"{broker} ({broker.address}{routed})",
    }
    data = server.brokers.get(broker.name)
    if data is not None and broker.address in data.broker_addrs.values():
        how = "it was deleted there alone (216), or came between two registrations of one dataVersion (4.x, #4522)"
        return cause("topic-is-not-at-this-name-server", *about, how=how, **words)
    if data is not None:
        words |= {"broker": str(broker), "addresses": all_of([broker.address, *data.broker_addrs.values()])}
        how = f"which does not route {answers.topic} to the first; or the broker's address changed"
        return cause("another-broker-has-the-name", *about, how=how, **words)
    speaks = answers.speaks_our_names(broker)
    listed = server.address in broker.lists
    if speaks and not listed:
        how = f"its namesrvAddr is {_list(broker)}"
        return cause("broker-does-not-list-this-name-server", *about, how=how, **words)
    how = "its registrations do not arrive, or somebody unregistered it"
    how = f"it lists that NameServer, but {how}" if listed else how
    return cause("broker-is-not-registered", *about, certain=speaks or listed, how=how, **words)


def _permissions(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    for bit, verb in ((PERM_WRITE, "write"), (PERM_READ, "read")):
        barred: dict[str, list[str]] = {}
        for server in answers.answering:
            rows = () if server.route is None else server.route.queue_datas
            if rows and not any(row.perm & bit for row in rows):
                barred.setdefault(_reason(answers, server, bit), []).append(server.address)
        for how, servers in barred.items():
            yield cause(f"no-permission-to-{verb}", *servers, where=f"of the route at {all_of(servers)}", how=how)


def _reason(answers: ServerAnswers, server: NameServerAnswer, bit: int) -> str:
    """Return why the permission is missing: brokerPermission, a wipe at the NameServer, or the topic's own setting."""
    assert server.route is not None
    said = []
    for row in server.route.queue_datas:
        broker = next((one for one in answers.holders if one.name == row.broker_name), None)
        own = None if broker is None or broker.topic is None else broker.topic.perm
        whole = int((broker.settings.get("brokerPermission") if broker is not None else None) or 6)
        if not whole & bit:
            said.append(f"{row.broker_name} has brokerPermission={whole}")
        elif own is not None and own & bit:
            said.append(f"{row.broker_name} was wiped at the NameServer (perm {row.perm}; the broker has {own})")
        else:
            said.append(f"the topic has perm {row.perm} at {row.broker_name}")
    return ", ".join(said)


def _no_master(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    by_group: dict[tuple[str, ...], list[str]] = {}
    for server in answers.answering:
        groups = [data for data in server.route.broker_datas if data.broker_addrs] if server.route else []
        without = tuple(sorted(data.broker_name for data in groups if MASTER_ID not in data.broker_addrs))
        if without and len(without) == len(groups):
            by_group.setdefault(without, []).append(server.address)
    for names, servers in by_group.items():
        yield cause("no-master", *servers, *names, servers=all_of(servers), brokers=all_of(names))


def _brokers_down(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    routed = {name for server in answers.answering for name in server.routed}
    for broker in answers.masters:
        if broker.why is not None and broker.name in routed:
            yield cause("broker-gives-no-answer", str(broker), broker=f"{broker} ({broker.address})", how=broker.why)


# --- clients ---------------------------------------------------------------------------------------------------------


def _elsewhere(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    asked = {server.address for server in answers.name_servers}
    right = {server.address for server in answers.answering if server.route is not None}
    for client in answers.clients:
        if client.lists - asked and not client.lists & right:
            who, how = client.client_id, f"its list is {';'.join(sorted(client.lists))}, of which none was asked here"
            yield cause("client-is-at-other-name-servers", who, certain=False, client=who, how=how)


def _dialect(answers: ServerAnswers) -> Iterator[NoRouteCause]:
    loose = [server.address for server in answers.answering if server.strict is False]
    if loose and is_routed_everywhere(answers):  # else there is a better reason
        yield cause("dialect-that-a-client-may-not-read", *loose, certain=False, servers=all_of(loose))


_FINDERS = (
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


# --- words -----------------------------------------------------------------------------------------------------------


def _addresses(servers: Iterable[NameServerAnswer]) -> str:
    return all_of(server.address for server in servers)


def _list(broker: BrokerAnswer) -> str:
    return ";".join(sorted(broker.lists))


def _has(subjects: list[str] | list[BrokerAnswer]) -> str:
    return "has" if len(subjects) == 1 else "have"
