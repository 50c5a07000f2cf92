"""Why clients found no route, from logs: the causes that `nemesrv doctor` names on a live cluster, as logs show them.

    causes_in(told) -> (causes, certain ones first; what these logs do not show)

A cause is certain where the logs leave no other reading; each has the lines that it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...chaos.reports.words import all_of
from .log_words import LoggedCause, called, clock, span
from .server_log_causes import of_server
from .told import NO_ANSWER, NO_ROUTE, Failure, ServerTold, Stay, Told

TOLERANCE_MS = 1_500
"""Two stamps of whole seconds, from clocks that were aligned."""


def causes_in(told: Told, topic: str | None = None) -> tuple[list[LoggedCause], list[str]]:
    """The causes, and a sentence for each failure that these logs do not explain. `topic`: only of this one."""
    found, unknown = list[LoggedCause](), list[str]()
    for failure in told.failures:
        if topic is not None and failure.topic not in ("", topic):
            continue
        causes = list(_of(told, failure))
        found += causes
        if not causes:
            unknown.append(_not_shown(told, failure))
    for server in told.servers:
        found += of_server(told, server, topic)
    once = {(cause.name, cause.about, cause.sentence): cause for cause in reversed(found)}
    return sorted(reversed(once.values()), key=lambda cause: not cause.certain), list(dict.fromkeys(unknown))


def _of(told: Told, failure: Failure) -> Iterator[LoggedCause]:
    if failure.kind == NO_ANSWER:
        yield from _no_answer(told, failure)
        return
    assert failure.kind == NO_ROUTE
    server = told.server(failure.name_server)
    unlisted = list(_unlisted(told, failure, server))
    yield from unlisted
    if unlisted:
        return
    empty = [] if server is None else list(_empty(told, failure, server))
    yield from empty
    if empty:
        return
    holders = told.holders.get(failure.topic, set())
    if not holders:
        yield from _nowhere(told, failure)
        return
    if failure.topic in told.created and told.created[failure.topic].ms > failure.first.ms:
        yield _not_sent_yet(told, failure)
        return
    if server is not None:
        yield from _gone(told, failure, server, holders)
    else:
        yield from _not_heard(told, failure, holders)


def _no_answer(told: Told, failure: Failure) -> Iterator[LoggedCause]:
    if failure.name_server is None:
        return
    server, who = told.server(failure.name_server), called(told, failure.name_server)
    boot = None if server is None else next((at for at in server.boots if at.ms >= failure.first.ms - 1_000), None)
    more = ""
    if server is not None and boot is not None:
        more = f" {server.name} was started at {clock(boot.ms)}."
    times = "" if failure.times == 1 else f" {failure.times} times"
    yield LoggedCause(
        name="name-server-gives-no-answer",
        certain=True,
        about=(failure.name_server,),
        sentence=f"NameServer {who} gave {failure.client} no answer{times} {span(failure)}: {failure.how}.{more}",
        then="Start it, or take it off the clients' lists; a client that is at it finds no new topic until its channel "
        "fails.",
        lines=(failure.first.where, *((boot.where,) if boot else ())),
    )


def _unlisted(told: Told, failure: Failure, server: ServerTold | None) -> Iterator[LoggedCause]:
    """Of a NameServer that brokers do not list: all of them, or those that have the topic."""
    address = failure.name_server
    if address is None:
        return
    who = called(told, address)
    listing = [(broker, broker.listed(failure.first.ms)) for broker in told.brokers]
    known = [(broker, names) for broker, names in listing if names]
    clients = told.clients.get(failure.client, frozenset())
    if not known or not any(names & clients for _, names in known if names):
        return  # by other names than the client's: nothing follows
    without = [(broker, names) for broker, names in known if names and address not in names]
    if any(address in broker.registered for broker, _ in without) and len(without) < len(known):
        return
    if len(without) == len(known):
        taken = [
            at
            for broker, _ in without
            for (_, before), (at, after) in zip(broker.lists, broker.lists[1:], strict=False)
            if address in before and address not in after
        ]
        is_all = told.registering <= {broker.name.partition("/")[0] for broker, _ in known}
        was = f", which took it off their lists at {clock(taken[0].ms)}" if taken else ""
        name = "client-is-at-other-name-servers" if server is None else "no-broker-lists-this-name-server"
        yield LoggedCause(
            name=name,
            certain=is_all or bool(taken),
            about=(failure.client, address),
            sentence=f"{failure.client} asked NameServer {who} for {failure.topic} {span(failure)}, "
            f"and none of {all_of(broker.name for broker, _ in known)} lists it{was}.",
            then="It is a foreign or removed NameServer: take it off the client's list, or put it on the brokers' "
            "namesrvAddr.",
            lines=(failure.first.where, *(at.where for at in taken[:1])),
        )
        return
    holders = told.holders.get(failure.topic, set())
    lacking = [broker for broker, _ in without if broker.name in holders]
    if lacking and {broker.name for broker in lacking} == holders:
        yield LoggedCause(
            name="broker-does-not-list-this-name-server",
            certain=True,
            about=(address, *(broker.name for broker in lacking)),
            sentence=f"{failure.topic} is at {all_of(broker.name for broker in lacking)}, whose namesrvAddr is without "
            f"{who}, which {failure.client} asked {span(failure)}.",
            then="Put the NameServer on the broker's namesrvAddr; no timer mends it.",
            lines=(failure.first.where, *(broker.lists[0][0].where for broker in lacking)),
        )


def _empty(told: Told, failure: Failure, server: ServerTold) -> Iterator[LoggedCause]:
    boot = server.booted(failure.first.ms + TOLERANCE_MS)
    if boot is None or [s for s in server.held(failure.first.ms - TOLERANCE_MS) if s.since.ms >= boot.ms]:
        return
    came = [stay for stay in server.stays if stay.since.ms >= boot.ms]
    if any(stay.until is not None and stay.until.ms < failure.first.ms for stay in came):
        return  # it was full and emptied again
    first = min(came, key=lambda stay: stay.since.ms, default=None)
    if first is not None and first.since.ms < failure.first.ms - TOLERANCE_MS:
        return
    then = f"its first broker, {told.broker_of(first.address)}, came at {clock(first.since.ms)}" if first else (
        "no broker came after that"
    )  # fmt: skip
    who = called(told, failure.name_server or server.name)
    again = "restarted" if server.boots[0].ms < boot.ms or server.first.ms < boot.ms - 2_000 else "started"
    yield LoggedCause(
        name="name-server-is-empty",
        certain=True,
        about=(failure.name_server or server.name,),
        sentence=f"NameServer {who} was {again} at {clock(boot.ms)}, with "
        f"an empty table, and {then}; {failure.client} asked it for {failure.topic} {span(failure)}.",
        then="Brokers come back at their own ticks, within registerNameServerPeriod (30 s); restart NameServers one "
        "after the other.",
        lines=(boot.where, failure.first.where, *((first.since.where,) if first else ())),
    )


def _gone(told: Told, failure: Failure, server: ServerTold, holders: set[str]) -> Iterator[LoggedCause]:
    """Of each broker that has the topic: it was not registered there then, or it was without the topic."""
    here = {told.broker_of(stay.address) for stay in server.held(failure.first.ms - TOLERANCE_MS)}
    address = failure.name_server or server.name
    who = called(told, address)
    for name in sorted(holders):
        if name in here:
            yield from _deleted(told, failure, server, name)
            continue
        stays = [stay for stay in server.stays if told.broker_of(stay.address) == name]
        ended = [stay for stay in stays if stay.until is not None and stay.until.ms <= failure.first.ms + TOLERANCE_MS]
        if ended:
            yield _dropped(told, failure, server, name, ended[-1], stays)
            continue
        refused = next((at for at, _ in server.refused if at.ms <= failure.last.ms), None)
        broker = next((one for one in told.brokers if one.name == name), None)
        failed = [] if broker is None else [at for ns in server.addresses for at in broker.failed.get(ns, ())]
        why = "its registrations failed" if failed else "its registrations do not arrive"
        if refused is not None:
            why = "this NameServer refused a registration for a wrong checksum (crc32)"
        yield LoggedCause(
            name="broker-is-not-registered",
            certain=bool(failed) or server.is_whole,
            about=(address, name),
            sentence=f"{failure.topic} is at {name}, which was not registered at NameServer {who} when "
            f"{failure.client} asked it {span(failure)}: {why}.",
            then="See the broker's log for what its registrations met with.",
            lines=(failure.first.where, *(at.where for at in failed[:1]), *((refused.where,) if refused else ())),
        )


def _dropped(told: Told, failure: Failure, server: ServerTold, name: str, stay: Stay, stays: list[Stay]) -> LoggedCause:
    assert stay.until is not None
    back = next((one for one in stays if one.since.ms > failure.first.ms), None)
    who = called(told, failure.name_server or server.name)
    came = f"; it came back at {clock(back.since.ms)}" if back else "; it did not come back in this log"
    return LoggedCause(
        name="broker-is-not-registered",
        certain=True,
        about=(failure.name_server or server.name, name),
        sentence=f"{failure.topic} is at {name}, which NameServer {who} "
        f"dropped at {clock(stay.until.ms)}: {stay.how}{came}. {failure.client} asked for it {span(failure)}.",
        then="An expired broker was cut off or hung for 120 s, a closed connection was its end or the network's; it "
        "registers again at its own tick (30 s).",
        lines=(stay.until.where, failure.first.where, *((back.since.where,) if back else ())),
    )


def _deleted(told: Told, failure: Failure, server: ServerTold, name: str) -> Iterator[LoggedCause]:
    last = None
    for one in server.topics:
        if one.topic == failure.topic and one.at.ms <= failure.first.ms + TOLERANCE_MS and one.broker in ("", name):
            last = one
    address = failure.name_server or server.name
    who = called(told, address)
    if last is not None and last.what == "deleted":
        yield LoggedCause(
            name="topic-is-not-at-this-name-server",
            certain=True,
            about=(address, name),
            sentence=f"{failure.topic} was deleted at NameServer {who} at {clock(last.at.ms)}, which "
            f"holds its broker {name}; {failure.client} asked for it {span(failure)}.",
            then="Change any topic of the broker, so that its dataVersion does, or restart the broker.",
            lines=(last.at.where, failure.first.where),
        )
    elif last is None and server.is_whole:
        yield LoggedCause(
            name="topic-is-not-at-this-name-server",
            certain=not any(one.topic == failure.topic and one.what == "gone" for one in server.topics),
            about=(address, name),
            sentence=f"{failure.topic} is at {name}, which NameServer {who} held without this topic "
            f"when {failure.client} asked for it {span(failure)}.",
            then="It came between two registrations of one dataVersion (4.x, #4522), or later: change any topic of the "
            "broker, or restart it.",
            lines=(failure.first.where,),
        )


def _nowhere(told: Told, failure: Failure) -> Iterator[LoggedCause]:
    whole = bool(told.servers) and all(server.is_whole for server in told.servers)
    where = all_of([server.name for server in told.servers]) if told.servers else "no NameServer"
    if not told.servers and not told.brokers:
        return
    yield LoggedCause(
        name="topic-is-nowhere",
        certain=whole,
        about=(failure.topic,),
        sentence=f"There is no topic {failure.topic} in any of these logs but where {failure.client} asked for it "
        f"{span(failure)}: no broker registered it at {where}.",
        then="Create it with updateTopic, or mend its name in the client.",
        lines=(failure.first.where,),
    )
    said = [broker for broker in told.brokers if broker.creates_topics is not None]
    if said and not any(broker.creates_topics for broker in said):
        names = all_of(broker.name for broker in said)
        yield LoggedCause(
            name="topics-are-not-created",
            certain=len(said) == len(told.brokers),
            about=tuple(broker.name for broker in said),
            sentence=f"A first send does not create it: {names} started with autoCreateTopicEnable=false.",
            then="Create it with updateTopic; where it is on, a producer borrows the route of TBW102 for a first send.",
            lines=(failure.first.where,),
        )


def _not_sent_yet(told: Told, failure: Failure) -> LoggedCause:
    at = told.created[failure.topic]
    return LoggedCause(
        name="nobody-has-sent-yet",
        certain=True,
        about=(failure.topic,),
        sentence=f"{failure.topic} was created by a first send at {clock(at.ms)}; {failure.client} asked for it "
        f"{span(failure)}.",
        then="Create topics with updateTopic before they are used; NameServers hear of one at the broker's next "
        "registration, and clients within pollNameServerInterval (30 s).",
        lines=(at.where, failure.first.where),
    )


def _not_heard(told: Told, failure: Failure, holders: set[str]) -> Iterator[LoggedCause]:
    """The asked NameServer's own log is missing: what brokers say of it."""
    address = failure.name_server
    if address is None:
        return
    who = called(told, address)
    for broker in told.brokers:
        failed = [at for at in broker.failed.get(address, ()) if at.ms <= failure.last.ms + TOLERANCE_MS]
        if broker.name not in holders or not failed:
            continue
        after = [at for at in broker.registered.get(address, ()) if at.ms > failed[-1].ms]
        if after and after[0].ms < failure.first.ms - TOLERANCE_MS:
            continue
        yield LoggedCause(
            name="broker-is-not-registered",
            certain=False,
            about=(address, broker.name),
            sentence=f"{failure.topic} is at {broker.name}, whose registrations at NameServer {who} "
            f"failed from {clock(failed[0].ms)} to {clock(failed[-1].ms)}; {failure.client} asked it {span(failure)}.",
            then=f"The log of {who} would say whether it had dropped the broker or was restarted.",
            lines=(failed[0].where, failure.first.where),
        )


def _not_shown(told: Told, failure: Failure) -> str:
    about = f"why {failure.client} found no route of {failure.topic} {span(failure)}"
    who = "" if failure.name_server is None else called(told, failure.name_server)
    if failure.name_server is None:
        return f"{about}: its log does not say which NameServer it asked (`new name server is chosen`)"
    if told.server(failure.name_server) is None:
        return f"{about}: the log of NameServer {who} is not here"
    if not told.brokers:
        return f"{about}: no broker's log is here"
    return f"{about}: NameServer {who} held its brokers then; its answers are in no log"
