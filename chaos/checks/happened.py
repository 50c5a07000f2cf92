"""A violation in one sentence: which node did what, when, and by how much it exceeded its bound.

    ns-0 still listed broker-a (orders) until 225.0 s, 209.3 s after its last registration; allowed 120.0 s: 89.3 s over
    consumer-0 committed for a queue of broker-b (orders) after giving the queue up, at 4.0 s

A sentence for each kind of finding, in two tables: of a state that has to be for some time, and of an act that is wrong
by itself. Moments are in the example's own axis.
"""

import re
from collections.abc import Mapping

from ..verdict import Example, length, seconds, tenths

_RECOVERED = "first good "
_DIFFERED = "{who} and {what} had different routes{of_topic} {until}{because}"
_OWNED = "{owners} owned queue {queue_id} of {about} {until}"
_STATES: Mapping[str, str] = {
    "must not hold": "{who} {still}listed {about} {until}",
    "must not hold what was silent": "{who} still listed {about} until {end}, {took} after its last registration",
    "must not hold what left": "{who} still listed {about} until {end}, after the broker's channel had ended",
    "must not hold what was unregistered": "{who} still listed {about} until {end}, after it was unregistered",
    "must not hold what never registered": "{who} listed {about} from {at} on, but {what} never registered there",
    "must not hold what registered uncalled": "{what} registered at {who}, which is not in {what}'s namesrvAddr; "
    "{who} listed {about} {until}",
    "must register": "{what} did not register with {who}, so {who} did not list {about} {until}",
    "must be equal": _DIFFERED,
    "promised to agree": _DIFFERED,
    "promised to stay": "{who} changed the address of the master of {what} from {at} on, for {took} ({masters})",
    "promised to last": "{who} listed {what} with write permission {until}",
    "promised to poll": "{who} did not ask for routes {until}",
    "must own": "no consumer owned queue {queue_id} of {about}, {holder}'s share, {until}",
    "must alone own": _OWNED,
    "must not come back": "{who} listed {about} again at {at}, for {took}, while {what} was down",
    "must not use": "{who} used {about} at {at}, {took} after {what} was lost",
    "committed at a slave": "{who} committed offsets to the slave {what} until {end}, {took} after its route had the "
    "master",
    "as long as its setting says": "{who}'s {what} lasted {took}, until {end}",
    "as long as its latency says": "{who}'s {what} lasted {took}, until {end}",
    "must have left": "{who} kept using {what} until {end}, {took} after {what} was lost",
    "must have left the removed": "{who} kept using {what} until {end}, {took} after the served list had lost {what}",
    _RECOVERED: "{who} had no successful {operation} until {end}, {took}{since}",
}
_ACTS: Mapping[str, str] = {
    # tables, and what NameServers answer
    "gone while it was being stopped": "{who}, while it was being stopped, answered code 17 for {topic}, which it had",
    "order configuration": "{who} sent {what} an order configuration{of_topic}, though its orderMessageEnable is off",
    "not its table": "{who} sent {what} another route{of_topic} than it had",
    "must hold": "{who} did not list {about}",
    "must register": "{what} did not register with {who}, so {who} did not list {about}",
    "must not be dropped": "{who} dropped {what}, which {who} had to keep",
    "dropped too soon": "{who} dropped {what} too soon",
    "must hold what it acknowledged": "{who} did not list {about}, whose registration it had acknowledged",
    "not as registered": "{who} listed {about} with other queues or permissions than the broker had registered",
    "another slave acts": "{who} listed another slave of {about} as acting master than the one with the least id",
    "an id that the broker has not": "{who} listed {about} under a broker id that the broker does not have",
    "an address that no broker has": "{who} listed {about} at an address that no broker has",
    "another broker's address": "{who} listed {about} at another broker's address",
    "no broker has this name": "{who} listed {about}, but no broker has this name",
    "under two ids": "{who} listed one address of {about} under two broker ids",
    "registered by nobody": "{who} listed {about}, but no broker had registered it",
    "taken though unchanged": "{who} took queues of {about} from a registration of an unchanged dataVersion{because}",
    "taken from a slave": "{who} took queues of {about} from a slave's registration",
    "taken though an older one": "{who} took an address of {about} with a smaller stateVersion{because}",
    "keeps its topics": "{who} had lost topic {topic}, or its queues or permission, when {who} was started again",
    "counts topics": "{who} answered an operator with a wrong number of topics of {what}",
    "takes a registration": "{who} refused a registration of {what}, and had no reason to",
    "refuses one topic": "{who} accepted the first registration of {what}, though it had only one topic",
    "queues without an address": "{who} listed queues of {about} without an address of the broker",
    "tells a slave its master": "{who} did not send {what} the address of its master",
    "copies from its master": "{who} did not copy the log of the master that NameServers had named, {what}",
    "two masters": "{who} listed two masters of {what}",
    "without a master, and with the write permission": "{who} listed {about} without a master, but writable",
    "registered": "{who} did not list {topic} as the action {what} had registered it",
    "unregistered": "{who} listed {topic}, which the action {what} had unregistered",
    "permission": "{who} did not list {topic} with the permission that the action {what} had set",
    "deleted": "{who} listed topic {topic}, which the action {what} had deleted",
    "spared": "{who} did not list {topic} as before, though the action {what} named something else",
    "silent": "{who} listed {topic}, which the action {what} had registered, and which was silent since",
    "makes one queue for a group": "{who} created topic {topic} with another number of queues than 1",
    "makes a retry topic": "{who} did not create topic {topic}, though {who} had a heartbeat of a member of the group",
    "answered before it serves": "{who} answered {what} during its waitSecondsForService",
    "refuses what its topic forbids": "{who} accepted {what} that queues or read permission of topic {topic} forbid",
    "takes what it is sent": "{who} refused sends with code 14 (SERVICE_NOT_AVAILABLE), though {who} was a master",
    "comes back": "{who} had topic {topic} again, which the action {what} had deleted",
    "the broker's topic": "{who} did not have topic {topic} with the queues or permission of the action {what}",
    "the broker's deleted topic": "{who} still had topic {topic}, which the action {what} had deleted",
    # a client's routes, and its NameServer
    "must have": "{who} had no route to {about}, though its NameServer had answered with one",
    "takes what it is told": "{who} did not use the route of {topic} with which {what} had answered",
    "must not have": "{who} had a route to {about}, though its NameServer had answered that there is none",
    "sticky": "{who} changed to {what}, though the NameServer that it had chosen had not failed",
    "takes the list": "{who} did not take the new list of NameServers from the address server in time",
    "keeps the list": "{who} took the same NameServers in another order for a new list",
    "in order": "{who} chose {what}, which is not the next NameServer of its list{because}",
    "moves on": "{who} asked {what} again after a failure, instead of the next NameServer of its list",
    "dials the chosen": "{who} connected to {what}, which it had not chosen",
    "in time": "{who} took longer for a call to {what} than the tries of one call may take",
    "attempts": "{who} tried fewer NameServers than one call has to try",
    "no more attempts": "{who} tried more NameServers than one call may try",
    "answers are final": "{who} tried again after {what} had answered",
    "first choices uniform": "{who} did not choose their first NameServer evenly",
    "shuffled": "{who} began with {what}, but its list is not a shuffle of all NameServers",
    "shuffled evenly": "{who} shuffled its lists unevenly: {what} has the same place too often",
    # messages, queues and offsets
    "read by nobody": "{unread} of {about}",
    "refused to its readers": "{holder} refused pulls of {who} from a queue of {about}{because}",
    "not used in turn": "{who} did not send evenly (round-robin) to the queues of {topic}, among them one of {what}",
    "out of its route": "{who} sent to a queue of {about} that is not in its route",
    "takes its own share": "{who} took other queues of {about} than its own share{because}",
    "first answered": "{what} sent {who} an offset of a queue of {topic} for which its group had committed none",
    "answered that there is no offset": "{what} answered {who} that its group has no offset of a queue of {topic}, "
    "instead of 0",
    "first taken": "{who} started a queue of {about} at a wrong offset",
    "not received": "{who} did not receive an acknowledged message of {about} in time{because}",
    "late": "{who} received a message of {about} late{because}",
    "not as it was given": "{who} sent {about} another message than its application had passed to send()",
    "not as it was sent": "{who} received a message of {about} that differs from the sent one",
    "acknowledged without a slave": "{what} acknowledged a message of {who} ({topic}) that no slave had stored",
    "received twice from one holding of its queue": "{who} received a message of {about} twice while owning its queue",
    "committed past, and not received": "{who} committed an offset beyond an unreceived message of {about}",
    "received after its consumer had given the queue up": "{who} received from a queue of {about} after giving it up",
    "received again, and no change of hands explains it": "{who} received a message of {about} again without cause",
    "lost": "{what} lost a message of {topic} that it had acknowledged to {who}",
    "forgotten at a start": "{who} lost a message of {topic} at a restart, and had acknowledged it to {what}",
    "committed past": "{who} committed an offset beyond an unreceived message of {about}",
    "committed before it was received": "{who} committed a message of {about} before it had received it",
    "committed late": "{who} committed a message of {about} too late",
    "consumed, and not committed": "{who} consumed a message of {about} and did not commit its offset",
    "committed for a queue that it had given up": "{who} committed for a queue of {about} after giving the queue up",
    "committed after it had unregistered": "{who} unregistered, and then committed an offset for a queue of {about}",
    "given up without a commit": "{who} gave up a queue of {about} without committing its offset",
    "went back as a pull was answered": "{what} committed a lower offset than before for {who} ({topic}) as {what} "
    "answered a held pull",
    "went back": "{who} committed a lower offset than before for a queue of {about}",
    "began without an answer": "{who} started a queue of {about} though its question for the offset had no answer",
    "began at another offset than it was answered": "{who} began a queue of {about} at another offset than answered",
    "answered an older offset than was committed": "{who} sent {what} an older offset{of_topic} than was committed",
    "lost its own offset": "{who} did not keep its own offset of a queue of {about}, as a broadcasting consumer must",
    "had another offset than was committed": "{who} stored another offset{of_topic} than {what} had committed",
    "a broadcast group's offsets at a broker": "{who} committed to a broker, which a broadcast group must not do",
    # sends and pulls
    "failed in a quiet time": "{who} had failed operations though no fault or recovery was in progress{because}",
    "below the scenario's availability_floor": "Too few operations of clients succeeded{because}",
    "unasked": "{what} sent {who} a response to a request that {who} had not sent",
    "acknowledged where another message is": "{what} acknowledged two messages at one offset of a queue ({topic}), the "
    "second one to {who}",
    "acknowledged at an offset where it is not": "{what} acknowledged a message with an offset at which {what} "
    "did not store the message",
    "answered a wrong first offset": "{what} sent {who} a wrong minOffset of a queue ({topic}){because}",
    "answered a wrong end": "{what} sent {who} a wrong maxOffset of a queue ({topic}){because}",
    "answered with more messages than asked for": "{what} sent {who} more messages than asked for ({topic}){because}",
    "answered with fewer messages than there were": "{what} sent {who} fewer messages than it had, and than {who} had "
    "asked for ({topic}){because}",
    "answered before the pull was held": "{what} did not hold a pull of {who} ({topic}) for as long as the pull asked"
    "{because}",
    "answered with messages out of order": "{what} sent {who} a message twice, or out of order ({topic}){because}",
    "answered that nothing matched where nothing was": "{what} answered a pull of {who} at a queue's end ({topic}) "
    "with code 20, not 19{because}",
    "answered a wrong next offset": "{what} sent {who} a wrong nextBeginOffset of a queue ({topic}){because}",
    "pulled from a slave": "{who} pulled from the slave {what} while its route had the master",
    "suggested a slave": "{who} suggested to consumers the slave {what} for pulls, while their routes had the master",
    "sent to a queue that it may not write": "{who} sent to a queue of {what} that its route does not let it write",
    "sent to another queue than the next": "{who} sent to a queue of {what} that was not the next in its round-robin",
    "tried again though it was stored": "{who} sent a message again though {what} had stored it",
    "tried again on the broker that had failed": "{who} sent a message again to {what}, where it had just failed",
    "reported as sent though no try was acknowledged": "{who} reported a failed send to {what} as sent",
    "one try more than a send has": "{who} tried a send at {what} after its last try (1 + retryTimesWhenSendFailed)",
    "tried again though its queue was selected": "{who} sent a message again, to {what}, but a key selects its queue",
    "tried again after an answer that ends the send": "{who} tried {what} after an answer that ends the send",
    "sent to a slave": "{who} sent a message to the slave {what}, which its routes never named as a master",
    "not isolated": "{who} did not isolate {what} (latencyMax) after a try there failed or was slow",
    "sent to an isolated broker": "{who} sent to {what}, which it had isolated, while another broker was available",
    "not the queue of its key": "{who} sent messages of a sharding key to a queue of {about} that is not the key's",
    "given up without a try": "{who} gave up a send without a try, though it had a route",
    "given up with a try and time left": "{who} gave up a send to {what} with a try and time left",
    "tried again when its time was over": "{who} tried {what} after the send's sendMsgTimeout had passed",
    # timers
    "beats everywhere": "{who} sent {what} no heartbeat (904), which it must send each brokerHeartbeatInterval",
    "begins everywhere at once": "{who} did not begin the {what} at all NameServers at once",
    "answers pulls": "{who} did not answer pulls of {what} until their time-out",
    "serves no strangers": "{who} answered pulls of {what} as if {who} knew the group, though no member had sent a "
    "heartbeat",
    "lists nobody": "{who} answered with no member where it has to refuse the question for a group's members",
    "keeps the newest": "{who} refused pulls of {what} as newer than the group's subscription, though {who} had heard "
    "a heartbeat with that subscription",
    "lists its members": "{who} listed other members of a group than those that it had heard of",
    "registers at its start": "{who} did not register with any NameServer at its start",
    "tells of each change at once": "{who} did not send every NameServer a change at once ({what})",
    "takes no longer than its calls": "{who} took longer for {what} than its calls may take",
    "runs out when its setting says": "{who}'s {what} did not run out at its configured time",
    "ends by its time-out": "{who}'s {what} did not end by its time-out",
    "is idle first": "{who} closed a channel that was in use{because}",
    "is closed": "{who} dropped a silent peer and left its channel open",
    "takes out who is gone": "{who} kept a client in its groups whose process had been killed",
    "has no client": "{who} kept a client whose channel had ended",
    "is closed at once": "{who} did not at once close the {what}",
    "ends with its channel": "{who} went on waiting for an answer though the channel had ended{because}",
    "ends when it has passed": "{who} used an isolated broker again at the wrong time",
    "everywhere, as it stops": "{who} did not {what} at every server when it stopped",
    "takes out who unregisters": "{who} still had a client in a group after the client had unregistered",
    "asks for every topic": "{who} left a topic out of {what}",
    "knows its group": "{who} answered {what} that there is no such group, though a member had sent {who} a heartbeat",
    "names all topics": "{who} left a topic of its group out of {what}",
    "names its group": "{who} left its group out of {what}",
    "has its clientId": "{who} named another clientId than its own in {what}{because}",
    "has its message model": "{who} named another message model than its own in {what}{because}",
    "has its expression": "{who} named another expression than its own in {what}{because}",
    "has another subVersion": "{who} left its subVersion in {what} as it was, though its queues had changed",
    "asks for pullBatchSize": "{who} did not ask for pullBatchSize messages in a {what}{because}",
    "asks to be held": "{who} did not ask to be held for 15 s (BROKER_SUSPEND_MAX_TIME_MILLIS) in a {what}{because}",
    "reaches every broker": "{who} left a broker out of {what}{because}",
    "when its queues change": "{who} did not send every broker a heartbeat when its queues had changed{because}",
    "of brokers of its routes": "{who} connected to a broker that none of its routes names{because}",
    "of a channel on which a call ran out": "{who} closed its channel to a broker, though no call had run out{because}",
    "when its setting keeps channels": "{who} closed its channel to a broker, though its clientCloseSocketIfTimeout is "
    "false{because}",
    "to masters alone": "{who}, which has no consumer, sent a {what} to a slave",
    "asks any broker": "{who} asked no random broker for the members of its group, but {what}{because}",
    "shares by a list of members": "{who} shared queues in a {what} in which no broker had listed the members",
    "after its queues": "{who} unregistered before it had committed and given up its queues",
    "goes on without an answer": "{who} went on with a round of {what} after a look-up without an answer",
    "to brokers of its routes": "{who} sent a {what} to a broker that none of its routes names{because}",
    "what its share has no more": "{who} dropped a queue that was still in its share",
    "asks at its polls": "{who} asked for a topic between two polls, though it had a route of the topic",
    "kept after code 17": "{who} dropped its route of {topic} when a NameServer answered code 17",
    "woken by a change of members": "{who} ran {what} early, though no broker had reported a change of group members",
    "when a group's members change": "{who} did not run {what} at once when a broker reported new group members",
    "tells a group that its members change": "{who} did not at once notify a group that its members had changed",
    "tells of a change of members": "{who} notified a group of a change of its members, but there was none",
    "woken by a message at once": "{who} did not answer a {what} at once when a message arrived",
    "held until the check after its time": "{who} did not answer a {what} at the first check after its time",
    "120 s after the last heartbeat": "{who} dropped a client not at 120 to 130 s after its last heartbeat",
}
_OF_PATTERN: Mapping[str, str] = {
    r"each .+": "{who} did not run {what} on time",
    r"(un)?registers (.+)": "{who} {0}registered at {what} {1}",
    r"(code \d+)": "{who} answered {what} with {0} for {topic}",
    r"never used (in \d+ sends)": "{who} did not use {about}, which its route had, {0}",
    r"stored (\d+ times) by (\d+) tries": "{what} stored a message {0} (tries to send it: {1})",
    r"sent (\d+ times) in (\d+) tries": "{who} sent a message to {what} {0} (tries to send it: {1})",
    r"(acknowledged|answered) (.+) late": "{who} {0} {1} late",
    r"handed messages over late": "{who} handed messages over late",
    r"send after one with a higher offset, or the same": "{what} stored a message of {who} before an earlier one",
    r"receipt after one with a higher offset, or the same": "{who} handed a message of {about} over after a later one",
    r"(\S+ refused, .+)": "{0}",
}
"""Kinds that have a part of their own, as patterns; `{0}` is its first group."""
SAID = frozenset(
    (
        "kind",
        "rule",
        "holder",
        "because",
        "masters",
        "reason",
        "read",
        "registered_before_ms",
        "name_servers",
        "queue_id",
        "clients",
        "group",
        "routes",
    )
)
"""Keys of an example's `more` that are not printed after the sentence: the sentence says them, or only programs read
them."""


