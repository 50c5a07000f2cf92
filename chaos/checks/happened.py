"""A violation in one sentence: which node did what, when, and by how much it exceeded its bound.

    ns-0 still listed broker-a (topic orders) until 225.0 s, 209.3 s after ns-0 last heard from broker-a; allowed …
    consumer-0 committed for a queue of broker-b (topic orders) after consumer-0 had given up the queue, at 4.0 s

Tables have a sentence for each kind of finding: `_STATES` for what was wrong for some time, `_ACTS` for an act that is
wrong by itself; `_CONSUMER`, for example, has the acts after "{consumer} ". Times count from the origin of the
example's times. Each word of `_SUBJECTS` in a sentence, such as `{namesrv}`, is the finding's subject, and each word of
`_OBJECTS`, such as `{broker}`, the finding's object; `{broker+topic}` is `broker-a (topic orders)`. A sentence ends
with a reason (`{because}`), names of peers (`{which_peers}`) or values (`{details}`).
"""

import re
from collections.abc import Mapping

from ..verdict import Example, length, seconds, tenths

_SUBJECTS = "namesrv", "a_broker", "a_client", "consumer", "producer", "node", "group"
_OBJECTS = "action", "broker", "call", "client", "reason", "requests", "server", "slave", "task", "time_out"
_RECOVERED = "first good "
_DIFFERED = "{namesrv} and {server} had different routes{of_topic} {until}{because}"
_OWNED = "{owners} owned queue {queue_id} of {broker+topic} at the same time {until}"
_STATES: Mapping[str, str] = {
    "must not hold": "{namesrv} {still}listed {broker+topic} {until}",
    "must not hold a silent broker": "{namesrv} still listed {broker+topic} until {end}, {took} after {namesrv} last "
    "heard from {broker}",
    "must not hold a broker that left": "{namesrv} still listed {broker+topic} until {end}, after {broker}'s channel "
    "had ended",
    "must not hold an unregistered broker": "{namesrv} still listed {broker+topic} until {end}, after {broker} was "
    "unregistered",
    "must not hold an unknown broker": "{namesrv} listed {broker+topic} from {at} on, but {broker} had not registered "
    "with {namesrv} since {namesrv}'s start",
    "must not hold a broker of another list": "{broker} registered with {namesrv}, which is not in {broker}'s "
    "namesrvAddr; {namesrv} listed {broker+topic} {until}",
    "must register": "{broker} did not register with {namesrv}, so {namesrv} did not list {broker+topic} {until}",
    "must be equal": _DIFFERED,
    "promised to agree": _DIFFERED,
    "promised to stay": "{namesrv} changed the address of the master of {broker} again and again, first at {at}, last "
    "at {end}: {masters}",
    "promised to last": "{namesrv} listed {broker} as writable {until}, though an operator had wiped the permission",
    "promised to poll": "{a_client} began no route poll for {took}, until {end}",
    "must have an owner": "{consumer} had to own queue {queue_id} of {broker+topic}, but no member of {group} owned "
    "the queue {until}",
    "must have one owner": _OWNED,
    "must not come back": "{namesrv} listed {broker+topic} again at {at} for {took} without {broker}'s registration",
    "must not use": "{a_client} sent to or pulled from {broker+topic} at {at}, {took} after {broker} became "
    "unreachable or disappeared from {a_client}'s routes",
    "committed at a slave": "{consumer} committed to slave {broker} until {end}, {took} after {consumer}'s route had "
    "the master",
    "lasts as long as set": "{consumer} put off the next pull of a queue for {took}, not for the time that is set for "
    "this reason ({reason}); recorded at the time {end}",
    "pulls what it took": "{consumer} first pulled a queue {took} after {consumer} had taken the queue, at {end}",
    "pulls again": "{consumer} pulled a queue again {took} after an answer, and not at once, at {end}",
    "registers where its list says": "{a_broker} registered with {server} until {end}, though {a_broker}'s list had no "
    "{server}",
    "isolates as long as set": "{producer} isolated a broker (sendLatencyFaultEnable) for {took}, until {end}",
    "must have left": "{a_client} kept {server} as NameServer until {end}, {took} after {server} became unreachable "
    "(or {a_client} had chosen {server}, if later)",
    "must have left the removed": "{a_client} kept {server} as NameServer until {end}, {took} after the address "
    "server had removed {server} (or {a_client} had chosen {server}, if later)",
    _RECOVERED: "{a_client} had no successful {operation} before {end}, {took}{since}",
}
_OTHERS: Mapping[str, str] = {
    "two masters": "two brokers registered with {namesrv} as master of {broker} at the same time",
    "the broker's topic": "{a_broker} had no topic {topic}, or had the topic with other queues or another "
    "permission than the operator's command set (action {action})",
    "read by nobody": "{unread} of {broker+topic}",
    "refused to its readers": "{serving_broker} refused {group}'s pulls from a queue of {broker+topic}{details}",
    "not read": "no consumer received a message of {producer} ({broker+topic}); the queue's final read is incomplete",
    "failed in a quiet time": "operations of {a_client} failed though no fault or recovery was in progress{because}",
    "below the scenario's availability_floor": "Too few operations of clients succeeded{details}",
    "unasked": "{server} sent {a_client} a response that no request of {a_client} had asked for, or a second response",
}
_SERVING_BROKER: Mapping[str, str] = {
    "must register": "did not register with {namesrv}, so {namesrv} did not list {broker+topic}",
    "first answered": "answered {consumer} an offset above 0, not 0, for a queue of topic {topic} for which the group "
    "had committed no offset",
    "answered no offset": "answered {consumer} that the group has no offset of a queue of topic {topic}, instead of 0",
    "before its delay was over": "delivered a delayed message of topic {topic} to {consumer} too early{because}",
    "kept beyond its delay": "put a delayed message of topic {topic} into its queue too late",
    "not as it was sent": "delivered to {consumer} a message of topic {topic} that differs from the sent message",
    "acknowledged without a slave": "(SYNC_MASTER) acknowledged a message of {producer} ({topic}), which no slave has",
    "lost": "lost a message of topic {topic} that {broker} had acknowledged to {producer}",
    "set back by a pull": "set {consumer}'s committed offset (topic {topic}) back when {broker} answered a held pull",
    "two messages at one offset": "acknowledged a message of {producer} at another message's offset (topic {topic})",
    "stored more often than sent back": "stored a message oftener than consumers sent the message back to {broker}",
    "dead letter lost": "took a message of topic {topic} back from {consumer} after the last failure, but does not "
    "keep the message as a dead letter",
    "failed again as a first try": "did not count the failures of a message that a consumer had sent back to {broker}",
    "acknowledged a wrong offset": "acknowledged a message at an offset where {broker} stored no such message",
    "answered a wrong first offset": "sent {consumer} a wrong minOffset of a queue (topic {topic}){details}",
    "answered a wrong end": "sent {consumer} a wrong maxOffset of a queue (topic {topic}){details}",
    "answered too many messages": "sent {consumer} more messages than {consumer} asked for (topic {topic}){details}",
    "answered too few messages": "sent {consumer} fewer messages than {broker} had and than {consumer} had asked for "
    "(topic {topic}){details}",
    "answered a pull too soon": "did not hold a pull of {consumer} (topic {topic}) as long as the pull asked{details}",
    "unordered answer": "sent {consumer} a message twice, unordered or below the asked offset (topic {topic}){details}",
    "code 20 for 19": "answered a pull of {consumer} at a queue's end (topic {topic}) with code 20 "
    "(PULL_RETRY_IMMEDIATELY), not 19 (PULL_NOT_FOUND){details}",
    "code 19 for 21": "answered a pull of {consumer} beyond a queue's end (topic {topic}) with code 19 "
    "(PULL_NOT_FOUND), not 21 (PULL_OFFSET_MOVED){details}",
    "answered a wrong next offset": "sent {consumer} a wrong nextBeginOffset of a queue (topic {topic}){details}",
}
_NAME_SERVER: Mapping[str, str] = {
    "code 17 while stopping": "answered code 17 for topic {topic} while shutting down, though the table had the topic",
    "order configuration": "sent {client} an order configuration{of_topic}, though orderMessageEnable is false",
    "unlike its table": "answered {client}'s look-up{of_topic} with another route than the route in {namesrv}'s table",
    "not the broker's address": "sent {client} a route{of_topic} with an address or id that its broker never had",
    "unlike registered": "sent {client} a route{of_topic} with queues or permissions that no broker registered",
    "unreadable": "sent {client} a route{of_topic} that {client} could not read",
    "must hold": "did not list {broker+topic}",
    "must not be dropped": "dropped {broker}, which {namesrv} had to keep",
    "dropped too soon": "dropped {broker} too soon",
    "must hold an acknowledged broker": "acknowledged {broker}'s registration, but did not list {broker+topic}",
    "not as registered": "listed {broker+topic} with other queues or permissions than the broker had registered",
    "no slave acts": "listed no slave of {broker+topic} as acting master, though supportActingMaster is true",
    "another slave acts": "listed a slave of {broker+topic} as acting master, though a smaller brokerId was registered",
    "no broker has this name": "listed {broker+topic}, but no broker has the name {broker}",
    "must be gone": "listed an address of {broker+topic}, though the address was no longer registered",
    "must be there": "did not list an address of {broker+topic}, though the address was registered",
    "under two ids": "listed one address of {broker+topic} under two broker ids",
    "registered by nobody": "listed {broker+topic} with an address or id that no broker of this name registered",
    "queues of an old version": "took queues of {broker+topic}, though dataVersion was unchanged{details}",
    "queues of a slave": "took queues of {broker+topic} from a slave's registration",
    "address of an old version": "took an address of {broker+topic} with an older stateVersion{details}",
    "compares data versions": "answered wrongly whether the data version of {broker} has changed (QUERY_DATA_VERSION)",
    "tells the smallest id": "told brokers of {broker} a wrong minBrokerId, minBrokerAddr or offlineBrokerAddr, or "
    "nothing (905)",
    "counts topics": "answered wipeWritePerm or addWritePerm for {broker} with a wrong number of topics",
    "accepts registrations": "refused a registration of {broker} without a reason",
    "refuses a single topic": "accepted the first registration of {broker}, though the registration had 1 topic",
    "queues without an address": "listed queues of {broker+topic}, but no address of {broker}",
    "names a name's brokers": "answered {slave}'s question for its name's members (901) with other brokers than "
    "{namesrv} had",
    "answers a slave its master": "answered slave {slave}'s registration without the right address of the master",
    "answers a slave its master's haServerAddr": "answered slave {slave}'s registration with another haServerAddr than "
    "the master had registered",
    "without a master": "listed no living master of {broker+topic}",
    "id -1 for too long": "listed {broker+topic} with brokerId -1 (no master yet) for longer than an election takes",
    "writable without a master": "listed {broker+topic} as writable, though {broker} had no master",
    "registered": "listed {named_broker} wrongly, or not at all, after somebody had registered {named_broker} by hand "
    "(action {action})",
    "unregistered": "listed {named_broker} after somebody had unregistered {named_broker} by hand (action {action})",
    "permission": "did not list {named_broker} with the permission that somebody had set by hand (action {action})",
    "deleted": "listed topic {topic} after somebody had deleted {topic} by hand (action {action})",
    "refused by hand": "refused an operator's command about {broker_or_topic} (action {action})",
    "spared": "removed more of {broker_or_topic} than somebody had removed by hand (action {action})",
    "answered before it serves": "did not answer a look-up of {client} with code 1 during waitSecondsForService",
}
_BROKER: Mapping[str, str] = {
    "keeps topics over a restart": "restarted, and then lacked topic {topic}, or the topic's queues or permission",
    "changes its version": "raised its dataVersion, though no topic of {a_broker} had changed",
    "keeps its version": "registered an older dataVersion after a restart than before the restart",
    "copies from its master": "did not copy the commit log of {broker}, though NameServers named {broker} as master",
    "asks for each table": "copied its master's tables without a request that the master read{details}",
    "one queue for a group": "gave {topic}, a group's retry or dead-letter topic, more or less than 1 queue",
    "makes a retry topic": "read a member's heartbeat, and did not create the group's retry topic {topic} at once",
    "refuses forbidden requests": "accepted {requests} that the permission or queues of {topic} at {a_broker} forbid",
    "refuses with its code": "refused {requests} of topic {topic} with another code than RocketMQ's brokers",
    "answers pulls of its queues": "refused pulls of queues that topic {topic} had at {a_broker}",
    "takes messages for its queues": "refused sends to queues that topic {topic} had at {a_broker}",
    "waits for a slave that is there": "answered sends with code 12 (FLUSH_SLAVE_TIMEOUT), though no slave ran",
    "acknowledges what a slave has": "(SYNC_MASTER) answered sends with SEND_OK before a slave can have the message",
    "waits for its slaves": "answered sends with code 12 (FLUSH_SLAVE_TIMEOUT) before syncFlushTimeout (5 s) was over",
    "takes what it is sent": "refused sends with code 14 (SERVICE_NOT_AVAILABLE), though {a_broker} was a master",
    "refuses for its full disk with its code": "refused sends with another code than 14 while the disk of {a_broker} "
    "was full",
    "refuses messages while its disk is full": "stored messages though the disk of {a_broker} was full",
    "comes back": "had topic {topic} again after somebody had deleted {topic} by hand (action {action})",
    "the broker's deleted topic": "still had topic {topic} after somebody deleted {topic} by hand (action {action})",
    "answered another message's id": "answered a send of {client} with an offsetMsgId under which the message of topic "
    "{topic} is not stored",
    "answered another broker's id": "answered a send of {client} (topic {topic}) with an offsetMsgId that lacks "
    "{a_broker}'s address",
    "forgotten at a start": "lost, at a restart, a message of topic {topic} acknowledged to {client}",
    "answered a higher offset": "answered {client} with a higher offset{of_topic} than was committed{details}",
    "answered a lower offset": "answered {client} with a lower offset{of_topic} than had been committed",
    "takes what pulls commit": "did not store an offset{of_topic} that a pull had committed{details}",
    "answered a lower offset than was copied": "answered {client} with a lower offset{of_topic} than was copied from "
    "the old master{details}",
    "did not keep a committed offset": "did not keep an offset{of_topic} that was committed{details}",
    "suggested a slave": "told a consumer to pull from slave {slave}, though the consumer's route had the master",
    "heartbeats once a round": "sent a broker more than one heartbeat in a round{which_peers}",
    "heartbeats where a slave may act": "sent NameServers heartbeats (904), though enableSlaveActingMaster is false",
    "asks only without forceRegister": "asked NameServers for their data version (322), though forceRegister is true",
    "registers once a round": "sent {server} more than one registration in a round",
    "registers on one channel": "opened another channel to {server} to register, though the last channel was open",
    "heartbeats everywhere": "sent {server} no heartbeat (904) in a round, which must reach every NameServer",
    "begins at all NameServers at once": "did not begin the registration at all NameServers at the same time, or never "
    "began it at one of them",
    "answers pulls": "did not answer pulls of {client} before the pulls timed out",
    "refuses strangers": "knew no member of {client}'s group, but did not refuse pulls of {client} with code 24",
    "refuses without members": "answered GET_CONSUMER_LIST_BY_GROUP (38) with an empty list, not with code 1",
    "answers with its members": "refused {client}'s question for the members of its group, but {a_broker} had members",
    "newest subscription": "refused pulls of {client} with code 25, but a heartbeat had brought that subscription",
    "lists its members": "listed other members of a group than the members whose heartbeats {a_broker} had read",
    "registers at its start": "did not begin to register at once when {a_broker} had started",
    "registers changes at once": "did not begin at once to register a changed topic, permission or brokerId",
    "registers as answered": "did not register at once when a NameServer had answered that {a_broker}'s data version "
    "has changed, or when a NameServer had not answered the query",
    "forgets killed clients": "kept a client in {a_broker}'s groups after the client had been killed",
    "forgets clients that left": "kept a client whose channel had ended, or that had unregistered",
    "forgets unregistered clients": "still had a client as member of a group after the client had unregistered",
    "knows its group": "refused pulls of {client} with code 24, but a member's heartbeat to {a_broker} named the topic",
    "reports a change at once": "did not tell a member of a group at once that the group's members had changed",
    "reports changes of members only": "reported a change of a group's members, but the members had not changed",
    "wakes held pulls at once": "did not answer a long poll at once when a message arrived",
    "answers with what was copied": "did not answer a long poll with a copied message at the next check of long polls",
    "answers pulls at the check": "did not answer a long poll at the first check after suspendTimeoutMillis",
    "120 s after a heartbeat": "did not drop a client 120 to 130 s after the client's last heartbeat",
}
_CLIENT: Mapping[str, str] = {
    "a client without its master": "had no route with a living master of {broker+topic}",
    "cuts a borrowed route": "took TBW102's route for topic {topic} with more than 4 queues (defaultTopicQueueNums)",
    "takes the answered route": "did not use at once the route of topic {topic} with which {server} had answered",
    "sticky": "changed (or connected again) to {server}, but the NameServer that {a_client} had chosen had not failed",
    "takes the list": "did not take the new list of NameServers from the address server in time",
    "closes the lost": "left its channel to {server} open, though {a_client}'s new list had no {server}",
    "keeps the list": "treated a fetched list of the same NameServers in another order as a new list",
    "in order": "chose {server}, which is not the next NameServer of {a_client}'s list{because}",
    "start": "first chose {server}, an entry of the list with which {a_client}'s client profile does not begin",
    "every request": "asked {server} without a new choice, though {a_client} must choose at every request",
    "moves on": "asked or connected to {server} again after a failure, without choosing the next NameServer",
    "dials the chosen": "connected to NameServer {server}, but had not chosen {server} since {a_client}'s start",
    "in time": "had a call to NameServer {server} that took longer than all tries of one call may take together",
    "attempts": "tried fewer NameServers than one call must try before the call fails",
    "no more attempts": "tried one more NameServer in a call than the call was allowed to try",
    "answers are final": "sent a request again after {server} had answered the request",
    "first choices uniform": "did not choose each NameServer equally often as the first NameServer",
    "shuffled": "chose {server} from a list that is not a permutation of the NameServers configured for {a_client}",
    "shuffled evenly": "and other clients shuffled their list of NameServers into the same order too often",
    "closes channels of time-outs": "did not close a channel at once when a call on the channel timed out",
    "ends with its channel": "waited for a broker's answer after the channel to the broker had ended{which_brokers}",
    "asks for every topic": "did not look up one of {a_client}'s topics in a round of {task}",
    "names its group": "left {a_client}'s group out of a heartbeat",
    "has its clientId": "sent in a heartbeat another clientId than {a_client}'s own{details}",
    "has its version": "sent heartbeats with another RocketMQ version than {a_client}'s own{details}",
    "has its own clientId": "had the clientId of another client{details}",
    "heartbeats reach every broker": "left brokers of {a_client}'s routes out of rounds of heartbeats{which_brokers}",
    "heartbeats at new queues": "sent a broker no heartbeat when {a_client}'s queues had changed{which_brokers}",
    "connects to routed brokers": "connected to a broker that none of {a_client}'s routes names{which_brokers}",
    "closes after time-outs only": "closed a broker's channel, but no call on the channel had timed out{which_brokers}",
    "keeps channels open": "closed a channel to a broker, though clientCloseSocketIfTimeout is false{which_brokers}",
    "stops a poll without an answer": "continued a round of {task} after a look-up without an answer",
    "heartbeats to routed brokers": "sent a heartbeat to a broker that is not in {a_client}'s routes{which_brokers}",
    "asks for the template in place of a topic": "looked up TBW102 (createTopicKey), though no look-up had just failed",
    "looks up at polls only": "looked up a topic between two polls, though {a_client} had a route of the topic",
    "kept after code 17": "dropped {a_client}'s route of topic {topic} when a NameServer answered code 17",
}
_CONSUMER: Mapping[str, str] = {
    "takes its own share": "took other queues of {broker+topic} in a rebalance than {consumer}'s share{because}",
    "first taken": "began to read a queue of {broker+topic} beyond offset 0, though the group had committed no offset",
    "not received": "did not receive an acknowledged message of {broker+topic} in time{because}",
    "late": "received a message of {broker+topic} late{because}",
    "tried again too soon": "gave the listener a message of {broker+topic} again less than 5 s after {consumer} could "
    "not send the message back",
    "sent back elsewhere": "did not ask {broker+topic} to take a failed message back",
    "sent back and tried again": "gave the listener a message of {broker+topic} again that {consumer} had sent back",
    "sent back after success": "sent back a message of {broker+topic} after {consumer}'s listener had consumed the "
    "message successfully",
    "received twice without a rebalance": "received a message of {broker+topic} twice while {consumer} owned the queue",
    "committed, never received": "committed beyond a message of {broker+topic} that the group never received",
    "received without the queue": "received a message of {broker+topic} after {consumer} had given up the queue",
    "received again": "received a message of {broker+topic} again, though no rebalance or fault explains this",
    "queue taken at unknown time": "received a message of {broker+topic} again; the history does not say when "
    "{consumer} took the queue",
    "committed past": "committed an offset beyond a message of {broker+topic} that the group never received",
    "committed before receipt": "committed beyond a message of {broker+topic} before the group received the message",
    "committed past too early": "committed beyond a message of {broker+topic} before the group received the message",
    "committed late": "consumed a message of {broker+topic}, and committed the message's offset too late",
    "consumed, and not committed": "consumed a message of {broker+topic} and never committed the message's offset",
    "committed without the queue": "committed for a queue of {broker+topic} after {consumer} had given up the queue",
    "committed after unregistering": "unregistered, and then committed an offset for a queue of {broker+topic}",
    "kept after a wrong offset": "kept a queue of {broker+topic} after code 21 (PULL_OFFSET_MOVED)",
    "no rebalance after a wrong offset": "did not rebalance at once after code 21 for a queue of {broker+topic}",
    "went on at another offset": "went on at another offset of a queue of {broker+topic} than code 21 had said",
    "given up without a commit": "gave up a queue of {broker+topic} without a commit of all consumed messages' offsets",
    "went back": "committed a lower offset for a queue of {broker+topic} than had been committed before",
    "began without an answer": "began to read a queue of {broker+topic}, but {consumer}'s offset query had no answer",
    "began at a wrong offset": "began to read a queue of {broker+topic} at another offset than the broker had answered",
    "lost its own offset": "(broadcasting) lost the stored offset of a queue of {broker+topic}{details}",
    "broadcast offsets at a broker": "committed offsets to a broker, which a broadcasting consumer must not do",
    "pulled from a slave": "pulled from slave {slave}, though {consumer}'s route had the master, and no broker had "
    "suggested the slave",
    "names all topics": "left a topic of {consumer}'s group out of a heartbeat",
    "has its message model": "sent in a heartbeat another message model than {consumer}'s own{details}",
    "has its expression": "sent in a heartbeat another subscription expression than {consumer}'s own{details}",
    "consumes as set": "sent in a heartbeat another consumeType or consumeFromWhere than {consumer}'s own{details}",
    "lets the broker delay": "sent a message back to a broker with another delayLevel than 0{details}",
    "sends back with its limit": "sent a message back to a broker with another maxReconsumeTimes than its own{details}",
    "has a new subVersion": "sent an unchanged subVersion in a heartbeat after {consumer}'s queues had changed",
    "asks for pullBatchSize": "asked in a pull for another number of messages than pullBatchSize{details}",
    "asks to be held": "asked a broker to hold a pull for another time than 15,000 ms "
    "(BROKER_SUSPEND_MAX_TIME_MILLIS){details}",
    "asks a random broker": "asked {broker} for the group's members more often than chance explains{details}",
    "shares by listed members": "divided queues in a rebalance, but no broker had listed the group's members",
    "unregisters after its queues": "unregistered before {consumer} had given up all queues and committed the offsets",
    "drops only lost queues": "dropped a queue that was still in {consumer}'s share",
    "woken by a change of members": "rebalanced early, though no broker had reported a change of group members",
    "waits by the code": "put a pull off for another reason than the broker's response code gives",
    "rebalances at its start": "did not rebalance at once after {consumer}'s start",
    "rebalances at changes": "did not rebalance at once when a broker reported a change of group members",
}
_PRODUCER: Mapping[str, str] = {
    "not used in turn": "sent to a queue of {broker+topic} more or less often than round-robin allows",
    "out of its route": "sent to a queue of {broker+topic} that {producer}'s route lacks, or forbids to write",
    "not as it was given": "sent {broker+topic} a message that differs from the message passed to send()",
    "sent to an unwritable queue": "sent to a queue of {broker} that {producer}'s route lacks, or forbids to write",
    "sent to a wrong queue": "sent to a queue of {broker} that was not next in {producer}'s round-robin{because}",
    "tried again though stored": "sent a message to {broker} again, though a broker had acknowledged the message",
    "tried again on the same broker": "sent a message again to {broker}, where the try before had failed",
    "reported as sent wrongly": "reported a send to {broker} as sent, though no broker had acknowledged a try",
    "one try too many": "sent a message again, to {broker}, after all 1 + retryTimesWhenSendFailed tries",
    "selected, and tried again": "sent a message again, to {broker}, though a MessageQueueSelector chose the queue",
    "tried again after a final answer": "sent a message again, to {broker}, after a response code that allows no retry",
    "acknowledged in another queue": "sent a message to one queue of {broker}, but {broker} acknowledged another queue",
    "sent to a slave": "sent a message to the slave {slave}, which {producer}'s routes never named as a master",
    "not isolated": "did not isolate {broker} (latencyMax), though a try at {broker} had failed or was slow",
    "sent to an isolated broker": "sent to {broker}, isolated by {producer}, while another broker was available",
    "not its key's queue": "sent messages of a sharding key to a queue of {broker+topic}, not to the key's queue",
    "given up without a try": "gave up a send without a try, though {producer} had a route and time left",
    "given up too soon": "gave up a send after a failed try at {broker}, though a retry and time were left",
    "tried again after its time-out": "sent a message again, to {broker}, after the send's sendMsgTimeout had passed",
    "sent to the slower half": "sent to {broker}, while all brokers were isolated and another one was quicker",
    "ends isolations in time": "used an isolated broker before the isolation ended, or too long after its end",
    "heartbeats to masters only": "sent a heartbeat to a slave, though {producer} has no consumer",
}
_NODE: Mapping[str, str] = {
    "takes no longer than the round's calls": "took longer for a round of {task} than all calls of the round may take",
    "refuses no such request": "refused requests of {client} that a living broker or NameServer never refuses{details}",
    "times out when set": "had a {time_out} at another time than configured",
    "ends by its time-out": "went on with a {call} after the time-out of the {call}",
    "closes idle channels": "did not close a channel that was idle for serverChannelMaxIdleTimeSeconds{which_peers}",
    "closes only idle channels": "closed a peer's channel that had not been idle for long enough{which_peers}",
    "closes channels of dropped peers": "read from the channel of a silent peer after {node} had dropped the peer",
    "unregisters everywhere": "did not unregister at every server when {node} stopped",
}
_DID = {
    "broker": _SERVING_BROKER,
    "namesrv": _NAME_SERVER,
    "a_broker": _BROKER,
    "a_client": _CLIENT,
    "consumer": _CONSUMER,
    "producer": _PRODUCER,
    "node": _NODE,
}
_ACTS = {**_OTHERS, **{kind: f"{{{who}}} {did}" for who, of in _DID.items() for kind, did in of.items()}}
_OF_PATTERN: Mapping[str, str] = {
    r"each .+": "{node} {ran}",
    r"(un)?registers (.+)": "{a_broker} {0}registered {1} (NameServer: {server})",
    r"names in (.+)": "{a_broker} named in {0} (NameServer: {server})",
    r"(code \d+)": "{namesrv} answered {client}'s look-up of topic {topic} with {0}",
    r"never used (in \d+ sends)": "{producer} sent nothing to {broker+topic} {0}, though {producer}'s route had "
    "{broker}",
    r"stored (\d+ times) by (\d+ tr\w+)": "brokers stored a message {0} (one copy: {broker}), but the message had {1}",
    r"alone stored (\d+ times) by (\d+ tr\w+)": "{a_broker} stored a message {0}, but the message had {1}",
    r"sent (\d+ times) in (\d+ tr\w+)": "{producer} sent a message {0} (one copy: {broker}), but counted {1}",
    r"(acknowledged|answered) (.+) late": "{node} {0} {1} late",
    r"handed (delayed )?messages over late": "{a_broker} delivered {0}messages late",
    r"send out of order": "{broker} gave a later message of {producer} the same or a lower offset than an earlier "
    "message in the queue",
    r"receipt out of order": "{consumer} gave the listener a message of {broker+topic} after a later message",
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
        **dict.fromkeys(("because", "details", "which_brokers", "which_peers"), because),
        "serving_broker": holder,
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
        **_names(e),
        **{name: e.more.get(name) for name in ("masters", "queue_id")},
        "consumer": e.more.get("holder") or e.who,
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
    named = {"of_topic": f" of topic {e.topic}" if e.topic else "", "broker+topic": _about(e)}
    named |= dict.fromkeys(("topic", "named_broker", "broker_or_topic"), e.topic)
    return named | dict.fromkeys(_SUBJECTS, e.who) | dict.fromkeys(_OBJECTS, e.what)


def _about(e: Example) -> str:
    topic = f"topic {e.topic}" if e.topic else ""
    return f"{e.what} ({topic})" if e.what and topic else e.what or topic


def _until(e: Example, from_ms: float, measured_ms: float) -> str:
    """`until 80.0 s, 60.0 s after f1 end`, or `from 42.0 to 70.0 s, for 28.0 s`; `at 80.0 s, for 0.2 ms`."""
    end = seconds(from_ms if e.to_ms is None else e.to_ms)
    if e.is_of_due_time:
        return f"until {end}, {length(measured_ms)} after {'the start' if e.after in ('', 'begin') else e.after}"
    began_ms = from_ms if e.to_ms is None else min(from_ms, e.to_ms - measured_ms)  # what was allowed is part of it
    when = f"at {end}" if seconds(began_ms) == end else f"from {tenths(began_ms)} to {end}"
    return f"{when}, for {length(measured_ms)}"


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
