"""Finds the causes for which clients found no route, in logs. A cause is certain if the logs allow no other
explanation. Each cause names the log lines that show it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...chaos.reports.text import all_of
from .causes import NoRouteCause, cause, in_order, not_created
from .logged import Failure, Logged, LoggedNameServer, Stay

_NAMES = re.compile(r"[\w.-]+(?::\d+)?")
TOLERANCE_MS = 1_500
"""Error of two stamps in whole seconds from aligned clocks."""


def causes_in(logs: Logged, topic: str | None = None) -> tuple[list[NoRouteCause], list[str]]:
    """Return the causes of failed look-ups, certain causes first, and a sentence for each failed look-up without a
    cause. With `topic`, only look-ups of this topic count."""
    found, unknown = list[NoRouteCause](), list[str]()
    for failure in logs.failures:
        if topic not in (None, failure.topic):
            continue
        causes = list(_of_failure(logs, failure))
        found += causes
        if not causes:
            unknown.append(_not_shown(logs, failure))
    return in_order(found), list(dict.fromkeys(unknown))


def _of_failure(logs: Logged, failure: Failure) -> Iterator[NoRouteCause]:
    server = logs.server(failure.name_server)
    found = [*_not_its_own(failure), *_unlisted(logs, failure, server)]
    if not found and server is not None:
        found = [*_empty(logs, failure, server)]
    if found:
        yield from found
        return
    holders = logs.holders.get(failure.topic, set())
    created = logs.created.get(failure.topic)
    if not holders:
        yield from _nowhere(logs, failure)
    elif created is not None and created.ms > failure.first.ms:
        how = f"a first send created it at {created.clock}; {failure.asked}"
        lines = created.where, failure.first.where
        yield cause("nobody-has-sent-yet", failure.topic, lines=lines, topic=failure.topic, how=how)
    elif server is not None:
        yield from _gone(logs, failure, server, holders)
    elif failure.name_server is None and (alike := _whichever(logs, failure, holders)):
        yield from alike
    else:
        yield from _not_heard(logs, failure, holders)


def _not_its_own(failure: Failure) -> Iterator[NoRouteCause]:
    """Return the cause that the client asks a NameServer that is not, or no longer, on its own list. The client's log
    may name hosts without ports."""
    listed = {name.partition(":")[0] for name in _NAMES.findall(failure.own_list)}
    address = failure.name_server
    if address is None or not listed or address.partition(":")[0] in listed:
        return
    how = f"it asks {address} for {failure.topic} {failure.span}, and its own list is {failure.own_list}"
    where = failure.first.where
    yield cause(
        "client-is-at-other-name-servers", failure.client, certain=False, lines=[where], client=failure.client, how=how
    )


def _unlisted(logs: Logged, failure: Failure, server: LoggedNameServer | None) -> Iterator[NoRouteCause]:
    """Return the cause for a NameServer that the topic's brokers, or all brokers, do not list."""
    address = failure.name_server
    if address is None:
        return
    known = [(broker, names) for broker in logs.brokers if (names := broker.listed(failure.first.ms))]
    clients = logs.clients.get(failure.client, frozenset())
    if not any(names & clients for _, names in known):
        return  # by other names than the client's: nothing follows
    without = [broker for broker, names in known if address not in names]
    if any(address in broker.registered for broker in without) and len(without) < len(known):
        return
    words: dict[str, Any] = {"server": logs.called(address), "client": failure.client, "topic": failure.topic}
    if len(without) == len(known):
        clusters = {broker.cluster for broker in without if broker.cluster}
        if server is not None and server.clusters and clusters and clusters.isdisjoint(server.clusters):
            how = f"while {failure.topic} is looked for in {all_of(sorted(clusters))}; {failure.asked}"
            theirs = [at.where for at in server.clusters.values()]
            words |= {"clusters": all_of(sorted(server.clusters)), "how": how}
            yield cause("name-server-of-another-cluster", address, lines=[failure.first.where, *theirs], **words)
            return
        taken = [
            at
            for broker in without
            for (_, before), (at, after) in zip(broker.lists, broker.lists[1:], strict=False)
            if address in before and address not in after
        ]
        is_all = logs.registering <= {broker.name.partition("/")[0] for broker in without}
        unlisted = f"is on no list of {all_of(broker.name for broker in without)}"
        if server is None:
            how = f"{words['server']}, asked for {failure.topic} {failure.span}, {unlisted}"
        else:
            how = f"it {unlisted}, and {failure.client} asked it for {failure.topic} {failure.span}"
        how += f"; it was taken off at {taken[0].clock}" if taken else ""
        yield cause(
            "client-is-at-other-name-servers" if server is None else "no-broker-lists-this-name-server",
            failure.client,
            address,
            certain=is_all or bool(taken),
            lines=(failure.first.where, *(at.where for at in taken[:1])),
            how=how,
            **words,
        )
        return
    holders = logs.holders.get(failure.topic, set())
    lacking = [broker for broker in without if broker.name in holders]
    if lacking and {broker.name for broker in lacking} == holders:
        lacking_names = [broker.name for broker in lacking]
        lines = (failure.first.where, *(broker.lists[0][0].where for broker in lacking))
        words |= {"broker": all_of(lacking_names), "how": failure.asked}
        yield cause("broker-does-not-list-this-name-server", address, *lacking_names, lines=lines, **words)