def happened(e: Example) -> str:
    """The sentence, without a full stop. A kind that has none is told by its own name."""
    kind = str(e.more.get("kind") or "")
    if e.from_ms is None or (told := _state(e, kind, e.from_ms)) is None:
        bound = f"; {e.against_bound}" if e.latest_ms or e.too_early else ""
        return _act(e, kind) + _when(e) + bound
    followed = e.after not in ("", "begin") and not (e.is_of_due_time or e.too_early)
    return f"{told}; {e.against_bound}" + (f"; after {e.after}" if followed else "")


def _state(e: Example, kind: str, from_ms: float) -> str | None:
    """None if the kind is no state, or nobody measured how long it was."""
    if e.measured_ms is None:
        return None
    if tell := {"must not be dropped": _dropped, "dropped too soon": _dropped, "must hold": _missing}.get(kind):
        return tell(e)
    sentence = _STATES.get(_RECOVERED if kind.startswith(_RECOVERED) else kind)
    return sentence and sentence.format(**_words(e, from_ms, e.measured_ms))


def _act(e: Example, kind: str) -> str:
    holder = e.more.get("holder")
    words = {
        "who": e.who,
        "what": e.what,
        "topic": e.topic,
        "about": _about(e),
        "of_topic": _of(e.topic),
        "because": f": {because}" if (because := e.more.get("because")) else "",
        "holder": holder,
        "unread": f"{holder} did not read its queue" if holder else "no consumer read a queue",
    }
    if sentence := _ACTS.get(kind):
        return sentence.format(**words)
    for pattern, sentence in _OF_PATTERN.items():
        if found := re.fullmatch(pattern, kind):
            return sentence.format(*found.groups(""), **words)
    kind = kind or str(e.more.get("rule") or "")
    who = e.who if kind.startswith(("must", "may")) or not kind else f"{e.who}:"
    return " ".join(filter(None, (who, kind, _about(e))))


