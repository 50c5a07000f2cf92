"""The causes for which a client finds no route of a topic, or one that it cannot use: name, sentence, remedy of each.

    answer_causes.py   finds them in the answers of a live cluster  ─┬─► cause(name, …) ─► NoRouteCause ─► doctor.py
    log_causes.py      finds them in logs                           ─┘

A sentence says what is wrong and where; `{how}` is what the finder saw. A cause is certain where that leaves no other
reading, else likely. Upstream: RouteInfoManager, MQClientInstance.updateTopicRouteInfoFromNameServer,
TopicConfigManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from ...chaos.reports.text import all_of


class Wording(NamedTuple):
    sentence: str
    remedy: str


def _no_permission(who: str, verb: str) -> Wording:
    return Wording(
        f"{who} may {verb} no queue {{where}}: {{how}}.",
        "addWritePerm where it was wiped at a NameServer, for the broker's next registration gives it back only with "
        "another dataVersion; updateTopic -p 6 where the topic has it so; brokerPermission=6 where the broker has.",
    )


CAUSES: Mapping[str, Wording] = {
    "name-server-gives-no-answer": Wording(
        "NameServer {server} gives no answer: {how}.",
        "Start it, or take it off the clients' lists; a client that is at it finds no new topic until its channel "
        "fails.",
    ),
    "name-server-not-ready": Wording(
        "NameServer {server} answers code 1, 'name server not ready'{how}: it has needWaitForService=true and answers "
        "no look-up for waitSecondsForService (45 s) after its start.",
        "Wait for that time; 5.1.0 to 5.3.1 answer so for ever after their first good answer.",
    ),
    "topic-is-nowhere": Wording(
        "There is no topic {topic}: {how}.", "Create it with updateTopic, or mend its name in the client."
    ),
    "topics-are-not-created": Wording(
        "A first send does not create it: {brokers} {have} autoCreateTopicEnable=false.",
        "Create it with updateTopic; where it is on, a producer borrows the route of TBW102 for a first send.",
    ),
    "nobody-has-sent-yet": Wording(
        "Nobody had sent to {topic} yet: {how}.",
        "Let a producer send first, or create the topic with updateTopic; NameServers hear of it at the broker's next "
        "registration, and clients within pollNameServerInterval (30 s).",
    ),
    "only-rows-are-left": Wording(
        "{servers} still {have} {topic} among the topics, but none of the brokers that have it is registered: its rows "
        "outlived them.",
        "Start these brokers again, or delete the topic (deleteTopic).",
    ),
    "broker-does-not-list-this-name-server": Wording(
        "{topic} is at {broker}, which is not registered at NameServer {server} and does not list it: {how}.",
        "Put the NameServer on the broker's namesrvAddr; no timer mends it.",
    ),
    "broker-is-not-registered": Wording(
        "{topic} is at {broker}, which is not registered at NameServer {server}: {how}.",
        "A broker that was cut off, hung or lost its connection registers again at its own tick (30 s); the "
        "NameServer's log says why it dropped the broker (unregisterBroker, channel expired, channel destroyed), the "
        "broker's log what its registrations met.",
    ),
    "another-broker-has-the-name": Wording(
        "{addresses} both claim to be {broker} at NameServer {server}, {how}.",
        "Give each broker a brokerName and brokerId of its own.",
    ),
    "topic-is-not-at-this-name-server": Wording(
        "{topic} is at {broker}, which NameServer {server} has without this topic: {how}.",
        "Change any topic of the broker, so that its dataVersion does, or restart the broker.",
    ),
    "no-broker-lists-this-name-server": Wording(
        "No broker lists NameServer {server}: {how}.",
        "It is a foreign or removed NameServer: put it on the brokers' namesrvAddr, or take it off the clients' lists.",
    ),
    "name-server-is-empty": Wording(
        "NameServer {server} holds no broker at all: {how}.",
        "Brokers come back at their own ticks, within registerNameServerPeriod (30 s): later than that it is cut off, "
        "or no broker lists it (-b asks one). Restart NameServers one after the other.",
    ),
    "name-server-of-another-cluster": Wording(
        "NameServer {server} is another cluster's: it holds {clusters}, {how}.",
        "Take it off the list of the clients of the other cluster.",
    ),
    "no-permission-to-write": _no_permission("A producer", "write"),
    "no-permission-to-read": _no_permission("A consumer", "read"),
    "no-master": Wording(
        "The route at {servers} has no master, only slaves of {brokers}: a producer passes over brokers without id 0.",
        "Start the master again, or let a slave take over (controller, acting master).",
    ),
    "broker-gives-no-answer": Wording(
        "{broker} is routed and gives no answer: {how}.",
        "A NameServer drops a silent broker 120 to 130 s after its last registration, and clients follow within "
        "pollNameServerInterval (30 s).",
    ),
    "client-is-at-other-name-servers": Wording(
        "{client} is at foreign or removed NameServers, or has other names for them: {how}.",
        "Name them with -n to have them asked, or give the client the right list.",
    ),
    "dialect-that-a-client-may-not-read": Wording(
        "{servers} answer clients older than 4.9.4 in fastjson's dialect (`brokerAddrs:{{0:…}}`, keys without quotes): "
        "a client of another language that says such a version and has a strict JSON parser finds no route in it.",
        "Only if just such clients are without a route: have them send version 401 or later, or "
        "acceptStandardJsonOnly=true.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRouteCause:
    name: str
    """Short, for programs: one of CAUSES."""
    certain: bool
    about: tuple[str, ...]
    """Whose fault it is: addresses of NameServers, brokers' names, client ids."""
    sentence: str
    """What is wrong, and where."""
    then: str
    """What ends it."""
    lines: tuple[str, ...] = ()
    """`FILE:LINE` of what it rests on, where it was found in logs."""

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        return found if self.lines else {name: value for name, value in found.items() if name != "lines"}


def cause(name: str, *about: str, certain: bool = True, lines: Iterable[str] = (), **words: object) -> NoRouteCause:
    """The cause of that name; `words` fill in its sentence."""
    sentence, remedy = CAUSES[name]
    return NoRouteCause(
        name=name, certain=certain, about=about, sentence=sentence.format(**words), then=remedy, lines=tuple(lines)
    )


def in_order(found: Iterable[NoRouteCause]) -> list[NoRouteCause]:
    """Each once, certain ones first."""
    once = {(each.name, each.about, each.sentence): each for each in reversed([*found])}
    return sorted(reversed(once.values()), key=lambda each: not each.certain)


def numbered_lines(found: Iterable[NoRouteCause]) -> list[str]:
    """For a person: the causes in their order, each with what ends it."""
    lines = []
    for number, each in enumerate(found, 1):
        lines += [
            f"{number}. {'' if each.certain else 'likely: '}{each.sentence}",
            f"   {each.then}  [{each.name}]",
            *([f"   {' '.join(each.lines)}"] if each.lines else []),
        ]
    return lines


def not_created(brokers: Iterable[object], **more: Any) -> NoRouteCause:
    """That no broker creates topics."""
    names = [*map(str, brokers)]
    have = "has" if len(names) == 1 else "have"
    return cause("topics-are-not-created", *names, brokers=all_of(names), have=have, **more)
