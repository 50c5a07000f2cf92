"""Part of timers_kept: the periodic tasks of a client, its look-ups, and the rounds of its rebalance.

    run ─────┤ended ─ waitInterval ─ run                                       RebalanceService: counted from the end

How long a run takes: where every peer answers, no longer than its calls there and back; where one does not, as long as
their time-outs. Each look-up is a `name_server_call`.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ....remoting.codes import RequestCode
from ....remoting.node.profile import Profile
from ....remoting.top_addressing import TASK as FETCH
from ....remoting.top_addressing import TIMEOUT_S
from ....remoting.topics import TBW102
from ...oracle.queue_owners import Queue, readable
from ...oracle.recorded import Life
from ...oracle.time_outs import HEARTBEAT, OFFSET_CALL_MS, PERSIST, POLL, REBALANCE, client_tasks, look_up
from ...oracle.timers import Act
from ...oracle.world import World
from ...topology import ADDRESS_SERVER, broker_name
from ...verdict import Finding
from ..findings import Done, of_done
from ..messages.shares import share
from ..record.control import Control
from ..record.timer_acts import Run
from .tasks import Tasks


class ClientTasks(Tasks):
    """Of one process."""

    calls_event = "name_server_call"

    def __init__(self, control: Control, world: World, life: Life, kind: str) -> None:
        super().__init__(control, world, life, kind, client_tasks(world, life.node, kind))

    def others(self) -> Iterator[Finding]:
        if self.kind == "consumer":
            row = "DefaultMQPushConsumerImpl.start: rebalanceImmediately, after look-ups and heartbeats"
            yield from self.finding(REBALANCE, "rebalances at its start", row, self._first_round())
            row = "RebalanceService: waits Qr after each round"
            yield from self.finding(REBALANCE, "each Qr after the last", row, self._waits())
            yield from self.finding(REBALANCE, "takes no longer than the round's calls", row, self._rebalances())
        row = "MQClientInstance: each round asks for every topic"
        # A client that is being stopped has given up its groups, and with them their topics.
        polls = [run for run in self.runs if run.row.f == POLL and run.began_ms < self.end_ms]
        done = [*self._polled(polls)]
        last_ms = max((one.at_ms for one in done if not one.is_right), default=0.0)
        asks_ms = next((run.began_ms for run in polls if run.began_ms > last_ms), max(self.end_ms, last_ms))
        about, span = (self.life.node, POLL), (polls[0].began_ms if polls else 0.0, self.end_ms)
        yield from of_done(about, "asks for every topic", row, done, span=span, to_ms=asks_ms)
        row = "a look-up ends by mqClientApiTimeout"
        yield from self.finding("look-up", "ends by its time-out", row, self._look_ups())

    # -- rebalance

    def _first_round(self) -> Iterator[Act]:
        """From the start until the first round began."""
        first = next((run for run in self.runs if run.row.f == REBALANCE), None)
        began_ms = self.end_ms if first is None else first.began_ms
        within_ms = sum(self.longest_ms(task, self.start_ms, began_ms) for task in (POLL, HEARTBEAT))
        act = self.wait(self.start_ms, began_ms, within_ms, "its start")
        if first is not None or act.over_ms > 0:
            yield act._replace(earliest_ms=None, missing=first is None)

    def _waits(self) -> Iterator[Act]:
        """From the end of each round until the next began."""
        rounds = [run for run in self.runs if run.row.f == REBALANCE]
        # A queue whose offset was not answered is left undone, whatever the round says of itself.
        undone = [run.began_ms for run in self.rows("timed_out") if run.row.f == RequestCode.QUERY_CONSUMER_OFFSET.name]
        lacking = {*self._lacking()}
        for before, run in pairwise(rounds):
            woken = run.value.get("woken", False)
            wait_ms, symbol = self.timers.Qr_ms, "Qr"
            is_undone = before.row.seq in lacking or self.within(undone, before.began_ms, before.ended_ms)
            if self.timers.profile is Profile.V5_X and (is_undone or not before.value.get("balanced", True)):
                wait_ms, symbol = self.world.number(self.life.node, "minInterval"), "minInterval"
            act = self.wait(before.ended_ms, run.began_ms, wait_ms, symbol)
            yield act._replace(earliest_ms=None) if woken else act
        ended_ms = rounds[-1].ended_ms if rounds else self.start_ms
        # The round that was under way at the end has left no row.
        under_way_ms = self.round_runs_out_ms(ended_ms, self.end_ms)
        yield from self.never(ended_ms, self.timers.Qr_ms + under_way_ms, "Qr, and one round")

    def _lacking(self) -> Iterator[int]:
        """The rows of the rounds after which it lacked a queue of its share, by the last list of members that the round
        had, and the route that it had throughout. A queue that its pull gave up since it is counted as held."""
        own = {str(run.value.get("client")) for run in self.rows("client_id")[-1:]}
        events = ("route_changed", "members_listed", "assigned", "scheduled_task")
        routes, lists, held = dict[str, Run](), dict[str, Sequence[str]](), dict[str, set[Queue]]()
        for run in sorted((run for event in events for run in self.rows(event)), key=lambda run: run.row.seq):
            match run.row.event:
                case "route_changed":
                    routes[run.row.topic] = run
                case "members_listed":
                    lists[run.row.topic] = run.row.decoded or ()
                case "assigned":
                    held[run.row.topic] = {(str(name), int(number)) for name, number in run.row.decoded or ()}
                case _ if run.row.f == REBALANCE:
                    for topic, ids in lists.items():
                        is_known = topic in routes and routes[topic].ended_ms < run.began_ms
                        for me in own.intersection(ids) if is_known else ():
                            if share(me, readable(routes[topic].value), ids) - held.get(topic, set()):
                                yield run.row.seq
                    lists = {}

    def _rebalances(self) -> Iterator[Act]:
        """How long each round took; beside a fault all its calls may run out."""
        for run in self.runs:
            if run.row.f == REBALANCE:
                bound_ms = self.longest_ms(REBALANCE, run.began_ms, run.ended_ms)
                bound_ms += self.round_runs_out_ms(run.began_ms, run.ended_ms)
                yield self.length(run, bound_ms, "its calls", self.calls_of_a_round)

    # -- how long

    def longest_ms(self, task: str, from_ms: float, to_ms: float) -> float:
        lock_ms, each_ms = self.lock_ms, self.timers.delivery_ms
        silent = self.troubles.among(self.name_servers, from_ms, to_ms)
        hung = self.troubles.among(self.brokers, from_ms, to_ms)
        # A NameServer that answers late is no delay of this node's; each call has a bound of its own.
        asking_ms = self.asked_ms(from_ms, to_ms) + (lock_ms if silent else 0.0)
        if task == POLL:
            return asking_ms + (len(self.calls_in(from_ms, to_ms)) + 1) * (each_ms + (lock_ms if silent else 0.0))
        if task == HEARTBEAT:
            # A broker's address that is registered under another name, too, gets a heartbeat for each name.
            by_hand = [act.address for act in self.world.acts if act.f == "register"]
            named = len(hung) + sum(self.world.owners.get(address) in hung for address in by_hand)
            return asking_ms + self.timers.A_ms * named + (len(self.brokers) + 1) * each_ms
        if task == PERSIST:
            names = set(map(broker_name, hung))  # a slave has them where its master is gone
            waits_ms = OFFSET_CALL_MS * sum(broker in names for broker, _, _ in self.queues)
            if silent and hung:  # an address that is not known is asked for
                waits_ms += len(self.queues) * (lock_ms + self.call_ms(len(self.name_servers)))
            return asking_ms + waits_ms + each_ms
        if task == FETCH:
            lost = self.troubles.among([ADDRESS_SERVER], from_ms, to_ms)
            return 2 * each_ms + (1000 * TIMEOUT_S if lost else 0.0)
        if task == REBALANCE:
            return asking_ms + (2 * len(self.queues) + 2 * len(self.brokers) + 4) * each_ms
        return each_ms

    def calls_of(self, task: str, run: Run) -> int:
        return len(self.brokers) if task == HEARTBEAT else super().calls_of(task, run)

    def call_ms(self, tried: int) -> float:
        return look_up(self.world, self.life.node, tried).ms

    def _look_ups(self) -> Iterator[Act]:
        """Each look-up: its answer by A, or a connect by C for each NameServer that it met; and its turn before."""
        for number, call in enumerate(self.calls):
            tried = len(call.value.get("tried") or ())
            wait = look_up(self.world, self.life.node, tried)
            bound_ms = wait.ms + self.timers.delivery_ms
            beside = self.calls[max(0, number - 20) : number + 20]
            if any(o is not call and o.began_ms <= call.ended_ms and o.ended_ms >= call.began_ms for o in beside):
                bound_ms += self.lock_ms
            yield self.length(call, bound_ms, wait.symbol)

    # -- polls

    def _polled(self, polls: Sequence[Run]) -> Iterator[Done]:
        """Wrong are polls that left out a topic that the client has, though each of their look-ups was answered.

        A client never forgets a topic that it asked for, but for createTopicKey, for which it asks in another's place.
        That one a producer of 4.9 has from its start on.
        """
        has = {TBW102} if self.kind == "producer" and self.timers.profile is Profile.V4_9 else set[str]()
        asked = (call for call in self.calls if call.row.f == "route" and call.began_ms >= self.start_ms - 1.0)
        call = next(asked, None)
        for run in polls:
            while call is not None and call.ended_ms <= run.began_ms - self.timers.at_once_ms:
                has |= {call.row.topic} - {TBW102}
                call = next(asked, None)
            calls = self.calls_in(run.began_ms, run.ended_ms)
            cut_short = any(one.row.code is None for one in calls) or self.held(run.began_ms, run.ended_ms)
            if not cut_short and not self.troubles.among(self.name_servers, run.began_ms, run.ended_ms):
                yield Done(run.began_ms, has <= {one.row.topic for one in calls})