def _empty(logs: Logged, failure: Failure, server: LoggedNameServer) -> Iterator[NoRouteCause]:
    boot = server.booted(failure.first.ms + TOLERANCE_MS)
    if boot is None or [s for s in server.held(failure.first.ms - TOLERANCE_MS) if s.since.ms >= boot.ms]:
        return
    came = [stay for stay in server.stays if stay.since.ms >= boot.ms]
    if any(stay.until is not None and stay.until.ms < failure.first.ms for stay in came):
        return  # it was full and emptied again
    first = min(came, key=lambda stay: stay.since.ms, default=None)
    if first is not None and first.since.ms < failure.first.ms - TOLERANCE_MS:
        return
    address = failure.name_server or server.name
    again = "restarted" if server.boots[0].ms < boot.ms or server.first.ms < boot.ms - 2_000 else "started"
    how = f"it was {again} at {boot.clock}, with an empty table, and "
    how += f"its first broker, {logs.broker_of(first.address)}, came at {first.since.clock}" if first else (
        "no broker came after that"
    )  # fmt: skip
    how += f"; {failure.client} asked it for {failure.topic} {failure.span}"
    lines = boot.where, failure.first.where, *((first.since.where,) if first else ())
    yield cause("name-server-is-empty", address, lines=lines, server=logs.called(address), how=how)


def _whichever(logs: Logged, failure: Failure, holders: set[str]) -> list[NoRouteCause]:
    """Return causes for a client whose log names no NameServer: causes that are true of every NameServer."""
    if not logs.servers or len(logs.servers) < len({*logs.listed}):
        return []
    found = [
        [*_gone(logs, replace(failure, name_server=next(iter(server.addresses), server.name)), server, holders)]
        for server in logs.servers
    ]
    return [one for some in found for one in some] if all(found) else []


def _gone(logs: Logged, failure: Failure, server: LoggedNameServer, holders: set[str]) -> Iterator[NoRouteCause]:
    """Return a cause for each broker of the topic that was not registered at `server` then, or without the topic."""
    here = {logs.broker_of(stay.address) for stay in server.held(failure.first.ms - TOLERANCE_MS)}
    address = failure.name_server or server.name
    for name in sorted(holders):
        stays = [stay for stay in server.stays if logs.broker_of(stay.address) == name]
        until = failure.first.ms + TOLERANCE_MS
        ended = [stay for stay in stays if stay.until is not None and stay.until.ms <= until]
        what, found = "broker-is-not-registered", None
        if name in here:
            what, found = "topic-is-not-at-this-name-server", _deleted(failure, server, name)
        else:
            found = _dropped(failure, ended[-1], stays) if ended else _never_there(logs, failure, server, name)
        if found is not None:
            certain, how, lines = found
            words = {"topic": failure.topic, "broker": name, "server": logs.called(address)}
            how = f"{how}; {failure.asked}"
            yield cause(what, address, name, certain=certain, lines=lines, how=how, **words)


