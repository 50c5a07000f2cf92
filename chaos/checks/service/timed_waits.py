"""Part of timers_kept: waits that no timer starts; each ends after the time of its setting, neither early nor late.

| timer         | measured                                                                 | rows              |
|---------------|--------------------------------------------------------------------------|-------------------|
| … time-out    | from the beginning of the call until nobody waits for its answer         | timed_out         |
| channel       | from when nobody waits for an answer until the channel is closed, at once| channel           |
| lost channel  | none: a call ends when its channel does                                  | timed_out, channel|
| pull delay    | how long a queue's next pull was put off                                 | pull_delayed      |

And what brokers and NameServers refused this process though RocketMQ's refuse it nobody (refused).

For how long is oracle/time_outs.py.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping

from ....remoting.codes import RequestCode, ResponseCode
from ...oracle.client_profiles import Outcome
from ...oracle.intervals import grouped
from ...oracle.time_outs import (
    CONNECT,
    PULL_CALL_MS,
    SEND,
    Wait,
    check_periods,
    look_up,
    pull_delay,
    time_out,
    tries,
)
from ...oracle.timers import Act
from ...verdict import Finding
from ..findings import Done
from ..record.lateness import may_time_out
from ..record.timer_acts import Process, Run

TIME_OUT, CHANNEL, PULL_DELAY = "time-out", "channel of a call that ran out", "pull delay"
_FLOW_CONTROL = "broker_flow_control"
_ASYNC = "PULL_MESSAGE"
"""Nobody waits for its answer, and its time-out closes nothing."""
_LOOK_UP = RequestCode.GET_ROUTEINFO_BY_TOPIC.name
_BUSY = (ResponseCode.SYSTEM_BUSY,)
_REFUSES = {
    RequestCode.QUERY_CONSUMER_OFFSET.name: (ResponseCode.QUERY_NOT_FOUND,),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP.name: (ResponseCode.SYSTEM_ERROR,),  # without a member: group_answers.py
}
"""With which codes a living peer refuses requests (rows `refused`); it answers all others of these."""
_SPARED_MS = 100.0
"""From 5.1.4 on an answer that had no longer to come costs no channel."""


class Waits(Process):
    """The waits of one process."""

    def findings(self) -> Iterator[Finding]:
        for what, acts in grouped(self._time_outs()).items():
            row = "NettyRemotingClient: a call ends by its time-out, a send by sendMsgTimeout"
            yield from self.finding(f"{what} {TIME_OUT}", "times out when set", row, acts)
        if self.kind in ("producer", "consumer"):
            if self.timers.Z:
                row = "NettyRemotingClient: a call that times out closes its channel (clientCloseSocketIfTimeout)"
                yield from self.finding(CHANNEL, "closes channels of time-outs", row, self._closes())
            row = "NettyRemotingAbstract.failFast: a call ends when its channel does"
            yield from self.done("call", "ends with its channel", row, self._waited_on())
            row = "PullRequestHoldService: a pull is answered at the first check after suspendTimeoutMillis"
            yield from self.of_brokers("answers pulls", row, self._unanswered())
        if self.kind != "name_server":
            row = "ClientManageProcessor, ConsumerManageProcessor, AdminBrokerProcessor, DefaultRequestProcessor"
            yield from self.of_brokers("refuses no such request", row, self._refused())
        row = "DefaultMQPushConsumerImpl: the next pull is put off"
        for why, acts in grouped(self._pull_delays()).items():
            yield from self.finding(f"{PULL_DELAY}: {why}", "lasts as long as set", row, acts)
        row = "DefaultMQPushConsumerImpl.onException: only code 215 (FLOW_CONTROL) puts a pull off for 20 ms"
        delays = ((run.ended_ms, run.row.f == _FLOW_CONTROL, run.row.code) for run in self.rows("pull_delayed"))
        done = (Done(at, is_by_flow == (code == ResponseCode.FLOW_CONTROL)) for at, is_by_flow, code in delays)
        yield from self.done(PULL_DELAY, "waits by the code", row, done)

    def _refused(self) -> Iterator[tuple[str, Done]]:
        """What brokers and NameServers refused this process; wrong is what RocketMQ's refuse nobody."""
        for run in self.rows("refused"):
            broker, what = self.world.owners.get(run.row.address, ""), str(run.row.f)
            if self.world.is_ours(broker):
                yield broker, Done(run.ended_ms, run.row.code in (*_BUSY, *_REFUSES.get(what, ())), what)

    def _waited_on(self) -> Iterator[Done]:
        """The calls that ran out; wrong is that although their channel had ended before: of a send its last try; of a
        look-up nobody knows which of its tries had the channel."""
        near_ms, ends = self.timers.delivery_ms, self._channels("close")
        for run in self.rows("timed_out"):
            what, to_ms = str(run.row.f), run.ended_ms - near_ms
            from_ms = run.ended_ms - run.value.get("attempt_ms", run.ended_ms - run.began_ms) + near_ms
            if what not in (CONNECT, _LOOK_UP) and not self.held(from_ms, to_ms):
                address = run.row.address
                is_ended = from_ms < to_ms and self.within(ends.get(address, ()), from_ms, to_ms)
                yield Done(run.ended_ms, not is_ended, self.world.owners.get(address, ""))

    def _unanswered(self) -> Iterator[tuple[str, Done]]:
        """Brokers of ours, and the pulls that ran out there; wrong is that although nothing kept their answers: a
        broker holds a pull for as long as the pull asks, and until its next check, which is shorter."""
        ours = {one.name for one in self.world.ours("broker", "slave") if not self.world.clocks.get(one.name)}
        for run in self.rows("timed_out"):
            broker = self.world.owners.get(run.row.address, "")
            given_up = run.ended_ms - run.began_ms < PULL_CALL_MS - self.timers.delivery_ms
            if run.row.f != _ASYNC or broker not in ours or given_up:  # too early, which is the client's own fault
                continue
            lag_ms = self.control.lateness.largest(self.world, (self.life.node, broker), run.began_ms, run.ended_ms)
            is_kept = self.held(run.began_ms, run.ended_ms) or self.troubles.between(broker, run.began_ms, run.ended_ms)
            wait = check_periods(self.world, broker, run.began_ms, run.ended_ms)[-1]
            is_late = lag_ms is None or may_time_out(self.timers, lag_ms, wait.ms)
            yield broker, Done(run.ended_ms, is_kept or is_late)

    def _channels(self, f: str) -> Mapping[str, list[float]]:
        """Address → when this process opened, or lost, a channel to it."""
        return grouped((run.row.address, run.ended_ms) for run in self.rows("channel") if run.row.f == f)

    # -- time-outs

    def _time_outs(self) -> Iterator[tuple[str, Act]]:
        for run in self.rows("timed_out"):
            what = str(run.row.f)
            wait = time_out(self.world, self.life.node, self.kind, what)
            if wait is not None:
                other = self._capped(run, wait.ms) if what == SEND else self._at_each_entry(run, wait)
                yield what, other or self.wait(run.began_ms, run.ended_ms, wait.ms, wait.symbol)

    def _at_each_entry(self, run: Run, wait: Wait) -> Act | None:
        """A look-up of a client whose language asks the next entry of its list, and waits anew, where one is silent."""
        node = self.life.node
        asks_on = Outcome.NO_ANSWER in self.world.client_profile_of(node).retries
        if run.row.f != _LOOK_UP or not asks_on:
            return None
        whole = look_up(self.world, node, len(self.world.addresses_of(node)))
        return self.wait(run.began_ms, run.ended_ms, whole.ms, whole.symbol)._replace(earliest_ms=wait.ms)

    def _capped(self, run: Run, budget_ms: float) -> Act | None:
        """One try of a send that has less time than is left of the call (sendMsgMaxTimeoutPerRequest)."""
        cap_ms, attempt_ms = self.world.send_cap_ms(self.life.node), run.value.get("attempt_ms")
        if cap_ms is None or attempt_ms is None or (run.row.attempt or 0) + 1 >= tries(self.world, self.life.node):
            return None
        before_ms = run.ended_ms - run.began_ms - attempt_ms
        if before_ms + cap_ms >= budget_ms:
            return None
        return self.wait(run.ended_ms - attempt_ms, run.ended_ms, cap_ms, "per request")

    def _closes(self) -> Iterator[Act]:
        """From the end of each call that ran out until the channel that it waited on was closed."""
        near_ms, channels = self.timers.delivery_ms, [self._channels(f) for f in ("open", "close")]
        for run in self.rows("timed_out"):
            what, at_ms = str(run.row.f), run.ended_ms
            opened, closed = (of.get(run.row.address, []) for of in channels)
            if what in (CONNECT, _ASYNC) or time_out(self.world, self.life.node, self.kind, what) is None:
                continue
            if self.within(opened, at_ms - _SPARED_MS - near_ms, at_ms):
                continue
            if self.within(closed, run.began_ms, at_ms - near_ms):
                continue  # it had ended before
            at = bisect_left(closed, at_ms - near_ms)
            if at < len(closed):
                yield self.wait(at_ms, max(at_ms, closed[at]), 0.0, "at once")._replace(earliest_ms=None)
            elif self.end_ms > at_ms + near_ms:
                missing = self.wait(at_ms, self.end_ms, 0.0, "at once")
                yield missing._replace(earliest_ms=None, missing=True)

    # -- pulls

    def _pull_delays(self) -> Iterator[tuple[str, Act]]:
        for run in self.rows("pull_delayed"):
            why, about = str(run.row.f), run.value
            wait = pull_delay(self.world, self.life.node, why)
            if wait is None:
                continue
            longest = self.wait(run.began_ms, run.ended_ms, wait.ms, wait.symbol)
            times, shortest_ms = about.get("times", 1), about.get("shortest_ms", longest.measured_ms)
            since_ms = run.ended_ms - times * longest.measured_ms
            yield why, longest._replace(since_ms=since_ms)
            if times > 1:
                began_ms = run.ended_ms - shortest_ms
                yield why, Act(began_ms, shortest_ms, wait.ms, math.inf, wait.symbol, since_ms=since_ms)
