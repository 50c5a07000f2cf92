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

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ...oracle.queue_owners import node_of_client
from ...oracle.time_outs import CLIENT_EXPIRED_MS
from ...verdict import Finding
from ..findings import because, of_many
from ..record.received import received
from ..record.timer_acts import Process, by_process

CHANNEL = "channel of an expired peer"


class ExpiredChannels(Process):
    """Those of one process of a NameServer or a broker."""

    def findings(self) -> Iterator[Finding]:
        expired, read = self._at_broker() if self.kind == "broker" else self._at_name_server()
        ended = {channel: at_ms for at_ms, channel in expired}
        if ended:
            wrong = [at_ms for at_ms, channel in read if at_ms > ended.get(channel, at_ms)]
            span, row = (min(ended.values()), self.end_ms), "a scan closes the channel of each peer that it drops"
            yield of_many(
                (self.life.node, CHANNEL), "closes channels of dropped peers", span, row, len(ended) + len(wrong), wrong
            )
        if self.kind == "broker":
            yield from self._left()
        yield from self._early()

    def _early(self) -> Iterator[Finding]:
        """Of channels of clients: whether this process ended one within the time that it may be idle, though nothing
        was done meanwhile to either, and to the link."""
        node = self.life.node
        if self.world.clocks.get(node):  # it counts a client's silence by its wall clock
            return
        used = self._used()
        idle_ms = 1000.0 * float(str(self.world.setting(node, "serverChannelMaxIdleTimeSeconds")))
        idle_ms = min(idle_ms, CLIENT_EXPIRED_MS) if self.kind == "broker" else idle_ms
        ended, wrong = 0, dict[float, str]()
        for (client, _), channels in by_process(self.control, "channel").items():
            last_ms: float | None = None
            for run in channels:
                at_ms = run.ended_ms
                if run.row.address != self.world.address_at(node, at_ms) or not self.start_ms <= at_ms < self.end_ms:
                    continue
                if run.row.f == "open":
                    last_ms = at_ms
                elif run.row.f == "close" and last_ms is not None:
                    ended += 1
                    heard = bisect_right(used[client], at_ms)
                    last_ms = max(last_ms, used[client][heard - 1]) if heard else last_ms
                    is_early = at_ms - last_ms < idle_ms - 1000.0 - self.timers.delivery_ms
                    faults = self.world.way_faults(client, node)
                    is_hit = any(fault.overlaps(at_ms - idle_ms, at_ms + 1.0) for fault in faults)
                    if run.value.get("reason") == "closed by peer" and is_early and not is_hit:
                        wrong[at_ms] = client
                    last_ms = None
        if ended:
            row = "IdleStateHandler, scanNotActiveChannel: a client's channel is closed only when it was idle"
            span, more = (self.start_ms, self.end_ms), because(wrong.values())
            yield of_many((node, CHANNEL), "closes only idle channels", span, row, ended, sorted(wrong), more=more)

    def _used(self) -> Mapping[str, list[float]]:
        """Client → when this process heard of it, ascending: a broker by heartbeats, a NameServer by look-ups that it
        answered, for one that finds the channel closed under it was not read."""
        found = defaultdict[str, list[float]](list)
        if self.kind == "broker":
            for run in self.rows("client_heartbeat"):
                found[node_of_client(run.row)].append(run.ended_ms)
            return found
        for (client, _), calls in by_process(self.control, "name_server_call").items():
            answered = (call for call in calls if call.row.code is not None)
            here = (call for call in answered if self.world.owners.get(call.row.name_server or "") == self.life.node)
            found[client] += (call.ended_ms for call in here)
        return found

    def _left(self) -> Iterator[Finding]:
        left, twice = dict[str, float](), list[float]()
        for row in self.control.rows("client_heartbeat", "client_gone"):
            channel = str(row.op_id)
            if row.process != self.process:
                continue
            if row.event == "client_heartbeat":
                left.pop(channel, None)
            elif channel in left:
                twice.append(row.time_ms)
            elif row.f != "expired":  # then each group of the channel has a row
                left[channel] = row.time_ms
        if left:
            rule, span = "ProducerManager, ConsumerManager: doChannelCloseEvent", (min(left.values()), self.end_ms)
            yield of_many(
                (self.life.node, CHANNEL), "forgets clients that left", span, rule, len(left) + len(twice), twice
            )

    def _at_name_server(self) -> tuple[Iterable[tuple[float, str]], Iterable[tuple[float, str]]]:
        of = received(self.control, self.world)
        routes = of.routes(self.life)
        read = ((one.at_ms, one.channel) for one in of.requests(self.life) if one.f.isupper())
        return (() if routes is None else routes.expired), read

    def _at_broker(self) -> tuple[Iterable[tuple[float, str]], Iterable[tuple[float, str]]]:
        gone = ((run.ended_ms, str(run.row.op_id)) for run in self.rows("client_gone") if run.row.f == "expired")
        return gone, ((run.ended_ms, str(run.row.op_id)) for run in self.rows("client_heartbeat"))
