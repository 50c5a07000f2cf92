"""Part of timers_kept: who drops a peer for its silence closes the peer's channel, and reads nothing from it any more;
and a broker whose channel to a client ended, or where the client unregistered, has nothing of this client left to drop.
Neither closes a client's channel before the channel was idle, or the client silent, for as long as it may be.

| who          | drops                             | and reads there no more | upstream                              |
|--------------|-----------------------------------|-------------------------|---------------------------------------|
| a NameServer | a broker: of its last             | request_read            | RouteInfoManager.scanNotActiveBroker  |
|              | registration                      |                         |                                       |
| a broker     | a client: of its heartbeat        | client_heartbeat        | ConsumerManager, ProducerManager:     |
|              |                                   |                         | scanNotActiveChannel                  |
| both         | a channel of a client that was    |                         | IdleStateHandler                      |
|              | idle for serverChannelMaxIdle…    |                         |                                       |
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ...oracle.intervals import grouped
from ...oracle.link import MOMENT_MS
from ...oracle.queue_owners import node_of_client
from ...oracle.time_outs import CLIENT_EXPIRED_MS, SUSPEND_MS
from ...verdict import Finding
from ..findings import Done, of_done
from ..record.received import received
from ..record.timer_acts import Process, by_process

CHANNEL = "channel of an expired peer"
_IDLE = "serverChannelMaxIdleTimeSeconds"
_CHECK_MS = 5_000.0
"""`PullRequestHoldService`: how often a broker looks whether it has held a pull for long enough."""


class ExpiredChannels(Process):
    """Those of one process of a NameServer or a broker."""

    def findings(self) -> Iterator[Finding]:
        about = self.life.node, CHANNEL
        expired, read = self._at_broker() if self.kind == "broker" else self._at_name_server()
        if ended := {channel: at_ms for at_ms, channel in expired}:
            row = "a scan closes the channel of each peer that it drops"
            done = [Done(at_ms, True) for at_ms in ended.values()]
            done += [Done(at_ms, False) for at_ms, channel in read if at_ms > ended.get(channel, at_ms)]
            span = min(ended.values()), self.end_ms
            yield from of_done(about, "closes channels of dropped peers", row, done, span=span)
        if self.kind == "broker":
            row, done = "ProducerManager, ConsumerManager: doChannelCloseEvent", [*self._left()]
            span = min((one.at_ms for one in done), default=0.0), self.end_ms
            yield from of_done(about, "forgets clients that left", row, done, span=span)
            row = "IdleStateHandler: a channel is closed that was idle for serverChannelMaxIdleTimeSeconds"
            yield from self.done(CHANNEL, "closes idle channels", row, self._silent())
        if not self.world.clocks.get(self.life.node):  # or it counts a client's silence by its wall clock
            row = "IdleStateHandler, scanNotActiveChannel: a client's channel is closed only when it was idle"
            yield from self.done(CHANNEL, "closes only idle channels", row, self._idle())

    def _silent(self) -> Iterator[Done]:
        """Pauses of clients to which nothing else was done, longer than their channel to this broker may be idle; wrong
        where the broker did not close the channel. A broker still answers what it holds, and tells of new members."""
        idle_ms, heard = 1000.0 * max(self.world.numbers(self.life.node, _IDLE)), self._used()
        gone = [(run.ended_ms, node_of_client(run.row)) for run in self.rows("client_gone")]
        beats = self.rows("client_heartbeat")
        joined = {str(run.row.op_id): (run.ended_ms, node_of_client(run.row)) for run in reversed(beats)}.values()
        for client, times in heard.items():
            for pause in self.world.paused(client):
                since_ms = max(times[: bisect_right(times, pause.start_ms)], default=-math.inf)
                heard_ms = self.world.timers_of(client).H_ms + self.near_ms  # or its channel may have ended
                is_there = since_ms >= pause.start_ms - heard_ms
                told = (at_ms for at_ms, who in (*joined, *gone) if who != client and at_ms < pause.end_ms)
                due_ms = max([pause.start_ms + SUSPEND_MS + _CHECK_MS, *told]) + idle_ms + _CHECK_MS
                faults = self.world.way_faults(client, self.life.node)
                is_hit = any(one.start_ms != pause.start_ms and one.overlaps(since_ms, due_ms) for one in faults)
                is_hit = is_hit or self.held(pause.start_ms, due_ms)
                left_ms = min((at_ms for at_ms, who in gone if who == client and at_ms > since_ms), default=math.inf)
                if left_ms > pause.start_ms and due_ms < min(pause.end_ms, self.end_ms) and is_there and not is_hit:
                    yield Done(due_ms, left_ms <= due_ms, client)

    def _idle(self) -> Iterator[Done]:
        """Ends of channels of clients; wrong where this process ended one within the time that it may be idle, though
        nothing was done meanwhile to either, and to the link."""
        node, used = self.life.node, self._used()
        idle_ms = 1000.0 * min(self.world.numbers(node, _IDLE))
        idle_ms = min(idle_ms, CLIENT_EXPIRED_MS) if self.kind == "broker" else idle_ms
        for (client, _), channels in by_process(self.control, "channel").items():
            last_ms: float | None = None
            for run in channels:
                at_ms = run.ended_ms
                if run.row.address != self.world.address_at(node, at_ms) or not self.start_ms <= at_ms < self.end_ms:
                    continue
                if run.row.f == "open":
                    last_ms = at_ms
                elif run.row.f == "close" and last_ms is not None:
                    heard = used.get(client, [])
                    last_ms = max([last_ms, *heard[: bisect_right(heard, at_ms)][-1:]])
                    is_early = at_ms - last_ms < idle_ms - 1000.0 - self.timers.delivery_ms
                    faults = self.world.way_faults(client, node)
                    until_ms = at_ms + MOMENT_MS + self.timers.clocks_ms
                    is_hit = any(fault.overlaps(at_ms - idle_ms, until_ms) for fault in faults)
                    is_own = run.value.get("reason") == "closed by peer"
                    yield Done(at_ms, is_hit or not (is_own and is_early), client)
                    last_ms = None

    def _used(self) -> Mapping[str, list[float]]:
        """Client → when this process heard of it, ascending: a broker by heartbeats, a NameServer by look-ups that it
        answered, for one that finds the channel closed under it was not read."""
        if self.kind == "broker":
            return grouped((node_of_client(run.row), run.ended_ms) for run in self.rows("client_heartbeat"))
        found = defaultdict[str, list[float]](list)
        for (client, _), calls in by_process(self.control, "name_server_call").items():
            answered = (call for call in calls if call.row.code is not None)
            here = (call for call in answered if self.world.owners.get(call.row.name_server) == self.life.node)
            found[client] += (call.ended_ms for call in here)
        return found

    def _left(self) -> Iterator[Done]:
        """When clients left; wrong is a second time."""
        left = dict[str, float]()
        for row in self.control.by_process("client_heartbeat", "client_gone").get(self.process, ()):
            channel = str(row.op_id)
            if row.event == "client_heartbeat":
                left.pop(channel, None)
            elif channel in left:
                yield Done(row.time_ms, False)
            elif row.f != "expired":  # then each group of the channel has a row
                left[channel] = row.time_ms
        yield from (Done(at_ms, True) for at_ms in left.values())

    def _at_name_server(self) -> tuple[Iterable[tuple[float, str]], Iterable[tuple[float, str]]]:
        of = received(self.control, self.world)
        routes = of.routes(self.life)
        read = ((one.at_ms, one.channel) for one in of.requests(self.life) if one.f.isupper())
        return (() if routes is None else routes.expired), read

    def _at_broker(self) -> tuple[Iterable[tuple[float, str]], Iterable[tuple[float, str]]]:
        gone = ((run.ended_ms, str(run.row.op_id)) for run in self.rows("client_gone") if run.row.f == "expired")
        return gone, ((run.ended_ms, str(run.row.op_id)) for run in self.rows("client_heartbeat"))