def _when(e: Example) -> str:
    """`, at 4.0 s`, or `, from 42.0 to 70.0 s (28.0 s)`; where its bound is held against more: `(38.0 s in all)`."""
    if e.from_ms is None:
        return ""
    if e.to_ms is None or e.to_ms - e.from_ms < 1.0:
        return f", at {seconds(e.from_ms)}"
    length_ms = e.to_ms - e.from_ms
    held_ms = (e.latest_ms or 0.0) + (e.over_ms or 0.0)  # what was allowed and what was over: all that was measured
    is_a_part = e.latest_ms and e.measured_ms is not None and abs(e.measured_ms - held_ms) < 1.0 <= held_ms - length_ms
    took = f"{length(held_ms)} in all" if is_a_part else length(length_ms)
    return f", from {tenths(e.from_ms)} to {seconds(e.to_ms)} ({took})"


def _words(e: Example, from_ms: float, measured_ms: float) -> Mapping[str, object]:
    owners = [str(name) for name in e.more.get("clients") or ()]
    return {
        **{name: e.more.get(name) for name in ("holder", "masters", "queue_id")},
        "who": e.who,
        "what": e.what,
        "about": _about(e),
        "of_topic": _of(e.topic),
        "because": f" ({because})" if (because := e.more.get("because")) else "",
        "at": seconds(from_ms),
        "end": seconds(e.to_ms or from_ms),
        "until": _until(e, from_ms, measured_ms),
        "took": length(measured_ms),
        "still": "still " if e.is_of_due_time else "",
        "owners": " and ".join(owners),
        "operation": str(e.more.get("kind")).removeprefix(_RECOVERED),
        "since": f" after {e.after}" if e.after else "",
    }


