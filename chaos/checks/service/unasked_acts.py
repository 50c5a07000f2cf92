"""Part of timers_kept: acts of a client for which no rule of RocketMQ gives a reason.

| act       | a client does it                                                                | rows             |
|-----------|---------------------------------------------------------------------------------|------------------|
| look-up   | in each route poll, and for a topic of which it has no route that serves (none  | name_server_call |
|           | with the brokers whose queues it still holds); where that one is nowhere, of    |                  |
|           | the topic whose route it borrows (createTopicKey); a look-up without an answer  |                  |
|           | ends the poll; code 17 leaves it the route that it has                          |                  |
| dial      | of a broker that a route of its names, or did until its last heartbeat round:   | channel          |
|           | each first forgets what no route names any more (`cleanOfflineBroker`)          |                  |
| close     | of a channel to a broker, when a call on the channel has run out and            | channel          |
|           | clientCloseSocketIfTimeout is true, or after clientChannelMaxIdleTimeSeconds    |                  |
|           | without a byte                                                                  |                  |
| heartbeat | to such a broker, too; to masters alone if it has no consumer                   | client_heartbeat |
| rebalance | each Qr, and when a broker says that the members of a group of its changed; it  | scheduled_task,  |
|           | shares a topic's queues out by a list of members that came in this round        | members_listed   |
| leave     | after it has given up its queues, with their last commits                       | unregistered     |
| drop      | of a queue that its share still has, after 120 s without a pull                 | queue_dropped    |
| notice    | (a broker) when the members of the group changed                                | members_changed  |

Rebalances are judged in quiet times (`calm`), look-ups and dials at any, and heartbeats where nothing was done to the
broker and its link for so long that one of them may still be on its way. Upstream:
`MQClientInstance`, `DefaultMQProducerImpl.tryToFindTopicPublishInfo`, `DefaultConsumerIdsChangeListener`.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from ....remoting.codes import PERM_WRITE, ResponseCode
from ....remoting.node.profile import Profile
from ....remoting.topics import TBW102
from ...oracle.intervals import grouped
from ...oracle.link import MOMENT_MS
from ...oracle.quiet import calm
from ...oracle.time_outs import HEARTBEAT, POLL, REBALANCE
from ...topology import is_slave
from ...verdict import Finding
from ..findings import Done, at_no_time, finding
from ..messages.shares import retry_topics
from ..record.known_brokers import MASTER_ID
from ..record.timer_acts import LEAVE, Process, Run
from ..record.turns import client_routes
from ..record.uncommitted import runs_of
from .group_members import NOTICE, changes_of

_DIALS = ("open", "connect_failed")
_CLOSED_BY_ITSELF, _IDLE = "closed by self", "idle by self"
DROP = "drop of a queue"
_IDLE_MS = 120_000.0
"""`pullMaxIdleTime`: no setting's here."""


