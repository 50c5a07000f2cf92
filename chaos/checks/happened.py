"""A violation in one sentence: which node did what, when, and by how much it exceeded its bound.

    ns-0 still listed broker-a (orders) until 225.0 s, 209.3 s after ns-0 last heard from broker-a; allowed 120.0 s: …
    consumer-0 committed for a queue of broker-b (orders) after consumer-0 had given the queue up, at 4.0 s

Two tables have a sentence for each kind of finding: `_STATES` for what was wrong for some time, `_ACTS` for an act that
is wrong by itself. Times count from the origin of the example's times. In a sentence, `{who}` is the finding's subject,
and each word of `_OBJECTS`, such as `{broker}`, is the finding's object. `{broker_topic}` is the object with the topic:
`broker-a (orders)`. A sentence ends with a reason (`{because}`), names of peers (`{nodes}`) or values (`{details}`).
"""

import re
from collections.abc import Mapping

from ..verdict import Example, length, seconds, tenths

_OBJECTS = "action", "broker", "call", "channel", "client", "reason", "request", "server", "slave", "task", "time_out"
_RECOVERED = "first good "
_DIFFERED = "{who} and {server} had different routes{of_topic} {until}{because}"
_OWNED = "{owners} owned queue {queue_id} of {broker_topic} at the same time {until}"
_STATES: Mapping[str, str] = {
    "must not hold": "{who} {still}listed {broker_topic} {until}",
    "must not hold a silent broker": "{who} still listed {broker_topic} until {end}, {took} after {who} last heard "
    "from {broker}",
    "must not hold a broker that left": "{who} still listed {broker_topic} until {end}, after {broker}'s channel had "
    "ended",
    "must not hold an unregistered broker": "{who} still listed {broker_topic} until {end}, after {broker} was "
    "unregistered",
    "must not hold an unknown broker": "{who} listed {broker_topic} from {at} on, but {broker} had not registered with "
    "{who} since {who}'s start",
    "must not hold a broker of another list": "{broker} registered with {who}, which is not in {broker}'s namesrvAddr; "
    "{who} listed {broker_topic} {until}",
    "must register": "{broker} did not register with {who}, so {who} did not list {broker_topic} {until}",
    "must be equal": _DIFFERED,
    "promised to agree": _DIFFERED,
    "promised to stay": "{who} changed the address of the master of {broker} from {at} on, last at {end}: {masters}",
    "promised to last": "{who} listed {broker} as writable {until}, though an operator had wiped the permission",
    "promised to poll": "{who} began no route poll for {took}, until {end}",
    "must have an owner": "{holder} had to own queue {queue_id} of {broker_topic}, but no consumer of {who} owned the "
    "queue {until}",
    "must have one owner": _OWNED,
    "must not come back": "{who} listed {broker_topic} again at {at} for {took}, but {broker} had not registered again",
    "must not use": "{who} sent to or pulled from {broker_topic} at {at}, {took} after {broker} was lost or left "
    "{who}'s routes",
    "committed at a slave": "{who} committed to slave {broker} until {end}, {took} after {who}'s route had the master",
    "lasts as long as set": "{who} put off the next pull of a queue for {took}, not for the time that is set for this "
    "reason ({reason}); recorded at the time {end}",
    "pulls what it took": "{who} pulled a queue for the first time {took} after {who} had taken the queue, at {end}",
    "registers where its list says": "{who} registered with {server} until {end}, though {who}'s list had no {server}",
    "isolates as long as set": "{who} isolated a broker (sendLatencyFaultEnable) for {took}, until {end}",
    "must have left": "{who} kept {server} as NameServer until {end}, {took} after {server} was lost (or {who} had "
    "chosen {server}, if later)",
    "must have left the removed": "{who} kept {server} as NameServer until {end}, {took} after the address server had "
    "removed {server} (or {who} had chosen {server}, if later)",
    _RECOVERED: "{who} had no successful {operation} before {end}, {took}{since}",
}
_ACTS: Mapping[str, str] = {
    # tables, and what NameServers answer
    "code 17 while stopping": "{who}, while shutting down, answered code 17 for {topic}, but {who}'s table had {topic}",
    "order configuration": "{who} sent {client} an order configuration{of_topic}; {who}'s orderMessageEnable is false",
    "unlike its table": "{who}'s answer to {client}'s look-up{of_topic} was not the route in {who}'s own table",
    "not the broker's address": "{who} sent {client} a route{of_topic} with an address or id that its broker never had",
    "unlike registered": "{who} sent {client} a route{of_topic} with queues or permissions that no broker registered",
    "unreadable": "{who} sent {client} a route{of_topic} that {client} could not read",
    "must hold": "{who} did not list {broker_topic}",
    "must register": "{broker} did not register with {who}, so {who} did not list {broker_topic}",
    "must not be dropped": "{who} dropped {broker}, which {who} had to keep",
    "dropped too soon": "{who} dropped {broker} too soon",
    "must hold an acknowledged broker": "{who} acknowledged {broker}'s registration, but did not list {broker_topic}",
    "not as registered": "{who} listed {broker_topic} with other queues or permissions than the broker had registered",
    "another slave acts": "{who} listed a slave of {broker_topic} as acting master, though the master or a slave with "
    "a smaller id was there",
    "no broker has this name": "{who} listed {broker_topic}, but no broker has the name {broker}",
    "must be gone": "{who} listed an address of {broker_topic}, though the address was no longer registered",
    "must be there": "{who} did not list an address of {broker_topic}, though the address was registered",
    "under two ids": "{who} listed one address of {broker_topic} under two broker ids",
    "registered by nobody": "{who} listed {broker_topic} with an address or id that no broker of this name registered",
    "queues of an old version": "{who} took queues of {broker_topic} from a registration of an unchanged "
    "dataVersion{details}",
    "queues of a slave": "{who} took queues of {broker_topic} from a slave's registration",
    "address of an old version": "{who} took an address of {broker_topic} with an older stateVersion{details}",
    "keeps topics over a restart": "{who} restarted, and then lacked {topic}, or the queues or permission of {topic}",
    "changes its version": "{who} raised its dataVersion, though no topic of {who} had changed",
    "keeps its version": "{who} registered an older dataVersion after a restart than before the restart",
    "compares data versions": "{who} answered wrongly whether the data version of {broker} has changed "
    "(QUERY_DATA_VERSION)",
    "tells the smallest id": "{who} told brokers of {broker} a wrong smallest broker id, or did not tell them (905)",
    "counts topics": "{who} answered wipeWritePerm or addWritePerm for {broker} with a wrong number of topics",
    "accepts registrations": "{who} refused a registration of {broker} without a reason",
    "refuses a single topic": "{who} accepted the first registration of {broker}, though the registration had 1 topic",
    "queues without an address": "{who} listed queues of {broker_topic}, but no address of {broker}",
    "answers a slave its master": "{who} answered a registration of the slave {slave} without the master's address, or "
    "with a wrong address",
    "copies from its master": "{who} did not copy the commit log of {broker}, which NameServers named as the master",
    "two masters": "two brokers registered with {who} as master of {broker} during the same time",
    "without a master": "{who} listed no living master of {broker_topic}",
    "a client without its master": "{who} had no route with a living master of {broker_topic}",
    "id -1 for too long": "{who} listed {broker_topic} with brokerId -1 for longer than an election takes",
    "writable without a master": "{who} listed {broker_topic} as writable, though {broker} had no master",
    "registered": "{who} listed broker {named} wrongly, or not at all, after somebody had registered {named} by "
    "hand (action {action})",
    "unregistered": "{who} listed broker {named} after somebody had unregistered {named} by hand (action {action})",
    "permission": "{who} did not list broker {named} with the permission that somebody had set by hand (action "
    "{action})",
    "deleted": "{who} listed topic {topic} after somebody had deleted {topic} by hand (action {action})",
    "spared": "{who} removed more of {named} from the table than somebody had named by hand (action {action})",
    "one queue for a group": "{who} gave {topic}, a group's retry or dead-letter topic, more or less than 1 queue",
    "makes a retry topic": "{who} did not create {topic} at once when {who} read a heartbeat of a member of the group",
    "answered before it serves": "{who} did not answer a look-up of {client} with code 1 during waitSecondsForService",
    "refuses forbidden requests": "{who} accepted {request} that the permission or queues of {topic} at {who} forbid",
    "refuses with its code": "{who} refused {request} of {topic} with another code than RocketMQ's brokers",
    "takes messages for its queues": "{who} refused sends to queues that {topic} had at {who}",
    "waits for a slave that is there": "{who} answered sends with code 12 (FLUSH_SLAVE_TIMEOUT), though no slave ran",
    "takes what it is sent": "{who} refused sends with code 14 (SERVICE_NOT_AVAILABLE), though {who} was a master",
    "refuses messages while its disk is full": "{who} stored messages though its disk was full",
    "comes back": "{who} had topic {topic} again after somebody had deleted {topic} by hand (action {action})",
    "the broker's topic": "{who} did not have topic {topic} with the queues or permission that somebody had set by "
    "hand (action {action})",
    "the broker's deleted topic": "{who} still had topic {topic} after somebody had deleted {topic} by hand "
    "(action {action})",
    # a client's routes, and its NameServer
    "takes the answered route": "{who} did not use at once the route of {topic} with which {server} had answered",
    "sticky": "{who} changed (or connected again) to {server}, but the NameServer that {who} had chosen had not failed",
    "takes the list": "{who} did not take the new list of NameServers from the address server in time",
    "keeps the list": "{who} took a fetched list of the same NameServers in another order for a new list",
    "in order": "{who} chose {server}, which is not the next NameServer of {who}'s list{because}",
    "start": "{who} first chose {server}, an entry with which {who}'s client profile does not begin",
    "every request": "{who} asked {server} without a new choice, though {who} must choose at every request",
    "moves on": "{who} asked or connected to {server} again after a failure, without choosing the next NameServer",
    "dials the chosen": "{who} connected to NameServer {server}, but had not chosen {server} since {who}'s start",
    "in time": "{who}'s call to NameServer {server} took longer than all tries of one call may take together",
    "attempts": "{who} tried fewer NameServers than one call must try before the call fails",
    "no more attempts": "{who} tried one more NameServer in a call than the call was allowed to try",
    "answers are final": "{who} tried again after {server} had answered",
    "first choices uniform": "{who} did not choose each NameServer equally often as the first NameServer",
    "shuffled": "{who} chose {server} from a list that is not a permutation of the NameServers configured for {who}",
    "shuffled evenly": "{who} and other clients shuffled their list of NameServers into the same order too often",
    # messages, queues and offsets
    "read by nobody": "{unread} of {broker_topic}",
    "refused to its readers": "{holder} refused pulls of {who} from a queue of {broker_topic}{details}",
    "not used in turn": "{who} sent to a queue of {broker_topic} more or less often than round-robin allows",
    "out of its route": "{who} sent to a queue of {broker_topic} that {who}'s route lacks, or forbids to write",
    "takes its own share": "{who} took other queues of {broker_topic} in a rebalance than {who}'s share{because}",
    "first answered": "{broker} answered {who} an offset above 0, not 0, for a queue of {topic} for which the "
    "group had committed no offset",
    "answered no offset": "{broker} answered {who} that the group has no offset of a queue of {topic}, instead of 0",
    "first taken": "{who} began to read a queue of {broker_topic} beyond offset 0, though the group had committed no "
    "offset",
    "not received": "{who} did not receive an acknowledged message of {broker_topic} in time{because}",
    "late": "{who} received a message of {broker_topic} late{because}",
    "before its delay was over": "{broker} gave {who} a delayed message of {topic} too early{because}",
    "not as it was given": "{who} sent {broker_topic} a message that differs from the message passed to send()",
    "not as it was sent": "{broker} gave {who} a message of {topic} that differs from the sent message",
    "acknowledged without a slave": "{broker} (SYNC_MASTER) acknowledged {who}'s message ({topic}), which no slave has",
    "sent back after success": "{who} sent back a message of {broker_topic} that the listener of {who} had consumed",
    "received twice without a rebalance": "{who} received a message of {broker_topic} twice while {who} had the queue",
    "committed, never received": "{who} committed beyond a message of {broker_topic} that the group never received",
    "received without the queue": "{who} received a message of {broker_topic} after {who} had given the queue up",
    "received again": "{who} received a message of {broker_topic} again, though no rebalance or fault explains this",
    "queue taken at unknown time": "{who} received a message of {broker_topic} again; no row says when {who} took the "
    "queue",
    "lost": "{broker} lost a message of {topic} that {broker} had acknowledged to {who}",
    "not read": "no consumer received a message of {who} ({broker_topic}), and the queue's final read is incomplete",
    "forgotten at a start": "{who} lost, at a restart, a message of {topic} that {who} had acknowledged to {client}",
    "committed past": "{who} committed an offset beyond a message of {broker_topic} that the group never received",
    "committed before receipt": "{who} committed beyond a message of {broker_topic} before the group received the "
    "message",
    "committed past too early": "{who} committed beyond a message of {broker_topic} before the group received the "
    "message",
    "committed late": "{who} consumed a message of {broker_topic}, and committed the message's offset too late",
    "consumed, and not committed": "{who} consumed a message of {broker_topic} and did not commit the message's offset",
    "committed without the queue": "{who} committed for a queue of {broker_topic} after {who} had given the queue up",
    "committed after unregistering": "{who} unregistered, and then committed an offset for a queue of {broker_topic}",
    "given up without a commit": "{who} gave up a queue of {broker_topic}, and had not committed the offset of each "
    "consumed message",
    "set back by a pull": "{broker} set {who}'s committed offset ({topic}) back when {broker} answered a held pull",
    "went back": "{who} committed a lower offset for a queue of {broker_topic} than had been committed before",
    "began without an answer": "{who} began to read a queue of {broker_topic}, but {who}'s offset query had no answer",
    "began at a wrong offset": "{who} began to read a queue of {broker_topic} at another offset than the broker had "
    "answered",
    "answered a higher offset": "{who} answered {client} with a higher offset{of_topic} than was committed{details}",
    "answered a lower offset": "{who} answered {client} with a lower offset{of_topic} than had been committed",
    "lost its own offset": "{who} (broadcasting) lost {who}'s stored offset of a queue of {broker_topic}{details}",
    "did not keep a committed offset": "{who} did not keep an offset{of_topic} that was committed{details}",
    "broadcast offsets at a broker": "{who} committed offsets to a broker, which broadcasting consumers must not do",
    # sends and pulls
    "failed in a quiet time": "{who} had failed operations though no fault or recovery was in progress{because}",
    "below the scenario's availability_floor": "Too few operations of clients succeeded{details}",
    "unasked": "{server} sent {who} a response that {who} had not asked for, or a second response to one request",
    "two messages at one offset": "{broker} acknowledged a message of {who} at the offset of another message ({topic})",
    "acknowledged a wrong offset": "{broker} acknowledged a message at an offset where {broker} did not store the "
    "message",
    "answered a wrong first offset": "{broker} sent {who} a wrong minOffset of a queue ({topic}){details}",
    "answered a wrong end": "{broker} sent {who} a wrong maxOffset of a queue ({topic}){details}",
    "answered too many messages": "{broker} sent {who} more messages than asked for ({topic}){details}",
    "answered too few messages": "{broker} sent {who} fewer messages than {broker} had and than {who} had asked for "
    "({topic}){details}",
    "answered a pull too soon": "{broker} did not hold a pull of {who} ({topic}) as long as the pull asked{details}",
    "unordered answer": "{broker} sent {who} a message twice, unordered or below the asked offset ({topic}){details}",
    "code 20 for 19": "{broker} answered a pull of {who} at a queue's end ({topic}) with code 20 "
    "(PULL_RETRY_IMMEDIATELY), not 19 (PULL_NOT_FOUND){details}",
    "answered a wrong next offset": "{broker} sent {who} a wrong nextBeginOffset of a queue ({topic}){details}",
    "pulled from a slave": "{who} pulled from slave {slave}, though {who}'s route had the master, and no broker had "
    "suggested the slave",
    "suggested a slave": "{who} told a consumer to pull from slave {slave}, though the consumer's route had the master",
    "sent to an unwritable queue": "{who} sent to a queue of {broker} that {who}'s route lacks, or forbids to write",
    "sent to a wrong queue": "{who} sent to a queue of {broker} that was not the next queue of {who}'s round-robin",
    "tried again though stored": "{who} sent a message to {broker} again, though a broker had answered that the "
    "message was stored",
    "tried again on the same broker": "{who} sent a message again to {broker}, where the try before had failed",
    "reported as sent wrongly": "{who} reported a send to {broker} as sent, though no broker had acknowledged a try",
    "one try too many": "{who} sent a message again, to {broker}, after all 1 + retryTimesWhenSendFailed tries",
    "selected, and tried again": "{who} sent a message again, to {broker}, though a MessageQueueSelector had selected "
    "the message's queue",
    "tried again after a final answer": "{who} sent a message again, to {broker}, after a response code that allows no "
    "retry",
    "acknowledged in another queue": "{who} sent a message to one queue of {broker}; {broker} acknowledged the message "
    "in another queue",
    "sent to a slave": "{who} sent a message to the slave {slave}, which {who}'s routes never named as a master",
    "not isolated": "{who} did not isolate {broker} (latencyMax), though a try at {broker} had failed or was slow",
    "sent to an isolated broker": "{who} sent to {broker}, isolated by {who}, while another broker was available",
    "not its key's queue": "{who} sent messages of a sharding key to a queue of {broker_topic}, not to the key's queue",
    "given up without a try": "{who} gave up a send without a try, though {who} had a route and time left",
    "given up too soon": "{who} gave up a send after a failed try at {broker}, though a retry and time were left",
    "tried again after its time-out": "{who} sent a message again, to {broker}, after the send's sendMsgTimeout had "
    "passed",
    # timers
    "heartbeats everywhere": "{who} sent {server} no heartbeat (904) in a round, which must reach every NameServer",
    "begins at all NameServers at once": "{who} did not begin the {task} at all NameServers at once",
    "answers pulls": "{who} did not answer pulls of {client} before the pulls timed out",
    "refuses strangers": "{who} knew no member of a group, but did not refuse pulls of {client} (code 24)",
    "refuses without members": "{who} answered GET_CONSUMER_LIST_BY_GROUP (38) with an empty list, not with code 1",
    "newest subscription": "{who} refused pulls of {client} (code 25), but a heartbeat had brought that subscription",
    "lists its members": "{who} listed other members of a group than the members whose heartbeats {who} had read",
    "registers at its start": "{who} did not begin to register at once when {who} had started",
    "registers changes at once": "{who} did not begin at once to register a changed topic, permission or brokerId",
    "registers as answered": "{who} did not register at once after a NameServer had answered that {who}'s data version "
    "has changed, or had not answered",
    "takes no longer than the round's calls": "{who} took longer for a round of {task} than all calls of the round may "
    "take together",
    "times out when set": "{who}'s {time_out} did not come at the configured time",
    "ends by its time-out": "{who} did not give up a {call} after the time-out of the {call}",
    "closes only idle channels": "{who} closed a peer's channel that had not been idle for long enough{nodes}",
    "closes channels of dropped peers": "{who} read from the channel of a silent peer after {who} had dropped the peer",
    "forgets killed clients": "{who} kept a client in {who}'s groups after the client had been killed",
    "forgets clients that left": "{who} kept a client whose channel had ended, or that had unregistered",
    "closes channels of time-outs": "{who} did not at once close the {channel}",
    "ends with its channel": "{who} went on waiting for an answer after the channel to the broker had ended{nodes}",
    "ends isolations in time": "{who} used an isolated broker before the isolation ended, or too long after its end",
    "unregisters everywhere": "{who} did not {task} at every server when {who} stopped",
    "forgets unregistered clients": "{who} still had a client as member of a group after the client had unregistered",
    "asks for every topic": "{who} left a topic out of a round of {task}",
    "knows its group": "{who} refused pulls of {client} (code 24), but a member's heartbeat to {who} named the topic",
    "names all topics": "{who} left a topic of {who}'s group out of {request}",
    "names its group": "{who} left {who}'s group out of {request}",
    "has its clientId": "{who} sent in {request} another clientId than {who}'s own{details}",
    "has its own clientId": "{who} had the clientId of another client{details}",
    "has its message model": "{who} sent in {request} another message model than {who}'s own{details}",
    "has its expression": "{who} sent in {request} another subscription expression than {who}'s own{details}",
    "has a new subVersion": "{who} sent an unchanged subVersion in {request} after {who}'s queues of the topic changed",
    "asks for pullBatchSize": "{who} asked in a {request} for another number of messages than pullBatchSize{details}",
    "asks to be held": "{who} asked in a {request} to be held for another time than 15,000 ms "
    "(BROKER_SUSPEND_MAX_TIME_MILLIS){details}",
    "heartbeats reach every broker": "{who} left brokers of {who}'s routes out of rounds of heartbeats{nodes}",
    "heartbeats at new queues": "{who} did not send a heartbeat to a broker when {who}'s queues had changed{nodes}",
    "connects to routed brokers": "{who} connected to a broker that none of {who}'s routes names{nodes}",
    "closes after time-outs only": "{who} closed a broker's channel, but no call on the channel had timed out{nodes}",
    "keeps channels open": "{who} closed a channel to a broker, though clientCloseSocketIfTimeout is false{nodes}",
    "heartbeats to masters only": "{who}, which has no consumer, sent a {request} to a slave",
    "asks a random broker": "{who} asked {broker} for the group's members more often than chance explains{details}",
    "shares by listed members": "{who} divided queues in a round of {task}, but no broker had listed the members",
    "unregisters after its queues": "{who} unregistered before {who} had given up all queues and committed the offsets",
    "stops a poll without an answer": "{who} continued a round of {task} after a look-up without an answer",
    "heartbeats to routed brokers": "{who} sent a {request} to a broker that none of {who}'s routes names{nodes}",
    "drops only lost queues": "{who} dropped a queue that was still in {who}'s share",
    "looks up at polls only": "{who} looked up a topic between two polls, though {who} had a route of the topic",
    "kept after code 17": "{who} dropped {who}'s route of {topic} when a NameServer answered code 17",
    "woken by a change of members": "{who} ran {task} early, though no broker had reported a change of group members "
    "since the last {task}",
    "rebalances at changes": "{who} did not run {task} at once when a broker reported a change of group members",
    "reports a change at once": "{who} did not tell a member of a group at once that the group's members had changed",
    "reports changes of members only": "{who} reported a change of a group's members, but the members had not changed",
    "wakes held pulls at once": "{who} did not answer a {call} at once when a message arrived",
    "answers pulls at the check": "{who} did not answer a {call} at the first check after suspendTimeoutMillis",
    "120 s after a heartbeat": "{who} did not drop a client 120 to 130 s after the client's last heartbeat",
}
_OF_PATTERN: Mapping[str, str] = {
    r"each .+": "{who} {ran}",
    r"(un)?registers (.+)": "{who} {0}registered {1} (NameServer: {server})",
    r"(code \d+)": "{who} answered {client}'s look-up of {topic} with {0}",
    r"never used (in \d+ sends)": "{who} sent nothing to {broker_topic} {0}, though {who}'s route had {broker}",
    r"stored (\d+ times) by (\d+) tries": "brokers stored a message {0} (one at {broker}), but the send had {1} tries",
    r"sent (\d+ times) in (\d+) tries": "{who} sent a message {0} (one copy is at {broker}), but counted {1} tries",
    r"(acknowledged|answered) (.+) late": "{who} {0} {1} late",
    r"handed (delayed )?messages over late": "{who} delivered {0}messages late",
    r"send out of order": "{broker} gave a later message of {who} the same or a lower offset than an earlier message "
    "in the queue",
    r"receipt out of order": "{who} gave the listener a message of {broker_topic} after a message with a higher offset",
    r"(\S+ refused, .+)": "{0}",
}
"""Kinds with a variable part, as patterns; `{0}` is the pattern's first group."""
SAID = frozenset(
    ("kind", "rule", "holder", "because", "masters", "reason", "read", "name_servers", "queue_id", "clients")
) | {"registered_before_ms", "group", "next", "routes"}
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
    because = f": {e.more['because']}" if e.more.get("because") else ""
    words = {
        **_names(e),
        **dict.fromkeys(("because", "details", "nodes"), because),
        "holder": holder,
        "ran": f"ran {e.what}" if e.too_early else f"did not run {e.what} on time",
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
    """`, at 4.0 s`, or `, from 42.0 to 70.0 s (28.0 s)`; if the bound is for a longer time: `(38.0 s in all)`; an act
    that is too soon: `, at 11.3 s (27.0 s, counted from -15.7 s)`."""
    if e.from_ms is None:
        return ""
    if e.to_ms is not None and (next_ := e.more.get("next")):
        return f" at {seconds(e.from_ms)}; the broker's next {next_} was at {seconds(e.to_ms)}"
    if e.too_early:
        took_ms = e.measured_ms or 0.0
        return f", at {seconds(e.from_ms)} ({length(took_ms)}, counted from {seconds(e.from_ms - took_ms)})"
    if e.to_ms is None or tenths(e.to_ms) == tenths(e.from_ms):
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
        **_names(e),
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


def _names(e: Example) -> Mapping[str, str]:
    of_topic = f" of {e.topic}" if e.topic else ""
    named = {"who": e.who, "topic": e.topic, "named": e.topic, "of_topic": of_topic, "broker_topic": _about(e)}
    return named | dict.fromkeys(_OBJECTS, e.what)


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
    missing = f"though {e.who} had to keep {e.what}; {e.what} was missing for {length(e.measured_ms or 0.0)}"
    return said if e.too_early else f"{said}, {missing}"


def _missing(e: Example) -> str:
    from_ms, measured_ms = e.from_ms or 0.0, e.measured_ms or 0.0
    if e.too_early:
        since = f", {length(measured_ms)} after {e.after}" if e.after else ""
        return f"{e.who} dropped {_about(e)} at {seconds(from_ms)}{since}"
    return f"{e.who} did not list {_about(e)} {_until(e, from_ms, measured_ms)}"