def _of(topic: str) -> str:
    return f" of {topic}" if topic else ""


def _about(e: Example) -> str:
    return f"{e.what} ({e.topic})" if e.what and e.topic else e.what or e.topic


def _until(e: Example, from_ms: float, measured_ms: float) -> str:
    """`until 80.0 s, 60.0 s after f1 end`, or `from 42.0 to 70.0 s, for 28.0 s`."""
    end = seconds(from_ms if e.to_ms is None else e.to_ms)
    if e.is_of_due_time:
        return f"until {end}, {length(measured_ms)} after {'the start' if e.after in ('', 'begin') else e.after}"
    began_ms = from_ms if e.to_ms is None else min(from_ms, e.to_ms - measured_ms)  # what was allowed is part of it
    return f"from {tenths(began_ms)} to {end}, for {length(measured_ms)}"


def _dropped(e: Example) -> str:
    reason, age_ms = e.more.get("reason"), e.more.get("registered_before_ms")
    said = f"{e.who} dropped {e.what} at {seconds(e.from_ms or 0.0)}" + (f" ({reason})" if reason else "")
    said += "" if age_ms is None else f", {length(age_ms)} after its last registration"
    return said if e.too_early else f"{said}; it was missing for {length(e.measured_ms or 0.0)}"


def _missing(e: Example) -> str:
    from_ms, measured_ms = e.from_ms or 0.0, e.measured_ms or 0.0
    if e.too_early:
        since = f", {length(measured_ms)} after {e.after}" if e.after else ""
        return f"{e.who} dropped {_about(e)} at {seconds(from_ms)}{since}"
    return f"{e.who} did not list {_about(e)} {_until(e, from_ms, measured_ms)}"
