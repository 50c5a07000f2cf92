"""A violation in one sentence: which node did what, when, and by how much it exceeded its bound.

    ns-0 still listed broker-a (orders) until 225.0 s, 209.3 s after ns-0 last heard from broker-a; allowed 120.0 s: …
    consumer-0 committed for a queue of broker-b (orders) after consumer-0 had given the queue up, at 4.0 s

Two tables have a sentence for each kind of finding: `_STATES` for what was wrong for some time, `_ACTS` for an act that
is wrong by itself. Times count from the origin of the example's times.
"""

import re
from collections.abc import Mapping

from ..verdict import Example, length, seconds, tenths

_RECOVERED = "first good "
_DIFFERED = "{who} and {what} had different routes{of_topic} {until}{because}"
_OWNED = "{owners} owned queue {queue_id} of {about} at the same time {until}"
_STATES: Mapping[str, str] = {
    "must not hold": "{who} {still}listed {about} {until}",
    "must not hold a silent broker": "{who} still listed {about} until {end}, {took} after {who} last heard from "
    "{what}",
    "must not hold a broker that left": "{who} still listed {about} until {end}, after {what}'s channel had ended or "
    "another broker had registered as {what}",
    "must not hold an unregistered broker": "{who} still listed {about} until {end}, after {what} was unregistered",
    "must not hold an unknown broker": "{who} listed {about} from {at} on, but {what} had not registered since "
    "{who}'s start",
    "must not hold a broker of another list": "{what} registered with {who}, which is not in {what}'s namesrvAddr; "
    "{who} listed {about} {until}",
    "must register": "{what} did not register with {who}, so {who} did not list {about} {until}",
    "must be equal": _DIFFERED,
    "promised to agree": _DIFFERED,
    "promised to stay": "{who} changed the address of the master of {what} from {at} on, last at {end}: {masters}",
    "promised to last": "{who} listed {what} as writable {until}, though an operator had wiped the permission",
    "promised to poll": "{who} began no route poll for {took}, until {end}",
    "must have an owner": "{holder} had to own queue {queue_id} of {about}, but no consumer of {who} owned the queue "
    "{until}",
    "must have one owner": _OWNED,
    "must not come back": "{who} listed {about} again at {at}, for {took}, though {what} had not registered again",
    "must not use": "{who} sent to or pulled from {about} at {at}, {took} after {what} was lost or left {who}'s routes",
    "committed at a slave": "{who} committed to slave {what} until {end}, {took} after {who}'s route had the master",
    "lasts as long as set": "{who} delayed the next pull of a queue by {took} ({what}), as recorded at {end}",
    "isolates as long as set": "{who} isolated a broker (sendLatencyFaultEnable) for {took}, until {end}",
    "must have left": "{who} kept {what} as NameServer until {end}, {took} after {what} was lost (or {who} had chosen "
    "{what}, if later)",
    "must have left the removed": "{who} kept {what} as NameServer until {end}, {took} after the address server "
    "had removed {what} (or {who} had chosen {what}, if later)",
    _RECOVERED: "{who} had no successful {operation} before {end}, {took}{since}",
}
_ACTS: Mapping[str, str] = {
    # tables, and what NameServers answer
    "code 17 while stopping": "{who}, while shutting down, answered code 17 for {topic}, though {who}'s table had "
    "{topic}",
    "order configuration": "{who} sent {what} an order configuration{of_topic}; {who}'s orderMessageEnable is false",
    "unlike its table": "{who}'s answer to {what}'s look-up{of_topic} was not the route in {who}'s own table",
    "not the broker's address": "{who} sent {what} a route{of_topic} with an address or id that its broker never had",
    "unlike registered": "{who} sent {what} a route{of_topic} with queues or permissions that no broker registered",
    "unreadable": "{who} sent {what} a route{of_topic} that {what} could not read",
    "must hold": "{who} did not list {about}",
    "must register": "{what} did not register with {who}, so {who} did not list {about}",
    "must not be dropped": "{who} dropped {what}, which {who} had to keep",
    "dropped too soon": "{who} dropped {what} too soon",
    "must hold an acknowledged broker": "{who} had acknowledged {what}'s registration, but did not list {about}",
    "not as registered": "{who} listed {about} with other queues or permissions than the broker had registered",
    "another slave acts": "{who} listed a slave of {about} as acting master, though the master or a slave with a "
    "smaller id was there",
    "no broker has this name": "{who} listed {about}, but no broker has the name {what}",
    "must be gone": "{who} listed an address of {about} that was no longer registered",
    "must be there": "{who} did not list an address of {about} that was registered",
    "under two ids": "{who} listed one address of {about} under two broker ids",
    "registered by nobody": "{who} listed {about} at an address or under an id that no broker of this name registered",
    "queues of an old version": "{who} took queues of {about} from a registration of an unchanged dataVersion{because}",
    "queues of a slave": "{who} took queues of {about} from a slave's registration",
    "address of an old version": "{who} took an address of {about} with a smaller stateVersion than before{because}",
    "keeps topics over a restart": "{who} restarted, and then lacked {topic}, or the queues or permission of {topic}",
    "changes its version": "{who} raised its dataVersion, though no topic of {who} had changed",
    "keeps its version": "{who} registered an older dataVersion after a restart than before the restart",
    "counts topics": "{who} answered wipeWritePerm or addWritePerm for {what} with a wrong number of topics",
    "accepts registrations": "{who} refused a registration of {what} without a reason",
    "refuses a single topic": "{who} accepted the first registration of {what}, though the registration had one topic",
    "queues without an address": "{who} listed queues of {about}, but no address of {what}",
    "answers a slave its master": "{who} answered a registration of the slave {what} without the master's address, or "
    "with a wrong address",
    "copies from its master": "{who} did not copy the commit log of {what}, which NameServers had named as the master",
    "two masters": "two brokers registered with {who} as master of {what} during the same time",
    "without a master": "{who} listed no living master of {about}",
    "a client without its master": "{who} had no route with a living master of {about}",
    "id -1 for too long": "{who} listed {about} with brokerId -1 for longer than an election takes",
    "writable without a master": "{who} listed {about} as writable, though {what} had no master",
    "registered": "{who} listed {topic} wrongly, or not at all, after action {what} had registered {topic}",
    "unregistered": "{who} listed {topic} after action {what} had unregistered {topic}",
    "permission": "{who} did not list {topic} with the permission that action {what} had set",
    "deleted": "{who} listed topic {topic} after action {what} had deleted {topic}",
    "spared": "{who} removed more of {topic} from the table than action {what} had named",
    "one queue for a group": "{who} gave {topic}, a group's retry or dead-letter topic, more or less than 1 queue",
    "makes a retry topic": "{who} did not create {topic} at once when {who} read a heartbeat of a member of the group",
    "answered before it serves": "{who} did not answer a look-up of {what} with code 1 during waitSecondsForService",
    "refuses forbidden requests": "{who} accepted {what} that the permission or queues of {topic} at {who} forbid",
    "takes messages for its queues": "{who} refused sends to queues that {topic} had at {who}",
    "waits for a slave that is there": "{who} answered sends with code 12 (FLUSH_SLAVE_TIMEOUT), though no slave ran",
    "takes what it is sent": "{who} refused sends with code 14 (SERVICE_NOT_AVAILABLE), though {who} was a master",
    "comes back": "{who} had topic {topic} again after action {what} had deleted {topic}",
    "the broker's topic": "{who} did not have topic {topic} with the queues or permission of action {what}",
    "the broker's deleted topic": "{who} still had topic {topic} after action {what} had deleted {topic}",
    # a client's routes, and its NameServer
    "takes the answered route": "{who} did not use at once the route of {topic} with which {what} had answered",
    "sticky": "{who} changed (or connected again) to {what}, but the NameServer that {who} had chosen had not failed",
    "takes the list": "{who} did not take the new list of NameServers from the address server in time",
    "keeps the list": "{who} took a fetched list of the same NameServers in another order for a new list",
    "in order": "{who} chose {what}, which is not the next NameServer of {who}'s list{because}",
    "start": "{who} chose {what} first, which is not the first entry by {who}'s client profile",
    "every request": "{who} asked {what} without a new choice, though {who} must choose at every request",
    "moves on": "{who} asked or connected to {what} again after a failure, without choosing the next NameServer",
    "dials the chosen": "{who} connected to NameServer {what}, but had not chosen {what} since {who}'s start",
    "in time": "{who} took longer for a call to {what} than the tries of one call may take",
    "attempts": "{who} tried fewer NameServers than one call must try before the call fails",
    "no more attempts": "{who} tried one more NameServer in a call than the call was allowed to try",
    "answers are final": "{who} tried again after {what} had answered",
    "first choices uniform": "{who} did not choose each NameServer equally often as the first NameServer",
    "shuffled": "{who} chose {what} from a list that is not a permutation of the NameServers configured for {who}",
    "shuffled evenly": "{who} and other clients shuffled their list of NameServers into the same order too often",
    # messages, queues and offsets
    "read by nobody": "{unread} of {about}",
    "refused to its readers": "{holder} refused pulls of {who} from a queue of {about}{because}",
    "not used in turn": "{who} sent to a queue of {about} more or less often than round-robin allows",
    "out of its route": "{who} sent to a queue of {about} that {who}'s route lacks, or forbids to write",
    "takes its own share": "{who} took other queues of {about} in a rebalance than {who}'s share{because}",
    "first answered": "{what} answered {who} with an offset above 0 for a queue of {topic} without a committed offset",
    "answered no offset": "{what} answered {who} that {who}'s group has no offset of a queue of {topic}, instead of 0",
    "first taken": "{who} began to read a queue of {about} beyond offset 0, though the group had committed no offset",
    "not received": "{who} did not receive an acknowledged message of {about} in time{because}",
    "late": "{who} received a message of {about} late{because}",
    "not as it was given": "{who} sent {about} a message that differs from what the application had passed to send()",
    "not as it was sent": "{what} gave {who} a message of {topic} that differs from the sent message",
    "acknowledged without a slave": "{what} (SYNC_MASTER) acknowledged a message of {who} ({topic}) that no slave has",
    "sent back after success": "{who} sent back a message of {about} that the listener of {who} had consumed",
    "received twice without a rebalance": "{who} received a message of {about} twice while {who} owned the queue",
    "committed, never received": "{who} committed an offset beyond a message of {about} that the group did not receive",
    "received without the queue": "{who} received a message of {about} after {who} had given the message's queue up",
    "received again": "{who} received a message of {about} again, though no rebalance or fault explains this",
    "queue taken at unknown time": "{who} received a message of {about} again; no row says when {who} took the queue",
    "lost": "{what} lost a message of {topic} that {what} had acknowledged to {who}",
    "not read": "no consumer received a message of {who} ({about}), and the final read of the queue is incomplete",
    "forgotten at a start": "{who} lost, at a restart, a message of {topic} that {who} had acknowledged to {what}",
    "committed past": "{who} committed an offset beyond a message of {about} that the group did not receive",
    "committed before receipt": "{who} committed beyond a message of {about} before the group had received the message",
    "committed past too early": "{who} committed beyond a message of {about} before the group had received the message",
    "committed late": "{who} consumed a message of {about}, and committed the message's offset too late",
    "consumed, and not committed": "{who} consumed a message of {about} and did not commit the message's offset",
    "committed without the queue": "{who} committed for a queue of {about} after {who} had given the queue up",
    "committed after unregistering": "{who} unregistered, and then committed an offset for a queue of {about}",
    "given up without a commit": "{who} gave up a queue of {about}, and had not committed the offset of each consumed "
    "message",
    "set back by a pull": "{what} set {who}'s committed offset ({topic}) back when {what} answered a held pull",
    "went back": "{who} committed a lower offset for a queue of {about} than had been committed before",
    "began without an answer": "{who} began to read a queue of {about}, but {who}'s query for the offset had no answer",
    "began at a wrong offset": "{who} began to read a queue of {about} at another offset than the broker had answered",
    "answered a higher offset": "{who} answered {what} with a higher offset{of_topic} than was committed{because}",
    "answered a lower offset": "{who} answered {what} with a lower offset{of_topic} than had been committed",
    "lost its own offset": "{who} (broadcasting) lost the offset that {who} had stored for a queue of {about}{because}",
    "did not keep a committed offset": "{who} did not keep an offset{of_topic} that was committed{because}",
    "broadcast offsets at a broker": "{who} committed offsets to a broker, which broadcasting consumers must not do",
    # sends and pulls
    "failed in a quiet time": "{who} had failed operations though no fault or recovery was in progress{because}",
    "below the scenario's availability_floor": "Too few operations of clients succeeded{because}",
    "unasked": "{what} sent {who} a response that {who} had not asked for, or a second response to one request",
    "two messages at one offset": "{what} acknowledged a message of {who} at the offset of another message ({topic})",
    "acknowledged a wrong offset": "{what} acknowledged a message at an offset where {what} did not store the message",
    "answered a wrong first offset": "{what} sent {who} a wrong minOffset of a queue ({topic}){because}",
    "answered a wrong end": "{what} sent {who} a wrong maxOffset of a queue ({topic}){because}",
    "answered too many messages": "{what} sent {who} more messages than asked for ({topic}){because}",
    "answered too few messages": "{what} sent {who} fewer messages than {what} had and than {who} had asked for "
    "({topic}){because}",
    "answered a pull too soon": "{what} did not hold a pull of {who} ({topic}) for as long as the pull asked{because}",
    "unordered answer": "{what} sent {who} a message twice, out of order or below the asked offset ({topic}){because}",
    "code 20 for 19": "{what} answered a pull of {who} at a queue's end ({topic}) with code 20 "
    "(PULL_RETRY_IMMEDIATELY), not 19 (PULL_NOT_FOUND){because}",
    "answered a wrong next offset": "{what} sent {who} a wrong nextBeginOffset of a queue ({topic}){because}",
    "pulled from a slave": "{who} pulled from slave {what}, though {who}'s route had the master, and no broker had "
    "suggested the slave",
    "suggested a slave": "{who} told a consumer to pull from slave {what}, though the consumer's route had the master",
    "sent to an unwritable queue": "{who} sent to a queue of {what} that {who}'s route lacks, or forbids to write",
    "sent to a wrong queue": "{who} sent to a queue of {what} that was not the next queue of {who}'s round-robin",
    "tried again though stored": "{who} sent a message again, to {what}, though a broker had stored the message",
    "tried again on the same broker": "{who} sent a message again to {what}, where the try before had failed",
    "reported as sent wrongly": "{who} reported a send to {what} as sent, though no broker had acknowledged a try",
    "one try too many": "{who} sent a message again, to {what}, after all 1 + retryTimesWhenSendFailed tries",
    "selected, and tried again": "{who} sent a message again, to {what}, though a MessageQueueSelector had selected "
    "the message's queue",
    "tried again after a final answer": "{who} sent a message again, to {what}, after a response code that allows no "
    "retry",
    "acknowledged in another queue": "{who} sent a message to one queue of {what}; {what} acknowledged the message in "
    "another queue",
    "sent to a slave": "{who} sent a message to the slave {what}, which {who}'s routes never named as a master",
    "not isolated": "{who} did not isolate {what} (latencyMax), though a try at {what} had failed or was slow",
    "sent to an isolated broker": "{who} sent to {what}, which {who} had isolated, while another broker was available",
    "not its key's queue": "{who} sent messages of one sharding key to a queue of {about}, not to the key's queue",
    "given up without a try": "{who} gave up a send without a try, though {who} had a route and time left",
    "given up too soon": "{who} gave up a send after a failed try at {what}, though a retry and time were left",
    "tried again after its time-out": "{who} sent a message again, to {what}, after the send's sendMsgTimeout had "
    "passed",
    # timers
    "heartbeats everywhere": "{who} sent {what} no heartbeat (904) in a round; each round must reach every NameServer",
    "begins at all NameServers at once": "{who} did not begin the {what} at all NameServers at once",
    "answers pulls": "{who} did not answer pulls of {what} before the pulls timed out",
    "refuses strangers": "{who} knew no member of a group, but did not refuse pulls of {what} (code 24)",
    "refuses without members": "{who} answered GET_CONSUMER_LIST_BY_GROUP (38) with an empty list, not with code 1",
    "newest subscription": "{who} refused pulls of {what} (code 25), but a heartbeat had brought that subscription",
    "lists its members": "{who} listed other members of a group than the members whose heartbeats {who} had read",
    "registers at its start": "{who} did not begin to register at once when {who} had started",
    "registers changes at once": "{who} did not begin at once to register a changed topic, permission or brokerId",
    "takes no longer than the round's calls": "{who} took longer for a round of {what} than the round's calls may take",
    "times out when set": "{who}'s {what} did not come at the configured time",
    "ends by its time-out": "{who} did not give up a {what} after the time-out of the {what}",
    "closes only idle channels": "{who} closed a channel that had not been idle for long enough{because}",
    "closes channels of dropped peers": "{who} read from the channel of a silent peer after {who} had dropped the peer",
    "forgets killed clients": "{who} kept a client in {who}'s groups after the client had been killed",
    "forgets clients that left": "{who} kept a client whose channel had ended, or that had unregistered",
    "closes channels of time-outs": "{who} did not at once close the {what}",
    "ends with its channel": "{who} went on waiting for an answer though the channel had ended{because}",
    "ends isolations in time": "{who} used an isolated broker before the isolation had ended, or first too long after",
    "unregisters everywhere": "{who} did not {what} at every server when {who} stopped",
    "forgets unregistered clients": "{who} still had a client as member of a group after the client had unregistered",
    "asks for every topic": "{who} left a topic out of a round of {what}",
    "knows its group": "{who} refused pulls of {what} (code 24), but a member's heartbeat to {who} had named the topic",
    "names all topics": "{who} left a topic of {who}'s group out of {what}",
    "names its group": "{who} left {who}'s group out of {what}",
    "has its clientId": "{who} sent another clientId than {who}'s own in {what}{because}",
    "has its message model": "{who} sent another message model than {who}'s own in {what}{because}",
    "has its expression": "{who} sent another subscription expression than {who}'s own in {what}{because}",
    "has a new subVersion": "{who} sent an unchanged subVersion in {what} when {who}'s queues of the topic had changed",
    "asks for pullBatchSize": "{who} did not ask for pullBatchSize messages in a {what}{because}",
    "asks to be held": "{who} did not ask to be held for 15 s (BROKER_SUSPEND_MAX_TIME_MILLIS) in a {what}{because}",
    "heartbeats reach every broker": "{who} left a broker of {who}'s routes out of a round of heartbeats{because}",
    "heartbeats at new queues": "{who} did not send every broker a heartbeat when {who}'s queues had changed{because}",
    "connects to routed brokers": "{who} connected to a broker that none of {who}'s routes names{because}",
    "closes after time-outs only": "{who} closed a broker's channel, but no call on the channel had timed out{because}",
    "keeps channels open": "{who} closed a channel to a broker, though clientCloseSocketIfTimeout is false{because}",
    "heartbeats to masters only": "{who}, which has no consumer, sent a {what} to a slave",
    "asks a random broker": "{who} asked {what} for the group's members more often than chance explains{because}",
    "shares by listed members": "{who} divided queues in a round of {what}, but no broker had listed the members",
    "unregisters after its queues": "{who} unregistered before {who} had given up all queues and committed the offsets",
    "stops a poll without an answer": "{who} continued a round of {what} after a look-up without an answer",
    "heartbeats to routed brokers": "{who} sent a {what} to a broker that none of {who}'s routes names{because}",
    "drops only lost queues": "{who} dropped a queue that was still in {who}'s share",
    "looks up at polls only": "{who} looked up a topic between two polls, though {who} had a route of the topic",
    "kept after code 17": "{who} dropped {who}'s route of {topic} when a NameServer answered code 17",
    "woken by a change of members": "{who} ran {what} early, though no broker had reported a change of group members "
    "since the last {what}",
    "rebalances at changes": "{who} did not run {what} at once when a broker reported a change of group members",
    "reports a change at once": "{who} did not tell a member of a group at once that the group's members had changed",
    "reports changes of members only": "{who} reported a change of a group's members, but the members had not changed",
    "wakes held pulls at once": "{who} did not answer a {what} at once when a message arrived",
    "answers pulls at the check": "{who} did not answer a {what} at the first check after suspendTimeoutMillis",
    "120 s after a heartbeat": "{who} did not drop a client 120 to 130 s after the client's last heartbeat",
}
_OF_PATTERN: Mapping[str, str] = {
    r"each .+": "{who} did not run {what} on time",
    r"(un)?registers (.+)": "{who} {0}registered {1} (NameServer: {what})",
    r"(code \d+)": "{who} answered {what}'s look-up of {topic} with {0}",
    r"never used (in \d+ sends)": "{who} sent nothing to {about} {0}, though {who}'s route had {what}",
    r"stored (\d+ times) by (\d+) tries": "brokers stored a message {0} (one at {what}), but the send had {1} tries",
    r"sent (\d+ times) in (\d+) tries": "{who} sent a message {0} (one copy is at {what}), but counted {1} tries",
    r"(acknowledged|answered) (.+) late": "{who} {0} {1} late",
    r"handed messages over late": "{who} delivered messages late",
    r"send out of order": "{what} gave a message of {who} no higher offset than an earlier message of {who}",
    r"receipt out of order": "{who} handed a message of {about} to the listener after a message with a higher offset",
    r"(\S+ refused, .+)": "{0}",
}
"""Kinds with a variable part, as patterns; `{0}` is the pattern's first group."""
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
    """Return the sentence without a full stop. A kind without a sentence is printed as it is."""
    kind = str(e.more.get("kind") or "")
    if e.from_ms is None or (told := _state(e, kind, e.from_ms)) is None:
        bound = f"; {e.against_bound}" if e.latest_ms or e.too_early else ""
        return _act(e, kind) + _when(e) + bound
    followed = e.after not in ("", "begin") and not (e.is_of_due_time or e.too_early)
    return f"{told}; {e.against_bound}" + (f"; after {e.after}" if followed else "")


def _state(e: Example, kind: str, from_ms: float) -> str | None:
    """None if the kind has no sentence in `_STATES`, or the finding has no measured time."""
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
        "unread": f"{holder} did not pull from {holder}'s queue" if holder else "no consumer pulled from a queue",
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
    """`, at 4.0 s`, or `, from 42.0 to 70.0 s (28.0 s)`; if the bound is for a longer time: `(38.0 s in all)`."""
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
        "end": seconds(from_ms if e.too_early else e.to_ms or from_ms),
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
    said += "" if age_ms is None else f", {length(age_ms)} after {e.what}'s last registration"
    return said if e.too_early else f"{said}; {e.what} was missing for {length(e.measured_ms or 0.0)}"


def _missing(e: Example) -> str:
    from_ms, measured_ms = e.from_ms or 0.0, e.measured_ms or 0.0
    if e.too_early:
        since = f", {length(measured_ms)} after {e.after}" if e.after else ""
        return f"{e.who} dropped {_about(e)} at {seconds(from_ms)}{since}"
    return f"{e.who} did not list {_about(e)} {_until(e, from_ms, measured_ms)}"
