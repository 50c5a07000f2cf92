"""A violation in one sentence: which node did what, when, and by how much it exceeded its bound.

    ns-0 still held broker-a (orders) until 225.0 s, 209.3 s after its last registration; allowed 120.0 s: 89.3 s over
    consumer-0 committed for a queue of broker-b (orders) that it had given up, at 4.0 s

A sentence for each kind of finding, in two tables: of a state that has to be for some time, and of an act that is wrong
by itself. Moments are in the example's own axis.
"""

import re
from collections.abc import Mapping

from ..verdict import Example, length, seconds, tenths

_RECOVERED = "first good "
_DIFFERED = "{who} and {what} held different routes{of_topic} {until}"
_OWNED = "{owners} owned queue {queue_id} of {about} {until}"
_STATES: Mapping[str, str] = {
    "must not hold": "{who} {still}held {about} {until}",
    "must not hold what was silent": "{who} still held {about} until {end}, {took} after its last registration",
    "must not hold what left": "{who} still held {about} until {end}, after its channel had ended",
    "must not hold what never registered": "{who} held {about} from {at} on; it never registered",
    "must not hold what registered uncalled": "{what} registered at {who}, which is on no list of it; "
    "{who} held {about} {until}",
    "must be equal": _DIFFERED,
    "promised to agree": _DIFFERED,
    "promised to stay": "the master of {what} at {who} changed its address from {at} on, for {took} ({masters})",
    "promised to last": "{what} could be written to at {who} {until}",
    "promised to poll": "{who} asked for no route {until}",
    "must own": "nobody owned queue {queue_id} of {about}, {holder}'s share, {until}",
    "must alone own": _OWNED,
    "must not come back": "{who} took {about} back at {at}, for {took}, while it was down",
    "must not use": "{who} used {about} at {at}, {took} after it was lost",
    "must have left": "{who} stayed with {what} until {end}, for {took}",
    _RECOVERED: "{who} had no good {operation} until {end}, {took}{since}",
}
_ACTS: Mapping[str, str] = {
    # tables, and what NameServers answer
    "gone while it was being stopped": "{who}, while it was being stopped, answered code 17 for {topic}, which it had",
    "order configuration": "{who} gave {what} an order configuration{of_topic}, and its orderMessageEnable is off",
    "not its table": "{who} gave {what} another route{of_topic} than its table had",
    "must hold what it acknowledged": "{who} did not hold {about}, whose registration it had acknowledged",
    "not as registered": "{who} held {about} otherwise than the broker had registered it",
    "an id that the broker has not": "{who} held {about} under an id that the broker does not have",
    "an address that no broker has": "{who} held {about} at an address that no broker has",
    "another broker's address": "{who} held {about} at another broker's address",
    "no broker has this name": "{who} held {about}, and no broker has this name",
    "registered by nobody": "{who} held {about}, which nobody had registered",
    "keeps its topics": "{who} had lost topic {topic}, or its number of queues, when it was started again",
    "counts topics": "{who} counted other topics of {what} than it had, for an act by hand",
    "refuses one topic": "{who} accepted the first registration of {what} though it had one topic",
    "queues without an address": "{who} held queues of {about} and no address for them",
    "tells a slave its master": "{who} did not tell {what} the address of its master",
    "two masters": "{who} held two masters of {what}",
    "without a master, and with the write permission": "{who} held {about} without a master, and allowed writing to it",
    "registered": "{who} did not show {about} as it was registered by hand",
    "unregistered": "{who} held {about}, which was unregistered by hand",
    "permission": "{who} did not show the permission that {about} was given by hand",
    "deleted": "{who} held {about}, which was deleted by hand",
    "spared": "{who} deleted {about}, of which another cluster's part was to stay",
    "silent": "{who} held {about}, which was registered by hand and silent since",
    "the broker's topic": "{who} did not have topic {topic} as it was asked to by hand",
    # a client's routes, and its NameServer
    "must have": "{who} had no route to {about}, which its NameServer had told it",
    "takes what it is told": "{who} did not take the route of {topic} that {what} told it",
    "must not have": "{who} had a route to {about}, which its NameServer had told it is gone",
    "sticky": "{who} left {what} without a failure",
    "in order": "{who} chose {what}, which is not the next of its list{because}",
    "moves on": "{who} asked {what} again after a failure, and not the next of its list",
    "dials the chosen": "{who} opened a channel to {what}, which it had not chosen",
    "in time": "{who} took longer for a call at {what} than its tries may",
    "attempts": "{who} did not try as many NameServers as a call has to",
    "answers are final": "{who} made another try after an answer of {what}",
    "first choices uniform": "{who} did not choose their first NameServer evenly",
    "shuffled": "{who} began with {what}, and its list is no shuffled list of all NameServers",
    "shuffled evenly": "{who} shuffled its lists so that {what} has one place too often",
    # messages, queues and offsets
    "read by nobody": "{unread} of {about}",
    "refused to its readers": "{holder} refused {who} its queue of {about}",
    "takes its own share": "{who} did not take its own share of the queues of {about}{because}",
    "first taken": "{who} began a queue of {about} at a wrong offset",
    "not received": "{who} did not receive a message of {about} that was acknowledged and due{because}",
    "late": "{who} received a message of {about} late{because}",
    "not as it was sent": "{who} received a message of {about} that is not as it was sent",
    "acknowledged without a slave": "{who} had a message of {about} acknowledged that no slave had",
    "received twice from one holding of its queue": "{who} received a message of {about} twice while it held the queue",
    "committed past, and not received": "{who} committed past a message of {about} that it had not received",
    "received again, and no change of hands explains it": "{who} kept a queue of {about} and received a message again",
    "lost": "{what} lost a message of {topic} that it had acknowledged to {who}",
    "forgotten at a start": "{who} forgot at a start a message of {topic} that it had acknowledged to {what}",
    "committed past": "{who} committed past a message of {about}",
    "committed before it was received": "{who} committed a message of {about} before it had received it",
    "committed late": "{who} committed a message of {about} too late",
    "consumed, and not committed": "{who} consumed a message of {about} and did not commit it",
    "committed for a queue that it had given up": "{who} committed for a queue of {about} that it had given up",
    "given up without a commit": "{who} gave a queue of {about} up without a commit",
    "committed at a slave": "{who} committed at the slave {what}",
    "went back": "{who} committed a lower offset than before for a queue of {about}",
    "began below the offset that it was answered": "{who} began a queue of {about} below the offset it was told",
    "answered an older offset than was committed": "{who} answered {what} an older offset{of_topic} than was committed",
    "had another offset than was committed": "{who} had another offset{of_topic} than {what} had committed",
    "a broadcast group's offsets at a broker": "{who} committed to a broker, and a broadcast group may not",
    # sends and pulls
    "failed in a quiet time": "{who} had an operation fail while nothing was disturbed{because}",
    "below the scenario's availability_floor": "Too few operations of clients succeeded{because}",
    "unasked": "{what} sent {who} an answer to nothing that it had asked",
    "acknowledged at an offset where it is not": "{what} acknowledged a message at an offset where it is not",
    "answered a wrong first offset": "{what} told {who} a wrong first offset of a queue ({topic}){because}",
    "answered a wrong end": "{what} told {who} a wrong end of a queue ({topic}){because}",
    "answered with more messages than asked for": "{what} gave {who} more messages than asked for ({topic}){because}",
    "answered with messages out of order": "{what} gave {who} a message twice, or out of order ({topic}){because}",
    "answered a wrong next offset": "{what} sent {who} on to a wrong offset of a queue ({topic}){because}",
    "pulled from a slave": "{who} pulled from the slave {what} while its route had the master",
    "suggested a slave": "{who} suggested to consumers to pull from the slave {what} while their routes had the master",
    "sent to another queue than the next": "{who} sent to a queue of {what} that was not the next",
    "tried again though it was stored": "{who} sent a message again that {what} had stored",
    "tried again on the broker that had failed": "{who} sent a message again to {what}, where it had just failed",
    "reported as sent though no try was acknowledged": "{who} reported a send to {what} as sent, and it had failed",
    "given up without a try": "{who} gave a send up without a try, though it had a route",
    "given up with a try and time left": "{who} gave a send to {what} up with a try and time left",
    "tried again when its time was over": "{who} tried {what} when the time of the send was over",
    # timers
    "begins everywhere at once": "{who} did not begin a round of {what} at all NameServers at once",
    "lists its members": "{who} listed others as members of a group than it had heard of ({what})",
    "registers at its start": "{who} did not register with any NameServer at its start ({what})",
    "tells of each change at once": "{who} did not tell every NameServer of a change at once ({what})",
    "takes no longer than its calls": "{who} took longer for {what} than its calls may take",
    "runs out when its setting says": "{what} of {who} did not run out when its setting says",
    "ends by its time-out": "{what} of {who} did not end by its time-out",
    "is closed": "{who} dropped a silent peer and left its channel open",
    "is closed at once": "{what} of {who} was not closed at once",
    "as long as its setting says": "{what} of {who} did not last as long as its setting says",
    "as long as its latency says": "{what} of {who} did not last as long as the latency of its try says",
    "ends when it has passed": "{what} of {who} did not end when its time had passed",
    "after each try without an answer": "{what} of {who} did not follow each try without an answer",
    "everywhere, as it stops": "{who} did not {what} everywhere when it stopped",
    "takes out who unregisters": "{who} kept a client in its group that had unregistered",
    "asks for every topic": "{who} did not ask for every topic in {what}",
    "reaches every broker": "{who} left a broker out of {what}",
    "of brokers of its routes": "{who} dialled a broker that none of its routes names",
    "to brokers of its routes": "{who} sent a {what} to a broker that none of its routes names",
    "what its share has no more": "{who} dropped a queue that its share still had",
    "asks at its polls": "{who} asked between its polls for a topic of which it had a route",
    "woken by a change of members": "{what} of {who} came though no broker had said that a group's members changed",
    "when a group's members change": "{what} of {who} did not come at once when a broker said that members changed",
    "tells a group that its members change": "{who} did not tell a group at once that its members changed",
    "tells of a change of members": "{who} told a group that its members changed, and they had not",
    "woken by a message at once": "{what} at {who} was not woken by a message at once",
    "held until the check after its time": "{what} at {who} was not held until the check after its time",
    "120 s after the last heartbeat": "{what} at {who} did not come 120 s after the last heartbeat",
}
_OF_PATTERN: Mapping[str, str] = {
    r"each .+": "{who} did not run {what} on time",
    r"registers (.+)": "{who} registered {0} ({what})",
    r"(code \d+)": "{who} answered {what} {0} for {topic}",
    r"never used (in \d+ sends)": "{who} did not use {about} {0}",
    r"stored (\d+ times) by (\d+) tries": "{what} stored a message {0} (tries to send it: {1})",
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
        "registered_before_ms",
        "name_servers",
        "queue_id",
        "clients",
        "group",
        "routes",
    )
)
"""What of an example's `more` the sentences say, or only a program wants."""


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
        "unread": f"{holder} did not read its queue" if holder else "nobody read a queue",
    }
    if sentence := _ACTS.get(kind):
        return sentence.format(**words)
    for pattern, sentence in _OF_PATTERN.items():
        if found := re.fullmatch(pattern, kind):
            return sentence.format(*found.groups(), **words)
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
    return f"from {tenths(from_ms)} to {end}, for {length(measured_ms)}"


def _dropped(e: Example) -> str:
    reason, age_ms = e.more.get("reason"), e.more.get("registered_before_ms")
    said = f"{e.who} dropped {e.what} at {seconds(e.from_ms or 0.0)}" + (f" ({reason})" if reason else "")
    said += "" if age_ms is None else f", {length(age_ms)} after its last registration"
    return said if e.too_early else f"{said}; away {length(e.measured_ms or 0.0)}"


def _missing(e: Example) -> str:
    from_ms, measured_ms = e.from_ms or 0.0, e.measured_ms or 0.0
    if e.too_early:
        since = f", {length(measured_ms)} after {e.after}" if e.after else ""
        return f"{e.who} lost {_about(e)} at {seconds(from_ms)}{since}"
    return f"{e.who} did not hold {_about(e)} {_until(e, from_ms, measured_ms)}"