_Why = tuple[bool, str, list[str]]
"""Whether it is certain, how it came, and the lines that say so."""


def _dropped(failure: Failure, stay: Stay, stays: list[Stay]) -> _Why:
    assert stay.until is not None
    back = next((one for one in stays if one.since.ms > failure.first.ms), None)
    came = f"it came back at {back.since.clock}" if back else "it did not come back in this log"
    lines = [stay.until.where, failure.first.where, *([back.since.where] if back else [])]
    return True, f"it was dropped at {stay.until.clock}, for {stay.how}; {came}", lines


def _never_there(logs: Logged, failure: Failure, server: LoggedNameServer, name: str) -> _Why:
    refused = [at for at in server.refused if at.ms <= failure.last.ms][:1]
    broker = next((one for one in logs.brokers if one.name == name), None)
    failed = [] if broker is None else [at for ns in server.addresses for at in broker.failed.get(ns, ())]
    how = "its registrations failed" if failed else "its registrations do not arrive"
    if refused:
        how = "this NameServer refused a registration for a wrong checksum (crc32)"
    lines = [at.where for at in (failure.first, *failed[:1], *refused)]
    return bool(failed) or server.is_whole, how, lines


def _deleted(failure: Failure, server: LoggedNameServer, name: str) -> _Why | None:
    of = [one for one in server.topics if one.topic == failure.topic]
    until = failure.first.ms + TOLERANCE_MS
    last = next((one for one in reversed(of) if one.at.ms <= until and one.broker in ("", name)), None)
    if last is not None and last.what == "deleted":
        return True, f"it was deleted there at {last.at.clock}", [last.at.where, failure.first.where]
    if last is None and server.is_whole:
        how = "it came between two registrations of one dataVersion (4.x, #4522), or later"
        return not any(one.what == "gone" for one in of), how, [failure.first.where]
    return None


def _nowhere(logs: Logged, failure: Failure) -> Iterator[NoRouteCause]:
    if not logs.servers and not logs.brokers:
        return
    whole = bool(logs.servers) and all(server.is_whole for server in logs.servers)
    where = all_of([server.name for server in logs.servers]) if logs.servers else "no NameServer"
    topic, lines = failure.topic, (failure.first.where,)
    how = f"no broker registered it at {where}, and {failure.asked}"
    yield cause("topic-is-nowhere", topic, certain=whole, lines=lines, topic=topic, how=how)
    said = [broker for broker in logs.brokers if broker.creates_topics is not None]
    if said and not any(broker.creates_topics for broker in said):
        names = [broker.name for broker in said]
        yield not_created(names, certain=len(said) == len(logs.brokers), lines=lines)


def _not_heard(logs: Logged, failure: Failure, holders: set[str]) -> Iterator[NoRouteCause]:
    address = failure.name_server
    if address is None:
        return
    for broker in logs.brokers:
        failed = [at for at in broker.failed.get(address, ()) if at.ms <= failure.last.ms + TOLERANCE_MS]
        if broker.name not in holders or not failed:
            continue
        after = [at for at in broker.registered.get(address, ()) if at.ms > failed[-1].ms]
        if after and after[0].ms < failure.first.ms - TOLERANCE_MS:
            continue
        yield cause(
            "broker-is-not-registered",
            address,
            broker.name,
            certain=False,
            lines=(failed[0].where, failure.first.where),
            topic=failure.topic,
            broker=broker.name,
            server=logs.called(address),
            how=f"its registrations there failed from {failed[0].clock} to {failed[-1].clock}, and {failure.asked}; "
            "that NameServer's log, which is not here, would say whether it dropped the broker or was restarted",
        )


def _not_shown(logs: Logged, failure: Failure) -> str:
    about = f"why {failure.client} found no route of {failure.topic} {failure.span}"
    if failure.name_server is None:
        return f"{about}: its log does not say which NameServer it asked (`new name server is chosen`)"
    who = logs.called(failure.name_server)
    if logs.server(failure.name_server) is None:
        return f"{about}: the log of NameServer {who} is not here"
    if not logs.brokers:
        return f"{about}: no broker's log is here"
    return f"{about}: NameServer {who} held its brokers then; its answers are in no log"