class Unasked(Process):
    """The acts of one process of a client."""

    def findings(self) -> Iterator[Finding]:
        row = "MQClientInstance: looks up every topic each P, and at other times a topic without a route"
        yield from self.done("look-up", "looks up at polls only", row, self._look_ups())
        row = "DefaultMQProducerImpl.tryToFindTopicPublishInfo: createTopicKey is asked for in the place of a topic"
        yield from self.done(POLL, "asks for the template in place of a topic", row, self._templates())
        row = "MQClientInstance.updateTopicRouteInfoFromNameServer: a RemotingException ends the round"
        yield from self.done(POLL, "stops a poll without an answer", row, self._cut_short())
        yield from self._dropped()
        row = "MQClientInstance: cleanOfflineBroker before each heartbeat"
        yield from self.done("dial", "connects to routed brokers", row, self._dials())
        yield from self.done("heartbeat", "heartbeats to routed brokers", row, self._heartbeats())
        row = "NettyRemotingClient.invokeSync: closes a channel on which a call timed out (clientCloseSocketIfTimeout)"
        kind = "closes after time-outs only" if self.timers.Z else "keeps channels open"
        yield from self.done("close", kind, row, self._closes())
        row = "NettyRemotingClient: IdleStateHandler (clientChannelMaxIdleTimeSeconds)"
        yield from self.done("close", "closes only idle channels", row, self._idle_closes())
        row = "RebalanceImpl: a queue of its share is dropped after pullMaxIdleTime without a pull"
        yield from self.done(DROP, "drops only lost queues", row, self._drops())
        if self.kind == "producer":
            row = "MQClientInstance.sendHeartbeatToAllBroker: without a consumer, heartbeats go to masters only"
            yield from self.done("heartbeat", "heartbeats to masters only", row, self._at_slaves())
            row = "MQClientInstance.sendHeartbeatToAllBroker: one heartbeat a round and broker"
            yield from self.done("heartbeat", "heartbeats once a round", row, self._once())
        elif not self.world.workload.get("broadcasting"):
            row = "RebalanceImpl.rebalanceByTopic: without a list of members, queues stay as they are"
            yield from self.done(REBALANCE, "shares by listed members", row, self._shared_out())
            row = "DefaultMQPushConsumerImpl.shutdown: persistConsumerOffset, then unregisterConsumer"
            yield from self.done(LEAVE, "unregisters after its queues", row, self._left())
        if self.kind == "consumer" and self._are_all_ours() and self.control.rows("members_changed"):
            row = "DefaultConsumerIdsChangeListener: rebalances when a broker says that the group's members change"
            yield from self.done(REBALANCE, "woken by a change of members", row, self._wakings())
            row = "ConsumerManager: a group is notified only when its members change"
            for broker, told in grouped(self._notices()).items():
                yield from self.done(NOTICE, "reports changes of members only", row, told, of=broker)

    def _is_calm(self, from_ms: float, to_ms: float) -> bool:
        return any(one.start_ms <= from_ms and to_ms <= one.end_ms for one in calm(self.world))

    # -- look-ups

    def _look_ups(self) -> Iterator[Done]:
        """Wrong are those that no poll made, of topics with a route that serves; a poll makes one of each topic. Which
        of several made one beside a poll nobody knows: those that had another reason are no poll's. A consumer that
        sends its first messages to a retry topic looks the topic up, as a producer does."""
        answered, told_ms = dict[tuple[int, str], Run](), dict.fromkeys(self._sent_to, math.inf)
        for number, call in enumerate(self._asked):
            topic = call.row.topic
            moments = [call.began_ms - self._near_ms(call), call.began_ms, *self._waited_ms(number)]
            polls = self._polls_of(call)
            poll = next((poll for poll in polls if (poll, topic) not in answered), None)
            if poll is None:
                poll = next((poll for poll in polls if self._borrows(answered[poll, topic])), None)
            serves = poll is None and all(self._serves(topic, at_ms) for at_ms in moments)
            is_first = serves and min(moments) <= told_ms.get(topic, -math.inf)
            if is_first and call.row.type == "ok":
                told_ms[topic] = min(told_ms[topic], call.ended_ms)
            yield Done(call.began_ms, not serves or is_first or self._borrows(call))
            if poll is not None and call.row.type == "ok":
                answered[poll, topic] = call

    def _templates(self) -> Iterator[Done]:
        """Look-ups of createTopicKey beside polls of 5.x: each in place of another topic, whose look-up just failed.
        Producers of 4.9, those in consumers among them, poll it."""
        for call in () if self.timers.profile is Profile.V4_9 else self._asked:
            if call.row.topic == TBW102 and self._polls_of(call):
                yield Done(call.began_ms, self._borrows(call))

    def _waited_ms(self, number: int) -> Iterator[float]:
        """When those look-ups began for whose ends this one may have waited (lockTimeoutMillis): it may have been asked
        for before each of these."""
        near_ms, began_ms = self._near_ms(self._asked[number]), self._asked[number].began_ms
        turn_ms = began_ms
        for other in reversed(self._asked[:number]):
            if turn_ms - other.ended_ms > near_ms or began_ms - turn_ms > self.lock_ms:
                return
            turn_ms = other.began_ms
            yield turn_ms

    def _near_ms(self, call: Run) -> float:
        """How long before its look-up began the client may have decided to make it: its process may be late."""
        lag_ms = self.control.lateness.largest(self.world, (self.life.node,), call.began_ms, call.began_ms)
        return self.timers.delivery_ms + (lag_ms or 0.0)

    @cached_property
    def _asked(self) -> Sequence[Run]:
        """Its look-ups from its start, or its new start, until its last poll: one that is under way at the end has left
        no row."""
        until_ms = max((run.ended_ms for run in self.runs_of(POLL)), default=-math.inf)
        calls = (run for run in self.rows("name_server_call") if run.row.f == "route")
        return [run for run in calls if self.start_ms <= run.began_ms and run.ended_ms <= until_ms]

    def _polls_of(self, call: Run) -> range:
        """The numbers of the polls that may have made the look-up."""
        near_ms, polls = self.timers.delivery_ms, self.runs_of(POLL)
        first = bisect_left(polls, call.ended_ms - near_ms, key=lambda run: run.ended_ms)
        return range(first, bisect_right(polls, call.began_ms + near_ms, key=lambda run: run.began_ms))

    def _dropped(self) -> Iterator[Finding]:
        """Of each topic that it had a route of when a NameServer answered code 17: whether it asked for the topic
        between its polls before a NameServer answered with a route. A look-up waits lockTimeoutMillis for its turn. A
        topic that it may first send to is left out: it asks for that, too, as a producer does."""
        row = at_no_time("MQClientInstance.updateTopicRouteInfoFromNameServer: after code 17 the cached route stays")
        wait_ms = self.lock_ms + self.timers.delivery_ms
        since, examined = dict[str, float](), Counter[str]()
        out: dict[str, tuple[float, float]] = {}
        for call in (one for one in self._asked if one.row.topic not in self._sent_to):
            topic = call.row.topic
            none_ms = since.get(topic, math.inf)
            if none_ms + wait_ms <= call.began_ms and not self._polls_of(call) and self._has(topic, call.began_ms):
                out[topic] = out.get(topic, (none_ms, 0.0))[0], call.ended_ms
            if call.row.code == ResponseCode.SUCCESS:
                since.pop(topic, None)
            elif call.row.code == ResponseCode.TOPIC_NOT_EXIST and self._has(topic, call.began_ms):
                examined[topic] += 1
                since.setdefault(topic, call.ended_ms)
        for topic, times in examined.items():
            about, span, wrong = (self.life.node, "route", topic), (self.start_ms, self.end_ms), int(topic in out)
            yield finding(about, "kept after code 17", span, row, out=out.get(topic), examined=times, wrong=wrong)

    def _has(self, topic: str, at_ms: float) -> bool:
        """Whether it has taken a route of the topic that leaves nothing to ask for: its other routes name the same
        addresses, and all of them are brokers'. That of createTopicKey is asked for in the place of others."""
        taken = (run for run in self.rows("route_changed") if self.start_ms <= run.ended_ms <= at_ms)
        if topic == TBW102 or not any(run.row.topic == topic for run in taken) or not self._serves(topic, at_ms):
            return False
        route = client_routes(self.control).at(*self.process, topic, at_ms)
        return self.addresses([route["brokers"]]) <= self._told_at(at_ms) & self.world.owners.keys()

    def _told_at(self, at_ms: float) -> set[str]:
        return {of for of, spans in self.told.items() if any(start <= at_ms < end for start, end in spans)}

    def _cut_short(self) -> Iterator[Done]:
        """Polls that had no answer to their first look-up; wrong are those that asked for more. A client that has no
        route of a topic asks for it between its polls, too, so there nobody knows whose look-up it is."""
        calls = self.rows("name_server_call")
        before, seqs = 0, [call.row.seq for call in calls]
        for poll in self.runs_of(POLL):
            first_ms = poll.began_ms - MOMENT_MS
            # by the order of its rows: a poll that was due meanwhile begins at once
            until = bisect_left(seqs, poll.row.seq)
            here = [call for call in calls[before:until] if call.began_ms >= first_ms]
            before = until
            asked = {call.row.topic for call in here} - {TBW102}
            if asked and here[0].row.code is None and all(self._serves(one, first_ms) for one in asked):
                yield Done(poll.began_ms, len(here) == 1)

    def _borrows(self, call: Run) -> bool:
        """Whether it is asked in the place of a topic that was just not found, or whose look-up gave up waiting for its
        turn behind another look-up, and left no row."""
        near_ms, wait_ms = self.timers.delivery_ms, self.lock_ms
        before = [
            other
            for other in self.rows("name_server_call")
            if other.row.f == "route" and abs(other.ended_ms - call.began_ms) <= near_ms
        ]
        if any(other.ended_ms - other.began_ms + near_ms >= wait_ms for other in before):
            return True
        return any(
            other.row.type != "ok" and other.row.topic != call.row.topic
            for other in before
            if not self._serves(other.row.topic, other.ended_ms)
        )

    def _serves(self, topic: str, at_ms: float) -> bool:
        """Whether the route that it has of the topic then leaves nothing to ask for."""
        route = client_routes(self.control).at(*self.process, topic, at_ms)
        brokers, queues = route.get("brokers") or {}, route.get("queues") or {}
        if not brokers or any(not brokers.get(name) for name in queues):
            return False
        is_writable = any(
            of[1] > 0 and of[2] & PERM_WRITE and MASTER_ID in brokers[name] for name, of in queues.items()
        )
        if self.kind == "consumer":
            if topic in self._sent_to and not is_writable:
                return False
            told = self._told_at(at_ms)
            if any(told.isdisjoint(ids.values()) for ids in brokers.values()):
                return False  # cleanOfflineBroker may have left it without an address of this broker
            taken = (run.row for run in reversed(self.rows("assigned")) if run.ended_ms <= at_ms)
            held = next((row.decoded or () for row in taken if row.topic == topic), ())
            # A round that is under way asks the brokers that the route named when the round began.
            before = client_routes(self.control).at(*self.process, topic, self._round_began_ms(at_ms))
            return {name for name, _queue in held} | {*(before.get("brokers") or {})} <= brokers.keys()
        return is_writable

    @cached_property
    def _sent_to(self) -> Collection[str]:
        """The retry topics to which a consumer may send what its listener failed."""
        fails = self.kind == "consumer" and self.world.workload.get("failing_share")
        return retry_topics(self.world, self.life.node) if fails else ()

    def _round_began_ms(self, at_ms: float) -> float:
        """When the round of doRebalance began that was under way then; that moment itself without a round. A round that
        never ended has left no row."""
        rounds = self.runs_of(REBALANCE)
        number = bisect_left(rounds, at_ms, key=lambda run: run.ended_ms)
        began_ms = rounds[number].began_ms if number < len(rounds) else rounds[-1].ended_ms if rounds else at_ms
        return min(began_ms, at_ms)

    # -- dials

    def _dials(self) -> Iterator[Done]:
        """Those of brokers; wrong where it had forgotten the broker by then: a round of heartbeats that a rebalance had
        begun before may go on meanwhile, C longer for each broker that does not answer."""
        under_way_ms = self.timers.C_ms * len(self.brokers) + self.timers.delivery_ms
        for run in self.rows("channel"):
            address = run.row.address
            if run.row.f not in _DIALS or address not in self.named:
                continue
            began_ms = run.ended_ms - (self.timers.C_ms if run.row.f == "connect_failed" else self.timers.delivery_ms)
            if not self.held(self._named_until(address, run.ended_ms), run.ended_ms):
                forgotten_ms = self._forgotten_ms(address, run.ended_ms)
                owner = self.world.owners.get(address, address)
                yield Done(run.ended_ms, forgotten_ms + under_way_ms >= began_ms, owner)

    def _closes(self) -> Iterator[Done]:
        """Ends of channels to brokers; wrong are those that this client closed, and on which no call had run out."""
        near_ms, waits = self.timers.delivery_ms, dict[str, list[float]]()
        before_ms = near_ms + self.timers.lateness_cap_ms  # a busy process closes it later
        if self.timers.Z:
            waits = grouped((run.row.address, run.ended_ms) for run in self.rows("timed_out"))
        for run in self.rows("channel"):
            address, at_ms = run.row.address, run.ended_ms
            broker = self.world.owners.get(address)
            if run.row.f != "close" or broker not in self.brokers or not self.start_ms <= at_ms <= self.end_ms:
                continue  # a client whose start failed closes its channels, and is made anew
            if not self.held(at_ms - near_ms, at_ms + near_ms):
                is_own = run.value.get("reason") == _CLOSED_BY_ITSELF
                ran_out = self.within(waits.get(address, ()), at_ms - before_ms, at_ms + near_ms)
                yield Done(at_ms, not is_own or ran_out, broker)

    def _idle_closes(self) -> Iterator[Done]:
        """Channels to brokers that this client closed as idle; wrong are those on which a heartbeat had come, or which
        it had opened, within the time that a channel may be idle."""
        near_ms, opened = self.timers.delivery_ms, dict[str, float]()
        idle_ms = 1000.0 * self.world.number(self.life.node, "clientChannelMaxIdleTimeSeconds")
        for run in self.rows("channel"):
            address, at_ms = run.row.address, run.ended_ms
            broker = self.world.owners.get(address, "")
            if run.row.f == "open":
                opened[address] = at_ms
            elif run.value.get("reason") == _IDLE and broker in self.brokers and address in opened:
                heard = self.at_brokers("client_heartbeat").get(broker, ())
                used_ms = max([opened[address], *heard[: bisect_right(heard, at_ms)][-1:]])
                is_early = at_ms - used_ms < idle_ms - 1000.0 - near_ms
                is_hit = self.held(used_ms, at_ms) or self.troubles.between(broker, used_ms, at_ms)
                yield Done(at_ms, is_hit or not is_early, broker)

    def _heartbeats(self) -> Iterator[Done]:
        """Those that brokers say they had; wrong where it had forgotten the broker by then: a round that a rebalance
        had begun before may go on meanwhile, A longer for each broker that hangs."""
        under_way_ms = self.timers.A_ms * len(self.brokers) + self.timers.delivery_ms
        heard = self.at_brokers("client_heartbeat")
        for broker, at_ms in ((broker, at_ms) for broker, times in heard.items() for at_ms in times):
            address = self.world.address_at(broker, at_ms) or ""
            if address not in self.named or not self.life.start_ms <= at_ms < self.end_ms:
                continue
            by_ms = at_ms + self.timers.clocks_ms  # of the client's clock
            until_ms = self._named_until(address, by_ms)
            if not self.held(until_ms, at_ms) and not self._may_be_late(broker, until_ms, at_ms):
                yield Done(at_ms, self._forgotten_ms(address, by_ms) + under_way_ms >= at_ms, broker)

    def _once(self) -> Iterator[Done]:
        """Heartbeats of a producer, which are those of its rounds; wrong are more than there were rounds, for each
        name that a route had for the address. The round that is under way when a process ends has no row. A broker that
        did not read for a while reads the heartbeats of the client's earlier processes, too."""
        begun, unsaid = [run.began_ms for run in self.runs_of(HEARTBEAT)], 1 + self.life.incarnation
        routes = [run.value.get("brokers") or {} for run in self.rows("route_changed")]
        named = grouped({(at, name) for brokers in routes for name, ids in brokers.items() for at in ids.values()})
        for broker, times in self.at_brokers("client_heartbeat").items():
            own = sorted(at_ms for at_ms in times if self.life.start_ms <= at_ms < self.end_ms)
            addresses = (at for at, owner in self.world.owners.items() if owner == broker)
            names = max([1, *(len(named.get(at, ())) for at in addresses)])
            waited = self._may_be_late(broker, self.life.start_ms, self.life.start_ms)
            earlier = [
                life.process for life in self.world.lives_of(self.life.node) if life.start_ms < self.life.start_ms
            ]
            waiting = sum(len(runs_of(self.control, process, HEARTBEAT)) for process in earlier if waited)
            for number, at_ms in enumerate(own, 1):
                rounds = bisect_right(begun, at_ms + self.near_ms) + unsaid + waiting
                yield Done(at_ms, number <= rounds * names, broker)

    def _at_slaves(self) -> Iterator[Done]:
        """Heartbeats that brokers say they had; wrong are those at slaves that no route named as master."""
        within_ms = 2 * self.timers.H_ms
        for broker, times in self.at_brokers("client_heartbeat").items():
            for at_ms in (one for one in times if self.life.start_ms <= one < self.end_ms):
                spans = self._masters.get(self.world.address_at(broker, at_ms) or "", ())
                is_named = any(start <= at_ms and at_ms - within_ms <= end for start, end in spans)
                yield Done(at_ms, is_named or not is_slave(broker))

    @cached_property
    def _masters(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Address → from when until when some route that it had named it as master."""
        return self.spans(lambda routes: {ids.get(MASTER_ID, "") for names in routes for ids in names.values()})

    def _may_be_late(self, broker: str, from_ms: float, to_ms: float) -> bool:
        """Whether what is sent to the broker by `from_ms` may arrive by `to_ms` only."""
        faults = (*self.world.link_faults(self.life.node, broker), *self.world.process_faults(broker))
        return any(fault.overlaps(from_ms - 2 * self.timers.H_ms, to_ms) for fault in faults)

    def _forgotten_ms(self, address: str, by_ms: float) -> float:
        """When the first heartbeat round began after the last route that named the broker; inf: none did by then."""
        at = bisect_left(self._rounds, self._named_until(address, by_ms) + self.timers.delivery_ms)
        return self._rounds[at] if at < len(self._rounds) and self._rounds[at] <= by_ms else math.inf

    def _named_until(self, address: str, by_ms: float) -> float:
        return next((end for start, end in reversed(self.named[address]) if start <= by_ms), by_ms)

    @cached_property
    def _rounds(self) -> Sequence[float]:
        return [run.began_ms for run in self.runs_of(HEARTBEAT)]

    # -- rebalances

    def _drops(self) -> Iterator[Done]:
        """Those while nothing kept it from pulling; wrong where it took the queue again in the same rebalance, which a
        row `assigned` ends. A queue whose offset was wrong is dropped by its pull."""
        events = ("queue_dropped", "queue_taken", "assigned", "pull_delayed")
        rows = sorted((run.row for event in events for run in self.rows(event)), key=lambda row: row.seq)
        dropped, moved = dict[tuple[str | None, ...], float](), set[tuple[str | None, ...]]()
        for row in rows:
            queue = row.topic, row.broker_name, str(row.queue_id)
            if row.event == "pull_delayed" and row.f == "illegal_offset":
                moved.add(queue)
            elif row.event == "queue_dropped" and queue not in moved:
                if self._is_calm(row.time_ms - _IDLE_MS, row.time_ms):
                    dropped[queue] = row.time_ms
            elif row.event == "queue_taken" and queue in dropped:
                yield Done(dropped.pop(queue), False)
            elif row.event == "assigned":
                yield from (Done(dropped.pop(queue), True) for queue in [*dropped] if queue[0] == row.topic)
        yield from (Done(at_ms, True) for at_ms in dropped.values())

    def _shared_out(self) -> Iterator[Done]:
        """Topics that its rounds shared out; wrong are those for which no list had come."""
        lists = grouped((run.row.topic, run.ended_ms) for run in self.rows("members_listed"))
        taken, before = self.rows("queue_taken"), -1
        for run in self.runs_of(REBALANCE):
            # by the order of its rows, too: a round that was due meanwhile begins as the one before it ends
            here = (one for one in taken if run.began_ms <= one.ended_ms and before < one.row.seq < run.row.seq)
            topics, before = {one.row.topic for one in here}, run.row.seq
            for topic in topics.union(run.value.get("shared") or ()):
                came = self.within(lists.get(topic, ()), run.began_ms - self.timers.delivery_ms, run.ended_ms)
                yield Done(run.ended_ms, came)

    def _left(self) -> Iterator[Done]:
        """When it gave up each queue, with a commit; wrong are those that it still held as it unregistered."""
        left = [run.ended_ms for run in self.rows("unregistered")]
        dropped = {run.row.op_id: run.ended_ms for run in self.rows("queue_dropped")}
        for run in self.rows("queue_taken") if left else ():
            given_up_ms = dropped.get(run.row.op_id, self.end_ms)
            yield Done(given_up_ms, not run.ended_ms < left[0] < given_up_ms)

    def _are_all_ours(self) -> bool:
        """Whether every broker is of ours, and nobody is there but the run's own clients."""
        nodes = self.world.of_kind("broker", "slave", "consumer")
        return self.world.run.get("scenario") != "up" and all(node.is_ours for node in nodes)

    def _wakings(self) -> Iterator[Done]:
        """Rounds that somebody woke it for; wrong are those before which no broker had told it, since the one before,
        that the members of its group changed."""
        rounds, told = self.runs_of(REBALANCE), [run.ended_ms for run in self.rows("members_changed")]
        slack_ms = self.timers.delivery_ms + self.timers.lateness_cap_ms
        for before, run in pairwise(rounds):
            if run.value.get("woken") and self._is_calm(before.began_ms - slack_ms, run.began_ms):
                at = bisect_left(told, before.began_ms - slack_ms)
                yield Done(run.began_ms, at < len(told) and told[at] <= run.began_ms + slack_ms)

    def _notices(self) -> Iterator[tuple[str, Done]]:
        """Broker, and when it told this process that its group's members changed; wrong is that although they had not:
        nothing had changed so shortly before that this may be on its way."""
        near_ms, members = self.timers.delivery_ms + self.timers.A_ms, frozenset(self.world.members_of(self.life.node))
        changes_at = grouped((row.node, row.time_ms) for row in changes_of(self.control, members))
        for run in self.rows("members_changed"):
            broker, at_ms = self.world.owners.get(run.row.address, ""), run.ended_ms
            disturbed = self.troubles.between(broker, at_ms - near_ms, at_ms) or self.held(at_ms - near_ms, at_ms)
            is_last = at_ms + near_ms >= self.end_ms  # the broker may not live to record the change
            if broker and not disturbed and not is_last:
                yield broker, Done(at_ms, self.within(changes_at.get(broker, ()), at_ms - near_ms, at_ms + near_ms))
